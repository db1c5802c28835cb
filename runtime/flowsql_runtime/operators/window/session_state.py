"""The open sessions of an operator's keys: a slot each, their bounds, and when they close."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flowsql_compute.eval.columns import values_and_validity
from flowsql_runtime.kernels import rows as row_kernels
from flowsql_runtime.state.backend import StoreFactory
from flowsql_runtime.state.names import TableNames
from flowsql_runtime.state.stores import EncodedKeys, StoredColumn
from flowsql_runtime.window.row_order import row_order
from flowsql_runtime.window.sessions import KnownSessions, Walk, walk
from flowsql_runtime.window.zone import to_epoch_ms

Bools = npt.NDArray[np.bool_]
Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]

#: The stored columns. Those of the key stand where its session 0 has its slot.
_COLUMNS: Final = {
    "start": "start of the session, local ms",
    "end": "end of the session, local ms",
    "timer": "when the session is looked at next",
    "born": "number of the row that opened the session",
    "others": "open sessions of the key beside session 0",
    "most": "above all numbers of sessions of the key",
}
_START, _END, _TIMER, _BORN, _OTHERS, _MOST = range(len(_COLUMNS))
_NO_SLOTS: Final = np.zeros(0, np.int32)


@dataclass(frozen=True, eq=False, slots=True)
class Step:
    """What a batch did: each session's slot, -1 for one that never got one; ``roots``: what each is part of now.

    ``empty``: slots of keys that have no session.
    """

    walk: Walk
    slots: Int32s
    roots: Int32s
    empty: Int32s


@dataclass(frozen=True, eq=False, slots=True)
class Closed:
    """Sessions that closed, in the order in which they did: slots, local bounds and trigger times, ms."""

    slots: Int32s
    starts: Int64s
    ends: Int64s
    triggers: Int64s


class SessionState:
    """Sessions by key and a number among the key's sessions, from 0: nearly all keys have but one.

    The slot of number 0 stays as long as the key has any session, and knows of the others.
    """

    def __init__(self, stores: StoreFactory, types: Sequence[Any], gap_ms: int, zone: str | None) -> None:
        self.index = stores.window_index(types)
        self._bounds = stores.column_store(
            "bounds", self.index, [StoredColumn(name, pa.int64(), nullable=False) for name in _COLUMNS]
        )
        self._timers = stores.timers("closing", self.index)
        self._gap_ms = gap_ms
        self._zone = zone
        #: By slot, -1 between two batches.
        self._scratch: Int32s = np.zeros(0, np.int32)

    @staticmethod
    def table_names() -> dict[str, TableNames]:
        """What the stores of this class mean."""
        columns = {f"v:{name}": meaning for name, meaning in _COLUMNS.items()}
        return {"bounds": TableNames("open sessions", columns), "closing": TableNames("closing of sessions")}

    def trigger_ms(self, ends: Int64s) -> Int64s:
        """When sessions close: their last millisecond, on the scale of the watermark or the clock."""
        return to_epoch_ms(ends - 1, self._zone)

    def earliest(self) -> int | None:
        """No session closes before; None without sessions."""
        return self._timers.earliest()

    def _table(self, slots: Int32s) -> Int64s:
        """(6, n) columns of slots."""
        if not len(slots):
            return np.zeros((len(_COLUMNS), 0), np.int64)
        return np.stack([values_and_validity(column)[0] for column in self._bounds.gather(slots)])

    def _write(self, slots: Int32s, table: Int64s) -> None:
        if len(slots):
            self._bounds.scatter(slots, [pa.array(column) for column in table])

    # -- rows

    def add(self, keys: Sequence[Any], times: Int64s, levels: Int64s, first_row: int, transient: bool) -> Step:
        """Put rows into sessions, and give those sessions slots.

        Args:
            keys: Arrow columns; ``times``: local ms; ``levels``: the watermark before each row, ms.
            first_row: number of the first row among all of the operator.
            transient: a session that rows open and another takes in within the batch gets a slot, too.
        """
        n = len(times)
        encoded = self.index.encode(keys, np.zeros(n, np.int64), n)
        of_rows, _ = self.index.find_or_insert(encoded)
        numbers, first_rows = self._numbered(of_rows)
        heads = of_rows[first_rows]
        table = self._table(heads)
        known, known_slots, known_table = self._known(heads, table)
        step = walk(known, numbers, times, levels, self._gap_ms, self._zone)
        slots = np.full(len(step.keys), -1, np.int32)
        slots[: len(known_slots)] = known_slots
        fresh = (step.born >= 0) & (True if transient else step.into < 0)
        slots[fresh & (step.ordinals == 0)] = heads[step.keys[fresh & (step.ordinals == 0)]]
        more = np.flatnonzero(fresh & (step.ordinals > 0))
        if len(more):
            numbered = self.index.encoded_at(heads[step.keys[more]]).with_namespaces(
                step.ordinals[more].astype(np.int64)
            )
            slots[more], _ = self.index.find_or_insert(numbered)
        empty = self._store(step, slots, heads, table, known_table, first_row)
        return Step(step, slots, step.roots(), empty)

    def _numbered(self, slots: Int32s) -> tuple[Int32s, Int32s]:
        """Each row's key from 0, in order of first sight, and the first row of each."""
        highest = int(slots.max(initial=-1)) + 1
        if len(self._scratch) < highest:
            self._scratch = np.full(2 * highest, -1, np.int32)
        numbers, firsts = np.empty(len(slots), np.int32), np.empty(len(slots), np.int32)
        count = row_kernels.positions(slots, np.zeros(len(slots), np.int64), self._scratch, numbers, firsts)
        return numbers, firsts[:count]

    def _known(self, heads: Int32s, table: Int64s) -> tuple[KnownSessions, Int32s, Int64s]:
        """Open sessions of keys; their slots and columns."""
        most = table[_MOST].astype(np.int32)
        held = table[_END] > table[_START]
        keys = np.flatnonzero(held).astype(np.int32)
        ordinals = np.zeros(len(keys), np.int32)
        free_keys = np.flatnonzero(~held).astype(np.int32)
        free_ordinals = np.zeros(len(free_keys), np.int32)
        slots, columns = heads[keys], table[:, keys]
        several = np.flatnonzero(most > 1)
        if len(several):
            counts = most[several] - 1
            owners = np.repeat(several, counts).astype(np.int32)
            numbers = (np.arange(len(owners)) - np.repeat(np.cumsum(counts) - counts, counts) + 1).astype(np.int32)
            found = self.index.lookup(self.index.encoded_at(heads[owners]).with_namespaces(numbers.astype(np.int64)))
            there = found >= 0
            keys, ordinals = np.append(keys, owners[there]), np.append(ordinals, numbers[there])
            free_keys = np.append(free_keys, owners[~there])
            free_ordinals = np.append(free_ordinals, numbers[~there])
            slots = np.append(slots, found[there])
            columns = np.concatenate((columns, self._table(found[there])), axis=1)
        most = np.maximum(most, 1)
        known = KnownSessions(keys, ordinals, columns[_START], columns[_END], free_keys, free_ordinals, most)
        return known, slots, columns

    def _store(self, step: Walk, slots: Int32s, heads: Int32s, table: Int64s, known: Int64s, first_row: int) -> Int32s:
        """Bounds and timers of the sessions that are left, and what keys know of them; slots of keys without any."""
        before = known.shape[1]
        lives = step.into < 0
        born = np.concatenate((known[_BORN], first_row + step.born[before:].astype(np.int64)))
        triggers = self.trigger_ms(step.ends)
        timers = np.concatenate((known[_TIMER], triggers[before:]))
        # A timer may stand too early, and is then set anew when it is due; never too late.
        sooner = np.flatnonzero(lives[:before] & (triggers[:before] < timers[:before]))
        gone = np.flatnonzero(~lives[:before])
        self._timers.delete(timers[np.append(sooner, gone)], slots[np.append(sooner, gone)])
        timers[sooner] = triggers[sooner]
        fresh = np.append(sooner, before + np.flatnonzero(lives[before:]))
        self._timers.register(timers[fresh], slots[fresh])
        # Sessions beside number 0, then number 0 with what it knows of them.
        others = np.flatnonzero(lives & (step.ordinals > 0))
        written = np.zeros((len(_COLUMNS), len(others)), np.int64)
        written[:4] = np.stack((step.starts, step.ends, timers, born))[:, others]
        self._write(slots[others], written)
        first = np.flatnonzero(step.ordinals == 0)
        left = first[~lives[first]]
        table[:4, step.keys[left]] = 0
        stays = first[lives[first]]
        table[:4, step.keys[stays]] = np.stack((step.starts, step.ends, timers, born))[:, stays]
        table[_OTHERS] = np.bincount(step.keys[others], minlength=len(heads))
        table[_MOST] = np.where(table[_OTHERS] > 0, step.most, 1)
        empty = (table[_END] <= table[_START]) & (table[_OTHERS] == 0)
        self._write(heads[~empty], table[:, ~empty])
        without: Int32s = heads[empty]
        return without

    def settle(self, step: Step) -> None:
        """Give back the slots of sessions that others took in, once nothing stands by them, and of keys without any."""
        taken = np.flatnonzero((step.walk.into >= 0) & (step.slots >= 0) & (step.walk.ordinals > 0))
        self._remove(np.append(step.slots[taken], step.empty))

    # -- closing

    def due(self, until_ms: int) -> Closed | None:
        """The sessions that close by a time, in that order; :meth:`drop` them then."""
        _, slots = self._timers.due(until_ms)
        if not len(slots):
            return None
        table = self._table(slots)
        triggers = self.trigger_ms(table[_END])
        later = np.flatnonzero(triggers > until_ms)
        if len(later):
            table[_TIMER, later] = triggers[later]
            self._write(slots[later], table[:, later])
            self._timers.register(triggers[later], slots[later])
        closed = np.flatnonzero(triggers <= until_ms)
        closed = closed[row_order((table[_BORN, closed], triggers[closed]))]
        return Closed(slots[closed], table[_START, closed], table[_END, closed], triggers[closed])

    def drop(self, closed: Closed) -> None:
        """Forget closed sessions; what stands by their slots is forgotten before."""
        slots = closed.slots
        ordinals = self.index.namespaces_at(slots)
        first, others = slots[ordinals == 0], slots[ordinals > 0]
        heads = np.append(first, self._heads(others))
        known, places = np.unique(heads, return_inverse=True)
        table = self._table(known)
        table[:4, places[: len(first)]] = 0
        np.subtract.at(table[_OTHERS], places[len(first) :], 1)
        empty = (table[_END] <= table[_START]) & (table[_OTHERS] == 0)
        self._write(known[~empty], table[:, ~empty])
        self._remove(np.append(others, known[empty]))

    def _heads(self, slots: Int32s) -> Int32s:
        if not len(slots):
            return _NO_SLOTS
        keys: EncodedKeys = self.index.encoded_at(slots)
        return self.index.lookup(keys.with_namespaces(np.zeros(len(slots), np.int64)))

    def _remove(self, slots: Int32s) -> None:
        if len(slots):
            self._bounds.clear(slots)
            self.index.remove(slots)
