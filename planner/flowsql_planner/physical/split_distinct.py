"""Distinct aggregates in two steps: per bucket of their argument, then over the buckets.

A hot key's distinct values are so counted in many places. Source: Flink's ``SplitAggregateRule``, which gives the form
of the plan: which arguments have buckets, and that calls over different ones see copies of a row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from flowsql_compute.functions.aggregate import resolve_aggregate
from flowsql_compute.functions.registry import resolve_call, resolve_cast
from flowsql_core.errors import FlowSqlError
from flowsql_core.expr import AggregateCall, Call, Case, Cast, Expr, InputRef, Literal, conjunction
from flowsql_core.record import record
from flowsql_core.types.logical import BIGINT, INT, BooleanType, Column, LogicalType, Schema
from flowsql_planner.logical.nodes import Aggregate
from flowsql_planner.logical.rewrite import ref, refs, unique_names
from flowsql_planner.physical.calc import make_calc
from flowsql_planner.physical.nodes import (
    Exchange,
    ExpandNode,
    GroupAggregate,
    IncrementalGroupAggregate,
    PartialFinal,
    Physical,
)

#: Their arguments have buckets, whether the call is distinct or not.
_ONE_OF_ITS_VALUES = frozenset({"MIN", "MAX", "FIRST_VALUE", "LAST_VALUE"})
_NOT_NULL_BIGINT = BIGINT.as_nullable(False)


@record
class _Split:
    """A call, and where its row copies and parts are.

    ``copy``: id of the copies of rows that it counts. ``parts``: its partial calls, by their places.
    """

    call: AggregateCall
    copy: int
    parts: tuple[int, ...]


@record
class SplitForm:
    """How an aggregate is split: into how many buckets, in two phases each, and whether buckets hand on changes.

    ``asked``: whether the program says itself that they do.
    """

    buckets: int
    mini_batch: bool
    two_phase: bool
    incremental: bool
    asked: bool
    ttl_ms: int | None


def split_distinct(rel: Aggregate, source: Physical, form: SplitForm) -> Physical | None:
    """FINAL over PARTIAL over copies of rows with buckets; None where an argument has no hash code."""
    width, keys = len(source.schema), len(rel.grouping)
    hashed = list(dict.fromkeys(index for call in rel.calls for index in _hashed(call) if index not in rel.grouping))
    try:
        spread = [_bucket(source.schema, index, form.buckets) for index in hashed]
    except FlowSqlError:
        return None
    names = unique_names((*(c.name for c in source.schema), *(f"$f{width + i}" for i in range(len(hashed)))))
    copies = [_copy_of(call, hashed, rel.grouping) for call in rel.calls]
    rows = make_calc(source, (*refs(source.schema), *spread), names, rel.span)
    filters = [call.filter_index for call in rel.calls]
    if len(set(copies)) > 1:
        rows, filters = _copied(rows, width, sorted(set(copies)), rel.calls, copies)
    grouping = (*rel.grouping, *range(width, width + len(hashed)))
    partial_calls, parts = _partial_calls(rel.calls, rows.schema, filters)
    key_columns = tuple(rows.schema[index] for index in grouping)
    named = _beside([c.name for c in key_columns], len(grouping), partial_calls)
    plain_keys = tuple(range(keys))
    partial = GroupAggregate(
        inputs=(Exchange(inputs=(rows,), schema=rows.schema, keys=grouping, span=rel.span),),
        schema=(*key_columns, *(Column(call.name, call.type) for call in named)),
        grouping=grouping,
        calls=named,
        two_phase=form.two_phase,
        phase=PartialFinal.PARTIAL,
        mini_batch=form.mini_batch,
        state_ttl_ms=form.ttl_ms,
        span=rel.span,
    )
    final_calls = _final_calls(rel.calls, parts, named, partial.schema, len(grouping), grouped=bool(rel.grouping))
    finals = _beside([c.name for c in key_columns[:keys]], keys, final_calls)
    schema = (*key_columns[:keys], *(Column(call.name, call.type) for call in finals))
    final: Physical
    if form.incremental:
        final = IncrementalGroupAggregate(
            inputs=(Exchange(inputs=(rows,), schema=rows.schema, keys=rel.grouping, span=rel.span),),
            schema=schema,
            grouping=rel.grouping,
            calls=named,
            two_phase=True,
            mini_batch=form.mini_batch,
            state_ttl_ms=form.ttl_ms,
            buckets=grouping[keys:],
            copied=len(set(copies)) > 1,
            finals=finals,
            asked=form.asked,
            span=rel.span,
        )
    else:
        final = GroupAggregate(
            inputs=(Exchange(inputs=(partial,), schema=partial.schema, keys=plain_keys, span=rel.span),),
            schema=schema,
            grouping=plain_keys,
            calls=finals,
            two_phase=form.two_phase,
            phase=PartialFinal.FINAL,
            mini_batch=form.mini_batch,
            state_ttl_ms=form.ttl_ms,
            span=rel.span,
        )
    return _of_declared_types(final, rel, parts, keys)


def _hashed(call: AggregateCall) -> tuple[int, ...]:
    takes = call.distinct or call.function in _ONE_OF_ITS_VALUES
    return tuple(arg.index for arg in call.args) if takes else ()


def _bucket(schema: Schema, index: int, buckets: int) -> Expr:
    code = resolve_call("HASH_CODE", (ref(schema, index),))
    return resolve_call("MOD", (code, Literal(buckets, INT.as_nullable(False))))


def _copy_of(call: AggregateCall, hashed: Sequence[int], grouping: Sequence[int]) -> int:
    """The id of a grouping set: a bit for each bucket that it leaves out, the first bucket's is the highest."""
    arguments = _hashed(call)
    if not arguments and len(hashed) == 1:
        return 0
    return sum((index not in arguments) << (len(hashed) - 1 - i) for i, index in enumerate(hashed))


