"""The keys of one index outside memory: how slots leave, come back and are counted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final, Protocol

import numpy as np
import numpy.typing as npt

from flowsql_runtime.kernels.pages import bucket_hashes, mark_hashes
from flowsql_runtime.state.resident.column_store import key_table_of
from flowsql_runtime.state.resident.growing import grow
from flowsql_runtime.state.resident.key_index import KeyWords, ResidentKeyIndex
from flowsql_runtime.state.resident.row_queue import ResidentRowQueue
from flowsql_runtime.state.rocksdb.buckets import Buckets, bucket_of
from flowsql_runtime.state.rocksdb.cold_times import ColdTimes
from flowsql_runtime.state.rocksdb.database import Database, Reader, after
from flowsql_runtime.state.rocksdb.packing import KeyFormat, PackedRows, Part, first_times
from flowsql_runtime.state.rocksdb.pages import KeyRows, PageFormat, Pages

Bytes = npt.NDArray[np.uint8]
Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]
UInt32s = npt.NDArray[np.uint32]

_VALUES: Final = b"\x00"
_TIMES: Final = b"\x01"
#: Bytes and keys of pages that are read in one piece, about.
_READ_BYTES: Final = 4 << 20
_READ_KEYS: Final = 131_072
#: Keys that are written in one piece at most, and about how many bytes. In memory they take several times as much.
_PIECE: Final = 32_768
_PIECE_BYTES: Final = 1 << 20
#: Removed keys that wait in memory for the page that says that they are gone.
_MOST_GONE: Final = 16_384
#: Pages that are deleted one by one, rather than as a range, which every later read has to step over.
_FEW_PAGES: Final = 256


class ColdIndex(Protocol):
    """What a region asks of its index."""

    namespaced: bool
    types: tuple[Any, ...]

    @property
    def high_water(self) -> int:
        """One more than the highest slot ever given out."""
        ...

    def resident(self, keys: KeyWords) -> Int32s:
        """Slots of keys in memory, else -1."""
        ...

    def came_back(self, keys: KeyWords) -> Int32s:
        """Slots of keys that are put into memory."""
        ...

    def left(self, slots: Int32s) -> None:
        """Slots that leave memory."""
        ...

    def encoded_at(self, slots: Int32s) -> KeyWords:
        """The keys of slots."""
        ...

    def live_slots(self) -> Int32s:
        """All slots in memory."""
        ...


class Region:
    """One index with its stores.

    What is in memory counts; pages may hold an older state of it, and keys that are gone. Of what several pages hold
    the newest counts.

    Args:
        number: of the region in the database.
        index: in memory.
        width, var: how its keys are made, as in ``ResidentKeyIndex``.
        database: where slots go.
    """

    def __init__(self, number: int, index: ColdIndex, width: int, var: Bytes, database: Database) -> None:
        self._index = index
        self._database = database
        self._width = width
        self._var = var
        self.number = number
        self._base = number.to_bytes(2, "big")
        #: What the keys of all pages begin with.
        self.prefix = self._base + _VALUES
        self._key_format = KeyFormat(width, var, index.namespaced)
        self.parts: list[Part] = []
        self._times: list[ColdTimes | None] = []
        self.queues: list[ResidentRowQueue] = []
        #: Keys that are outside memory alone.
        self.cold = 0
        #: How many of them each namespace has.
        self.namespaces: dict[int, int] = {}
        #: The pages of each namespace; 0 where the index has none.
        self._buckets: dict[int, Buckets] = {}
        #: Keys that were removed while a page held an old state of them. Written before any later page.
        self._gone = self._keys_of_this_index()
        #: Keys that no page has. Void as soon as anything leaves memory.
        self._nowhere = self._keys_of_this_index()
        #: By slot: whether a page has an old state of its key; when it was named last.
        self._stored = np.zeros(0, np.uint8)
        self._named = np.zeros(0, np.int64)
        self._now = 0
        #: Keys that leave in one piece, and about the bytes of one.
        self._piece = 4096
        self._key_bytes = 16.0

    def _keys_of_this_index(self, room: int = 0) -> ResidentKeyIndex:
        made = ResidentKeyIndex(self._index.types, namespaced=self._index.namespaced)
        made.reserve(room)
        return made

    def times(self) -> ColdTimes:
        """The times of the store that joins next."""
        return ColdTimes(self._base + _TIMES + len(self.parts).to_bytes(2, "big"), self._database, self._load_packed)

    def join(self, part: Part, times: ColdTimes | None) -> None:
        """One more store of the index. States that left before it joined have no rows of it."""
        old = self._format() if self._buckets else None
        self.parts.append(part)
        self._times.append(times)
        if old is not None:
            self._write_gone(old)
            for namespace, buckets in self._buckets.items():
                self._write_anew(namespace, buckets, np.flatnonzero(buckets.pages(np.arange(len(buckets)))), old)

    def _format(self) -> PageFormat:
        return PageFormat(self._width, self._var, self.parts)

    def named(self, slots: Int32s) -> None:
        """Slots that the operator was given; -1 counts for nothing."""
        needed = self._index.high_water + 1
        if len(self._named) < needed:
            grow(self, "_named", needed)
            grow(self, "_stored", len(self._named))
        # Behind all slots there is one more: that of -1.
        self._named[slots] = self._now

    def tick(self) -> None:
        """An element is over."""
        self._now += 1

    # -- where keys are

    def _namespaces(self, keys: KeyWords) -> Int64s:
        return keys.words[:, 0].view(np.int64) if self._index.namespaced else np.zeros(len(keys), np.int64)

    def _hashes(self, keys: KeyWords) -> UInt32s:
        out = np.empty(len(keys), np.uint32)
        bucket_hashes(np.ascontiguousarray(keys.words), np.ascontiguousarray(keys.masks), self._var, out)
        return out

    def _page_prefix(self, namespace: int) -> bytes:
        return self.prefix + (namespace + (1 << 63)).to_bytes(8, "big")

    def _pages_of(
        self, namespace: int, buckets: Buckets, wanted: Int64s, size: int = _READ_BYTES, keys: int = _READ_KEYS
    ) -> Iterator[tuple[Int64s, list[bytes]]]:
        """Pieces of some buckets, of about so many bytes or keys, with their pages, of a bucket the oldest first."""
        prefix = self._page_prefix(namespace)
        costs = np.maximum(buckets.bytes[wanted] / size, buckets.keys[wanted] / keys)
        ends = np.cumsum(costs)
        start = 0
        while start < len(wanted):
            before = ends[start - 1] if start else 0
            stop = max(start + 1, int(np.searchsorted(ends, before + 1, side="right")))
            piece = wanted[start:stop]
            values = self._database.get_many(buckets.page_keys(prefix, piece))
            yield piece, [value for value in values if value is not None]
            start = stop

    # -- in

    def load_missing(self, keys: KeyWords, slots: Int32s, skip: Bytes) -> bool:
        """Bring those of a batch's keys that are outside memory back; says whether any came."""
        absent = slots < 0
        if skip.size:
            absent &= skip == 0
        missing = keys.take(np.flatnonzero(absent))
        if len(missing) and len(self._nowhere):
            missing = missing.take(np.flatnonzero(self._nowhere.lookup(missing) < 0))
        return bool(len(missing)) and self._bring(missing)

    def load_expected(self, keys: KeyWords) -> None:
        """Bring keys back that will be asked for soon, and remember those that are nowhere."""
        self._bring(keys)
        self._nowhere = self._keys_of_this_index(len(keys))
        self._nowhere.find_or_insert(keys.take(np.flatnonzero(self._index.resident(keys) < 0)))

    def _load_packed(self, keys: Sequence[bytes]) -> None:
        self._bring(self._key_format.unpack(keys))

    def _bring(self, keys: KeyWords) -> bool:
        if self._index.namespaced:
            keys = keys.take(np.flatnonzero(_among(self._namespaces(keys), self.namespaces)))
        if not len(keys):
            return False
        wanted = self._keys_of_this_index(len(keys))
        _, fresh = wanted.find_or_insert(keys)
        keys = keys.take(fresh)
        namespaces, hashes = self._namespaces(keys), self._hashes(keys)
        form = self._format()
        came = False
        for namespace in np.unique(namespaces).tolist():
            buckets = self._buckets[namespace]
            mine = hashes if not self._index.namespaced else hashes[namespaces == namespace]
            marks = np.zeros(_power_of_two_above(len(mine)), np.uint64)
            mark_hashes(mine, marks)
            for _, values in self._pages_of(namespace, buckets, buckets.distinct(mine)):
                pages = form.read(values)
                rows = pages.marked(marks)
                came |= self._put_newest(pages, rows, wanted.lookup(pages.keys.take(rows)), wanted.high_water)
        return came

    def _put_newest(self, pages: Pages, rows: Int64s, ids: Int32s, count: int) -> bool:
        """Put the newest row of each key into memory; ``ids`` below ``count`` name the keys of rows, -1 none."""
        picked = pages.newest(rows, ids, count)
        if len(self._gone) and len(picked):
            picked = picked[self._gone.lookup(pages.keys.take(picked)) < 0]
        if not len(picked):
            return False
        found = pages.pick(picked)
        slots = self._index.came_back(found.keys)
        self.named(slots)
        self._stored[slots] = 1
        self.cold -= len(slots)
        if self._index.namespaced:
            self._count(self._namespaces(found.keys), -1)
        for part, rows_of in zip(self.parts, found.parts, strict=True):
            part.put(slots[rows_of.positions], rows_of)
        entries = self._entries(found, -1)
        if entries:
            self._database.write((), (), entries)
        return True

    def _entries(self, rows: KeyRows, change: int) -> list[bytes]:
        """What the database has of the times of keys that leave (``change`` 1) or come back (-1)."""
        if not any(times is not None for times in self._times):
            return []
        packed = self._key_format.pack(rows.keys)
        entries: list[bytes] = []
        for part, times, found in zip(self.parts, self._times, rows.parts, strict=True):
            if times is not None:
                assert part.time_word is not None
                made = times.entries(first_times(found, part.time_word, len(packed)).tolist(), packed)
                times.count += change * len(made)
                entries += made
        return entries

    def _count(self, namespaces: Int64s, sign: int) -> None:
        found, counts = np.unique(namespaces, return_counts=True)
        for namespace, count in zip(found.tolist(), counts.tolist(), strict=True):
            left = self.namespaces.get(namespace, 0) + sign * count
            if left:
                self.namespaces[namespace] = left
            else:
                self.namespaces.pop(namespace, None)

    def load_up_to(self, namespace: int) -> None:
        """Bring all keys of namespaces at or before one back: many at a time, as each may hold a single key."""
        form = self._format()
        due = sorted(known for known in self.namespaces if known <= namespace)
        values: list[bytes] = []
        size = 0
        for known in due:
            buckets = self._buckets[known]
            for _, found in self._pages_of(known, buckets, np.arange(len(buckets))):
                values += found
                size += sum(map(len, found))
                if size >= _READ_BYTES:
                    self._put_all(form.read(values))
                    values, size = [], 0
        if values:
            self._put_all(form.read(values))
        self._forget_pages(due)

    def _put_all(self, pages: Pages) -> None:
        """Put every key of whole buckets into memory."""
        away = np.flatnonzero(self._index.resident(pages.keys) < 0)
        wanted = self._keys_of_this_index(len(away))
        ids = wanted.find_or_insert(pages.keys.take(away))[0]
        self._put_newest(pages, away, ids, wanted.high_water)

    # -- out

    def removed(self, slots: Int32s) -> None:
        """The operator removes slots: nothing of them stays."""
        old = slots[self._stored[slots] != 0] if len(self._stored) else slots[:0]
        if not len(old):
            return
        self._stored[old] = 0
        keys = self._index.encoded_at(old)
        if self._index.namespaced:
            keys = keys.take(np.flatnonzero(_among(self._namespaces(keys), self._buckets)))
        self._gone.find_or_insert(keys)
        if len(self._gone) > _MOST_GONE:
            self.write_gone()

    def write_gone(self) -> None:
        """Write pages that say which keys were removed: from now on the pages alone tell."""
        self._write_gone(self._format())

    def _write_gone(self, form: PageFormat) -> None:
        live = self._gone.live_slots()
        if not len(live):
            return
        keys = self._gone.encoded_at(live)
        namespaces, hashes = self._namespaces(keys), self._hashes(keys)
        order = np.lexsort((hashes, namespaces))
        order = order[_among(namespaces[order], self._buckets)]
        if len(order):
            rows = KeyRows(keys.take(order), _no_rows(self.parts[: form.parts]), np.ones(len(order), np.uint8))
            self._write(form, namespaces[order], hashes[order], rows, ())
        self._gone = self._keys_of_this_index()

    def cleared(self) -> None:
        """The operator removes all keys."""
        self._database.delete_prefix(self._base)
        self._stored[:] = 0
        self.cold = 0
        self.namespaces.clear()
        self._buckets.clear()
        self._gone = self._keys_of_this_index()
        for times in self._times:
            if times is not None:
                times.count = 0

    def _forget_pages(self, namespaces: Iterable[int]) -> None:
        """Remove the pages of namespaces: all that they hold is in memory or gone."""
        single: list[bytes] = []
        for namespace in namespaces:
            buckets = self._buckets.pop(namespace)
            prefix = self._page_prefix(namespace)
            everything = np.arange(len(buckets))
            if int(buckets.pages(everything).sum()) <= _FEW_PAGES:
                single += buckets.page_keys(prefix, everything)
            else:
                self._database.delete_prefix(prefix)
        if single:
            self._database.write((), (), single)

    def evict(self, keep: int) -> None:
        """Slots that were not named for longest leave, until ``keep`` are left; those in queues stay."""
        live = self._index.live_slots()
        if len(live) <= keep:
            return
        self.named(live[:0])
        pinned = [queue.slots() for queue in self.queues]
        if any(len(slots) for slots in pinned):
            live = np.setdiff1d(live, np.concatenate(pinned))
        count = len(live) - keep
        if count <= 0:
            return
        if keep:
            live = live[np.argpartition(self._named[live], count - 1)[:count]]
        self._nowhere = self._keys_of_this_index()
        self.write_gone()
        if self._index.namespaced or not self.cold:
            self._forget_pages([known for known in self._buckets if known not in self.namespaces])
        self._evict_all(np.ascontiguousarray(live))
        for part in self.parts:
            part.shrink()

    def _evict_all(self, slots: Int32s) -> None:
        form = self._format()
        namespaces, hashes = np.empty(len(slots), np.int64), np.empty(len(slots), np.uint32)
        for start in range(0, len(slots), _PIECE):
            keys = self._index.encoded_at(slots[start : start + _PIECE])
            namespaces[start : start + _PIECE] = self._namespaces(keys)
            hashes[start : start + _PIECE] = self._hashes(keys)
        order = np.lexsort((hashes, namespaces)) if self._index.namespaced else np.argsort(hashes)
        slots, namespaces, hashes = slots[order], namespaces[order], hashes[order]
        found, counts = np.unique(namespaces, return_counts=True)
        for namespace, count in zip(found.tolist(), counts.tolist(), strict=True):
            if namespace not in self._buckets:
                self._buckets[namespace] = Buckets(count, int(count * self._key_bytes))
        start = 0
        while start < len(slots):
            stop = start + self._piece
            self._evict(form, slots[start:stop], namespaces[start:stop], hashes[start:stop])
            start = stop
        for namespace in found.tolist():
            buckets = self._buckets[namespace]
            mine = buckets.distinct(hashes[namespaces == namespace])
            self._write_anew(namespace, buckets, buckets.overfull(mine), form)

    def _evict(self, form: PageFormat, slots: Int32s, namespaces: Int64s, hashes: UInt32s) -> None:
        rows = KeyRows(self._index.encoded_at(slots), [part.take(slots) for part in self.parts])
        written = self._write(form, namespaces, hashes, rows, self._entries(rows, 1))
        self._key_bytes = max(1.0, written / len(slots))
        self._piece = min(_PIECE, max(64, int(_PIECE_BYTES / self._key_bytes)))
        if self._index.namespaced:
            self._count(namespaces, 1)
        for part in self.parts:
            part.forget(slots)
        self._index.left(slots)
        self._stored[slots] = 0
        self.cold += len(slots)

    def _write(
        self, form: PageFormat, namespaces: Int64s, hashes: UInt32s, rows: KeyRows, entries: Sequence[bytes]
    ) -> int:
        """Write rows, which stand by namespace and hash, to new pages of their buckets; returns the bytes."""
        buckets = np.empty(len(hashes), np.int64)
        edges = np.flatnonzero(np.diff(namespaces)) + 1
        ends = [0, *edges.tolist(), len(hashes)]
        for start, stop in pairwise(ends):
            buckets[start:stop] = self._buckets[int(namespaces[start])].of(hashes[start:stop])
        new = np.ones(len(hashes) + 1, np.bool_)
        new[1:-1] = (np.diff(buckets) != 0) | (np.diff(namespaces) != 0)
        bounds = np.flatnonzero(new)
        values = form.write(rows, bounds)
        sizes, counts, firsts = np.fromiter(map(len, values), np.int64, len(values)), np.diff(bounds), bounds[:-1]
        keys: list[bytes] = []
        for start, stop in pairwise(ends):
            mine = slice(int(np.searchsorted(firsts, start)), int(np.searchsorted(firsts, stop)))
            namespace = int(namespaces[start])
            keys += self._buckets[namespace].written(
                self._page_prefix(namespace), buckets[firsts[mine]], counts[mine], sizes[mine]
            )
        self._database.write([*keys, *entries], [*values, *([b""] * len(entries))], ())
        return int(sizes.sum())

    def _write_anew(self, namespace: int, buckets: Buckets, wanted: Int64s, form: PageFormat) -> None:
        """Write buckets without what is outdated, cut where they hold too much. ``form``: of their pages."""
        prefix, new_form = self._page_prefix(namespace), self._format()
        # From the last on: cutting a bucket changes the numbers of those behind it.
        for piece, values in self._pages_of(namespace, buckets, wanted[::-1], _PIECE_BYTES, _PIECE):
            pages = form.read(values)
            known = self._keys_of_this_index(len(pages))
            ids = known.find_or_insert(pages.keys)[0]
            picked = pages.newest(np.arange(len(pages)), ids, known.high_water)
            picked = picked[self._index.resident(pages.keys.take(picked)) < 0]
            hashes = self._hashes(pages.keys.take(picked))
            order = np.argsort(hashes, kind="stable")
            picked, hashes = picked[order], hashes[order]
            live = np.bincount(buckets.of(hashes), minlength=len(buckets))[piece]
            sizes = buckets.bytes[piece] * live // np.maximum(buckets.keys[piece], 1)
            outdated = buckets.page_keys(prefix, piece)
            buckets.emptied(piece)
            buckets.cut(piece, live, sizes)
            self._database.write((), (), outdated)
            if len(picked):
                found = pages.pick(picked)
                rows = KeyRows(found.keys, [*found.parts, *_no_rows(self.parts[len(found.parts) :])])
                self._write(new_form, np.full(len(picked), namespace), hashes, rows, ())
                buckets.cleaned(buckets.distinct(hashes))

    # -- snapshots

    def stale_slots(self) -> Int32s:
        """Slots in memory of whose keys a page may have an old state, as of now."""
        return np.flatnonzero(self._stored[: self._index.high_water]).astype(np.int32)

    def packed(self, keys: KeyWords) -> list[bytes]:
        """Keys as bytes, for :meth:`outdate`."""
        return self._key_format.pack(keys)

    def outdate(self, packed: Sequence[bytes]) -> None:
        """Say that pages hold nothing of some keys that counts."""
        for start in range(0, len(packed), _MOST_GONE):
            keys = self._key_format.unpack(packed[start : start + _MOST_GONE])
            self._gone.find_or_insert(keys)
            self.write_gone()

    def counters(self) -> dict[str, Any]:
        """What is known of the keys outside memory but their pages, as JSON."""
        return {
            "cold": self.cold,
            "namespaces": list(self.namespaces.items()),
            "times": [None if times is None else times.count for times in self._times],
            "rows": [part.cold_rows for part in self.parts],
            "key_bytes": self._key_bytes,
        }

    @property
    def buckets(self) -> Mapping[int, Buckets]:
        """The pages of each namespace."""
        return self._buckets

    def restore_counters(self, found: Mapping[str, Any], buckets: dict[int, Buckets]) -> None:
        """The inverse of :meth:`counters` and :attr:`buckets`, for a region of which nothing is outside memory."""
        self.cold = found["cold"]
        self.namespaces = dict(found["namespaces"])
        self._buckets = buckets
        self._key_bytes = found["key_bytes"]
        for part, times, count, rows in zip(self.parts, self._times, found["times"], found["rows"], strict=True):
            part.cold_rows = rows
            if times is not None:
                times.count = count

    def cold_tables(
        self, reader: Reader, resident: ResidentKeyIndex, types: Sequence[Any]
    ) -> Iterator[tuple[str, Any]]:
        """Names and tables of what is outside memory alone, in pieces; ``resident`` has the keys in memory."""
        parts, form = list(self.parts), self._format()
        for values in _whole_buckets(reader.scan(self.prefix, after(self.prefix), 64)):
            pages = form.read(values)
            known = ResidentKeyIndex(types, namespaced=self._index.namespaced)
            ids = known.find_or_insert(pages.keys)[0]
            picked = pages.newest(np.arange(len(pages)), ids, known.high_water)
            picked = picked[resident.lookup(pages.keys.take(picked)) < 0]
            if not len(picked):
                continue
            found = pages.pick(picked)
            scratch = ResidentKeyIndex(types, namespaced=self._index.namespaced)
            slots, _ = scratch.find_or_insert(found.keys)
            for part, rows in zip(parts, found.parts, strict=True):
                if part.part_name:
                    names, columns = part.labelled(rows)
                    yield part.part_name, key_table_of(scratch, slots[rows.positions], columns, names)


def _power_of_two_above(keys: int) -> int:
    """Words of marks for so many keys: at least 16 bits a key."""
    return 1 << max(4, (keys // 4).bit_length())


def _among(namespaces: Int64s, known: Mapping[int, Any]) -> npt.NDArray[np.bool_]:
    return np.isin(namespaces, np.fromiter(known, np.int64, len(known)))


def _no_rows(parts: Sequence[Part]) -> list[PackedRows]:
    nothing, arena = np.zeros(0, np.int32), np.zeros(8, np.uint8)
    return [PackedRows(nothing, np.zeros((0, part.part_width), np.int64), part.part_refs, arena) for part in parts]


def _whole_buckets(pieces: Iterator[tuple[list[bytes], list[bytes]]]) -> Iterator[list[bytes]]:
    """Pages in pieces that end where a bucket ends."""
    held: list[bytes] = []
    size, bucket = 0, b""
    for keys, values in pieces:
        for key, value in zip(keys, values, strict=True):
            if size > _READ_BYTES and bucket_of(key) != bucket:
                yield held
                held, size = [], 0
            held.append(value)
            size += len(value)
            bucket = bucket_of(key)
    if held:
        yield held
