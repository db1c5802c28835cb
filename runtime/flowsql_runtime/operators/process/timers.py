"""Timers of partitions: with names, each once a partition, and without, each time once.

What an element does to timers stands in Python until the element is done; timers that its watermarks reach are taken
out of state in one call before its first row. Of timers of one time the one that was registered first fires first;
those without a name fire before those with one, as in Flink, where two services hold them.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flowsql_compute.eval.columns import values_and_validity
from flowsql_runtime.state.backend import StoreFactory
from flowsql_runtime.state.names import TableNames
from flowsql_runtime.state.stores import KeyIndex, StoredColumn

Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

_NO_SLOTS: Final = np.zeros(0, np.int32)
#: (time, number of registration)
_Set = tuple[int, int]


@dataclass(slots=True)
class _Partition:
    """Timers of a partition while an element is worked on.

    ``due``: time to number of those that were taken out of state; ``unnamed``: likewise of new ones. ``removed``: times
    that are void in state; all of them where ``cleared``. ``names``: all named ones, None until somebody asks.
    """

    due: dict[int, int] = field(default_factory=dict)
    unnamed: dict[int, int] = field(default_factory=dict)
    removed: set[int] = field(default_factory=set)
    cleared: bool = False
    names: dict[str, _Set] | None = None
    names_before: dict[str, _Set] = field(default_factory=dict)


class PartitionTimers:
    """All timers of an operator. ``number``: of the next registration, part of its snapshots."""

    def __init__(self, states: StoreFactory, index: KeyIndex) -> None:
        self._alarms = states.timers("timers", index)
        self._numbers = states.map_store(
            "timer numbers", index, [pa.int64()], [StoredColumn("number", pa.int64(), False)]
        )
        self._named_alarms = states.timers("named timers", index)
        self._named = states.map_store(
            "timers by name",
            index,
            [pa.string()],
            [StoredColumn("time", pa.int64(), False), StoredColumn("number", pa.int64(), False)],
        )
        self._counts = states.column_store("timers of partition", index, [StoredColumn("timers", pa.int64(), False)])
        self.number = 0
        self._partitions: dict[int, _Partition] = {}
        self._heap: list[tuple[int, int, int]] = []
        self._named_heap: list[tuple[int, int, int, str]] = []
        self._until_ms = -(2**63)

    @staticmethod
    def table_names() -> dict[str, TableNames]:
        """What the stores mean."""
        return {
            "timers": TableNames("timers without a name"),
            "timer numbers": TableNames("order of timers without a name", {"m0": "time", "v:number": "number"}),
            "named timers": TableNames("times of timers with a name"),
            "timers by name": TableNames("timers with a name", {"m0": "name", "v:time": "time", "v:number": "number"}),
            "timers of partition": TableNames("number of timers", {"v:timers": "timers"}),
        }

    # An element begins

    def begin(self, until_ms: int | None) -> Int32s:
        """Take out what is due by a watermark; the partitions concerned."""
        self._until_ms = -(2**63) if until_ms is None else until_ms
        if until_ms is None:
            return _NO_SLOTS
        times, slots = self._alarms.due(until_ms)
        if len(slots):
            entries = self._numbers.lookup(slots, [pa.array(times)])
            numbers = values_and_validity(self._numbers.gather(entries)[0])[0]
            self._numbers.remove(entries)
            self._count(slots, np.full(len(slots), -1))
            for time, slot, number in zip(times.tolist(), slots.tolist(), numbers.tolist(), strict=True):
                self._at(slot).due[time] = number
                self._heap.append((time, number, slot))
        _, named = self._named_alarms.due(until_ms)
        named = np.unique(named)
        self._load_names(named)
        for slot in named.tolist():
            for name, (time, number) in (self._at(slot).names or {}).items():
                if time <= until_ms:
                    self._named_heap.append((time, number, slot, name))
        heapq.heapify(self._heap)
        heapq.heapify(self._named_heap)
        return np.union1d(slots, named).astype(np.int32)

    def _at(self, slot: int) -> _Partition:
        found = self._partitions.get(slot)
        if found is None:
            found = self._partitions[slot] = _Partition()
        return found

    def _load_names(self, slots: Int32s) -> None:
        for slot in slots.tolist():
            self._at(slot).names = {}
        positions, entries = self._named.iterate_slot(slots)
        if len(entries):
            names = self._named.keys_at(entries)[0].to_pylist()
            times, numbers = (values_and_validity(column)[0].tolist() for column in self._named.gather(entries))
            for position, name, time, number in zip(positions.tolist(), names, times, numbers, strict=True):
                known = self._at(int(slots[position])).names
                assert known is not None
                known[name] = (time, number)
        for slot in slots.tolist():
            self._at(slot).names_before = dict(self._at(slot).names or {})

    def _names(self, slot: int) -> dict[str, _Set]:
        partition = self._at(slot)
        if partition.names is None:
            self._load_names(np.array([slot], np.int32))
        assert partition.names is not None
        return partition.names

    # What functions do

    def register(self, slot: int, time_ms: int) -> None:
        """Wait for a time."""
        partition = self._at(slot)
        if time_ms in partition.due or time_ms in partition.unnamed:
            return
        number = self._next()
        partition.unnamed[time_ms] = number
        if time_ms <= self._until_ms:
            heapq.heappush(self._heap, (time_ms, number, slot))

    def register_named(self, slot: int, name: str, time_ms: int) -> None:
        """Wait for a time under a name, instead of the time that it had."""
        number = self._next()
        self._names(slot)[name] = (time_ms, number)
        if time_ms <= self._until_ms:
            heapq.heappush(self._named_heap, (time_ms, number, slot, name))

    def _next(self) -> int:
        self.number += 1
        return self.number

    def clear(self, slot: int, time_ms: int) -> None:
        """Forget the timer without a name of a time."""
        partition = self._at(slot)
        partition.due.pop(time_ms, None)
        partition.unnamed.pop(time_ms, None)
        partition.removed.add(time_ms)

    def clear_named(self, slot: int, name: str) -> None:
        """Forget the timer of a name."""
        self._names(slot).pop(name, None)

    def clear_all(self, slot: int) -> None:
        """Forget all timers of a partition."""
        partition = self._at(slot)
        partition.due.clear()
        partition.unnamed.clear()
        partition.cleared = True
        self._names(slot).clear()

    # Time goes on

    def fire(self, watermark_ms: int) -> Iterator[tuple[int, int, str | None]]:
        """Timers that a watermark reaches: partition, time, name. They may register others while it is read."""
        while self._heap and self._heap[0][0] <= watermark_ms:
            time, number, slot = heapq.heappop(self._heap)
            partition = self._partitions[slot]
            if partition.due.get(time) == number:
                del partition.due[time]
            elif partition.unnamed.get(time) == number:
                del partition.unnamed[time]
            else:
                continue
            yield slot, time, None
        while self._named_heap and self._named_heap[0][0] <= watermark_ms:
            time, number, slot, name = heapq.heappop(self._named_heap)
            names = self._names(slot)
            if names.get(name) != (time, number):
                continue
            del names[name]
            yield slot, time, name

    # An element is done

    def keep(self, slots: Int32s) -> Bools:
        """Write what changed; whether any timer is left at each of these slots."""
        gone: list[tuple[int, int]] = []
        new: list[tuple[int, int, int]] = []
        cleared = [slot for slot, partition in self._partitions.items() if partition.cleared]
        if cleared:
            at = np.array(cleared, np.int32)
            positions, entries = self._numbers.iterate_slot(at)
            if len(entries):
                times = values_and_validity(self._numbers.keys_at(entries)[0])[0]
                self._alarms.delete(times, at[positions])
                self._count(at[positions], np.full(len(positions), -1))
            self._numbers.drop_slots(at)
        for slot, partition in self._partitions.items():
            gone += ((slot, time) for time in partition.removed)
            new += ((slot, time, number) for time, number in partition.unnamed.items())
        self._remove(gone)
        self._put(new)
        self._keep_names()
        self._partitions.clear()
        self._heap.clear()
        self._named_heap.clear()
        return self.holds(slots)

    def holds(self, slots: Int32s) -> Bools:
        """Whether partitions have timers."""
        left: Bools = values_and_validity(self._counts.gather(slots)[0])[0] > 0
        return left

    def forget(self, slots: Int32s) -> None:
        """Before slots without timers are removed."""
        self._counts.clear(slots)

    def _remove(self, gone: list[tuple[int, int]]) -> None:
        if not gone:
            return
        slots = np.array([slot for slot, _ in gone], np.int32)
        times = np.array([time for _, time in gone], np.int64)
        entries = self._numbers.lookup(slots, [pa.array(times)])
        there = entries >= 0
        self._numbers.remove(entries[there])
        self._alarms.delete(times[there], slots[there])
        self._count(slots[there], np.full(int(there.sum()), -1))

    def _put(self, new: list[tuple[int, int, int]]) -> None:
        if not new:
            return
        slots = np.array([slot for slot, _, _ in new], np.int32)
        times = np.array([time for _, time, _ in new], np.int64)
        numbers = np.array([number for _, _, number in new], np.int64)
        entries, fresh = self._numbers.find_or_insert(slots, [pa.array(times)])
        # One that is in state already keeps its number.
        self._numbers.scatter(entries[fresh], [pa.array(numbers[fresh])])
        self._alarms.register(times[fresh], slots[fresh])
        self._count(slots[fresh], np.ones(len(fresh), np.int64))

    def _keep_names(self) -> None:
        gone: list[tuple[int, str]] = []
        put: list[tuple[int, str, int, int]] = []
        alarms: tuple[list[tuple[int, int]], list[tuple[int, int]]] = ([], [])
        for slot, partition in self._partitions.items():
            if partition.names is None:
                continue
            before, after = partition.names_before, partition.names
            gone += ((slot, name) for name in before if name not in after)
            put += ((slot, name, *after[name]) for name in after if before.get(name) != after[name])
            old = {time for time, _ in before.values()}
            new = {time for time, _ in after.values()}
            # Those up to the watermark were taken out when the element began.
            alarms[0].extend((slot, time) for time in old - new)
            alarms[1].extend((slot, time) for time in new if time not in old or time <= self._until_ms)
        if gone:
            slots = np.array([slot for slot, _ in gone], np.int32)
            entries = self._named.lookup(slots, [pa.array([name for _, name in gone])])
            self._named.remove(entries[entries >= 0])
            self._count(slots, np.full(len(slots), -1))
        if put:
            slots = np.array([slot for slot, *_ in put], np.int32)
            entries, fresh = self._named.find_or_insert(slots, [pa.array([name for _, name, *_ in put])])
            times = np.array([time for _, _, time, _ in put], np.int64)
            numbers = np.array([number for *_, number in put], np.int64)
            self._named.scatter(entries, [pa.array(times), pa.array(numbers)])
            self._count(slots[fresh], np.ones(len(fresh), np.int64))
        for pairs, act in zip(alarms, (self._named_alarms.delete, self._named_alarms.register), strict=True):
            if pairs:
                act(np.array([time for _, time in pairs], np.int64), np.array([slot for slot, _ in pairs], np.int32))

    def _count(self, slots: Int32s, by: Int64s) -> None:
        if not len(slots):
            return
        distinct, places = np.unique(slots, return_inverse=True)
        before = values_and_validity(self._counts.gather(distinct)[0])[0]
        added = np.bincount(places, by, len(distinct)).astype(np.int64)
        self._counts.scatter(distinct, [pa.array(before + added)])
