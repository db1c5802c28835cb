"""Spec of the operator behind ``f(x) OVER (...)`` in streaming."""

from __future__ import annotations

import enum

from flowsql_core.expr import AggregateCall, Literal
from flowsql_core.graph.specs import OperatorSpec
from flowsql_core.record import record
from flowsql_core.types.logical import Schema


class OverOrder(enum.Enum):
    """What the rows of an OVER window are ordered by."""

    ROW_TIME = "row time"
    PROCESSING_TIME = "processing time"
    VALUES = "values"


@record
class OverAggregateSpec(OperatorSpec):
    """Aggregates over the rows from ``preceding`` to the current one, in ascending order of one column, NULLs first.

    Output: the input's columns, then one column per call. Arguments of calls are columns of the input, behind them
    ``constants``. ``counts_rows``: the frame is one of ROWS, else of RANGE, where rows of equal order are one.
    ``preceding``: rows or milliseconds before the current one; None: from the first row on.
    ``input_retracts``, ``emit_update_before``, ``nulls_last``: only where the order is one of values.
    ``state_ttl_ms`` 0: state goes by its frame alone.
    """

    partition: tuple[int, ...]
    order: OverOrder
    order_index: int
    counts_rows: bool
    preceding: int | None
    calls: tuple[AggregateCall, ...]
    constants: tuple[Literal, ...]
    input: Schema
    output: Schema
    input_retracts: bool = False
    emit_update_before: bool = True
    state_ttl_ms: int = 0
    nulls_last: bool = False
