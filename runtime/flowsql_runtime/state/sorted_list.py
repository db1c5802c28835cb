"""``SortedList``: slot -> multiset of values that knows its extreme. MIN and MAX over rows that are taken back."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flowsql_compute.eval.columns import validity
from flowsql_compute.keys import is_bytes_type
from flowsql_runtime.kernels import sorted_list as kernels
from flowsql_runtime.state.arrow_words import value_words
from flowsql_runtime.state.column_store import ColumnStore, StoredColumn, flat, key_table_of
from flowsql_runtime.state.key_index import NO_BYTES, KeyIndex
from flowsql_runtime.state.map_store import parent_slots

Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]
Int8s = npt.NDArray[np.int8]


class SortedList:
    """Counted values of slots, NULLs left out.

    Args:
        parent: gives the slots.
        type_: Arrow type of the values.
        largest_first: which end is on top.

    ``values`` keeps each entry's value (column 0 of its rows) for kernels and for reading back.
    """

    def __init__(self, parent: KeyIndex, type_: Any, largest_first: bool) -> None:
        self.parent = parent
        self.type = type_
        self.largest_first = largest_first
        self.entries = KeyIndex([type_], namespaced=True)
        self.values = ColumnStore(self.entries, [StoredColumn("value", type_, nullable=False)])
        self._counts = np.zeros(0, np.int64)
        self._heap = np.zeros((0, 3), np.int32)
        self._tops = np.zeros(0, np.int32)
        self._kind = kernels.INTEGER
        if is_bytes_type(type_):
            self._kind = kernels.BYTES
        elif pa.types.is_floating(type_):
            self._kind = kernels.DOUBLE
        elif self.values.width == 2:
            self._kind = kernels.WIDE
        self._rebuild_at = 1 << 16

    @property
    def nbytes(self) -> int:
        """Bytes allocated."""
        own = self._counts.nbytes + self._heap.nbytes + self._tops.nbytes
        return int(self.entries.nbytes + self.values.nbytes + own)

    def update(self, slots: Int32s, array: Any, signs: Int8s) -> Int32s:
        """Count values up (sign 1) or down (-1), in order; sign 0 and NULL take no part.

        Returns:
            int32 (n,): the entry on top of the row's slot after the row, -1 when nothing is left, -2 where the row took
            no part. Read it with ``values`` before the next update.
        """
        self._sweep()
        valid = validity(array)
        skip = (signs == 0) if valid is None else (signs == 0) | ~valid
        skipped = skip.view(np.uint8) if skip.any() else NO_BYTES
        entries, fresh = self.entries.find_or_insert(self.entries.encode([array], slots.astype(np.int64)), skipped)
        self._reserve()
        if len(fresh):
            self._fill(entries, fresh, array)
        out = np.empty(len(slots), np.int32)
        gone = np.empty(2 * len(slots) + len(self._heap), np.int32)
        left = kernels.update(
            signs, slots, entries, self.values.rows, self.values.rows.view(np.float64), self.values.arena,
            self._counts, self._heap, self._tops, self._kind, self.largest_first, out, gone,
        )  # fmt: skip
        self._gone = gone[:left]
        return out

    def _fill(self, entries: Int32s, fresh: Int32s, array: Any) -> None:
        values = array.take(pa.array(fresh))
        at = entries[fresh]
        self.values.rows[at] = self.values.words_of([values], len(fresh))
        self._counts[at] = 0
        self._heap[at] = 0

    def _reserve(self) -> None:
        self.values.ensure()
        if len(self._counts) < len(self.values.rows):
            size, used = len(self.values.rows), len(self._counts)
            counts = np.zeros(size, np.int64)
            counts[:used] = self._counts
            heap = np.zeros((size, 3), np.int32)
            heap[:used] = self._heap
            self._counts, self._heap = counts, heap
        slots = self.parent.high_water
        if slots > len(self._tops):
            tops = np.full(max(slots, 2 * len(self._tops)), -1, np.int32)
            tops[: len(self._tops)] = self._tops
            self._tops = tops

    _gone: Int32s = np.zeros(0, np.int32)

    def _sweep(self) -> None:
        """Forget entries that left; when most entries may be dead ones below a top, rebuild without them."""
        if len(self._gone):
            gone = np.unique(self._gone)
            gone = gone[(self._counts[gone] == 0) & (self._heap[gone, 2] == 0)]
            self.entries.remove(gone)
            self._gone = np.zeros(0, np.int32)
        if len(self.entries) > self._rebuild_at:
            live = self.entries.live_slots()
            dead = live[self._counts[live] == 0]
            if 2 * len(dead) > len(live):
                self.entries.remove(dead)
                self._heap[dead, 2] = 0
                live = live[self._counts[live] > 0]
                kernels.rebuild(
                    live, self.entries.namespaces_at(live), self.values.rows, self.values.rows.view(np.float64),
                    self.values.arena, self._heap, self._tops, self._kind, self.largest_first,
                )  # fmt: skip
            self._rebuild_at = max(1 << 16, 2 * len(self.entries))
        self.values.compact()

    def drop_slots(self, slots: Int32s) -> None:
        """Forget all values of the slots. Reads every entry."""
        self._sweep()
        live = self.entries.live_slots()
        gone = live[np.isin(self.entries.namespaces_at(live), slots)]
        self._counts[gone] = 0
        self._heap[gone, 2] = 0
        self.entries.remove(gone)
        self._tops[slots[slots < len(self._tops)]] = -1

    def save(self) -> Any:
        """Parent keys, value and count of every entry."""
        self._sweep()
        live = self.entries.live_slots()
        live = live[self._counts[live] != 0]
        owners = self.entries.namespaces_at(live).astype(np.int32)
        columns = [*self.values.gather(live), pa.array(self._counts[live])]
        return key_table_of(self.parent, owners, columns, ["value", "count"])

    def load(self, table: Any) -> None:
        """Insert the values of a saved table."""
        slots = parent_slots(self.parent, table)
        values = flat(table.column("value"))
        counts = value_words(flat(table.column("count"))).words[0]
        self.update(slots, values, np.sign(counts).astype(np.int8))
        entries = self.entries.lookup(self.entries.encode([values], slots.astype(np.int64)))
        self._counts[entries] = counts
