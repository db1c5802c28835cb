"""Chains of joins by one key become one join of several inputs."""

from __future__ import annotations

from typing import Final

from flowsql_core.graph.specs import JoinKind
from flowsql_core.python_call import calls_python
from flowsql_planner.logical.common_join_key import common_join_key
from flowsql_planner.logical.nodes import Join, MultiJoin, Rel
from flowsql_planner.logical.rewrite import transform_up
from flowsql_planner.physical.joins.interval_join import is_interval_join

#: A hint of a join, without a value.
_HINT: Final = ("MULTI_JOIN", "")


def join_to_multi_join(root: Rel, enabled: bool) -> Rel:
    """Join(Join(a, b), c)  =>  MultiJoin(a, b, c)

    INNER and LEFT joins, where the option or a MULTI_JOIN hint asks for it; each further input joins the chain on its
    left if all inputs share a key. Rows are those of the joins one behind another, and so are their changes but for
    those that an inner one would only hand on. Joins over time stay, and so do those that ask functions in Python.

    Source: Flink, ``JoinToMultiJoinRule``; FLIP-516.
    """

    def merged(rel: Rel) -> Rel:
        return _merged(rel) if isinstance(rel, Join) and (enabled or _HINT in rel.hints) else rel

    return transform_up(root, merged)


def _merged(rel: Join) -> Rel:
    if rel.kind not in (JoinKind.INNER, JoinKind.LEFT) or is_interval_join(rel):
        return rel
    if rel.condition is not None and calls_python(rel.condition):
        return rel
    ttls = dict(rel.hints)
    right_ttl = ttls.get("STATE_TTL.RIGHT")
    chain = rel.left
    if isinstance(chain, MultiJoin):
        inputs, conditions = (*chain.inputs, rel.right), (*chain.conditions, rel.condition)
        if common_join_key(conditions, [len(child.schema) for child in inputs]):
            return MultiJoin(
                inputs, (*chain.kinds, rel.kind), conditions, rel.schema, (*chain.ttls, right_ttl), rel.span
            )
    own_ttls = (ttls.get("STATE_TTL.LEFT"), right_ttl)
    return MultiJoin((rel.left, rel.right), (rel.kind,), (rel.condition,), rel.schema, own_ttls, rel.span)
