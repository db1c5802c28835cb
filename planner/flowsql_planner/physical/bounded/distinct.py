"""Aggregates with DISTINCT in batch mode: groups of the values first, then of the keys.

All DISTINCT calls over one argument: an aggregate of keys and argument makes each value one row, which an aggregate of
the keys counts. Else each row comes once for each argument and once for the calls without DISTINCT; ``$e`` tells which.

Source: Flink, ``FlinkAggregateExpandDistinctAggregatesRule``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from flowsql_compute.functions.aggregate import is_mergeable, resolve_aggregate
from flowsql_core.errors import BindError, PlanError
from flowsql_core.expr import AggregateCall, Call, Case, Cast, Expr, Literal, conjunction
from flowsql_core.graph.bounded_specs import DistinctValues
from flowsql_core.record import record
from flowsql_core.types.logical import BIGINT, BOOLEAN, INT, Column, Schema
from flowsql_planner.logical.nodes import Aggregate
from flowsql_planner.logical.rewrite import ref, refs, unique_names
from flowsql_planner.physical.aggregate_functions import two_phase_in_batch
from flowsql_planner.physical.bounded.sorts import sorts_groups
from flowsql_planner.physical.calc import make_calc
from flowsql_planner.physical.context import PlanContext
from flowsql_planner.physical.group_aggregate import exchange
from flowsql_planner.physical.nodes import Calc, ExpandNode, Physical
from flowsql_planner.physical.nodes.bounded import BoundedAggregate, DistinctAggregate
from flowsql_planner.physical.options import AGG_PHASE_STRATEGY, AggPhaseStrategy

_NOT_NULL_BIGINT = BIGINT.as_nullable(False)
_NOT_NULL_INT = INT.as_nullable(False)
_NOT_NULL = BOOLEAN.as_nullable(False)


def takes_distinct(call: AggregateCall) -> bool:
    """Whether DISTINCT changes what a call sees."""
    return call.distinct and call.function not in ("MIN", "MAX", "APPROX_COUNT_DISTINCT")


def plan_distinct(rel: Aggregate, source: Physical, schema: Schema, context: PlanContext) -> Physical | None:
    """The aggregates and what stands between them; None where Flink has no plan for the calls, some of them DISTINCT.

    Args:
        schema: of the answer.
    """
    calls = rel.calls
    distinct = [call for call in calls if call.distinct]
    if any(call.order_by for call in calls) or any(len(call.args) != 1 for call in distinct):
        return None
    # One argument and filter alone: what the filter drops is NULL.
    alone = len({(call.args, call.filter_index) for call in distinct}) == 1 and len(distinct) == len(calls)
    if alone and distinct[0].filter_index is not None:
        rel, source = _filtered_argument(rel, source)
    try:
        return _planned(rel, source, schema, alone, context)
    except (BindError, PlanError):
        # MIN picks the results of calls without DISTINCT, and has none of arrays and rows.
        return None


def _filtered_argument(rel: Aggregate, source: Physical) -> tuple[Aggregate, Physical]:
    """The argument of all calls as a column that is NULL where their filter is not TRUE."""
    argument, condition = rel.calls[0].args[0], rel.calls[0].filter_index
    assert condition is not None
    kept = sorted({*rel.grouping, condition})
    test = ref(source.schema, condition)
    nullable = argument.type.as_nullable()
    passed = Case((test,), (argument,), Literal(None, nullable), nullable)
    names = unique_names(
        (*(source.schema[index].name for index in kept), f"i${source.schema[argument.index].name}"), "_"
    )
    made = make_calc(source, (*(ref(source.schema, index) for index in kept), passed), names, rel.span)
    moved = ref(made.schema, len(kept))
    calls = tuple(replace(call, args=(moved,), filter_index=kept.index(condition)) for call in rel.calls)
    return replace(rel, calls=calls, grouping=tuple(kept.index(key) for key in rel.grouping)), made


@record
class _Sets:
    """Grouping sets of the lower aggregate: ``columns`` of its keys, and the ones of each set in the order of ids."""

    columns: tuple[int, ...]
    sets: tuple[frozenset[int], ...]

    @property
    def numbers(self) -> list[int]:
        """Flink's ids: a bit for each column that a set leaves out, the first column's is the highest."""
        return [self.number(one) for one in self.sets]

    def number(self, columns: frozenset[int]) -> int:
        """The id of a set."""
        last = len(self.columns) - 1
        return sum((index not in columns) << (last - place) for place, index in enumerate(self.columns))


def _sets(rel: Aggregate, alone: bool) -> _Sets:
    found = {_set_of(rel, call) for call in rel.calls}
    columns = tuple(sorted(frozenset().union(*found)))
    made = _Sets(columns, tuple(found))
    return made if alone else _Sets(columns, tuple(sorted(found, key=made.number)))


def _set_of(rel: Aggregate, call: AggregateCall) -> frozenset[int]:
    """The columns that a call's rows are grouped by below."""
    if not call.distinct:
        return frozenset(rel.grouping)
    filters = () if call.filter_index is None else (call.filter_index,)
    return frozenset((*rel.grouping, *(arg.index for arg in call.args), *filters))


