"""Expressions that Spark has no exact form for, as calls of FlowSQL's own kernels inside of Spark's plan.

A whole expression goes to a kernel, not a part of it: branches are then evaluated where they are taken, and a NULL, a
NaN or a failing row is what it is in FlowSQL's own runtime.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from flowsql_compute.functions.registry import find_definition
from flowsql_compute.functions.spark_form import NoSparkForm
from flowsql_core.errors import InternalError, NotSupportedYetError
from flowsql_core.expr import Call, Expr, InputRef, input_refs, remap_inputs, walk
from flowsql_core.graph.spark import KernelFunction
from flowsql_core.types import logical as t
from flowsql_planner.optimize.determinism import is_deterministic
from flowsql_planner.spark import sql
from flowsql_planner.spark.around_spark import is_local_expr
from flowsql_planner.spark.sql import SqlNode
from flowsql_planner.spark.types import spark_type


@dataclass(slots=True)
class Kernels:
    """The kernel functions that the queries of one statement call; equal expressions share one."""

    functions: dict[tuple[Expr, tuple[str, ...]], KernelFunction] = field(default_factory=dict)

    def call(self, expr: Expr, column: Callable[[int], SqlNode], schema: t.Schema) -> SqlNode:
        """The call that computes an expression of which :func:`has_kernel` is true, over columns with these types."""
        used = sorted(input_refs(expr))
        places = {index: place for place, index in enumerate(used)}
        body = remap_inputs(expr, places.__getitem__)
        names = tuple(schema[index].name for index in used)
        key = (body, names)
        if key not in self.functions:
            name = f"flowsql_kernel_{len(self.functions)}"
            arguments = tuple(schema[index].type for index in used)
            self.functions[key] = KernelFunction(name, body, arguments, names, spark_type(expr.type, expr.span))
        # A function of Python has one argument at least: it tells how many rows there are.
        nodes = [column(index) for index in used] or [sql.boolean(True)]
        return sql.function(self.functions[key].name, *nodes)


def has_kernel(expr: Expr) -> bool:
    """Whether kernels compute an expression from the row alone, and its values and theirs pass between both systems."""
    if not is_local_expr(expr) or not is_deterministic(expr):
        return False
    try:
        spark_type(expr.type, expr.span)
        for node in walk(expr):
            if isinstance(node, InputRef):
                spark_type(node.type, node.span)
            elif isinstance(node, Call) and not _by_kernel(node):
                return False
    except (NotSupportedYetError, InternalError):
        return False
    return True


def _by_kernel(call: Call) -> bool:
    form = find_definition(call).spark
    return not isinstance(form, NoSparkForm) or form.by_kernel
