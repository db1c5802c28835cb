"""Project and Filter -> Calc; Calcs on top of each other become one."""

from __future__ import annotations

from dataclasses import replace

from flowsql_core.expr import Expr, InputRef, conjunction, conjuncts, input_refs, substitute, walk
from flowsql_core.span import Span
from flowsql_core.types.logical import Column, Schema
from flowsql_planner.logical.rewrite import refs
from flowsql_planner.optimize.determinism import is_deterministic
from flowsql_planner.optimize.growth import grows_too_much
from flowsql_planner.physical.nodes import Calc, Physical


def make_calc(source: Physical, projections: tuple[Expr, ...], names: tuple[str, ...], span: Span | None) -> Physical:
    """A projection over a node; merged with a Calc below, dropped where it passes everything on."""
    if is_identity(projections, len(source.schema)):
        return source
    schema = tuple(Column(name, expr.type) for name, expr in zip(names, projections, strict=True))
    if isinstance(source, Calc) and may_merge(projections, source.projections):
        merged = tuple(substitute(expr, source.projections) for expr in projections)
        return _settle(replace(source, projections=merged, schema=schema))
    return Calc(inputs=(source,), schema=schema, projections=projections, span=span)


def make_filter(source: Physical, condition: Expr, span: Span | None) -> Physical:
    """A filter over a node; merged with a Calc below, unless that draws what the filter judges."""
    if (
        isinstance(source, Calc)
        and all(is_deterministic(source.projections[index]) for index in input_refs(condition))
        and not grows_too_much((condition,), source.projections)
    ):
        own = substitute(condition, source.projections)
        return replace(source, condition=conjunction((*conjuncts(source.condition), *conjuncts(own))))
    return Calc(inputs=(source,), schema=source.schema, projections=refs(source.schema), condition=condition, span=span)


def select(source: Physical, columns: tuple[int, ...]) -> Physical:
    """Some columns of a node."""
    schema: Schema = source.schema
    projections = tuple(InputRef(index, schema[index].type) for index in columns)
    return make_calc(source, projections, tuple(schema[index].name for index in columns), source.span)


def is_identity(projections: tuple[Expr, ...], width: int) -> bool:
    """Whether a projection passes its input on as it is."""
    return len(projections) == width and all(
        isinstance(expr, InputRef) and expr.index == index for index, expr in enumerate(projections)
    )


def may_merge(above: tuple[Expr, ...], below: tuple[Expr, ...]) -> bool:
    """Whether expressions over a projection may be written over its input.

    A non-deterministic expression must not be evaluated twice, nor where a condition would see another value. Columns
    that use the one below several times, again and again, would double with each projection.
    """
    if grows_too_much(above, below):
        return False
    if all(is_deterministic(expr) for expr in below):
        return True
    uses: dict[int, int] = {}
    for expr in above:
        for node in walk(expr):
            if isinstance(node, InputRef):
                uses[node.index] = uses.get(node.index, 0) + 1
    return all(is_deterministic(below[index]) or count <= 1 for index, count in uses.items())


def _settle(calc: Calc) -> Physical:
    source = calc.inputs[0]
    if calc.condition is None and is_identity(calc.projections, len(source.schema)):
        return source
    return calc