def _planned(rel: Aggregate, source: Physical, schema: Schema, alone: bool, context: PlanContext) -> Physical:
    sets = _sets(rel, alone)
    expand = _expanded(rel, source, sets) if len(sets.sets) > 1 else None
    lower, width = _lower(rel, source, expand, sets, context)
    marked = None if alone else _marked(rel, lower, sets, width)
    upper = _upper(rel, lower if marked is None else marked, sets, context)
    if alone and not all(is_mergeable(call, False) for call in upper.calls):
        return _of_declared_types(upper, rel, schema)
    values, set_of = _values(rel.calls)
    node = DistinctAggregate(
        inputs=(exchange(source, rel.grouping),),
        schema=upper.schema,
        grouping=rel.grouping,
        calls=rel.calls,
        sorts=upper.sorts,
        two_phase=upper.two_phase,
        span=rel.span,
        expand=expand,
        lower=lower,
        marked=marked,
        upper=upper,
        sets=values,
        set_of=set_of,
    )
    return _of_declared_types(node, rel, schema)


def _values(calls: Sequence[AggregateCall]) -> tuple[tuple[DistinctValues, ...], tuple[int, ...]]:
    """What DISTINCT calls see once, and the set of each call."""
    made: dict[DistinctValues, int] = {}
    places = []
    for call in calls:
        key = DistinctValues(tuple(arg.index for arg in call.args), call.filter_index)
        places.append(made.setdefault(key, len(made)) if call.distinct else -1)
    return tuple(made), tuple(places)


def _expanded(rel: Aggregate, source: Physical, sets: _Sets) -> ExpandNode:
    """Rows once a set, ``$e`` and what calls without DISTINCT read of columns that a set leaves out."""
    schema = source.schema
    copied = _copied(rel, sets)
    columns = [Column(c.name, c.type.as_nullable() if _left_out(i, sets) else c.type) for i, c in enumerate(schema)]
    columns += [Column("$e", _NOT_NULL_BIGINT), *(schema[index] for index in copied)]
    names = unique_names((column.name for column in columns), "_")
    rows = tuple(
        (
            *(
                Literal(None, column.type.as_nullable())
                if _left_out(index, sets) and index not in one
                else ref(schema, index)
                for index, column in enumerate(schema)
            ),
            Literal(number, _NOT_NULL_BIGINT),
            *(ref(schema, index) for index in copied),
        )
        for one, number in zip(sets.sets, sets.numbers, strict=True)
    )
    made = tuple(Column(name, column.type) for name, column in zip(names, columns, strict=True))
    return ExpandNode(inputs=(source,), schema=made, projections=rows, span=rel.span)


def _left_out(index: int, sets: _Sets) -> bool:
    return index in sets.columns and any(index not in one for one in sets.sets)


def _copied(rel: Aggregate, sets: _Sets) -> list[int]:
    """Columns that a set leaves out and that calls without DISTINCT read."""
    plain = [call for call in rel.calls if not call.distinct]
    read = {arg.index for call in plain for arg in call.args}
    read |= {call.filter_index for call in plain if call.filter_index is not None}
    return sorted(index for index in read if _left_out(index, sets))


def _lower(
    rel: Aggregate, source: Physical, expand: ExpandNode | None, sets: _Sets, context: PlanContext
) -> tuple[BoundedAggregate, int]:
    """The aggregate of the values, and how many keys it has beside ``$e``."""
    plain = tuple(call for call in rel.calls if not call.distinct)
    below: Physical = source
    grouping = sets.columns
    if expand is not None:
        below, width = expand, len(source.schema)
        place = {index: width + 1 + number for number, index in enumerate(_copied(rel, sets))}
        grouping = (*grouping, width)
        plain = tuple(
            replace(
                call,
                args=tuple(ref(expand.schema, place.get(arg.index, arg.index)) for arg in call.args),
                filter_index=None if call.filter_index is None else place.get(call.filter_index, call.filter_index),
            )
            for call in plain
        )
    keys = tuple(below.schema[index] for index in grouping)
    return _aggregate(below, grouping, plain, keys, rel, context), len(sets.columns)


