"""AVG as SUM / COUNT, and SUM as $SUM0, in the aggregates that Flink reduces."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from flowsql_compute.functions.aggregate import resolve_aggregate
from flowsql_compute.functions.registry import implicit_cast, resolve_call
from flowsql_core.expr import AggregateCall, Case, Expr, InputRef, Literal
from flowsql_core.python_call import named_function
from flowsql_core.types.logical import BIGINT, Column, DecimalType, LogicalType
from flowsql_planner.logical.nodes import Aggregate, Project, Rel
from flowsql_planner.logical.rewrite import ref, transform_up

_DEVIATIONS: Final = frozenset({"STDDEV_POP", "STDDEV_SAMP", "VAR_POP", "VAR_SAMP"})


def reduce_averages(root: Rel) -> Rel:
    """Aggregate(x, keys, AVG(key), AVG(a), SUM(a))  =>  Project(Aggregate(x, keys, $SUM0(a), COUNT(a)), ...).

    An aggregate is reduced where it holds a deviation, or where fewer calls are left: AVG of a key becomes the key, and
    an AVG beside the SUM and COUNT of the same values needs no call. Another AVG divides the sum in the argument's own
    type: that of INT wraps. Sums begin at 0 where the query has a SUM, else at NULL.

    Source: Flink's ``FlinkAggregateReduceFunctionsRule`` after Calcite's ``AggregateReduceFunctionsRule``.
    """
    return transform_up(root, _reduced)


def _reduced(rel: Rel) -> Rel:
    if not isinstance(rel, Aggregate) or rel.grouping_sets is not None:
        return rel
    functions = {call.function for call in rel.calls}
    deviates = bool(functions & _DEVIATIONS)
    if not ("AVG" in functions or (deviates and "SUM" in functions)):
        return rel
    made = _Reduced(rel)
    width = len(rel.grouping)
    exprs: list[Expr] = [ref(rel.schema, index) for index in range(width)]
    exprs += [made.result(call) for call in rel.calls]
    calls = tuple(made.calls)
    if not deviates and len(calls) >= len(rel.calls):
        return rel
    columns = (*rel.schema[:width], *(Column(call.name, call.type) for call in calls))
    properties = rel.schema[width + len(rel.calls) :]
    below = replace(rel, calls=calls, schema=(*columns, *properties))
    exprs += [ref(below.schema, len(columns) + index) for index in range(len(properties))]
    return Project(below, tuple(exprs), tuple(column.name for column in rel.schema), rel.span)


def _is_of_key(rel: Aggregate, call: AggregateCall) -> bool:
    return call.filter_index is None and call.args[0].index in rel.grouping


class _Reduced:
    """The calls below the projection; equal ones once."""

    def __init__(self, rel: Aggregate) -> None:
        self._rel = rel
        self._sums_from_zero = any(call.function == "SUM" for call in rel.calls)
        self.calls: list[AggregateCall] = []

    def result(self, call: AggregateCall) -> Expr:
        """A call in terms of the keys and of the calls below."""
        if named_function(call.function, call.options) is not None:
            return self._call(call)
        if call.function == "SUM":
            return self._sum(call, call.type)
        if call.function != "AVG":
            return self._call(call)
        if _is_of_key(self._rel, call):
            place = self._rel.grouping.index(call.args[0].index)
            return implicit_cast(ref(self._rel.schema, place), call.type)
        nullable = call.type.nullable
        summed = resolve_aggregate("SUM", (call.args[0].type,), call.distinct, call.span).result_type
        total = self._sum(call, summed.as_nullable(nullable))
        if isinstance(call.type, DecimalType):
            total = implicit_cast(total, call.type)
        quotient = resolve_call("/", (total, self._count(call)), (), call.span)
        return implicit_cast(quotient, call.type)

    def _sum(self, call: AggregateCall, type_: LogicalType) -> Expr:
        if not self._sums_from_zero:
            return self._call(replace(call, function="SUM", type=type_))
        zero = resolve_aggregate("$SUM0", (call.args[0].type,), call.distinct, call.span).result_type
        total = self._call(replace(call, function="$SUM0", type=zero))
        if not type_.nullable:
            return total
        none = resolve_call("=", (self._count(call), Literal(0, BIGINT.as_nullable(False))), (), call.span)
        return Case((none,), (Literal(None, type_),), total, type_, call.span)

    def _count(self, call: AggregateCall) -> Expr:
        args = call.args if call.distinct or call.args[0].type.nullable else ()
        return self._call(replace(call, function="COUNT", args=args, type=BIGINT.as_nullable(False)))

    def _call(self, call: AggregateCall) -> InputRef:
        unnamed = [replace(made, name="") for made in self.calls]
        plain = replace(call, name="")
        if plain in unnamed:
            place = unnamed.index(plain)
        else:
            place = len(self.calls)
            self.calls.append(call if call in self._rel.calls else replace(call, name=self._free_name()))
        return InputRef(len(self._rel.grouping) + place, self.calls[place].type, call.span)

    def _free_name(self) -> str:
        taken = {column.name for column in self._rel.schema} | {made.name for made in self.calls}
        number = len(self._rel.grouping) + len(self.calls)
        while f"$f{number}" in taken:
            number += 1
        return f"$f{number}"
