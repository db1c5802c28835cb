"""GROUPING SETS, ROLLUP and CUBE: each row once per set, then one plain aggregate."""

from __future__ import annotations

from dataclasses import replace

from flowsql_core.expr import AggregateCall, Call, Case, Expr, InputRef, Literal
from flowsql_core.types.logical import BIGINT, BooleanType, Column
from flowsql_planner.logical.nodes import Aggregate, Expand, Project, Rel
from flowsql_planner.logical.rewrite import ref, refs, unique_names

_GROUPING = frozenset({"GROUPING", "GROUPING_ID", "GROUP_ID"})
_BIGINT = BIGINT.as_nullable(False)


def expand_grouping_sets(rel: Rel) -> Rel | None:
    """Aggregate(x, sets)  =>  Project(Aggregate(Expand(x, one projection a set), keys + $e)).

    A change of a row becomes the same change of each of its copies, so safe for every changelog. Columns that are both
    key and argument are copied first, unless all sets hold them: the key may be NULLed, the argument not.
    """
    if not isinstance(rel, Aggregate) or rel.grouping_sets is None:
        return None
    source = rel.input
    width = len(source.schema)
    calls = [call for call in rel.calls if call.function not in _GROUPING]
    arguments = {arg.index for call in calls for arg in call.args}
    arguments |= {call.filter_index for call in calls if call.filter_index is not None}
    arguments |= {index for call in calls for index, _ in call.order_by}
    always = set(rel.grouping).intersection(*rel.grouping_sets)
    copied = sorted(arguments & set(rel.grouping) - always)
    copy_of = {index: width + i for i, index in enumerate(copied)}
    ids = _set_ids(rel)
    rows = tuple(
        (*_row(rel, set_), *(ref(source.schema, index) for index in copied), Literal(number, _BIGINT))
        for set_, number in zip(rel.grouping_sets, ids, strict=True)
    )
    columns = [
        Column(column.name, column.type.as_nullable() if index in rel.grouping and index not in always else column.type)
        for index, column in enumerate(source.schema)
    ]
    columns += [source.schema[index] for index in copied]
    names = unique_names((*(column.name for column in columns), "$e"))
    schema = tuple(
        Column(name, type_) for name, type_ in zip(names, (*(c.type for c in columns), _BIGINT), strict=True)
    )
    expand = Expand(source, rows, schema, rel.span)
    grouping = (*rel.grouping, width + len(copied))
    moved = tuple(_moved(call, copy_of, expand) for call in calls)
    made = Aggregate(
        expand,
        grouping,
        moved,
        tuple(schema[index] for index in grouping) + tuple(Column(call.name, call.type) for call in moved),
        None,
        rel.hints,
        rel.span,
    )
    return _restored(rel, made, ids)


def _set_ids(rel: Aggregate) -> tuple[int, ...]:
    """Flink's ids: a bit for each key that a set leaves out, first key highest; positions when sets repeat."""
    assert rel.grouping_sets is not None
    ids = tuple(
        sum((index not in set_) << (len(rel.grouping) - 1 - i) for i, index in enumerate(rel.grouping))
        for set_ in rel.grouping_sets
    )
    return ids if len(set(ids)) == len(ids) else tuple(range(len(ids)))


def _row(rel: Aggregate, set_: tuple[int, ...]) -> tuple[Expr, ...]:
    return tuple(
        Literal(None, column.type.as_nullable())
        if index in rel.grouping and index not in set_
        else ref(rel.input.schema, index)
        for index, column in enumerate(rel.input.schema)
    )


def _moved(call: AggregateCall, copy_of: dict[int, int], expand: Expand) -> AggregateCall:
    return replace(
        call,
        args=tuple(ref(expand.schema, copy_of.get(arg.index, arg.index)) for arg in call.args),
        filter_index=None if call.filter_index is None else copy_of.get(call.filter_index, call.filter_index),
        order_by=tuple((copy_of.get(index, index), descending) for index, descending in call.order_by),
    )


def _restored(rel: Aggregate, made: Aggregate, ids: tuple[int, ...]) -> Project:
    keys = len(rel.grouping)
    exprs: list[Expr] = list(refs(made.schema)[:keys])
    set_id = ref(made.schema, keys)
    position = keys + 1
    for call in rel.calls:
        if call.function in _GROUPING:
            exprs.append(_grouping_value(rel, call, set_id, ids))
        else:
            exprs.append(ref(made.schema, position))
            position += 1
    return Project(made, tuple(exprs), tuple(column.name for column in rel.schema), rel.span)


def _grouping_value(rel: Aggregate, call: AggregateCall, set_id: InputRef, ids: tuple[int, ...]) -> Expr:
    assert rel.grouping_sets is not None
    values: list[Expr] = []
    for position, set_ in enumerate(rel.grouping_sets):
        if call.function == "GROUP_ID":
            number = sum(set(other) == set(set_) for other in rel.grouping_sets[:position])
        else:
            number = 0
            for arg in call.args:
                number = number * 2 + (arg.index not in set_)
        values.append(Literal(number, call.type))
    if len(values) == 1:
        return values[0]
    not_null = BooleanType(nullable=False)
    conditions = tuple(Call("=", (set_id, Literal(number, _BIGINT)), not_null) for number in ids[:-1])
    return Case(conditions, tuple(values[:-1]), values[-1], call.type)
