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
from flowsql_runtime.operators.match.automaton import Run
from flowsql_runtime.state.arrow_words import array_of_words
from flowsql_runtime.state.scratch import scratch_stores

Int64s = npt.NDArray[np.int64]


@record
class Place:
    """A run of a key's rows. ``rows``: where these are in the table; ``current``: of a variable that a row may join.

    ``time_ms``: of the match.
    """

    run: Run
    rows: Sequence[int]
    current: int | None = None
    time_ms: int = 0

    def bounds(self, variable: int | None) -> tuple[int, int]:
        """Rows of a variable: first and behind the last, the joining row among them."""
        first, behind = self.run.rows_of(variable)
        if self.current is not None and variable in (None, self.current):
            return (first if first < behind else self.run.end), self.run.end + 1
        return first, behind


class MatchExpressions:
    """Expressions that are asked together."""

    def __init__(self, exprs: Sequence[PatternExpression], stored: Schema, context: EvalContext) -> None:
        self._stored = stored
        self._parts = [(expr, compile_projections([expr.expression], context)) for expr in exprs]

    def evaluate(self, places: Sequence[Place], table: Sequence[Any]) -> list[Any]:
        """An Arrow array for each expression, (n,). ``table``: columns of stored rows."""
        made = []
        for expr, project in self._parts:
            types = {node.index: node.type for node in walk(expr.expression) if isinstance(node, InputRef)}
            columns = [self._read(read, places, table, types[i]) for i, read in enumerate(expr.reads)]
            made.append(project(columns, len(places))[0])
        return made

    def _read(self, read: PatternRead, places: Sequence[Place], table: Sequence[Any], type_: LogicalType) -> Any:
        match read:
            case PatternColumn(variable, column, first, offset):
                rows = [_row(place, variable, first, offset) for place in places]
                return table[column].take(pa.array(rows, pa.int64()))
            case PatternAggregate(variable, call):
                return self._aggregate(call, [place.bounds(variable) for place in places], places, table)
            case MatchTime.ROW_TIME:
                arrow = to_arrow(type_)
                times = np.array([place.time_ms for place in places], np.int64)
                return array_of_words([times * (UNITS_PER_SECOND[arrow.unit] // 1000)], None, arrow)
            case _:
                assert_never(read)

    def _aggregate(
        self, call: AggregateCall, bounds: Sequence[tuple[int, int]], places: Sequence[Place], table: Sequence[Any]
    ) -> Any:
        """Each group has a row that does not count beside its own, so that groups without rows are known too."""
        stores = scratch_stores()
        index = stores.key_index([pa.int64()])
        sizes = np.array([behind - first + 1 for first, behind in bounds], np.int64)
        groups = np.repeat(np.arange(len(places)), sizes)
        rows: list[int] = []
        signs: list[int] = []
        for (first, behind), place in zip(bounds, places, strict=True):
            rows.append(place.rows[0])
            rows += place.rows[first:behind]
            signs += [0, *[1] * (behind - first)]
        program = AggregateProgram([call], self._stored, retracts=False)
        program.open(stores, index)
        slots, _ = index.find_or_insert(index.encode([pa.array(groups)]))
        taken = pa.array(rows, pa.int64())
        read = {arg.index for arg in call.args}
        columns = [column.take(taken) if place in read else column for place, column in enumerate(table)]
        program.fold(slots, columns, np.array(signs, np.int8), every=False)
        own = np.ascontiguousarray(slots[np.cumsum(sizes) - sizes])
        return program.results_at(own)[0]


def _row(place: Place, variable: int | None, first: bool, offset: int) -> int | None:
    low, high = place.bounds(variable)
    row = low + offset if first else high - 1 - offset
    return place.rows[row] if low <= row < high else None
