"""After a kernel failed: which row it was, and what the columns held there. Runs on the way out of a failure only."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from flowsql_compute.eval.text.render import Notation, render_column
from flowsql_core.batch import PyObjectColumn
from flowsql_core.errors import ExecutionError, FailedRow
from flowsql_core.expr import Call, Expr, InputRef, walk
from flowsql_core.types import logical as t

#: Characters of one value that a report shows.
MAX_VALUE = 60


def first_failure(
    evaluate: Callable[[Sequence[Any], int], object], args: Sequence[Any], n: int
) -> tuple[int, ExecutionError] | None:
    """The first row at which ``evaluate`` fails, with the error of that row alone.

    Halves the rows until one is left, so that kernels need not say which row it was; as much work as one evaluation
    of the batch. None when no row fails alone: what fails is not a matter of one row.
    """
    low, high = 0, n
    found: ExecutionError | None = None
    while high - low > 1:
        middle = (low + high) // 2
        error = _failure(evaluate, args, low, middle)
        if error is None:
            low = middle
        else:
            high = middle
    if high > low:
        found = _failure(evaluate, args, low, high)
    return None if found is None else (low, found)


def _failure(
    evaluate: Callable[[Sequence[Any], int], object], args: Sequence[Any], start: int, stop: int
) -> ExecutionError | None:
    part = [arg if isinstance(arg, pa.Scalar) else arg.slice(start, stop - start) for arg in args]
    try:
        evaluate(part, stop - start)
    except ExecutionError as error:
        return error
    return None


def failed_row(expr: Expr, row: int, column: Callable[[int], Any]) -> FailedRow:
    """The row of a batch at which an expression failed, with the values of the columns that it reads.

    Args:
        expr: what failed.
        row: position in the batch.
        column: a column of the batch by its index.
    """
    reads: dict[int, t.LogicalType] = {}
    for node in walk(expr):
        if isinstance(node, InputRef):
            reads.setdefault(node.index, node.type)
    # What was written, where the evaluation computes something else instead.
    written = expr.option("written", expr) if isinstance(expr, Call) else expr
    return FailedRow(row, {index: value_text(column(index), reads[index], row) for index in reads}, written)


def value_text(column: Any, type_: t.LogicalType, row: int) -> str:
    """One value for a reader: texts in quotes, ``NULL``, long ones cut."""
    if isinstance(column, PyObjectColumn):
        text = repr(column.values[row])
    else:
        one = column.slice(row, 1)
        if one.null_count:
            return "NULL"
        text = str(render_column(one, type_, Notation.TABLEAU)[0])
        if isinstance(type_, t.CharacterType):
            text = "'" + text.replace("'", "''") + "'"
    text = text.replace("\n", "\\n")
    return text if len(text) <= MAX_VALUE else text[: MAX_VALUE - 3] + "..."
