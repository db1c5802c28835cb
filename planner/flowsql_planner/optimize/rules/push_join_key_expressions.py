"""Equalities of expressions become equalities of columns, computed below the join."""

from __future__ import annotations

from dataclasses import replace

from flowsql_core.expr import Call, Cast, Expr, InputRef, conjunction, conjuncts, input_refs, remap_inputs
from flowsql_core.graph.specs import JoinKind
from flowsql_core.types.logical import BooleanType
from flowsql_planner.logical.nodes import Join, Project, Rel, TemporalJoin
from flowsql_planner.logical.rewrite import join_schema, refs, unique_names
from flowsql_planner.optimize.determinism import is_deterministic


def push_join_key_expressions(rel: Rel) -> Rel | None:
    """Join(a, b, ON f(a) = g(b))  =>  Project(Join(Project(a, *, f), Project(b, *, g), ON f = g)).

    The join can then partition by its keys. A key that is computed once a row is the same key at its retraction.
    """
    if not isinstance(rel, Join | TemporalJoin) or rel.condition is None:
        return None
    width = len(rel.left.schema)
    left: list[Expr] = []
    right: list[Expr] = []
    parts: list[Expr | tuple[str, int, int]] = []
    for part in conjuncts(rel.condition):
        sides = _sides(part, width)
        if sides is None:
            parts.append(part)
            continue
        name, a, b = sides
        parts.append((name, _position(left, a, width), _position(right, b, len(rel.right.schema))))
    if not left and not right:
        return None
    return _rebuilt(rel, left, right, parts)


def _sides(part: Expr, width: int) -> tuple[str, Expr, Expr] | None:
    """(operator, left expression, right expression over the right columns), when one is not a plain column."""
    match part:
        case Call(function="=" | "IS NOT DISTINCT FROM" as name, args=(a, b)):
            if isinstance(a, InputRef) and isinstance(b, InputRef):
                return None
            of_a, of_b = input_refs(a), input_refs(b)
            if not of_a or not of_b or not is_deterministic(part):
                return None
            if all(index >= width for index in of_a) and all(index < width for index in of_b):
                a, b, of_a, of_b = b, a, of_b, of_a
            if all(index < width for index in of_a) and all(index >= width for index in of_b):
                return name, a, remap_inputs(b, lambda index: index - width)
    return None


def _position(added: list[Expr], expr: Expr, width: int) -> int:
    if isinstance(expr, InputRef):
        return expr.index
    if expr not in added:
        added.append(expr)
    return width + added.index(expr)


def _with(rel: Rel, added: list[Expr]) -> Rel:
    if not added:
        return rel
    names = tuple(column.name for column in rel.schema)
    extra = tuple(_name(expr, names) or f"$f{len(names) + i}" for i, expr in enumerate(added))
    return Project(rel, (*refs(rel.schema), *added), unique_names((*names, *extra)), rel.span)


def _name(expr: Expr, names: tuple[str, ...]) -> str | None:
    """What Flink calls a computed key: a column in another type keeps its name."""
    while isinstance(expr, Cast):
        expr = expr.operand
    return names[expr.index] if isinstance(expr, InputRef) else None


def _rebuilt(
    rel: Join | TemporalJoin, left: list[Expr], right: list[Expr], parts: list[Expr | tuple[str, int, int]]
) -> Rel:
    width = len(rel.left.schema)
    new_left, new_right = _with(rel.left, left), _with(rel.right, right)
    new_width = len(new_left.schema)
    columns = new_left.schema + new_right.schema

    def moved(index: int) -> int:
        return index if index < width else index - width + new_width

    on: list[Expr] = []
    for part in parts:
        if isinstance(part, tuple):
            name, a, b = part
            args = (InputRef(a, columns[a].type), InputRef(new_width + b, columns[new_width + b].type))
            nullable = name == "=" and any(arg.type.nullable for arg in args)
            on.append(Call(name, args, BooleanType(nullable=nullable)))
        else:
            on.append(remap_inputs(part, moved))
    schema = join_schema(new_left.schema, new_right.schema, rel.kind)
    join = replace(rel, left=new_left, right=new_right, condition=conjunction(tuple(on)), schema=schema)
    kept = list(range(width))
    if rel.kind not in (JoinKind.SEMI, JoinKind.ANTI):
        kept += [new_width + index for index in range(len(rel.right.schema))]
    exprs = tuple(InputRef(index, schema[index].type) for index in kept)
    return Project(join, exprs, tuple(column.name for column in rel.schema), rel.span)
