"""Specs of windows whose bounds follow from the rows, and of those that answer more than once."""

from __future__ import annotations

from flowsql_core.expr import AggregateCall
from flowsql_core.graph.specs import OperatorSpec, WindowAggregateSpec, WindowSpec
from flowsql_core.record import record
from flowsql_core.types.logical import Schema


@record
class SessionAggregateSpec(WindowAggregateSpec):
    """Aggregate per key and session; ``window.size_ms`` is the gap. Sessions that touch become one."""


@record
class ChainedWindowSpec(WindowAggregateSpec):
    """HOP over changes that take rows back. Windows close one behind the other."""


@record
class EmittingWindowSpec(WindowAggregateSpec):
    """Aggregate per key and window of TUMBLE or HOP with early or late answers.

    ``early``: each row changes a window's answer from the first one on; else from the window's end on. ``lateness_ms``:
    how long behind its end a window takes rows in. Delays: processing time from the first row on after which, and again
    and again, a window tells what changed before or behind its end; 0: with each row.
    """

    early: bool = False
    lateness_ms: int = 0
    emit_update_before: bool = True
    early_delay_ms: int = 0
    late_delay_ms: int = 0


@record
class SessionTableFunctionSpec(OperatorSpec):
    """Rows with the bounds of their session, when it closes. ``partition``: the columns that sessions are by."""

    partition: tuple[int, ...]
    window: WindowSpec
    input: Schema
    output: Schema


@record
class CountWindowSpec(OperatorSpec):
    """Aggregate per key and window of ``size`` rows; a window begins with every ``step``-th row of its key.

    ``output``: grouping columns, then results.
    """

    grouping: tuple[int, ...]
    calls: tuple[AggregateCall, ...]
    size: int
    step: int
    input: Schema
    output: Schema
    input_retracts: bool
