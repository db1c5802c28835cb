"""Specs of the operators that call a user's Python functions inside of SQL."""

from __future__ import annotations

from flowsql_core.expr import Expr
from flowsql_core.graph.specs import OperatorSpec
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
