"""Rules over filters whose other conditions ask queries: these stay where they are."""

from __future__ import annotations

from dataclasses import replace

from flowsql_core.expr import Expr, conjunction, conjuncts
from flowsql_planner.logical.internal_calls import query_calls
from flowsql_planner.logical.nodes import Filter, Rel, expressions
from flowsql_planner.optimize.driver import Rule


def beside_queries(rule: Rule) -> Rule:
    """The rule for conditions without queries: Filter(x, p AND q IN (...))  =>  Filter(rule(Filter(x, p)), q IN (...)).

    Other nodes are left as they are where one of their expressions asks a query.
    """

    def bound(rel: Rel) -> Rel | None:
        asking = [expr for expr in expressions(rel) if any(query_calls(expr))]
        if not asking:
            return rule(rel)
        if not isinstance(rel, Filter):
            return None
        plain: list[Expr] = []
        staying: list[Expr] = []
        for part in conjuncts(rel.condition):
            (staying if any(query_calls(part)) else plain).append(part)
        below, above = conjunction(tuple(plain)), conjunction(tuple(staying))
        if below is None or above is None:
            return None
        made = rule(replace(rel, condition=below))
        return None if made is None else replace(rel, input=made, condition=above)

    bound.__name__ = rule.__name__
    return bound
