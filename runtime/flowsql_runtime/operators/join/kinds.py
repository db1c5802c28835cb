"""Which class runs which kind of regular join."""

from __future__ import annotations

from flowsql_core.graph.specs import JoinKind, JoinSpec
from flowsql_runtime.operators.join.outer import OuterJoinOperator
from flowsql_runtime.operators.join.regular import InnerJoinOperator, RegularJoin
from flowsql_runtime.operators.join.semi import SemiJoinOperator


def regular_join(spec: JoinSpec) -> RegularJoin:
    """A new operator for a spec."""
    match spec.kind:
        case JoinKind.INNER:
            return InnerJoinOperator(spec)
        case JoinKind.SEMI | JoinKind.ANTI:
            return SemiJoinOperator(spec)
        case JoinKind.LEFT | JoinKind.RIGHT | JoinKind.FULL:
            return OuterJoinOperator(spec)
