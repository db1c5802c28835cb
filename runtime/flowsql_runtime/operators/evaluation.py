"""From an operator's context to the context of its expressions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from flowsql_compute.eval.columns import TooManyBytesError
from flowsql_compute.eval.compile import Projector
from flowsql_compute.eval.context import EvalContext
from flowsql_compute.eval.time.machine_zone import machine_zone
from flowsql_core.batch import ChangelogBatch
from flowsql_core.config import LOCAL_TIME_ZONE
from flowsql_core.errors import ExecutionError
from flowsql_runtime.operators.base import OperatorContext

#: Job parameter of batch mode: CURRENT_TIMESTAMP and its like are this moment for all rows, epoch ms.
QUERY_START_PARAMETER = "flowsql.query-start-ms"


def eval_context(ctx: OperatorContext, current_watermark: Callable[[], int] | None = None) -> EvalContext:
    """Zone, clock, randomness and query start as the job has them."""
    zone = ctx.parameter(LOCAL_TIME_ZONE.key, LOCAL_TIME_ZONE.default)
    start = ctx.parameter(QUERY_START_PARAMETER)
    return EvalContext(
        zone=machine_zone() if zone == LOCAL_TIME_ZONE.default else zone,
        clock=ctx.clock,
        rng=ctx.rng,
        query_start_ms=int(start) if start else None,
        current_watermark=current_watermark,
    )


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