def _aggregate(
    below: Physical,
    grouping: tuple[int, ...],
    calls: tuple[AggregateCall, ...],
    keys: Schema,
    rel: Aggregate,
    context: PlanContext,
) -> BoundedAggregate:
    one_phase = context.configuration.get(AGG_PHASE_STRATEGY) is AggPhaseStrategy.ONE_PHASE
    return BoundedAggregate(
        inputs=(exchange(below, grouping),),
        schema=(*keys, *(Column(call.name, call.type) for call in calls)),
        grouping=grouping,
        calls=calls,
        sorts=sorts_groups(calls, below, grouping, rel.span, context),
        two_phase=not one_phase and two_phase_in_batch(calls),
        span=rel.span,
    )


def _marked(rel: Aggregate, lower: BoundedAggregate, sets: _Sets, width: int) -> Calc:
    """Keys, values and results of the lower aggregate, and which set a row is of."""
    read = {*rel.grouping, *(arg.index for call in rel.calls if call.distinct for arg in call.args)}
    kept = [place for place, index in enumerate(sets.columns) if index in read]
    results = range(len(lower.grouping), len(lower.schema))
    kept += results
    numbers = sets.numbers
    group: Expr = Literal(numbers[-1], _NOT_NULL_INT)
    if len(numbers) > 1:
        is_ = [_equal(ref(lower.schema, width), Literal(number, _NOT_NULL_INT)) for number in numbers[:-1]]
        values = tuple(Literal(number, _NOT_NULL_INT) for number in numbers[:-1])
        group = Case(tuple(is_), values, group, _NOT_NULL_INT)
    filters = {_set_of(rel, call): call.filter_index for call in rel.calls if call.distinct}
    tests: list[Expr] = []
    for one, number in zip(sets.sets, numbers, strict=True):
        condition = filters.get(one)
        own: tuple[Expr, ...] = ()
        if condition is not None:
            own = (Call("IS TRUE", (ref(lower.schema, sets.columns.index(condition)),), _NOT_NULL),)
        both = conjunction((_equal(group, Literal(number, _NOT_NULL_INT)), *own))
        assert both is not None
        tests.append(both)
    exprs = (*(ref(lower.schema, index) for index in kept), *tests)
    names = (*(lower.schema[index].name for index in kept), *(f"$g_{number}" for number in numbers))
    schema = tuple(Column(name, expr.type) for name, expr in zip(names, exprs, strict=True))
    return Calc(inputs=(lower,), schema=schema, projections=exprs, span=rel.span)


def _equal(left: Expr, right: Expr) -> Call:
    return Call("=", (left, right), _NOT_NULL)


def _upper(rel: Aggregate, below: Physical, sets: _Sets, context: PlanContext) -> BoundedAggregate:
    """The aggregate of the keys: of values that are distinct by now, and of results, of which MIN picks the one."""
    named = {column.name: index for index, column in enumerate(below.schema)}
    read = {*rel.grouping, *(arg.index for call in rel.calls if call.distinct for arg in call.args)}
    whole = not any(name.startswith("$g_") for name in named)
    columns = [index for index in sets.columns if whole or index in read]
    results = len(columns)
    made = []
    for call in rel.calls:
        filter_index = None if whole else named[f"$g_{sets.number(_set_of(rel, call))}"]
        if call.distinct:
            function, place = call.function, columns.index(call.args[0].index)
        else:
            function, place = "MIN", results
            results += 1
        argument = ref(below.schema, place)
        type_ = resolve_aggregate(
            function,
            (argument.type,),
            False,
            call.span,
            grouped=bool(rel.grouping),
            filtered=filter_index is not None,
        ).result_type
        made.append(
            replace(call, function=function, args=(argument,), type=type_, distinct=False, filter_index=filter_index)
        )
    grouping = tuple(columns.index(key) for key in rel.grouping)
    keys = tuple(Column(below.schema[index].name, below.schema[index].type) for index in grouping)
    return _aggregate(below, grouping, tuple(made), keys, rel, context)


def _of_declared_types(node: BoundedAggregate, rel: Aggregate, schema: Schema) -> Physical:
    """Columns that the query declares NOT NULL; a count of no rows is 0."""
    if not any(own.type.nullable and not column.type.nullable for own, column in zip(node.schema, schema, strict=True)):
        return node
    exprs: list[Expr] = []
    for own, column in zip(refs(node.schema), schema, strict=True):
        if own.type.nullable is column.type.nullable:
            exprs.append(own)
        elif rel.grouping:
            exprs.append(Cast(own, column.type))
        else:
            known = Call("IS NOT NULL", (own,), _NOT_NULL)
            exprs.append(Case((known,), (own,), Literal(0, column.type), column.type))
    return make_calc(node, tuple(exprs), tuple(node.names), rel.span)
