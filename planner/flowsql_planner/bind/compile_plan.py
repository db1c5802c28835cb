"""COMPILE PLAN: which statements it takes."""

from __future__ import annotations

from flowsql_core.errors import NotSupportedYetError
from flowsql_grammar import ast
from flowsql_planner.bind import operations as op


def bind_compile_plan(node: ast.CompilePlan | ast.CompileAndExecutePlan, bound: op.Operation) -> op.CompilePlan:
    """COMPILE [AND EXECUTE] PLAN 'file' FOR INSERT or STATEMENT SET."""
    match bound:
        case op.Insert():
            inserts: tuple[op.Insert, ...] = (bound,)
        case op.StatementSet(many):
            inserts = many
        case _:
            raise NotSupportedYetError("COMPILE PLAN of anything but INSERT and STATEMENT SET", node.span)
    executes = isinstance(node, ast.CompileAndExecutePlan)
    if_not_exists = isinstance(node, ast.CompilePlan) and node.if_not_exists
    return op.CompilePlan(node.path, inserts, if_not_exists, executes, node.span)
