"""What stores give up and take back of the slots that leave memory, and keys as bytes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Final, Protocol

import numpy as np
import numpy.typing as npt

from flowsql_compute.keys import is_bytes_type
from flowsql_core.record import record
from flowsql_runtime.kernels import packed_keys as kernels
from flowsql_runtime.state.flat_rows import flat_columns, flat_types, whole_columns, word_type
from flowsql_runtime.state.resident.column_store import ResidentColumnStore
from flowsql_runtime.state.resident.frozen import Frozen, Moment
from flowsql_runtime.state.resident.key_index import KeyWords
from flowsql_runtime.state.stores import NO_BYTES, StoredColumn

Bytes = npt.NDArray[np.uint8]
Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]

#: The first time of a key that waits for nothing.
NEVER: Final = 2**63 - 1


@record
class PackedRows:
    """Rows of words (m, w) of some slots, by rising position (m,); words marked by ``refs`` (w,) refer to ``arena``."""

    positions: Int32s
    rows: Int64s
    refs: Bytes
    arena: Bytes


class Part(Protocol):
    """What a store says of some slots, so that they can leave memory and come back."""

    #: Its name in snapshots; empty: it is in none.
    part_name: str
    #: How many rows it has of slots outside memory, where it counts them.
    cold_rows: int

    @property
    def part_width(self) -> int:
        """Words of a row."""
        ...

    @property
    def part_refs(self) -> Bytes:
        """Which words are references."""
        ...

    def take(self, slots: Int32s) -> PackedRows:
        """Everything it keeps of live slots; it still does."""
        ...

    def put(self, slots: Int32s, packed: PackedRows) -> None:
        """Rows of slots (m,) that it knows nothing of."""
        ...

    def forget(self, slots: Int32s) -> None:
        """The slots leave memory."""
        ...

    @property
    def time_word(self) -> int | None:
        """The word of a row that says when its slot has to be looked at; None: the store knows no times."""
        ...

    def shrink(self) -> None:
        """Many slots left: give memory back."""
        ...

    def labelled(self, packed: PackedRows) -> tuple[list[str], list[Any]]:
        """Names and Arrow arrays of the columns that a snapshot has of the rows."""
        ...


class _AnyIds:
    """Ids of rows that live for one call."""

    high_water = 0

    def __init__(self) -> None:
        self.watchers: tuple[Frozen, ...] = ()

    def live_slots(self) -> Int32s:
        return np.zeros(0, np.int32)

    def freeze(self, moment: Moment) -> Frozen:
        """Rows of one call are never frozen."""
        return Frozen(self)


class RowFormat:
    """Arrow columns as rows of words and back; nested ones as flat ones."""

    def __init__(self, types: Sequence[Any]) -> None:
        self.types = tuple(types)
        flat = [part for type_ in self.types for part in flat_types(type_)]
        self._columns = [StoredColumn(str(number), type_) for number, type_ in enumerate(flat)]
        store = self._store()
        self.width = store.width
        self.refs = refs_of(store)

    def _store(self) -> ResidentColumnStore:
        return ResidentColumnStore(_AnyIds(), self._columns, append_only=True)

    def word_of(self, column: int) -> int:
        """The first word of a column."""
        before = sum(len(flat_types(type_)) for type_ in self.types[:column])
        return self._store().word_of[before]

    def pack(self, positions: Int32s, columns: Sequence[Any]) -> PackedRows:
        """Rows of Arrow columns."""
        store = self._store()
        flat = [part for column in columns for part in flat_columns(column)]
        rows = store.words_of(flat, len(positions))
        return PackedRows(positions, rows, self.refs, store.arena)

    def unpack(self, packed: PackedRows) -> list[Any]:
        """The Arrow columns again."""
        store = self._store()
        store.rows, store.arena = packed.rows, packed.arena
        return whole_columns(self.types, store.gather(np.arange(len(packed.rows), dtype=np.int32)))


def refs_of(store: ResidentColumnStore) -> Bytes:
    """Which words of a store's rows are references."""
    refs = np.zeros(store.width, np.uint8)
    for word, column in zip(store.word_of, store.columns, strict=True):
        refs[word] = is_bytes_type(word_type(column.type))
    return refs


def cut(data: Bytes, offsets: Int64s) -> list[bytes]:
    """The byte strings between offsets (n + 1)."""
    raw = data.tobytes()
    places = offsets.tolist()
    return [raw[start:stop] for start, stop in pairwise(places)]


def joined(values: Sequence[bytes]) -> tuple[Bytes, Int64s]:
    """Byte strings side by side, and their offsets (n + 1)."""
    offsets = np.zeros(len(values) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, values), np.int64, len(values)), out=offsets[1:])
    return np.frombuffer(b"".join(values), np.uint8), offsets


class KeyFormat:
    """Keys of one index as bytes, and back."""

    def __init__(self, width: int, var: Bytes, namespaced: bool) -> None:
        self._width = width
        self._var = var
        self._namespaced = namespaced

    def pack(self, keys: KeyWords) -> list[bytes]:
        """A byte string for each key."""
        n = len(keys)
        offsets = np.empty(n + 1, np.int64)
        words = np.ascontiguousarray(keys.words)
        size = kernels.measure_keys(words, self._var, keys.scratch, 8 * (self._width + 1), offsets)
        out = np.empty(size, np.uint8)
        kernels.pack_keys(words, keys.masks, self._var, keys.scratch, self._namespaced, offsets, out)
        return cut(out, offsets)

    def unpack(self, packed: Sequence[bytes]) -> KeyWords:
        """The keys of byte strings."""
        data, offsets = joined(packed)
        starts = offsets[:-1].copy()
        words, masks = np.empty((len(packed), self._width), np.uint64), np.empty(len(packed), np.uint64)
        data = data.copy()
        need = kernels.unpack_keys(data, starts, self._namespaced, self._var, words, masks, NO_BYTES)
        scratch = np.empty(need, np.uint8)
        if need:
            kernels.unpack_keys(data, starts, self._namespaced, self._var, words, masks, scratch)
        return KeyWords(words, masks if masks.any() else masks[:0], scratch)


def first_times(packed: PackedRows, word: int, n: int) -> Int64s:
    """The first time of each of ``n`` keys, ``NEVER`` where it has no row."""
    times = np.full(n, NEVER, np.int64)
    np.minimum.at(times, packed.positions, packed.rows[:, word])
    return times
