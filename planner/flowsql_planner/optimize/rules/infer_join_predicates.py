"""What is known of a join key on one side holds on the other side too."""

from __future__ import annotations

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
            case Call(function="=", args=(InputRef(index=a), InputRef(index=b))) if (a < width) != (b < width):
                pairs.append((min(a, b), max(a, b) - width))
    if not pairs:
        return None
    left, right = _known(rel.left), _known(rel.right)
    for_right = _moved(left, dict(pairs), right, rel.right) if rel.kind in _TO_RIGHT else ()
    for_left = _moved(right, {b: a for a, b in pairs}, left, rel.left) if rel.kind in _TO_LEFT else ()
    on_left, on_right = conjunction(for_left), conjunction(for_right)
    if on_left is None and on_right is None:
        return None
    return make_join(
        rel,
        rel.left if on_left is None else Filter(rel.left, on_left),
        rel.right if on_right is None else Filter(rel.right, on_right),
        rel.condition,
    )


def _moved(known: tuple[Expr, ...], pairs: dict[int, int], there: tuple[Expr, ...], target: Rel) -> tuple[Expr, ...]:
    made = []
    for part in known:
        used = input_refs(part)
        if len(used) != 1 or not used <= pairs.keys() or not _simple(part):
            continue
        moved = retype_expr(remap_inputs(part, lambda index: pairs[index]), target.schema)
        if _text(moved) not in {_text(other) for other in there}:
            made.append(moved)
    return tuple(made)


def _text(part: Expr) -> object:
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
        case _:
            return ()
