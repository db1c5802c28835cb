"""Typed columns by slot in memory.

The fixed words of one slot stand side by side in a row of one matrix: an update that touches several columns of a key
costs one cache miss. Bytes stand in an arena that compacts itself; the row holds a reference. A column that may be NULL
has a bit in the row's last words.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flowsql_compute.eval.columns import string_buffers, values_and_validity
from flowsql_compute.kernels.contiguous import for_kernel
from flowsql_compute.keys import bytes_column, is_bytes_type
from flowsql_core.batch import LateColumns
from flowsql_core.column_bytes import joined
from flowsql_runtime.kernels import byte_arena
from flowsql_runtime.kernels import rows as row_kernels
from flowsql_runtime.state.arrow_words import array_of_bytes, array_of_words, value_words, word_count
from flowsql_runtime.state.flat_rows import value_column, word_column, word_type
from flowsql_runtime.state.resident.frozen import Freezable, Frozen, Moment, keep
from flowsql_runtime.state.resident.growing import grow, with_room
from flowsql_runtime.state.resident.key_index import ResidentKeyIndex
from flowsql_runtime.state.stores import StoredColumn

Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

_BITS: Final = 62
_COMPACT_ABOVE: Final = 1 << 20
_ALL: Final = np.zeros(0, np.int64)
_NO_BITS: Final = np.zeros(0, np.uint8)


class Slots(Freezable, Protocol):
    """Who gives out the ids that rows stand under."""

    @property
    def high_water(self) -> int:
        """One more than the highest id ever given out."""
        ...

    def live_slots(self) -> Int32s:
        """All live ids, rising."""
        ...


class ResidentColumnStore:
    """Values beside the slots of ``index``. Rows of slots that were never written, or cleared, are zero (NULL).

    ``rows`` (capacity, width) int64 is open to kernels; ``word_of[i]`` is the first word of column i. Doubles stand as
    their bits, wide DECIMAL as low and high word, bytes as a reference into ``arena``; nested values are bytes. Both
    move when they grow: nobody keeps them over a call that stores. ``append_only``: rows never change or go, so no byte
    is ever without a row.
    """

    def __init__(self, index: Slots, columns: Sequence[StoredColumn], append_only: bool = False) -> None:
        self.index = index
        self.append_only = append_only
        self.columns = tuple(columns)
        self.word_of: list[int] = []
        width = 0
        for column in self.columns:
            type_ = word_type(column.type)
            self.word_of.append(width)
            width += 1 if is_bytes_type(type_) else word_count(type_)
        self.valid_word = width
        nullable = any(column.nullable for column in self.columns)
        self.width = width + (len(self.columns) // _BITS + 1 if nullable else 0)
        self.rows: npt.NDArray[np.int64] = np.zeros((16, self.width), np.int64)
        self._byte_words = np.array(
            [
                word
                for word, column in zip(self.word_of, self.columns, strict=True)
                if is_bytes_type(word_type(column.type))
            ],
            np.int64,
        )
        self.arena: npt.NDArray[np.uint8] = np.zeros(byte_arena.START, np.uint8)
        self._arena_used = byte_arena.START
        self._compact_at = _COMPACT_ABOVE
        self.watchers: tuple[Frozen, ...] = ()

    @property
    def nbytes(self) -> int:
        """Bytes allocated."""
        return int(self.rows.nbytes + self.arena.nbytes)

    def ensure(self) -> None:
        """Make room for every slot of the index; call after keys were inserted."""
        self.reserve(self.index.high_water)

    def reserve(self, needed: int) -> None:
        """Make room for ids below ``needed``."""
        if needed > len(self.rows):
            grow(self, "rows", needed)

    # -- bytes

    def store_bytes(self, array: Any) -> Int64s:
        """References of a string or binary Arrow array's values, int64 (n,); 0 at NULL."""
        part = bytes_column(array)
        n = len(part.lengths)
        refs = np.zeros(n, np.int64)
        if not n:
            return refs
        lengths = part.lengths if part.valid is None else np.where(part.valid, part.lengths, -1)
        first = int(part.starts[0])
        stop = int(part.starts[-1] + part.lengths[-1])
        # Values stand side by side in Arrow: one copy, with what may stand under NULLs.
        self._reserve_bytes(stop - first)
        self.arena[self._arena_used : self._arena_used + stop - first] = part.data[first:stop]
        starts, lengths = for_kernel(part.starts), for_kernel(lengths)
        left = byte_arena.refer(starts, lengths, self._arena_used - first, refs)
        self._arena_used += stop - first
        if left:
            self._store_long(starts, lengths, for_kernel(part.data), refs)
        return refs

    def _store_long(self, starts: Int64s, lengths: Int64s, data: npt.NDArray[np.uint8], refs: Int64s) -> None:
        """Values whose length does not fit a reference, once more, with the length before them."""
        rows = np.flatnonzero(refs < 0)
        self._reserve_bytes(int(lengths[rows].sum()) + 8 * len(rows))
        found = np.empty(len(rows), np.int64)
        self._arena_used = byte_arena.append(starts[rows], lengths[rows], data, self.arena, self._arena_used, found)
        refs[rows] = found

    def _reserve_bytes(self, extra: int) -> None:
        needed = self._arena_used + extra
        if needed > len(self.arena):
            grow(self, "arena", needed)

    def compact(self) -> None:
        """Drop bytes that no row refers to, once they are more than half; never between store and scatter.

        The room stays: the bytes that come until the next time need it. Most states only grow, so what is referred to
        is added up before anything is copied.
        """
        if self._arena_used < self._compact_at or not self._may_move():
            return
        referred = byte_arena.measure(self.rows, self._byte_words, self._live_rows(), self.arena)
        if 2 * referred < self._arena_used:
            self._move_together()
        else:
            self._compact_at = max(2 * referred, self._arena_used + self._arena_used // 4)

    def compact_now(self) -> None:
        """:meth:`compact`, whatever it brings, and give the room back: after many rows went."""
        if self._move_together() and 2 * self._arena_used < len(self.arena):
            self.arena = self.arena[: self._arena_used].copy()

    def _move_together(self) -> bool:
        """Copy the bytes that rows refer to side by side; False where they may not move."""
        if not self._may_move():
            return False
        live = self._live_rows()
        arena = with_room(self._arena_used)
        used = byte_arena.START
        for word in self._byte_words:
            used = byte_arena.move(self.rows, word, live, self.arena, arena, used)
        self.arena = arena
        self._arena_used = used
        self._compact_at = max(_COMPACT_ABOVE, 2 * used)
        return True

    def _may_move(self) -> bool:
        """False where rows never go or are being saved."""
        return not (self.append_only or self.watchers or not len(self._byte_words))

    def _live_rows(self) -> Int32s:
        live = self.index.live_slots()
        return live[live < len(self.rows)]

    def bytes_at(self, refs: Int64s, type_: Any) -> Any:
        """Arrow array of references, wide (``column_bytes``) where it takes too many bytes; 0 gives NULL."""
        return _array_of_references(np.ascontiguousarray(refs), self.arena, type_)

    def row_bytes(self, slots: Int32s) -> Int64s:
        """Bytes of all variable-length values of each row, int64 (n,)."""
        total = np.zeros(len(slots), np.int64)
        offsets = np.empty(len(slots) + 1, np.int64)
        for word in self._byte_words:
            byte_arena.read(np.ascontiguousarray(self.rows[slots, word]), self.arena, offsets, np.zeros(0, np.uint8))
            total += np.diff(offsets)
        return total

    # -- rows

    def gather(self, slots: Int32s) -> list[Any]:
        """All columns at the slots, as Arrow arrays."""
        found = self.rows_at(slots)
        return [found.column(index) for index in range(len(self.columns))]

    def rows_at(self, slots: Int32s) -> StoredRows:
        """The rows at the slots as they are now."""
        # Slots that were handed out and never written to may lie behind the rows that there are.
        self.ensure()
        words = np.empty((self.width, len(slots)), np.int64)
        row_kernels.gather(self.rows, np.ascontiguousarray(slots), words)
        return StoredRows(self, words)

    def scatter(self, slots: Int32s, arrays: Sequence[Any]) -> None:
        """Write all columns at the slots; of equal slots the last row stays."""
        self.ensure()
        self.compact()
        keep(self, slots)
        self._put(self.rows, slots, arrays)

    def write_new(self, ids: Int32s, arrays: Sequence[Any]) -> None:
        """:meth:`scatter` of rows that nobody has seen yet; bytes that were stored for them stay."""
        self._put(self.rows, ids, arrays)

    def words_of(self, arrays: Sequence[Any], n: int) -> npt.NDArray[np.int64]:
        """Arrow columns as rows of this store, (n, width); bytes go into the arena."""
        rows = np.zeros((n, self.width), np.int64)
        self._put(rows, np.arange(n, dtype=np.int32), arrays)
        return rows

    def _put(self, rows: npt.NDArray[np.int64], ids: Int32s, arrays: Sequence[Any]) -> None:
        """Write all columns into rows of words. What late columns select from an array is copied from there at once."""
        if not len(ids):
            return
        ids = np.ascontiguousarray(ids, np.int32)
        selections: dict[int, Int64s] = {}
        for index, (column, word) in enumerate(zip(self.columns, self.word_of, strict=True)):
            origin = arrays.origin(index) if isinstance(arrays, LateColumns) else None
            if origin is not None and _is_plain(origin[0].type):
                source = origin[0]
                key = id(origin[1])
                if key not in selections:
                    selections[key] = np.ascontiguousarray(origin[1], np.int64)
                chosen = selections[key]
            else:
                source, chosen = arrays[index], _ALL
            if pa.types.is_nested(column.type) or is_bytes_type(column.type):
                if len(chosen):
                    self._append(source, chosen, ids, rows, word)
                else:
                    rows[ids, word] = self.store_bytes(word_column(source))
                continue
            bit, valid_word = index % _BITS, self.valid_word + index // _BITS if column.nullable else -1
            for offset, (values, bits, first_bit) in enumerate(_words(source)):
                row_kernels.put_words(values, bits, first_bit, chosen, ids, rows, word + offset, valid_word, bit)

    def _append(self, texts: Any, chosen: Int64s, ids: Int32s, rows: npt.NDArray[np.int64], word: int) -> None:
        """Store some values of a column of strings, with their references in a word of rows."""
        offsets, data = string_buffers(texts)
        offsets = for_kernel(offsets)
        self._reserve_bytes(byte_arena.bytes_wanted(offsets, chosen))
        bits, first_bit = _validity_bits(texts)
        self._arena_used = byte_arena.append_chosen(
            offsets, bits, first_bit, for_kernel(data), chosen, self.arena, self._arena_used, ids, rows, word
        )

    def clear(self, slots: Int32s) -> None:
        """Zero the rows of slots."""
        slots = slots[slots < len(self.rows)]
        keep(self, slots)
        self.rows[slots] = 0

    def freeze(self, moment: Moment) -> Frozen:
        """The rows of this moment; see ``Freezable``."""
        self.ensure()
        return Frozen(
            self,
            rows={"rows": self.index.high_water},
            prefixes={"arena": self._arena_used},
            parts={"index": moment.of(self.index)},
        )

    # -- persistence: what the backend saves under one state name

    def save(self) -> Any:
        """Keys (with the namespace first if there is one) and columns of all live slots, as an Arrow table."""
        assert isinstance(self.index, ResidentKeyIndex)
        self.ensure()
        slots = self.index.live_slots()
        names = [f"v:{column.name}" for column in self.columns]
        return key_table_of(self.index, slots, self.gather(slots), names)

    def load(self, table: Any) -> None:
        """Insert the rows of a saved table."""
        assert isinstance(self.index, ResidentKeyIndex)
        slots, _ = self.index.find_or_insert(keys_of_table(self.index, table))
        self.scatter(slots, [flat(table.column(f"v:{column.name}")) for column in self.columns])


class StoredRows:
    """Rows of a store as they were, whatever becomes of it: words are copied; bytes are not, for an arena is only added
    to, or another one takes its place.

    Whoever holds them for long makes the store copy its arena where it grows.
    """

    __slots__ = ("_arena", "_store", "_words")

    def __init__(self, store: ResidentColumnStore, words: npt.NDArray[np.int64]) -> None:
        self._store = store
        #: (width, n).
        self._words = words
        self._arena = store.arena

    def column(self, index: int) -> Any:
        """A column as an Arrow array, wide (``column_bytes``) where it takes too many bytes."""
        column, word = self._store.columns[index], self._store.word_of[index]
        type_ = word_type(column.type)
        if is_bytes_type(type_):
            return value_column(_array_of_references(self._words[word], self._arena, type_), column.type)
        valid: Bools | None = None
        if column.nullable:
            valid = (self._words[self._store.valid_word + index // _BITS] >> np.int64(index % _BITS)) & 1 == 1
        words = [self._words[word + part] for part in range(word_count(column.type))]
        return array_of_words(words, valid, column.type)

    def longest(self, index: int) -> int:
        """Bytes of the longest value of a column as they are kept; 0 for types of fixed width."""
        if not is_bytes_type(word_type(self._store.columns[index].type)):
            return 0
        return int(byte_arena.longest(self._words[self._store.word_of[index]], self._arena))


def _is_plain(type_: Any) -> bool:
    """Whether kernels read values of a type straight from its Arrow buffers."""
    if pa.types.is_string(type_) or pa.types.is_binary(type_):
        return True
    return bool(pa.types.is_primitive(type_) and type_.bit_width == 64 and not pa.types.is_uint64(type_))


def _validity_bits(array: Any) -> tuple[npt.NDArray[np.uint8], int]:
    """Arrow's validity bits and which of them is the first; none where no value is NULL."""
    bitmap = array.buffers()[0] if array.null_count else None
    return (_NO_BITS, 0) if bitmap is None else (np.frombuffer(bitmap, np.uint8), array.offset)


def _words(array: Any) -> Iterator[tuple[Int64s, npt.NDArray[np.uint8], int]]:
    """Words of a fixed-width array with their validity bits, for ``put_words``."""
    if _is_plain(array.type):
        values, _ = values_and_validity(array)
        yield (for_kernel(values.view(np.int64)), *_validity_bits(array))
        return
    part = value_words(array)
    bits = _NO_BITS if part.valid is None else np.packbits(part.valid, bitorder="little")
    for word in part.words:
        yield for_kernel(word), bits, 0


def _array_of_references(refs: Int64s, arena: npt.NDArray[np.uint8], type_: Any) -> Any:
    offsets = np.empty(len(refs) + 1, np.int64)
    total = byte_arena.read(refs, arena, offsets, np.zeros(0, np.uint8))
    data = np.empty(max(1, total), np.uint8)
    byte_arena.read(refs, arena, offsets, data)
    return array_of_bytes(offsets, data, refs != 0, type_)


def key_table_of(index: ResidentKeyIndex, slots: Int32s, arrays: Sequence[Any], names: Sequence[str]) -> Any:
    """Table of the key columns ``k0 ..`` of ``slots``, their namespaces, and ``arrays`` under ``names``."""
    columns = index.columns_at(slots)
    labels = [f"k{position}" for position in range(len(columns))]
    if index.namespaced:
        columns.append(pa.array(index.namespaces_at(slots)))
        labels.append("namespace")
    if not columns and not arrays:
        columns, labels = [pa.nulls(len(slots))], ["empty"]
    return pa.Table.from_arrays([*columns, *arrays], names=[*labels, *names])


def keys_of_table(index: ResidentKeyIndex, table: Any) -> Any:
    """Encoded keys of a table made by :func:`key_table_of`."""
    columns = [flat(table.column(f"k{position}")) for position in range(len(index.types))]
    namespaces = None
    if index.namespaced:
        namespaces = value_words(flat(table.column("namespace"))).words[0]
    return index.encode(columns, namespaces, num_rows=table.num_rows)


def parent_slots(parent: ResidentKeyIndex, table: Any) -> Int32s:
    """Slots of the parent keys of a saved table; keys that are not there yet are put in."""
    return parent.find_or_insert(keys_of_table(parent, table))[0]


def flat(column: Any) -> Any:
    """One array of a chunked column."""
    return column.chunk(0) if column.num_chunks == 1 else joined(column.chunks or [pa.array([], column.type)])
