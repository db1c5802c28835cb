"""Slot -> rows in arrival order that never go. The rows stay in the batches that brought them.

Nothing is copied but what a batch selected sparsely, and rows of small batches, which are put together. Insert-only
sides of joins.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from itertools import pairwise
from threading import get_ident
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flowsql_compute.eval.columns import pack_validity
from flowsql_core.arrow import compute as pc
from flowsql_core.batch import ChangelogBatch, LateColumns, RowSource
from flowsql_core.column_bytes import joined, row_bytes, taken
from flowsql_core.errors import InternalError
from flowsql_core.record import record
from flowsql_runtime.kernels import kept_rows as kernels
from flowsql_runtime.kernels.row_list import associate
from flowsql_runtime.state.arrow_words import array_of_bytes, value_words
from flowsql_runtime.state.resident.column_store import flat, key_table_of, parent_slots
from flowsql_runtime.state.resident.frozen import Frozen, Moment, keep
from flowsql_runtime.state.resident.growing import grow
from flowsql_runtime.state.resident.key_index import ResidentKeyIndex
from flowsql_runtime.state.resident.row_walk import counts_of_slots, rows_of_slots

Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]

#: Rows up to which a batch is put together with the one before it.
_SMALL: Final = 4096
#: Bytes from which on batches are not put together.
_LARGE_BYTES: Final = 1 << 26
#: Bytes that a column may hold for nothing.
_SLACK: Final = 4096


@record
class _Kept:
    """A batch: its columns, and which of the rows of each are its own (None: all)."""

    columns: tuple[Any, ...]
    selections: tuple[Int32s | None, ...]
    count: int
    nbytes: int

    def column(self, index: int) -> Any:
        """One column of its own rows."""
        whole, rows = self.columns[index], self.selections[index]
        return whole if rows is None else taken(whole, rows)


class _Partners:
    """How many partners each row has on the other side of a join."""

    def __init__(self) -> None:
        self.counts = np.zeros(0, np.int32)
        self._used = 0
        self.watchers: tuple[Frozen, ...] = ()

    def put(self, first: int, counts: Int32s) -> None:
        """Counts of new rows from ``first`` on."""
        if first + len(counts) > len(self.counts):
            grow(self, "counts", first + len(counts))
        self.counts[first : first + len(counts)] = counts
        self._used = first + len(counts)

    def freeze(self, moment: Moment) -> Frozen:
        """The counts of this moment; see ``Freezable``."""
        return Frozen(self, rows={"counts": self._used})


class KeptRows:
    """Implements ``Rows``: append-only.

    Args:
        parent: gives the slots.
        types: Arrow types of the row's columns; any.
        sharers: how many states keep rows of the same batches (subtasks of a hash exchange): a batch is kept as it is
            if these together need at least half of its bytes.
        counted: rows keep how many partners they have.
    """

    def __init__(self, parent: ResidentKeyIndex, types: Sequence[Any], sharers: int = 1, counted: bool = False) -> None:
        self.parent = parent
        self.types = tuple(types)
        self._sharers = sharers
        self._links = np.full((0, 2), -1, np.int32)
        self._ends = np.zeros((0, 2), np.int32)
        self._batches: list[_Kept] = []
        #: First row id of each batch; a word more than there are batches.
        self._firsts = np.zeros(8, np.int64)
        self._columns = [_Column(self, index, type_) for index, type_ in enumerate(self.types)]
        self._nbytes = 0
        self._partners = _Partners() if counted else None
        #: Rows last asked for, and where they are, by what their columns are selected with.
        self._asked: Int32s | None = None
        self._located: dict[int, tuple[Int32s, Int32s]] = {}
        #: The thread that adds rows; None: nobody does (yet).
        self._thread: int | None = None
        self.watchers: tuple[Frozen, ...] = ()

    def __len__(self) -> int:
        return int(self._ends[:, 1].sum())

    @property
    def nbytes(self) -> int:
        """Bytes allocated, of batches the share of the rows kept."""
        partners = 0 if self._partners is None else self._partners.counts.nbytes
        return self._nbytes + int(self._links.nbytes + self._ends.nbytes) + partners

    def append(self, slots: Int32s, columns: Sequence[Any], associations: Int32s | None = None) -> None:
        """Keep rows; slot -1 takes no part."""
        n = len(slots)
        if not n:
            return
        self._thread = get_ident()
        kept = self._kept(columns, n)
        first = int(self._firsts[len(self._batches)])
        if first + n > len(self._links):
            grow(self, "_links", first + n)
        if self.parent.high_water > len(self._ends):
            grow(self, "_ends", self.parent.high_water)
        keep(self, slots)
        kernels.link(slots, first, len(self._batches), self._links, self._ends)
        self._add(kept, first)
        if self._partners is not None:
            self._partners.put(first, np.zeros(n, np.int32) if associations is None else associations)
        # A snapshot that is being taken knows rows by the batches of its moment.
        while not self.watchers and len(self._batches) > 1 and self._small():
            self._merge()

    def _kept(self, columns: Sequence[Any], n: int) -> _Kept:
        """The batch as it is, but gathered where it needs little of an array that is held for it."""
        sources: list[Any] = []
        selections: list[Int32s | None] = []
        narrow: dict[int, Int32s] = {}
        total = 0
        for index, type_ in enumerate(self.types):
            origin = columns.origin(index) if isinstance(columns, LateColumns) else None
            array, rows = (columns[index], None) if origin is None else origin
            own = array.nbytes * n // max(1, len(array))
            sparse = 2 * own * self._sharers + _SLACK < array.get_total_buffer_size()
            if rows is not None and (sparse or n <= _SMALL // 4 or array.type != type_):
                array, rows, sparse = columns[index], None, False
            if sparse:
                array = pa.concat_arrays([array, array.slice(0, 0)])
            sources.append(array if array.type == type_ else pc.cast(array, type_))
            if rows is not None and id(rows) not in narrow:
                narrow[id(rows)] = np.ascontiguousarray(rows, np.int32)
            selections.append(None if rows is None else narrow[id(rows)])
            total += own
        return _Kept(tuple(sources), tuple(selections), n, total + 4 * n * len(narrow))

    def _add(self, kept: _Kept, first: int) -> None:
        number = len(self._batches)
        if number + 1 >= len(self._firsts):
            self._firsts = np.concatenate((self._firsts, np.zeros(len(self._firsts), np.int64)))
        self._firsts[number] = first
        self._firsts[number + 1] = first + kept.count
        seen: list[Int32s | None] = []
        for column, array, rows in zip(self._columns, kept.columns, kept.selections, strict=True):
            which = next((place for place, known in enumerate(seen) if known is rows), len(seen))
            if which == len(seen):
                seen.append(rows)
            column.put(number, array, rows, which)
        self._batches.append(kept)
        self._nbytes += kept.nbytes

    def _small(self) -> bool:
        """Whether the last two batches are to become one: each row is put together but a few times."""
        before, last = self._batches[-2], self._batches[-1]
        return (
            before.count + last.count <= _SMALL
            and before.count <= 2 * last.count
            and before.nbytes + last.nbytes <= _LARGE_BYTES
        )

    def _merge(self) -> None:
        last, before = self._batches.pop(), self._batches.pop()
        number = len(self._batches)
        first = int(self._firsts[number])
        count = before.count + last.count
        arrays = tuple(pa.concat_arrays([before.column(index), last.column(index)]) for index in range(len(self.types)))
        self._links[first : first + count, 1] = number
        self._nbytes -= before.nbytes + last.nbytes
        self._asked = None
        self._add(_Kept(arrays, (None,) * len(arrays), count, sum(array.nbytes for array in arrays)), first)

    def rows_of(self, slots: Int32s) -> tuple[Int32s, Int32s]:
        """Pairs (position in ``slots``, row id), by position and arrival; slot -1 or an empty one has none."""
        return rows_of_slots(slots, self._ends, self._links)

    def counts(self, slots: Int32s) -> Int32s:
        """Rows of each slot."""
        return counts_of_slots(slots, self._ends)

    def gather(self, rows: Int32s) -> Sequence[Any]:
        """Columns of rows, gathered when they are read (by the thread that appends)."""
        return LateColumns.of(self._columns, rows)

    def associate(self, rows: Int32s, changes: Int32s, stamp: int | None = None) -> Int32s:
        """Count partners of rows up or down; see ``Rows``."""
        assert self._partners is not None
        keep(self._partners, rows)
        before = np.empty(len(rows), np.int32)
        associate(np.ascontiguousarray(rows), np.ascontiguousarray(changes), self._partners.counts, before)
        return before

    def associations(self, rows: Int32s) -> Int32s:
        """Partners of rows."""
        assert self._partners is not None
        counts: Int32s = self._partners.counts[rows]
        return counts

    def locate(self, rows: Int32s, alike: int, selections: Int64s) -> tuple[Int32s, Int32s]:
        """Batch and position in its arrays of each row, int32 (n,) both; once for columns that are ``alike``.

        Raises:
            InternalError: another thread adds rows, so that what is read here may move.
        """
        if self._thread is not None and self._thread != get_ident():
            raise InternalError("rows of a state are gathered by another thread than its task's")
        if self._asked is not rows:
            self._asked = rows
            self._located = {}
        if alike not in self._located:
            batches, places = np.empty(len(rows), np.int32), np.empty(len(rows), np.int32)
            kernels.locate(rows, self._links, self._firsts, selections, batches, places)
            self._located[alike] = (batches, places)
        return self._located[alike]

    def array_of(self, batch: int, index: int) -> Any:
        """A column of a batch, with rows that are not the batch's."""
        return self._batches[batch].columns[index]

    def freeze(self, moment: Moment) -> Frozen:
        """The rows of this moment; see ``Freezable``."""
        found = Frozen(
            self,
            rows={"_ends": len(self._ends)},
            prefixes={"_links": int(self._firsts[len(self._batches)])},
            parts={"parent": moment.of(self.parent), "_partners": moment.maybe(self._partners)},
            values={
                "_batches": list(self._batches),
                "_firsts": self._firsts.copy(),
                "_asked": None,
                "_located": {},
                "_thread": None,
            },
        )
        found.finish_with(_adopt_columns, [column.frozen() for column in self._columns])
        return found

    def save(self) -> Any:
        """Parent keys and columns ``r0 ..`` of all rows, in arrival order within a slot."""
        owners = np.flatnonzero(self._ends[:, 1] > 0).astype(np.int32)
        probes, rows = self.rows_of(owners)
        names = [f"r{index}" for index in range(len(self.types))]
        columns = list(self.gather(rows))
        if self._partners is not None:
            columns.append(pa.array(self.associations(rows)))
            names.append("associations")
        return key_table_of(self.parent, owners[probes], columns, names)

    def load(self, table: Any) -> None:
        """Append the rows of a saved table."""
        slots = parent_slots(self.parent, table)
        columns = tuple(flat(table.column(f"r{index}")) for index in range(len(self.types)))
        partners = np.zeros(len(slots), np.int32)
        if self._partners is not None:
            partners = value_words(flat(table.column("associations"))).words[0].astype(np.int32)
        first = 0
        for part in ChangelogBatch(columns, len(slots)).within_offsets():
            last = first + part.num_rows
            self.append(slots[first:last], part.columns, partners[first:last])
            first = last


