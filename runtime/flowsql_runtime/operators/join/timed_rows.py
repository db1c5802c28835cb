"""Rows of one side of a join over time: by key and time, with at most one timer a key."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flowsql_compute.eval.columns import values_and_validity
from flowsql_core.record import record
from flowsql_core.types.arrow import to_arrow
from flowsql_core.types.logical import Schema
from flowsql_runtime.kernels.interval import NO_TIMER
from flowsql_runtime.operators.base import OperatorContext
from flowsql_runtime.state.flat_rows import flat_columns, flat_types, whole_columns
from flowsql_runtime.state.names import TableNames
from flowsql_runtime.state.stores import KeyIndex, SortColumn, StoredColumn

Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]

NO_SLOTS = np.zeros(0, np.int32)


@record
class RowsRead:
    """Rows of :class:`TimedRows`: their columns; values of ``more``, then times."""

    columns: list[Any]
    numbers: list[npt.NDArray[Any]]


class TimedRows:
    """Rows by key, sorted by time, rows of one time in order of arrival.

    Nested columns stand as flat ones. Behind the columns of ``schema`` stand fixed-width ones of ``more`` types, then
    the time, int64 milliseconds.
    """

    def __init__(
        self,
        ctx: OperatorContext,
        name: str,
        index: KeyIndex,
        schema: Schema,
        more: Sequence[Any] = (),
        counted: bool = False,
    ) -> None:
        self._types = [to_arrow(column.type) for column in schema]
        self._width = sum(len(flat_types(type_)) for type_ in self._types)
        stored = [*(part for type_ in self._types for part in flat_types(type_)), *more, pa.int64()]
        order = [SortColumn(len(stored) - 1)]
        self.rows = ctx.state.sorted_list(name, index, stored, order, numbered=True, counted=counted)

    def append(
        self,
        slots: Int32s,
        columns: Sequence[Any],
        times_ms: Int64s,
        more: Sequence[npt.NDArray[Any]] = (),
        associations: Int32s | None = None,
    ) -> None:
        """Keep rows."""
        if len(slots):
            flat = [part for index in range(len(self._types)) for part in flat_columns(columns[index])]
            stored = [*flat, *(pa.array(values) for values in more), pa.array(times_ms)]
            self.rows.apply(np.ones(len(slots), np.int8), slots, stored, associations)

    def gather(self, rows: Int32s) -> list[Any]:
        """Columns of rows."""
        return whole_columns(self._types, self.rows.gather(rows)[: self._width])

    def whole(self, rows: Int32s) -> RowsRead:
        """Columns of rows, and what stands behind them."""
        found = self.rows.gather(rows)
        numbers = [values_and_validity(found[index])[0] for index in range(self._width, len(found))]
        return RowsRead(whole_columns(self._types, found[: self._width]), numbers)

    def numbers(self, rows: Int32s) -> list[npt.NDArray[Any]]:
        """What stands behind the columns of rows: values of ``more``, then times."""
        return [values_and_validity(column)[0] for column in self.rows.gather(rows)[self._width :]]

    def times(self, rows: Int32s) -> Int64s:
        """Times of rows."""
        times: Int64s = self.numbers(rows)[-1]
        return times

    def between(self, slots: Int32s, lowers_ms: Int64s, uppers_ms: Int64s) -> tuple[Int32s, Int32s]:
        """Pairs (position in ``slots``, row) of rows of a slot in a span of time, bounds included."""
        return self.rows.between(slots, [pa.array(lowers_ms)], [pa.array(uppers_ms)])

    def up_to(self, slots: Int32s, until_ms: Int64s) -> tuple[Int32s, Int32s]:
        """Pairs (position in ``slots``, row) of rows at or before a time, by position and time."""
        return self.rows.between(slots, None, [pa.array(until_ms)])

    def up_to_and_next(self, slots: Int32s, until_ms: int) -> tuple[Int32s, Int32s]:
        """The same, and the first row of each slot behind that time."""
        bound = np.full(len(slots), until_ms, np.int64)
        positions, rows = self.up_to(slots, bound)
        counts = np.bincount(positions, minlength=len(slots)).astype(np.int64)
        next_positions, next_rows = self.rows.rows_of(slots, counts, 1)
        positions, rows = np.concatenate((positions, next_positions)), np.concatenate((rows, next_rows))
        order = np.argsort(positions, kind="stable")
        return positions[order], rows[order]


class KeyTimers:
    """At most one time that each key waits for."""

    def __init__(self, ctx: OperatorContext, name: str, index: KeyIndex) -> None:
        self._timers = ctx.state.timers(name, index)
        self._current = ctx.state.column_store(f"{name} of key", index, [StoredColumn("time", pa.int64())])

    def earliest(self) -> int | None:
        """The next time."""
        return self._timers.earliest()

    def due(self, until_ms: int) -> Int32s:
        """Slots whose time is at or before a moment. Their times stay known until they are set anew."""
        earliest = self._timers.earliest()
        if earliest is None or earliest > until_ms:
            return NO_SLOTS
        return self._timers.due(until_ms)[1]

    def of(self, slots: Int32s) -> Int64s:
        """The time of each slot, ``NO_TIMER`` where there is none."""
        values, valid = values_and_validity(self._current.gather(slots)[0])
        return values if valid is None else np.where(valid, values, NO_TIMER)

    def set(self, slots: Int32s, before: Int64s, after: Int64s, taken: int = 0) -> None:
        """Put times of distinct slots. ``before``: what :meth:`of` gives; the first ``taken`` of the slots are what
        :meth:`due` gave last."""
        changed = np.flatnonzero((before != after) | (np.arange(len(slots)) < taken))
        if not len(changed):
            return
        slots, before, after = slots[changed], before[changed], after[changed]
        had = (before != NO_TIMER) & (changed >= taken)
        self._timers.delete(before[had], slots[had])
        there = after != NO_TIMER
        self._timers.register(after[there], slots[there])
        self._current.scatter(slots, [pa.array(after, mask=~there)])

    def drop(self, slots: Int32s) -> None:
        """Before slots without a time are removed."""
        self._current.clear(slots)


def timed_names(meaning: str, schema: Schema, columns: Sequence[str], more: Sequence[str] = ()) -> TableNames:
    """What the columns of :class:`TimedRows` mean."""
    names: list[str] = []
    for text, column in zip(columns, schema, strict=True):
        parts = len(flat_types(to_arrow(column.type)))
        names += [text] if parts == 1 else [f"{text}, part {part}" for part in range(parts)]
    names += [*more, "time"]
    return TableNames(meaning, {f"r{index}": text for index, text in enumerate(names)})


def grouped(slots: Int32s, members: Int32s) -> tuple[Int64s, Int64s]:
    """Rows by slot.

    Args:
        slots: of each row. ``members``: distinct slots, rising.

    Returns:
        int64 (g + 1,): where the rows of each member start; int64: the rows, by member, then in their order. Rows of
        other slots are left out.
    """
    at = np.searchsorted(members, slots)
    at = np.minimum(at, max(len(members) - 1, 0))
    rows = np.flatnonzero(members[at] == slots) if len(members) else np.zeros(0, np.int64)
    order = np.argsort(at[rows], kind="stable")
    return np.searchsorted(at[rows][order], np.arange(len(members) + 1)).astype(np.int64), rows[order]


def row_starts(positions: Int32s, count: int) -> Int64s:
    """Where the rows of each position start, int64 (count + 1,); ``positions`` do not fall."""
    return np.searchsorted(positions, np.arange(count + 1)).astype(np.int64)
