"""Following a row that broke a rule up the chain, from the operator that failed to the source that read it.

A chain is nested calls, so a failure passes every operator between the two: each that keeps its rows in order tells
where the row stood in what it took. What runs here runs only after a failure.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from flowsql_core.batch import ChangelogBatch
from flowsql_core.errors import FailedRow, FlowSqlError


def trace_row(
    error: FlowSqlError,
    took: ChangelogBatch,
    gave: ChangelogBatch | None = None,
    kept: npt.NDArray[np.bool_] | None = None,
) -> None:
    """Tell a failure that passes where its row stood in the batch that this operator took.

    Args:
        error: the operator's own failure, or that of an operator behind it.
        took: the operator's input.
        gave: what it handed on; None before it did.
        kept: bool (rows of ``took``,), those that it handed on; None for all.
    """
    row = error.row
    if row is None:
        return
    if error.operator is None:
        row.arrived_in(took, _before(row.row, kept))
    elif gave is not None and row.batch is gave:
        row.batch, row.position = took, _before(row.position, kept)


def note_source(error: FlowSqlError, gave: ChangelogBatch, rows_before: int, subtask: int) -> None:
    """Tell a failure that passes how many rows the source gave out before the one that failed."""
    row: FailedRow | None = error.row
    if row is not None and row.batch is gave:
        row.read_row, row.subtask = rows_before + row.position, subtask


def _before(row: int, kept: npt.NDArray[np.bool_] | None) -> int:
    return row if kept is None else int(np.flatnonzero(kept)[row])