def _copied(
    rows: Physical, width: int, ids: Sequence[int], calls: Sequence[AggregateCall], copies: Sequence[int]
) -> tuple[Physical, list[int | None]]:
    """Rows once per copy, with a column for each filter of the calls, and its index by call."""
    schema = rows.schema
    last = len(schema)
    count = last - width
    copied: Schema = (
        *schema[:width],
        *(Column(c.name, c.type.as_nullable()) for c in schema[width:]),
        Column(unique_names((*(c.name for c in schema), "$e"))[-1], _NOT_NULL_BIGINT),
    )
    projections = tuple(
        (
            *refs(schema[:width]),
            *(
                Literal(None, schema[width + i].type.as_nullable())
                if id_ >> (count - 1 - i) & 1
                else ref(schema, width + i)
                for i in range(count)
            ),
            Literal(id_, _NOT_NULL_BIGINT),
        )
        for id_ in ids
    )
    expanded = ExpandNode(inputs=(rows,), schema=copied, projections=projections, span=rows.span)
    wanted = list(dict.fromkeys((id_, call.filter_index) for call, id_ in zip(calls, copies, strict=True)))
    tests: list[Expr] = []
    for id_, filter_index in wanted:
        # Flink's plan compares with an INT, as both are integers.
        number = Literal(id_, INT.as_nullable(False))
        test = Call("=", (ref(copied, last), number), BooleanType(nullable=False))
        own = () if filter_index is None else (ref(copied, filter_index),)
        both = conjunction((test, *own))
        assert both is not None
        tests.append(both)
    names = unique_names((*(c.name for c in copied[:last]), *(f"$g_{id_}" for id_, _ in wanted)))
    marked = make_calc(expanded, (*refs(copied[:last]), *tests), names, rows.span)
    return marked, [last + wanted.index((id_, call.filter_index)) for call, id_ in zip(calls, copies, strict=True)]


