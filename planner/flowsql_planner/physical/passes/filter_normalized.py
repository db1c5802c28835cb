"""Filters over ChangelogNormalize move below it where they look at the key alone, else into it.

Source: Flink's ``PushCalcPastChangelogNormalizeRule``.
"""

from __future__ import annotations

from dataclasses import replace

from flowsql_core.expr import Expr, InputRef, conjunction, conjuncts, input_refs, remap_inputs
from flowsql_core.types.logical import Column
from flowsql_planner.optimize.determinism import is_deterministic
from flowsql_planner.physical.calc import is_identity, make_calc
from flowsql_planner.physical.nodes import Calc, ChangelogNormalize, Exchange, Physical, WatermarkAssignerNode


def push_filters_into_normalize(node: Physical) -> Physical:
    """Calc(ChangelogNormalize(Exchange(x)))  =>  Calc(ChangelogNormalize(Exchange(Calc(x))))

    All changes of a key fulfil a condition on the key, or none does, so they may be dropped before the state. Any other
    condition must see which row of the key was there before: the operator tells a deletion when a row fulfils it no
    longer. Columns that nobody needs stay below.
    """
    node = replace(node, inputs=tuple(push_filters_into_normalize(child) for child in node.inputs))
    if isinstance(node, WatermarkAssignerNode):
        return _below_normalize(node)
    if not isinstance(node, Calc) or not isinstance(node.inputs[0], ChangelogNormalize):
        return node
    normalize = node.inputs[0]
    parts = conjuncts(node.condition)
    if any(not is_deterministic(part) for part in parts) or normalize.condition is not None:
        return node
    keys = frozenset(normalize.keys)
    below = [part for part in parts if input_refs(part) <= keys]
    inside = [part for part in parts if not input_refs(part) <= keys]
    used = keys.union(*map(input_refs, (*node.projections, *inside)))
    columns = tuple(sorted(used))
    if not parts and len(columns) == len(normalize.schema):
        return node
    exchange = normalize.inputs[0]
    assert isinstance(exchange, Exchange)
    places = {old: new for new, old in enumerate(columns)}
    source = _narrow(exchange.inputs[0], columns, below)
    keyed = tuple(places[key] for key in normalize.keys)
    made = ChangelogNormalize(
        inputs=(replace(exchange, inputs=(source,), schema=source.schema, keys=keyed),),
        schema=source.schema,
        keys=keyed,
        condition=conjunction(tuple(remap_inputs(part, places.__getitem__) for part in inside)) if inside else None,
        mini_batch=normalize.mini_batch,
        span=normalize.span,
    )
    projections = tuple(remap_inputs(expr, places.__getitem__) for expr in node.projections)
    if is_identity(projections, len(made.schema)):
        schema = tuple(Column(own.name, below.type) for own, below in zip(node.schema, made.schema, strict=True))
        if schema == made.schema:
            return made
    return replace(node, inputs=(made,), projections=projections, condition=None)


def _below_normalize(node: WatermarkAssignerNode) -> Physical:
    """WatermarkAssigner([Calc](ChangelogNormalize(Exchange(x))))  =>  ChangelogNormalize(Exchange(the same(x)))

    Where the key goes through the Calc.
    Watermarks are made where rows come in: an exchange by key mixes the rows of several readers. Columns that the table
    computes go below, too, for the watermark may be made of them.
    """
    source = node.inputs[0]
    calc = source if isinstance(source, Calc) else None
    normalize = source if calc is None else calc.inputs[0]
    if not isinstance(normalize, ChangelogNormalize) or normalize.condition is not None:
        return node
    exchange = normalize.inputs[0]
    assert isinstance(exchange, Exchange)
    below: Physical = exchange.inputs[0]
    keys = normalize.keys
    if calc is not None:
        if calc.condition is not None or not all(map(is_deterministic, calc.projections)):
            return node
        places = {expr.index: out for out, expr in enumerate(calc.projections) if isinstance(expr, InputRef)}
        if any(key not in places for key in keys):
            return node
        keys = tuple(places[key] for key in keys)
        below = replace(calc, inputs=(below,))
    below = replace(node, inputs=(below,))
    moved = replace(exchange, inputs=(below,), schema=below.schema, keys=keys)
    return replace(normalize, inputs=(moved,), schema=below.schema, keys=keys)


def _narrow(source: Physical, columns: tuple[int, ...], parts: list[Expr]) -> Physical:
    projections: tuple[Expr, ...] = tuple(InputRef(index, source.schema[index].type) for index in columns)
    names = tuple(source.schema[index].name for index in columns)
    if not parts:
        return make_calc(source, projections, names, source.span)
    schema = tuple(source.schema[index] for index in columns)
    return Calc(
        inputs=(source,), schema=schema, projections=projections, condition=conjunction(tuple(parts)), span=source.span
    )
