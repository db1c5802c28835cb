"""Pages: many keys of one index with what its stores keep of them, as one byte string.

Which keys share a page, and which of two pages that hold the same key is newer, others know (``buckets.py``). A row of
a page says of its key either what its stores keep, or that it is gone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np
import numpy.typing as npt

from flowsql_runtime.kernels import pages as kernels
from flowsql_runtime.state.resident.key_index import NO_MASKS, KeyWords
from flowsql_runtime.state.rocksdb.packing import PackedRows, Part
from flowsql_runtime.state.stores import NO_BYTES

Bytes = npt.NDArray[np.uint8]
Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]

#: Columns of keys before their words: NULL bits, and whether the key is gone.
_MASK: Final = 0
_GONE: Final = 1
_WORDS: Final = 2


@dataclass(frozen=True, eq=False, slots=True)
class KeyRows:
    """Keys (n,), each with the rows that the parts keep of it, or gone: uint8 (n,), None where none is."""

    keys: KeyWords
    parts: Sequence[PackedRows]
    gone: Bytes | None = None


class PageFormat:
    """How pages of one index are written: level 0 is a row a key, level i + 1 the rows of part i.

    Args:
        width, var: how keys are made, as in ``ResidentKeyIndex``.
        parts: the stores, whose rows stand in this order.
    """

    def __init__(self, width: int, var: Bytes, parts: Sequence[Part]) -> None:
        self._width = width
        self.var = var
        #: How many parts there are.
        self.parts = len(parts)
        #: Columns of each level.
        self._columns = [_WORDS + width + len(parts), *(part.part_width for part in parts)]
        self._level_of = np.repeat(np.arange(len(self._columns)), self._columns).astype(np.int64)
        #: By level, which of its columns have bytes of their own.
        key_bytes = [_WORDS + int(word) for word in np.flatnonzero(var == 2)]
        self._with_bytes = [key_bytes, *([int(word) for word in np.flatnonzero(part.part_refs)] for part in parts)]
        self._refs = [part.part_refs for part in parts]
        self._places = sum(map(len, self._with_bytes))

    def write(self, rows: KeyRows, bounds: Int64s) -> list[bytes]:
        """Pages of the keys between ``bounds`` (pages + 1)."""
        n, pages = len(rows.keys), len(bounds) - 1
        heads = np.zeros((n, self._columns[0]), np.int64)
        words = rows.keys.words.copy()
        if rows.keys.masks.size:
            heads[:, _MASK] = rows.keys.masks.view(np.int64)
        if rows.gone is not None:
            heads[:, _GONE] = rows.gone
        levels, all_bounds = [heads], [bounds]
        for number, part in enumerate(rows.parts):
            counts = np.bincount(part.positions, minlength=n)
            heads[:, _WORDS + self._width + number] = counts
            ends = np.zeros(n + 1, np.int64)
            np.cumsum(counts, out=ends[1:])
            all_bounds.append(ends[bounds])
            levels.append(part.rows.copy() if self._with_bytes[number + 1] else np.ascontiguousarray(part.rows))
        sizes = np.zeros((pages, self._places), np.int64)
        # What the columns with bytes hold before lengths take the place of references.
        before: list[Int64s] = []
        for level, columns in enumerate(self._with_bytes):
            for column in columns:
                place = len(before)
                if level:
                    before.append(levels[level][:, column].copy())
                    kernels.lengths_of_references(
                        levels[level], column, rows.parts[level - 1].arena, all_bounds[level], sizes, place
                    )
                else:
                    before.append(words[:, column - _WORDS].copy().view(np.int64))
                    kernels.lengths_of_keys(words, column - _WORDS, rows.keys.scratch, bounds, sizes, place)
        heads[:, _WORDS : _WORDS + self._width] = words.view(np.int64)
        return self._written(rows, levels, all_bounds, sizes, words, before)

    def _written(
        self,
        rows: KeyRows,
        levels: Sequence[Int64s],
        bounds: Sequence[Int64s],
        sizes: Int64s,
        words: npt.NDArray[np.uint64],
        before: Sequence[Int64s],
    ) -> list[bytes]:
        pages, total = len(sizes), len(self._level_of)
        counts = np.stack([np.diff(found) for found in bounds], axis=1)
        mins, widths = np.empty((pages, total), np.int64), np.empty((pages, total), np.uint8)
        at = 0
        for level, columns in enumerate(self._columns):
            for column in range(columns):
                kernels.measure_column(levels[level], column, bounds[level], mins, widths, at)
                at += 1
        head = 8 * (len(levels) + total + self._places) + -(-total // 8) * 8
        lengths = head + kernels.SLACK + (counts[:, self._level_of] * widths).sum(axis=1) + sizes.sum(axis=1)
        offsets = np.zeros(pages + 1, np.int64)
        np.cumsum(lengths, out=offsets[1:])
        out = np.zeros(int(offsets[-1]), np.uint8)
        cursors = offsets[:-1].copy()
        kernels.write_heads(counts, mins, widths, sizes, cursors, out)
        at = 0
        for level, columns in enumerate(self._columns):
            for column in range(columns):
                kernels.write_column(levels[level], column, bounds[level], mins, widths, at, cursors, out)
                at += 1
        place = 0
        for level, with_bytes in enumerate(self._with_bytes):
            for column in with_bytes:
                if level:
                    arena = rows.parts[level - 1].arena
                    kernels.write_bytes(before[place], levels[level], column, arena, bounds[level], cursors, out)
                else:
                    kernels.write_keys(
                        before[place].view(np.uint64), words, column - _WORDS, rows.keys.scratch, bounds[0], cursors,
                        out,
                    )  # fmt: skip
                place += 1
        return [out[start:stop].tobytes() for start, stop in pairwise(offsets.tolist())]

    def read(self, pages: Sequence[bytes]) -> Pages:
        """Pages that :meth:`write` of this format made."""
        return Pages(self, pages)


class Pages:
    """Some pages: all their keys, and of the keys that are picked all rows."""

    def __init__(self, made_by: PageFormat, pages: Sequence[bytes]) -> None:
        self._format = made_by
        starts = np.zeros(len(pages) + 1, np.int64)
        np.cumsum(np.fromiter(map(len, pages), np.int64, len(pages)), out=starts[1:])
        # Kernels take arrays that may be written.
        self._data = np.frombuffer(bytearray().join(pages), np.uint8)
        n, total, places = len(pages), len(made_by._level_of), made_by._places
        self._counts = np.empty((n, len(made_by._columns)), np.int64)
        self._mins, self._widths = np.empty((n, total), np.int64), np.empty((n, total), np.uint8)
        self._places = np.empty((n, total + places), np.int64)
        sizes = np.empty((n, places), np.int64)
        kernels.read_heads(
            self._data, starts[:-1], made_by._level_of, self._counts, self._mins, self._widths, sizes, self._places
        )
        self._bounds = [_ends(self._counts[:, level]) for level in range(len(made_by._columns))]
        #: Rows of each page.
        self.counts = self._counts[:, 0]
        self.keys = self._read_keys()

    def __len__(self) -> int:
        return int(self._bounds[0][-1])

    def _column(self, at: int, level: int) -> Int64s:
        bounds = self._bounds[level]
        out = np.empty((int(bounds[-1]), 1), np.int64)
        kernels.read_column(self._data, self._places, self._mins, self._widths, at, bounds, out, 0)
        return out[:, 0]

    def _read_keys(self) -> KeyWords:
        form, bounds = self._format, self._bounds[0]
        words = np.empty((len(self), form._width), np.int64)
        for word in range(form._width):
            kernels.read_column(self._data, self._places, self._mins, self._widths, _WORDS + word, bounds, words, word)
        masks = NO_MASKS
        if self._widths[:, _MASK].any() or self._mins[:, _MASK].any():
            masks = self._column(_MASK, 0).view(np.uint64)
        keys = words.view(np.uint64)
        scratch, columns = NO_BYTES, form._with_bytes[0]
        if columns:
            first = len(form._level_of)
            asked = [(first + place, column - _WORDS) for place, column in enumerate(columns)]
            used = 0
            for place, column in asked:
                used = kernels.positions_of_keys(self._data, self._places, place, bounds, keys, column, NO_BYTES, used)
            scratch, used = np.empty(used, np.uint8), 0
            for place, column in asked if len(scratch) else ():
                used = kernels.positions_of_keys(self._data, self._places, place, bounds, keys, column, scratch, used)
        return KeyWords(keys, masks, scratch)

    def marked(self, marks: npt.NDArray[np.uint64]) -> Int64s:
        """Rows whose keys have a marked hash, rising."""
        hashes, out = np.empty(len(self), np.uint32), np.empty(len(self) + 1, np.int64)
        kernels.bucket_hashes(self.keys.words, self.keys.masks, self._format.var, hashes)
        count = kernels.rows_of_marks(hashes, marks, out)
        return out[:count]

    def newest(self, rows: Int64s, ids: Int32s, count: int) -> Int64s:
        """The last of ``rows`` (rising) of each key that it does not say to be gone, rising.

        ``ids`` below ``count`` name the keys of rows; -1 is no key.
        """
        last = np.full(count + 1, -1, np.int64)
        last[ids] = rows
        last = last[:-1]
        picked = np.sort(last[last >= 0])
        return picked[~self._gone(picked)]

    def _gone(self, picked: Int64s) -> npt.NDArray[np.bool_]:
        """Whether the keys of some rows are gone."""
        if not (self._widths[:, _GONE].any() or self._mins[:, _GONE].any()):
            return np.zeros(len(picked), np.bool_)
        gone: npt.NDArray[np.bool_] = self._column(_GONE, 0)[picked] != 0
        return gone

    def pick(self, picked: Int64s) -> KeyRows:
        """Some keys with all their rows, in the order in which they are asked for."""
        parts = [self._pick_part(number, picked) for number in range(len(self._format._columns) - 1)]
        return KeyRows(self.keys.take(picked), parts)

    def _pick_part(self, number: int, picked: Int64s) -> PackedRows:
        form, level = self._format, number + 1
        at = _WORDS + form._width + number
        if not self._widths[:, at].any() and (self._mins[:, at] == 1).all():
            rows, positions = picked, np.arange(len(picked), dtype=np.int32)
        else:
            counts = self._column(at, 0)
            ends = _ends(counts)
            mine = counts[picked]
            positions = np.repeat(np.arange(len(picked), dtype=np.int32), mine)
            within = np.arange(len(positions)) - np.repeat(np.cumsum(mine) - mine, mine)
            rows = np.repeat(ends[picked], mine) + within
        bounds = self._bounds[level]
        pages = (np.searchsorted(bounds, rows, side="right") - 1).astype(np.int32)
        inside = np.ascontiguousarray(rows - bounds[pages])
        first = sum(form._columns[:level])
        words = np.empty((len(rows), form._columns[level]), np.int64)
        for column in range(form._columns[level]):
            kernels.pick_column(
                self._data, self._places, self._mins, self._widths, first + column, pages, inside, words, column
            )
        return PackedRows(positions, words, form._refs[number], self._pick_bytes(level, first, rows, words))

    def _pick_bytes(self, level: int, first: int, rows: Int64s, words: Int64s) -> Bytes:
        """The arena of picked rows, whose words have lengths in the place of references before and references after."""
        form = self._format
        columns = form._with_bytes[level]
        lengths = sum(int(np.maximum(words[:, column], 0).sum()) + 8 * len(words) for column in columns)
        arena = np.empty(lengths + 8, np.uint8)
        used = 8
        before = sum(map(len, form._with_bytes[:level]))
        bounds = self._bounds[level]
        for place, column in enumerate(columns, len(form._level_of) + before):
            starts = np.empty(int(bounds[-1]), np.int64)
            kernels.starts_of_bytes(
                self._data, self._places, self._mins, self._widths, first + column, place, bounds, starts
            )
            used = kernels.references_of_bytes(self._data, starts[rows], words, column, arena, used)
        return arena


def _ends(counts: Int64s) -> Int64s:
    ends = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=ends[1:])
    return ends
