"""From an operator's context to the context of its expressions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np

from flowsql_compute.eval.columns import TooManyBytesError
from flowsql_compute.eval.compile import Projector
from flowsql_compute.eval.context import EvalContext
from flowsql_compute.eval.java.regex_limit import REGEX_LIMIT_MS
from flowsql_compute.eval.time.calendar import UNITS_PER_SECOND
from flowsql_compute.eval.time.machine_zone import machine_zone
from flowsql_core.batch import ChangelogBatch, LateColumns, late_columns, watermark_per_row
from flowsql_core.config import LOCAL_TIME_ZONE, Configuration
from flowsql_core.element import MIN_WATERMARK
from flowsql_core.errors import ExecutionError
from flowsql_core.expr import Call, Expr, InputRef, input_refs, transform, walk
from flowsql_core.record import record
from flowsql_core.types.arrow import to_arrow
from flowsql_runtime.operators.base import OperatorContext
from flowsql_runtime.state.arrow_words import array_of_words

#: Job parameter of batch mode: CURRENT_TIMESTAMP and its like are this moment for all rows, epoch ms.
QUERY_START_PARAMETER = "flowsql.query-start-ms"


_CURRENT_WATERMARK: Final = "CURRENT_WATERMARK"


def eval_context(ctx: OperatorContext) -> EvalContext:
    """Zone, clock, randomness and query start as the job has them."""
    zone, query_start_ms = zone_and_start(ctx.parameters)
    limit_s = regex_limit_s(ctx.parameters)
    return EvalContext(zone=zone, clock=ctx.clock, rng=ctx.rng, query_start_ms=query_start_ms, regex_limit_s=limit_s)


def regex_limit_s(parameters: Mapping[str, str]) -> float:
    """How long a regular expression of a job may look at one text, seconds."""
    return Configuration(values=dict(parameters)).get(REGEX_LIMIT_MS) / 1000


def zone_and_start(parameters: Mapping[str, str]) -> tuple[str, int | None]:
    """The zone of a job, and in batch mode the moment at which its query began, epoch ms."""
    zone = parameters.get(LOCAL_TIME_ZONE.key, LOCAL_TIME_ZONE.default)
    start = parameters.get(QUERY_START_PARAMETER)
    return machine_zone() if zone == LOCAL_TIME_ZONE.default else zone, int(start) if start else None


def projected(batch: ChangelogBatch, project: Projector | None) -> Iterator[tuple[int, ChangelogBatch, list[Any]]]:
    """The batch with its computed columns (none without ``project``), in parts whose columns fit in arrays.

    Yields ``(first, part, columns)``, the rows from ``first`` on; the next part is computed when it is asked for. A row
    that breaks a rule is told by its place in the batch.
    """
    todo = [(0, batch.num_rows)]
    while todo:
        first, last = todo.pop()
        part = batch.slice(first, last)
        try:
            computed = [] if project is None else project(part.columns, part.num_rows)
        except TooManyBytesError:
            middle = (first + last) // 2
            todo += [(middle, last), (first, middle)]
            continue
        except ExecutionError as error:
            if error.row is not None:
                error.row.row += first
            raise
        yield first, part, computed


@record
class RowWatermarks:
    """CURRENT_WATERMARK as columns behind those of a batch: each row has its own answer, the watermark before it.

    ``width``: how many columns of the batch the expressions may read. ``calls``: what stands in each column behind.
    """

    width: int
    calls: tuple[Call, ...]

    def beside(self, batch: ChangelogBatch, before_ms: int) -> ChangelogBatch:
        """The batch, whose track is the operator's own, with the columns. ``before_ms``: what stood before its rows."""
        if not self.calls:
            return batch
        levels = watermark_per_row(batch.num_rows, batch.track, before_ms)
        known = levels != MIN_WATERMARK
        levels = np.where(known, levels, 0)
        types = [to_arrow(call.type) for call in self.calls]
        added = [array_of_words([levels * (UNITS_PER_SECOND[type_.unit] // 1000)], known, type_) for type_ in types]
        return batch.with_columns(LateColumns.beside(late_columns(batch.columns, range(self.width)), added))

    def restore(self, error: ExecutionError) -> None:
        """Show a row that failed here as the query has it."""
        row = error.row
        if error.operator is None and row is not None and row.expr is not None:
            row.expr = substitute_from(row.expr, self.width, self.calls)
            row.values = {index: text for index, text in row.values.items() if index < self.width}


def substitute_from(expr: Expr, first: int, replacements: Sequence[Expr]) -> Expr:
    """Each input ref at or behind ``first`` replaced by the expression that stands for it."""

    def change(node: Expr) -> Expr:
        return replacements[node.index - first] if isinstance(node, InputRef) and node.index >= first else node

    return transform(expr, change)


def read_watermarks(expressions: Sequence[Sequence[Expr]]) -> tuple[list[tuple[Expr, ...]], RowWatermarks]:
    """Expressions over the columns of :class:`RowWatermarks` where they call CURRENT_WATERMARK."""
    every = [expr for exprs in expressions for expr in exprs]
    found = (node for expr in every for node in walk(expr) if isinstance(node, Call) and _asks(node))
    calls = tuple({to_arrow(call.type): call for call in found}.values())
    places = {to_arrow(call.type): place for place, call in enumerate(calls)}
    width = 1 + max((index for expr in every for index in input_refs(expr)), default=-1)

    def change(node: Expr) -> Expr:
        if isinstance(node, Call) and _asks(node):
            return InputRef(width + places[to_arrow(node.type)], node.type, node.span)
        return node

    made = [tuple(transform(expr, change) if calls else expr for expr in exprs) for exprs in expressions]
    return made, RowWatermarks(width, calls)


def _asks(call: Call) -> bool:
    return call.function == _CURRENT_WATERMARK
