"""Expressions over the rows of matches, for many matches at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, assert_never

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flowsql_compute.eval.compile import compile_projections
from flowsql_compute.eval.context import EvalContext
from flowsql_compute.eval.time.calendar import UNITS_PER_SECOND
from flowsql_core.expr import AggregateCall, InputRef, walk
from flowsql_core.graph.match_specs import (
    MatchTime,
    PatternAggregate,
    PatternColumn,
    PatternExpression,
    PatternRead,
)
from flowsql_core.record import record
from flowsql_core.types.arrow import to_arrow
from flowsql_core.types.logical import LogicalType, Schema
from flowsql_runtime.operators.aggregate.program import AggregateProgram
from flowsql_runtime.state.arrow_words import array_of_words
from flowsql_runtime.state.scratch import scratch_stores

Int64s = npt.NDArray[np.int64]
Int32s = npt.NDArray[np.int32]


@record
class Places:
    """Runs of rows, of one key each.

    Attributes:
        rows: int64 (n,), where the rows of all keys are in the table, those of a key one behind another.
        starts: int64 (m,), the first row of each run among ``rows``.
        counts: int32 (m, v), how many rows each variable has.
        current: the variable that the row behind each run may join.
        times: int64 (m,), of matches, milliseconds.
    """

    rows: Int64s
    starts: Int64s
    counts: Int32s
    current: int | None = None
    times: Int64s | None = None

    def __len__(self) -> int:
        return len(self.starts)

    def bounds(self, variable: int | None) -> tuple[Int64s, Int64s]:
        """Rows of a variable (None: of all): first and behind the last, the joining row among them."""
        if variable is not None and variable >= self.counts.shape[1]:
            return self.starts, self.starts
        ends = self.starts + self.counts.sum(axis=1)
        first, behind = self.starts, ends
        if variable is not None:
            first = self.starts + self.counts[:, :variable].sum(axis=1)
            behind = first + self.counts[:, variable]
        if self.current is not None and variable in (None, self.current):
            return np.where(first < behind, first, ends), ends + 1
        return first, behind


class MatchExpressions:
    """Expressions that are asked together."""

    def __init__(self, exprs: Sequence[PatternExpression], stored: Schema, context: EvalContext) -> None:
        self._stored = stored
        self._parts = [(expr, compile_projections([expr.expression], context)) for expr in exprs]

    def evaluate(self, places: Places, table: Sequence[Any]) -> list[Any]:
        """An Arrow array for each expression, (m,). ``table``: columns of stored rows."""
        made = []
        for expr, project in self._parts:
            types = {node.index: node.type for node in walk(expr.expression) if isinstance(node, InputRef)}
            columns = [self._read(read, places, table, types[i]) for i, read in enumerate(expr.reads)]
            made.append(project(columns, len(places))[0])
        return made

    def _read(self, read: PatternRead, places: Places, table: Sequence[Any], type_: LogicalType) -> Any:
        match read:
            case PatternColumn(variable, column, first, offset):
                low, high = places.bounds(variable)
                at = low + offset if first else high - 1 - offset
                there = (low <= at) & (at < high)
                rows = places.rows[np.where(there, at, places.starts)]
                return table[column].take(pa.array(rows, mask=None if there.all() else ~there))
            case PatternAggregate(variable, call):
                return self._aggregate(call, *places.bounds(variable), places, table)
            case MatchTime.ROW_TIME:
                assert places.times is not None
                arrow = to_arrow(type_)
                return array_of_words([places.times * (UNITS_PER_SECOND[arrow.unit] // 1000)], None, arrow)
            case _:
                assert_never(read)

    def _aggregate(
        self, call: AggregateCall, first: Int64s, behind: Int64s, places: Places, table: Sequence[Any]
    ) -> Any:
        """Each group has a row that does not count before its own, so that groups without rows are known too."""
        stores = scratch_stores()
        index = stores.key_index([pa.int64()])
        sizes = behind - first + 1
        ends = np.cumsum(sizes)
        groups = np.repeat(np.arange(len(places)), sizes)
        within = np.arange(len(groups)) - np.repeat(ends - sizes, sizes)
        at = np.where(within > 0, np.repeat(first, sizes) + within - 1, np.repeat(places.starts, sizes))
        program = AggregateProgram([call], self._stored, retracts=False)
        program.open(stores, index)
        slots, _ = index.find_or_insert(index.encode([pa.array(groups)]))
        taken = pa.array(places.rows[at])
        read = {arg.index for arg in call.args}
        columns = [column.take(taken) if place in read else column for place, column in enumerate(table)]
        program.fold(slots, columns, (within > 0).astype(np.int8), every=False)
        return program.results_at(np.ascontiguousarray(slots[ends - sizes]))[0]