def _adopt_columns(rows: KeptRows, columns: list[_Column]) -> None:
    """A shadow's columns locate its rows, not those of its owner."""
    rows._columns = [column.of(rows) for column in columns]


class _Column(RowSource):
    """A column over all batches: where the buffers of each stand."""

    def __init__(self, rows: KeptRows, index: int, type_: Any) -> None:
        self._rows = rows
        self._index = index
        self._type = type_
        self._width = 0
        if pa.types.is_primitive(type_) or pa.types.is_decimal(type_) or pa.types.is_fixed_size_binary(type_):
            self._width = 0 if pa.types.is_boolean(type_) else type_.bit_width // 8
        self._is_text = pa.types.is_string(type_) or pa.types.is_binary(type_)
        self._is_bits = pa.types.is_boolean(type_)
        #: By batch: address of values or offsets, of bytes, of validity bits; bits before the first row; address of the
        #: int32 positions of the batch's rows, or 0.
        self._tables = np.zeros((5, 8), np.int64)
        self._nullable = False
        #: Most bytes that a value takes; 0 for types of fixed width.
        self._longest = 0
        #: The same for columns that are selected alike in every batch.
        self._alike = 0

    def frozen(self) -> _Column:
        """The column over the batches of this moment."""
        found = copy.copy(self)
        found._tables = self._tables.copy()
        return found

    def of(self, rows: KeptRows) -> _Column:
        """The column as one of these rows, which are a copy of its own."""
        self._rows = rows
        return self

    def put(self, number: int, array: Any, selection: Int32s | None, which: int) -> None:
        """The column's array in a batch; ``which`` of the batch's selections it is selected with."""
        self._alike = hash((self._alike, which))
        if number >= self._tables.shape[1]:
            self._tables = np.concatenate((self._tables, np.zeros_like(self._tables)), axis=1)
        self._tables[:, number] = 0
        sizes = None if self._width or self._is_bits else row_bytes(array)
        if sizes is not None:
            self._longest = max(self._longest, int(sizes.max(initial=0)))
        if selection is not None:
            self._tables[4, number] = selection.__array_interface__["data"][0]
        if not (self._width or self._is_text or self._is_bits):
            return
        bits, first, *others = array.buffers()
        offset = array.offset
        if array.null_count:
            self._nullable = True
            self._tables[2, number] = bits.address
        self._tables[3, number] = offset
        if first is not None:
            self._tables[0, number] = first.address + offset * (4 if self._is_text else self._width)
        if others and others[0] is not None:
            self._tables[1, number] = others[0].address

    def take(self, rows: npt.NDArray[Any]) -> Any:
        """An Arrow array of rows by id."""
        rows = np.ascontiguousarray(rows, np.int32)
        values, texts, bitmaps, shifts, selections = self._tables
        batches, places = self._rows.locate(rows, self._alike, selections)
        n = len(rows)
        there, valid = None, None
        if self._nullable:
            found = np.empty(n, np.bool_)
            if kernels.gather_bits(batches, places, bitmaps, shifts, found):
                there, valid = found, pack_validity(found)
        if self._is_text:
            offsets = np.empty(n + 1, np.int64)
            addresses = np.empty(n, np.int64)
            data = np.empty(kernels.measure(batches, places, values, texts, offsets, addresses), np.uint8)
            kernels.gather_bytes(addresses, offsets, data)
            return array_of_bytes(offsets, data, there, self._type)
        if self._is_bits:
            bits = np.empty(n, np.bool_)
            kernels.gather_bits(batches, places, values, shifts, bits)
            return pa.Array.from_buffers(self._type, n, [valid, pa.py_buffer(np.packbits(bits, bitorder="little"))])
        if self._width:
            data = np.empty(n * self._width, np.uint8)
            kernels.gather_fixed(batches, places, values, self._width, data)
            return pa.Array.from_buffers(self._type, n, [valid, pa.py_buffer(data)])
        return self._take_any(batches, places)

    def row_bytes(self, rows: npt.NDArray[Any], most: int) -> Int64s | None:
        """Bytes of rows by id, int64 (n,); None if all together take no more than ``most``."""
        if self._longest * len(rows) <= most:
            return None
        batches, places = self._rows.locate(np.ascontiguousarray(rows, np.int32), self._alike, self._tables[4])
        found = np.zeros(len(rows), np.int64)
        for array, chosen in self._by_batch(batches):
            sizes = row_bytes(array)
            if sizes is not None:
                found[chosen] = sizes[places[chosen]]
        return None if int(found.sum()) <= most else found

    def _take_any(self, batches: Int32s, places: Int32s) -> Any:
        """Types without a kernel: batch by batch, then back into order."""
        back = np.empty(len(batches), np.int64)
        parts, done = [], 0
        for array, chosen in self._by_batch(batches):
            parts.append(taken(array, places[chosen]))
            back[chosen] = np.arange(done, done + len(chosen))
            done += len(chosen)
        return taken(joined(parts), back) if parts else pa.array([], self._type)

    def _by_batch(self, batches: Int32s) -> Iterator[tuple[Any, Int64s]]:
        """The column's array of each batch, and which of the rows are in it."""
        order = np.argsort(batches, kind="stable")
        borders = [0, *(np.flatnonzero(np.diff(batches[order])) + 1).tolist(), len(order)]
        for start, stop in pairwise(borders):
            if stop > start:
                yield self._rows.array_of(int(batches[order[start]]), self._index), order[start:stop]
