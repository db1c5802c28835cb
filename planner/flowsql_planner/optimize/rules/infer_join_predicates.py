"""What is known of a join key on one side holds on the other side too."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace

from flowsql_core.expr import (
    Call,
    Expr,
    InputRef,
    Literal,
    conjunction,
    conjuncts,
    input_refs,
    remap_inputs,
    walk,
)
from flowsql_core.graph.specs import JoinKind
from flowsql_planner.logical.nodes import Filter, Join, Project, Rel, WatermarkAssigner
from flowsql_planner.logical.rewrite import make_join, retype_expr

_SIMPLE = frozenset({"=", "<>", "<", "<=", ">", ">=", "AND", "OR", "IN", "BETWEEN"})
_TO_RIGHT = (JoinKind.INNER, JoinKind.LEFT, JoinKind.SEMI)
_TO_LEFT = (JoinKind.INNER, JoinKind.RIGHT, JoinKind.SEMI)
#: Joins whose results have a row of that input.
_ROWS_OF_LEFT = (JoinKind.INNER, JoinKind.LEFT, JoinKind.SEMI, JoinKind.ANTI)
_ROWS_OF_RIGHT = (JoinKind.INNER, JoinKind.RIGHT)


def infer_join_predicates(rel: Rel) -> Rel | None:
    """Join(Filter(a, a.k = 3), b, ON a.k = b.k)  =>  Join(Filter(a, a.k = 3), Filter(b, b.k = 3), ON a.k = b.k).

    Rows that the new filter drops find no partner. Only comparisons of one key with constants travel.
    """
    if not isinstance(rel, Join) or rel.condition is None:
        return None
    width = len(rel.left.schema)
    pairs: list[tuple[int, int]] = []
    for part in conjuncts(rel.condition):
        match part:
            case Call(function="=" | "IS NOT DISTINCT FROM", args=(InputRef(index=a), InputRef(index=b))) if (
                a < width
            ) != (b < width):
                pairs.append((min(a, b), max(a, b) - width))
    if not pairs:
        return None
    known = (_known(rel.left), _known(rel.right))
    given: tuple[list[Expr], list[Expr]] = ([], [])
    seen = set(rel.inferred)
    for target, kinds in ((0, _TO_LEFT), (1, _TO_RIGHT)):
        if rel.kind not in kinds:
            continue
        input_ = (rel.left, rel.right)[target]
        seen |= {(target, _text(part)) for part in known[target]}
        for part in known[1 - target]:
            for pair in pairs:
                moved = _moved(part, pair[1 - target], pair[target], input_)
                if moved is not None and (target, _text(moved)) not in seen:
                    seen.add((target, _text(moved)))
                    given[target].append(moved)
    if not given[0] and not given[1]:
        return None
    left, right = _filtered(rel.left, given[0]), _filtered(rel.right, given[1])
    return replace(make_join(rel, left, right, rel.condition), inferred=frozenset(seen))


def _filtered(rel: Rel, parts: list[Expr]) -> Rel:
    condition = conjunction(tuple(parts))
    return rel if condition is None else Filter(rel, condition)


def _moved(part: Expr, key: int, other: int, target: Rel) -> Expr | None:
    """A predicate of one key as one of the other input's key; None if it is not one."""
    if input_refs(part) != {key} or not _simple(part):
        return None
    return retype_expr(remap_inputs(part, lambda index: other), target.schema)


def _text(part: Expr) -> Hashable:
    """A predicate apart from nullability, which differs between the sides."""
    match part:
        case Call():
            return (part.function, tuple(_text(arg) for arg in part.args))
        case InputRef():
            return part.index
        case _:
            return part


def _simple(part: Expr) -> bool:
    return all(
        isinstance(node, InputRef | Literal) or (isinstance(node, Call) and node.function in _SIMPLE)
        for node in walk(part)
    )


def _known(rel: Rel) -> tuple[Expr, ...]:
    """Predicates that hold for every row of a node."""
    match rel:
        case Filter(input=source, condition=condition):
            return (*_known(source), *conjuncts(condition))
        case WatermarkAssigner(input=source):
            return _known(source)
        case Project(input=source, exprs=exprs):
            place: dict[int, int] = {}
            for out, expr in enumerate(exprs):
                if isinstance(expr, InputRef):
                    place.setdefault(expr.index, out)
            return tuple(
                remap_inputs(part, lambda index: place[index])
                for part in _known(source)
                if input_refs(part) <= place.keys()
            )
        case Join(left=left, right=right, kind=kind):
            width = len(left.schema)
            of_left = _known(left) if kind in _ROWS_OF_LEFT else ()
            of_right = _known(right) if kind in _ROWS_OF_RIGHT else ()
            return (*of_left, *(remap_inputs(part, lambda index: index + width) for part in of_right))
        case _:
            return ()
