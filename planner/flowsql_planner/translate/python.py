"""PythonCalc -> its spec: the functions that no text can name go into the job's resource table."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from flowsql_core.expr import Call, Expr, transform
from flowsql_core.graph.python_specs import PythonCalcSpec
from flowsql_core.python_call import called_function, python_call
from flowsql_planner.physical.nodes import PythonCalc


def python_calc_spec(node: PythonCalc, resources: dict[str, Any]) -> PythonCalcSpec:
    """The spec; ``resources`` gets the objects of its functions.

    A function that has a path or a text is loaded where it runs: a plan of such functions alone can be stored.
    """

    def named(expr: Expr) -> Expr:
        function = called_function(expr)
        if function is None or not isinstance(expr, Call):
            return expr
        if function.path is None and function.source is None:
            resources[function.key] = function.function
        return python_call(replace(function, function=None), expr.args, expr.type, expr.span)

    projections = tuple(transform(expr, named) for expr in node.projections)
    return PythonCalcSpec(projections, node.inputs[0].schema)