def _partial_calls(
    calls: Sequence[AggregateCall], schema: Schema, filters: Sequence[int | None]
) -> tuple[list[AggregateCall], list[tuple[int, ...]]]:
    made: list[AggregateCall] = []
    parts: list[tuple[int, ...]] = []
    for call, filter_index in zip(calls, filters, strict=True):
        functions = ("$SUM0", "COUNT") if call.function == "AVG" else (call.function,)
        parts.append(tuple(range(len(made), len(made) + len(functions))))
        args = tuple(ref(schema, arg.index) for arg in call.args)
        made += [
            _call(function, args, call, filter_index=filter_index, distinct=call.distinct, grouped=True)
            for function in functions
        ]
    return made, parts


def _final_calls(
    calls: Sequence[AggregateCall],
    parts: Sequence[tuple[int, ...]],
    partial: Sequence[AggregateCall],
    schema: Schema,
    keys: int,
    *,
    grouped: bool,
) -> list[AggregateCall]:
    made: list[AggregateCall] = []
    for call, places in zip(calls, parts, strict=True):
        for place in places:
            function = partial[place].function
            args = (ref(schema, keys + place),)
            made.append(_call("$SUM0" if function == "COUNT" else function, args, call, grouped=grouped))
    return made


def _call(
    function: str,
    args: tuple[InputRef, ...],
    like: AggregateCall,
    *,
    filter_index: int | None = None,
    distinct: bool = False,
    grouped: bool,
) -> AggregateCall:
    types, filtered = tuple(arg.type for arg in args), filter_index is not None
    found = resolve_aggregate(function, types, distinct, like.span, grouped=grouped, filtered=filtered)
    return AggregateCall(
        function, args, found.result_type, "", distinct and function not in ("MIN", "MAX"), filter_index, span=like.span
    )


def _beside(taken: Sequence[str], first: int, calls: Sequence[AggregateCall]) -> tuple[AggregateCall, ...]:
    """The calls named by their places, as Flink names the fields of an aggregate."""
    used = set(taken)
    made = []
    for place, call in enumerate(calls, first):
        name, number = f"$f{place}", 0
        while name in used:
            name, number = f"$f{place}_{number}", number + 1
        used.add(name)
        made.append(replace(call, name=name))
    return tuple(made)


def _of_declared_types(final: Physical, rel: Aggregate, parts: Sequence[tuple[int, ...]], keys: int) -> Physical:
    """AVG from its sum and count; and columns that the query declares NOT NULL cast to it, as in Flink's plans.

    A call over its own copies of rows is NULL until the first of them comes; the cast writes a default then.
    """
    calls = rel.calls
    types = [final.schema[keys + places[0]].type for places in parts]
    if all(len(places) == 1 for places in parts) and not any(
        type_.nullable and not call.type.nullable for type_, call in zip(types, calls, strict=True)
    ):
        return final
    exprs: list[Expr] = [ref(final.schema, index) for index in range(keys)]
    names = [final.schema[index].name for index in range(keys)]
    for number, (call, places) in enumerate(zip(calls, parts, strict=True)):
        columns = [ref(final.schema, keys + place) for place in places]
        made = columns[0] if len(places) == 1 else _quotient(columns[0], columns[1], call.type)
        exprs.append(Cast(made, call.type) if made.type.nullable and not call.type.nullable else made)
        names.append(final.schema[keys + places[0]].name if len(places) == 1 else f"$f{keys + number}")
    return make_calc(final, tuple(exprs), unique_names(tuple(names)), final.span)


def _quotient(total: Expr, count: Expr, type_: LogicalType) -> Expr:
    quotient = resolve_call("/", (total, count))
    none = resolve_call("=", (count, Literal(0, _NOT_NULL_BIGINT)))
    empty = Literal(None, quotient.type.as_nullable())
    average = Case((none,), (empty,), quotient, quotient.type.as_nullable())
    return average if average.type == type_.as_nullable() else resolve_cast(average, type_.as_nullable(), safe=False)
