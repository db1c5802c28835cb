"""Specs of the operators that call a user's Python functions inside of SQL."""

from __future__ import annotations

from flowsql_core.expr import AggregateCall, Expr
from flowsql_core.graph.over_specs import OverAggregateSpec
from flowsql_core.graph.specs import OperatorSpec, WindowAggregateSpec
from flowsql_core.graph.window_specs import SessionAggregateSpec
from flowsql_core.record import record
from flowsql_core.types.logical import Schema


@record
class PythonCalcSpec(OperatorSpec):
    """Hand columns on and call scalar Python functions.

    ``projections``: references to input columns, then calls of Python functions. The operands of a call are references,
    literals and calls of other functions of the same kind. ``input``: the columns that arrive.
    """

    projections: tuple[Expr, ...]
    input: Schema


@record
class PythonGroupAggregateSpec(OperatorSpec):
    """Aggregate per key, for ever, with Python aggregate functions, and built-in ones beside them.

    ``calls``: those of Python (``flowsql_core.python_call.aggregated_with``) name their function. ``output``: grouping
    columns, then results.
    """

    grouping: tuple[int, ...]
    calls: tuple[AggregateCall, ...]
    input: Schema
    output: Schema
    input_retracts: bool
    emit_update_before: bool
    state_ttl_ms: int = 0


@record
class PythonGroupTableAggregateSpec(OperatorSpec):
    """The rows that a Python table aggregate function makes of each group.

    ``call``: its type is the ROW of one row. ``output``: grouping columns, then the fields of a row.
    """

    grouping: tuple[int, ...]
    call: AggregateCall
    input: Schema
    output: Schema
    input_retracts: bool
    state_ttl_ms: int = 0


@record
class PythonWindowAggregateSpec(WindowAggregateSpec):
    """Aggregate per key and group window with Python functions, and built-in ones beside them.

    ``merges``: accumulators of slices combine, so that a row is accumulated once, whatever windows it is in.
    """

    merges: bool = False


@record
class PythonSessionAggregateSpec(SessionAggregateSpec):
    """The same per key and session. ``merges``: accumulators of sessions that touch combine; else rows are kept."""

    merges: bool = False


@record
class PythonOverAggregateSpec(OverAggregateSpec):
    """Functions of pandas over the rows of a frame: Series of those of each row."""
