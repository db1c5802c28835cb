"""Queries inside of expressions: bound in batch mode, and without a plan on FlowSQL's own runtime yet."""

from __future__ import annotations

from collections.abc import Sequence

from flowsql_core.errors import NotSupportedYetError
from flowsql_planner.logical.internal_calls import QUERY_CALLS, query_calls
from flowsql_planner.logical.nodes import Rel, expressions
from flowsql_planner.logical.rewrite import walk


def refuse_queries(roots: Sequence[Rel]) -> None:
    """Refuse plans that ask a query row by row.

    Raises:
        NotSupportedYetError: with the construct, where it stands.
    """
    for root in roots:
        for rel in walk(root):
            for expr in expressions(rel):
                for call in query_calls(expr):
                    raise NotSupportedYetError(QUERY_CALLS[call.function], call.span, "write a JOIN")
