"""Trees of inner joins as one list of inputs and one list of conditions, so that Spark chooses the order.

Spark reorders joins that stand in one FROM; projections between them, and conditions that say ON at each, keep it from
seeing which input has a key in common with which.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from flowsql_core.expr import Call, Expr, InputRef, conjuncts, input_refs
from flowsql_core.graph.specs import JoinKind
from flowsql_core.types import logical as t
from flowsql_planner.logical.nodes import Filter, Join, Project, Rel, expressions
from flowsql_planner.optimize.determinism import is_deterministic
from flowsql_planner.spark.around_spark import is_local_expr

#: A column: the number of an input, and its place there.
Place = tuple[int, int]


#: Hints that ask for a hash join.
_BY_HASH: Final = frozenset({"BROADCAST", "SHUFFLE_HASH"})


@dataclass(frozen=True, slots=True)
class InnerJoins:
    """What a relation is made of.

    ``columns``: where each column of the relation comes from. ``conditions``: each with the places of the columns that
    it is over.
    """

    inputs: tuple[Rel, ...]
    columns: tuple[Place, ...]
    conditions: tuple[tuple[Expr, tuple[Place, ...]], ...]


def inner_joins(rel: Join, has_form: Callable[[Expr], bool]) -> InnerJoins | None:
    """The inputs of a tree of inner joins; None where there are but two, or the topmost join is none of them.

    Args:
        rel: the topmost join.
        has_form: whether Spark answers an expression by itself: others stand where they can be answered otherwise.
    """
    found = _parts(rel, has_form)
    return found if len(found.inputs) > 2 else None


def _parts(rel: Rel, has_form: Callable[[Expr], bool]) -> InnerJoins:
    match rel:
        case Join(kind=JoinKind.INNER) if _is_plain(rel, has_form):
            left, right = _parts(rel.left, has_form), _parts(rel.right, has_form)
            moved = len(left.inputs)
            columns = (*left.columns, *((number + moved, place) for number, place in right.columns))
            conditions = [*left.conditions]
            for condition, places in right.conditions:
                conditions.append((condition, tuple((number + moved, place) for number, place in places)))
            if rel.condition is not None:
                conditions.append((rel.condition, columns))
            return InnerJoins((*left.inputs, *right.inputs), columns, tuple(conditions))
        case Filter() if _is_plain(rel, has_form):
            below = _parts(rel.input, has_form)
            if len(below.inputs) > 1:
                return InnerJoins(below.inputs, below.columns, (*below.conditions, (rel.condition, below.columns)))
        case Project() if all(isinstance(expr, InputRef) for expr in rel.exprs):
            below = _parts(rel.input, has_form)
            if len(below.inputs) > 1:
                kept = tuple(below.columns[expr.index] for expr in rel.exprs if isinstance(expr, InputRef))
                return InnerJoins(below.inputs, kept, below.conditions)
    return InnerJoins((rel,), tuple((0, place) for place in range(len(rel.schema))), ())


def _is_plain(rel: Rel, has_form: Callable[[Expr], bool]) -> bool:
    if isinstance(rel, Join) and by_hash_of_floats(rel):
        return False
    return all(is_local_expr(expr) and is_deterministic(expr) and has_form(expr) for expr in expressions(rel))


def by_hash_of_floats(rel: Join) -> bool:
    """True if a hint asks for a hash join by keys of FLOAT or DOUBLE: Flink compares bits there, Spark values."""
    if not any(key.partition(".")[0] in _BY_HASH for key, _ in rel.hints) or rel.condition is None:
        return False
    return any(_is_floating_key(part) for part in conjuncts(rel.condition))


def _is_floating_key(part: Expr) -> bool:
    if not isinstance(part, Call) or part.function not in ("=", "IS NOT DISTINCT FROM"):
        return False
    return all(isinstance(arg.type, t.ApproximateType) and input_refs(arg) for arg in part.args)
