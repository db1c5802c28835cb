"""Slot -> multiset of values that knows its extreme, in memory: MIN and MAX over rows that are taken back."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flowsql_compute.eval.columns import validity
from flowsql_compute.keys import is_bytes_type
from flowsql_core.arrow import compute as pc
from flowsql_runtime.kernels import value_heaps as kernels
from flowsql_runtime.state.arrow_words import value_words
from flowsql_runtime.state.resident.column_store import ResidentColumnStore, flat, key_table_of, parent_slots
from flowsql_runtime.state.resident.entry_index import EntryIndex
from flowsql_runtime.state.resident.frozen import Freezable, Frozen, Moment, keep
from flowsql_runtime.state.resident.growing import grow
from flowsql_runtime.state.resident.key_index import ResidentKeyIndex
from flowsql_runtime.state.stores import NO_BYTES, StoredColumn

Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]
Int8s = npt.NDArray[np.int8]


class ResidentExtremes:
    """Implements ``ExtremeValues``.

    Args:
        parent: gives the slots.
        type_: Arrow type of the values.
        largest_first: which end is on top.
    """

    def __init__(self, parent: ResidentKeyIndex, type_: Any, largest_first: bool) -> None:
        self.parent = parent
        self.type = type_
        self.largest_first = largest_first
        self.entries = EntryIndex([type_])
        self.values = ResidentColumnStore(self.entries, [StoredColumn("value", type_, nullable=False)])
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
        #: Entries that left heap and set in the last update, and room for as many as may.
        self._gone: Int32s = np.zeros(0, np.int32)
        self._left: Int32s = np.empty(0, np.int32)
        self.watchers: tuple[Frozen, ...] = ()

    @property
    def nbytes(self) -> int:
        """Bytes allocated."""
        own = self._counts.nbytes + self._heap.nbytes + self._tops.nbytes
        return int(self.entries.nbytes + self.values.nbytes + own)

    def update(self, slots: Int32s, array: Any, signs: Int8s) -> Int32s:
        """Count values up or down, and say what is on top; see ``ExtremeValues``."""
        self._sweep()
        valid = validity(array)
        skip = (signs == 0) if valid is None else (signs == 0) | ~valid
        skipped = skip.view(np.uint8) if skip.any() else NO_BYTES
        entries, fresh = self.entries.find_or_insert(self.entries.encode([array], slots.astype(np.int64)), skipped)
        self._reserve()
        keep(self, entries)
        if len(fresh):
            self._fill(entries, fresh, array)
        out = np.empty(len(slots), np.int32)
        if len(self._left) < 2 * len(slots) + len(self._heap):
            self._left = np.empty(2 * (2 * len(slots) + len(self._heap)), np.int32)
        left = kernels.update(
            signs, slots, entries, self.values.rows, self.values.rows.view(np.float64), self.values.arena,
            self._counts, self._heap, self._tops, self._kind, self.largest_first, out, self._left,
        )  # fmt: skip
        self._gone = self._left[:left].copy()
        return out

    def words_at(self, entries: Int32s) -> list[Int64s]:
        """Words of fixed-width values."""
        if not len(self.values.rows):
            return [np.zeros(len(entries), np.int64)] * self.values.width
        rows = self.values.rows[np.maximum(entries, 0)]
        return [np.ascontiguousarray(rows[:, word]) for word in range(self.values.width)]

    def values_at(self, entries: Int32s) -> Any:
        """Arrow array of values, NULL at negative entries."""
        there = entries >= 0
        if there.all():
            return self.values.gather(entries)[0]
        # No row stands for NULL: row 0 may be gone, and what it referred to with it.
        places = np.cumsum(there, dtype=np.int32) - np.int32(1)
        return pc.take(self.values.gather(entries[there])[0], pa.array(places, mask=~there))

    def _fill(self, entries: Int32s, fresh: Int32s, array: Any) -> None:
        values = array.take(pa.array(fresh))
        at = entries[fresh]
        keep(self.values, at)
        self.values.rows[at] = self.values.words_of([values], len(fresh))
        self._counts[at] = 0
        self._heap[at] = 0

    def _reserve(self) -> None:
        self.values.ensure()
        size = len(self.values.rows)
        if len(self._counts) < size:
            grow(self, "_counts", size)
            grow(self, "_heap", size)
        slots = self.parent.high_water
        before = len(self._tops)
        if slots > before:
            grow(self, "_tops", slots)
            self._tops[before:] = -1

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
                # Also those below zero: they come back into the heap when they count again.
                self._heap[live, 2] = 0
                live = live[self._counts[live] > 0]
                kernels.rebuild(
                    live, self.entries.namespaces_at(live), self.values.rows, self.values.rows.view(np.float64),
                    self.values.arena, self._heap, self._tops, self._kind, self.largest_first,
                )  # fmt: skip
            self._rebuild_at = max(1 << 16, 2 * len(self.entries))
        self.values.compact()

    def drop_slots(self, slots: Int32s) -> None:
        """Forget all values of the slots."""
        self._sweep()
        if not len(slots) or not len(self.entries):
            return
        gone = self.entries.entries_of(slots)[1]
        keep(self, gone)
        self._counts[gone] = 0
        self._heap[gone, 2] = 0
        self.entries.remove(gone)
        self._tops[slots[slots < len(self._tops)]] = -1

    def freeze(self, moment: Moment) -> Frozen:
        """The values of this moment; see ``Freezable``."""
        self._reserve()
        parts: dict[str, Freezable] = {"parent": self.parent, "entries": self.entries, "values": self.values}
        return Frozen(
            self,
            rows={"_counts": self.entries.high_water},
            parts={name: moment.of(part) for name, part in parts.items()},
        )

    def save(self) -> Any:
        """Parent keys, value and count of every entry."""
        live = self.entries.live_slots()
        live = live[self._counts[live] != 0]
        owners = self.entries.owners_at(live)
        columns = [*self.values.gather(live), pa.array(self._counts[live])]
        return key_table_of(self.parent, owners, columns, ["value", "count"])

    def load(self, table: Any) -> None:
        """Insert the values of a saved table."""
        slots = parent_slots(self.parent, table)
        values = flat(table.column("value"))
        self.restore_counts(slots, values, flat(table.column("count")))

    def restore_counts(self, slots: Int32s, values: Any, array: Any) -> None:
        """Insert values that their slots do not have, with their counts."""
        counts = value_words(array).words[0]
        self.update(slots, values, np.sign(counts).astype(np.int8))
        entries = self.entries.lookup(self.entries.encode([values], slots.astype(np.int64)))
        self._counts[entries] = counts
