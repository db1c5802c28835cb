"""Aggregates and window functions as Spark SQL, with Flink's types: SUM(INT) is INT and wraps, AVG(INT) truncates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from flowsql_core.errors import NotSupportedYetError
from flowsql_core.expr import AggregateCall, InputRef, Literal
from flowsql_core.span import Span
from flowsql_core.types import logical as t
from flowsql_planner.logical.nodes import BoundKind, Frame, FrameBound, FrameUnit, OverCall
from flowsql_planner.spark import sql
from flowsql_planner.spark.literals import literal
from flowsql_planner.spark.sql import SqlNode
from flowsql_planner.spark.types import is_opaque, spark_type

#: Puts an aggregate function's call into its context: a group (as it is), or a window (``f(x) OVER (...)``).
Context = Callable[[SqlNode], SqlNode]
Column = Callable[[int], SqlNode]

_RANKS: Final = frozenset({"ROW_NUMBER", "RANK", "DENSE_RANK", "PERCENT_RANK"})
#: Functions that have one argument of Spark's, so that DISTINCT means the same there.
_DISTINCT: Final = frozenset({"COUNT", "SUM", "AVG", "MIN", "MAX"})
_FRAMELESS: Final = _RANKS | {"NTILE", "LAG", "LEAD"}


def wants_places(calls: Sequence[AggregateCall]) -> bool:
    """Whether the order of the rows decides an answer, and is the order in which Flink meets them.

    That is so for MIN and MAX where a NaN may come: the first value that is one stays. Flink sorts the rows where an
    accumulator may grow, and they stand in no order that can be told.
    """
    extremes = [call for call in calls if call.function in ("MIN", "MAX")]
    grows = any(isinstance(call.args[0].type, t.CharacterType | t.BinaryStringType) for call in extremes)
    distinct = any(call.distinct for call in calls)
    return not grows and not distinct and any(isinstance(call.args[0].type, t.ApproximateType) for call in extremes)


def group_call(call: AggregateCall, column: Column, place: SqlNode | None = None) -> SqlNode:
    """An aggregate of a GROUP BY. FILTER becomes NULLs, which these functions pass over.

    Args:
        call: the aggregate.
        column: the node of an input column.
        place: a number by which the rows stand in their order, if it is known.

    Raises:
        NotSupportedYetError: a function whose answer Spark does not give exactly.
    """
    if call.function in ("GROUPING", "GROUPING_ID"):
        return _grouping_bits(call, column)
    approximate = call.function == "APPROX_COUNT_DISTINCT"
    plain_count = call.function == "COUNT" and not call.distinct
    if not plain_count and any(is_opaque(arg.type) for arg in call.args):
        raise _refusal(call.function, call.span)
    if call.order_by or (call.distinct and not approximate and call.function not in _DISTINCT):
        raise _refusal(call.function, call.span)

    def argument(index: int) -> SqlNode:
        return column(call.args[index].index)

    def counted(value: SqlNode) -> SqlNode:
        if call.filter_index is None:
            return value
        e = sql.exp()
        return e.Case(ifs=[e.If(this=column(call.filter_index), true=value)])

    def called(name: str, value: SqlNode) -> SqlNode:
        value = counted(value)
        return sql.function(name, sql.exp().Distinct(expressions=[value]) if call.distinct else value)

    types = tuple(arg.type for arg in call.args)
    if approximate:
        if not isinstance(types[0], t.NumericType | t.CharacterType):
            # Spark hashes other values than Flink.
            raise _refusal(call.function, call.span)
        return sql.function(call.function, counted(argument(0)), sql.exp().Literal.number("0.01"))
    if call.distinct and types and isinstance(types[0], t.ApproximateType):
        # Flink tells -0.0 from 0.0 where values are collected.
        if call.function == "AVG":
            raise _refusal("AVG(DISTINCT ...)", call.span)
        if call.function == "COUNT":
            pair = [counted(argument(0)), counted(sql.is_negative_zero(argument(0)))]
            return sql.function("COUNT", sql.exp().Distinct(expressions=pair))
    if place is not None and call.function in ("MIN", "MAX") and isinstance(types[0], t.ApproximateType):
        return _placed_extreme(call.function, counted(argument(0)), place, spark_type(call.type))
    return _aggregate(call.function, types, call.type, argument, called, lambda made: made, call.span)


def group_keys(columns: Sequence[int], schema: t.Schema, column: Column) -> dict[int, tuple[list[SqlNode], SqlNode]]:
    """Of each grouping column what Spark groups by, and what stands for it in the answer.

    Spark groups -0.0 with 0.0, Flink does not.
    """
    made: dict[int, tuple[list[SqlNode], SqlNode]] = {}
    for index in columns:
        type_ = schema[index].type
        if not isinstance(type_, t.ApproximateType):
            made[index] = ([column(index)], column(index))
            continue
        minus = sql.exp().Literal.string("-0.0")
        text = spark_type(type_)
        shown = sql.case([sql.is_negative_zero(column(index))], [sql.cast(minus, text)], column(index))
        made[index] = ([column(index), sql.is_negative_zero(column(index))], shown)
    return made


def check_windows(calls: Sequence[OverCall]) -> None:
    """Refuse what Flink answers strangely: LAG and LEAD with constants beside a window of other keys.

    Flink 2.3 then reads the constants at the wrong places: it counts them behind the columns that other windows added.

    Raises:
        NotSupportedYetError: at the first such function.
    """
    if len({(call.partition, call.order) for call in calls}) < 2:
        return
    for call in calls:
        if call.function in ("LAG", "LEAD") and any(isinstance(arg, Literal) for arg in call.args):
            raise NotSupportedYetError(f"{call.function} with constants beside a window of other keys", call.span)


def over_call(call: OverCall, column: Column, schema: t.Schema) -> SqlNode:
    """A window function over columns of ``schema``.

    Raises:
        NotSupportedYetError: a function or frame whose answer Spark does not give exactly.
    """
    e = sql.exp()

    def keyed(index: int) -> SqlNode:
        """A key; where a NaN stands among others Flink finds it equal to its neighbour, whoever that is."""
        type_ = schema[index].type
        if is_opaque(type_):
            raise _refusal(call.function, call.span)
        if not isinstance(type_, t.ApproximateType):
            return column(index)
        failure = sql.cast(sql.failing("NaN as a key of OVER is not supported yet on Spark"), spark_type(type_))
        return sql.case([sql.function("ISNAN", column(index))], [failure], column(index))

    def windowed(made: SqlNode) -> SqlNode:
        order = None
        if call.order:
            keys = [sql.ordered(keyed(key.index), key.descending, key.nulls_first) for key in call.order]
            order = e.Order(expressions=keys)
        frame = None if call.frame is None or call.function in _FRAMELESS else _frame(call.frame, call, schema)
        return e.Window(this=made, partition_by=[keyed(index) for index in call.partition], order=order, spec=frame)

    def value(arg: InputRef | Literal) -> SqlNode:
        return column(arg.index) if isinstance(arg, InputRef) else literal(arg)

    name = call.function
    if name in _RANKS:
        # Spark numbers in INT.
        return sql.cast(windowed(sql.function(name)), spark_type(call.type))
    if name == "NTILE":
        return sql.cast(windowed(sql.function(name, value(call.args[0]))), spark_type(call.type))
    if name in ("LAG", "LEAD"):
        _check_neighbour(call)
        return windowed(sql.function(name, *(value(arg) for arg in call.args)))
    if name in ("FIRST_VALUE", "LAST_VALUE"):
        # Flink's functions pass over NULLs.
        return windowed(e.IgnoreNulls(this=sql.function(name, value(call.args[0]))))

    def called(function: str, operand: SqlNode) -> SqlNode:
        return sql.function(function, operand)

    if name.startswith(("VAR_", "STDDEV_")):
        # Over windows Flink computes those of whole numbers in whole numbers.
        raise _refusal(f"{name} OVER", call.span)
    types = tuple(arg.type for arg in call.args)
    if name == "APPROX_COUNT_DISTINCT":
        # Flink's OVER counts every value.
        name = "COUNT"
    if name in ("MIN", "MAX") and call.order and isinstance(types[0], t.ApproximateType):
        first = windowed(e.IgnoreNulls(this=sql.function("FIRST_VALUE", value(call.args[0]))))
        return _extreme_after(name, value(call.args[0]), first, windowed, spark_type(call.type))
    return _aggregate(name, types, call.type, lambda index: value(call.args[index]), called, windowed, call.span)


def _check_neighbour(call: OverCall) -> None:
    """A default that is NOT NULL makes the column so, although its values may be NULL: -1 in Flink, if a number."""
    strange = not call.type.nullable and call.args[0].type.nullable
    if strange and not isinstance(call.type, t.DecimalType | t.CharacterType):
        raise NotSupportedYetError(
            f"{call.function} of a nullable {call.type.as_nullable()} with a default that is NOT NULL on Spark",
            call.span,
        )


def _aggregate(
    name: str,
    types: tuple[t.LogicalType, ...],
    result: t.LogicalType,
    argument: Callable[[int], SqlNode],
    called: Callable[[str, SqlNode], SqlNode],
    context: Context,
    span: Span | None,
) -> SqlNode:
    """One of the functions that groups and windows share."""
    text = spark_type(result, span)
    type_ = t.without_attribute(types[0]) if types else None
    match name, type_:
        case "COUNT", None:
            return context(called("COUNT", sql.number(1)))
        case "COUNT", _ if len(types) == 1:
            return context(called("COUNT", argument(0)))
        case "SUM", t.IntegerType():
            return sql.cast(context(called("SUM", sql.cast(argument(0), "BIGINT"))), text)
        case "SUM", t.DecimalType():
            return _decimal_sum(type_, argument, called, context)
        case "SUM", t.DoubleType():
            return context(called("SUM", argument(0)))
        case "AVG", t.IntegerType():
            total = context(called("SUM", sql.cast(argument(0), "BIGINT")))
            return sql.cast(sql.binary("DIV", total, context(called("COUNT", argument(0)))), text)
        case "AVG", t.DecimalType():
            total = _decimal_sum(type_, argument, called, context)
            count = sql.cast(context(called("COUNT", argument(0))), "DECIMAL(20, 0)")
            return sql.cast(sql.binary("/", total, count), text)
        case "AVG", t.ApproximateType():
            return sql.cast(context(called("AVG", sql.cast(argument(0), "DOUBLE"))), text)
        case "VAR_POP" | "VAR_SAMP" | "STDDEV_POP" | "STDDEV_SAMP", t.IntegerType() if types[
            0
        ].nullable or name.endswith("POP"):
            return sql.cast(_deviation(name, argument, called, context), text)
        case "MIN" | "MAX", t.ApproximateType():
            return _extreme(name, argument, called, context, text)
        case "MIN" | "MAX", _ if type_ is not None and not t.is_nested(type_):
            return context(called(name, argument(0)))
    raise _refusal(name, span)


def _decimal_sum(
    type_: t.DecimalType,
    argument: Callable[[int], SqlNode],
    called: Callable[[str, SqlNode], SqlNode],
    context: Context,
) -> SqlNode:
    """SUM as DECIMAL(38, s).

    Spark adds in ten digits more than the argument has, enough for ten billion rows of a group. A cast of the argument
    would keep it from adding in machine words.
    """
    total = context(called("SUM", argument(0)))
    if type_.precision + 10 >= t.MAX_PRECISION:
        return total
    return sql.cast(total, f"DECIMAL({t.MAX_PRECISION}, {type_.scale})")


def _extreme(
    name: str,
    argument: Callable[[int], SqlNode],
    called: Callable[[str, SqlNode], SqlNode],
    context: Context,
    type_text: str,
) -> SqlNode:
    """MIN or MAX of approximate numbers. What Flink says once a NaN is among them depends on the order of the rows."""
    strange = context(called("MAX", sql.cast(sql.function("ISNAN", argument(0)), "INT")))
    message = f"{name} over NaN depends on the order of the rows and is not supported yet on Spark"
    failure = sql.cast(sql.failing(message), type_text)
    return sql.case([sql.binary("=", strange, sql.number(1))], [failure], context(called(name, argument(0))))


def _placed_extreme(name: str, value: SqlNode, place: SqlNode, type_text: str) -> SqlNode:
    """MIN or MAX over rows in a known order: NaN if the first value is one, else as if there were none."""
    known = sql.case([sql.negation(sql.is_null(value.copy()))], [place.copy()], sql.null("BIGINT"))
    return _extreme_after(name, value.copy(), sql.function("MIN_BY", value, known), lambda made: made, type_text)


def _extreme_after(name: str, value: SqlNode, first: SqlNode, context: Context, type_text: str) -> SqlNode:
    """MIN or MAX whose first value is known: a NaN there stays, one that comes later is passed over."""
    number = sql.case([sql.negation(sql.function("ISNAN", value.copy()))], [value.copy()], sql.null(type_text))
    strange = sql.cast(sql.exp().Literal.string("NaN"), type_text)
    return sql.case([sql.function("ISNAN", first)], [strange], context(sql.function(name, number)))


def _deviation(
    name: str, argument: Callable[[int], SqlNode], called: Callable[[str, SqlNode], SqlNode], context: Context
) -> SqlNode:
    """Of whole numbers, as Flink computes it in DOUBLE: from the count, the sum and the sum of squares.

    Spark divides by zero to NULL: a sample of one has no deviation, in both.
    """

    def value() -> SqlNode:
        return sql.cast(argument(0), "DOUBLE")

    count = sql.cast(context(called("COUNT", argument(0))), "DOUBLE")
    total = context(called("SUM", value()))
    squares = context(called("SUM", sql.binary("*", value(), value())))
    spread = sql.binary("-", squares, sql.binary("/", sql.binary("*", total, total.copy()), count))
    divisor = count.copy() if name.endswith("POP") else sql.binary("-", count.copy(), sql.cast(sql.number(1), "DOUBLE"))
    variance = sql.binary("/", spread, divisor)
    return sql.function("SQRT", variance) if name.startswith("STDDEV") else variance


def _grouping_bits(call: AggregateCall, column: Column) -> SqlNode:
    """GROUPING_ID in the order of its arguments: one bit each, the last one lowest."""
    made: SqlNode = None
    for arg in call.args:
        bit = sql.cast(sql.function("GROUPING", column(arg.index)), "BIGINT")
        made = bit if made is None else sql.binary("+", sql.binary("*", made, sql.number(2)), bit)
    return made


def _frame(frame: Frame, call: OverCall, schema: t.Schema) -> SqlNode:
    e = sql.exp()
    if frame.unit is FrameUnit.RANGE and any(bound.offset is not None for bound in (frame.start, frame.end)):
        _check_range(call, schema)
    start, start_side = _bound(frame.start, call)
    end, end_side = _bound(frame.end, call)
    return e.WindowSpec(kind=frame.unit.value, start=start, start_side=start_side, end=end, end_side=end_side)


def _check_range(call: OverCall, schema: t.Schema) -> None:
    """A measured range needs one exact number as its key; there Spark measures as Flink does.

    NULLs it measures so only in frames that hold their own row.
    """
    if len(call.order) != 1:
        raise NotSupportedYetError("RANGE with an offset over several sort keys", call.span)
    type_ = schema[call.order[0].index].type
    if not isinstance(type_, t.ExactNumericType):
        raise NotSupportedYetError(f"RANGE with an offset over {type_.as_nullable()} on Spark", call.span)
    frame = call.frame
    assert frame is not None
    if type_.nullable and (frame.start.kind is BoundKind.FOLLOWING or frame.end.kind is BoundKind.PRECEDING):
        raise NotSupportedYetError("RANGE without its own row over keys that may be NULL, on Spark", call.span)


def _bound(bound: FrameBound, call: OverCall) -> tuple[SqlNode | str, str | None]:
    match bound.kind:
        case BoundKind.UNBOUNDED_PRECEDING:
            return "UNBOUNDED", "PRECEDING"
        case BoundKind.UNBOUNDED_FOLLOWING:
            return "UNBOUNDED", "FOLLOWING"
        case BoundKind.CURRENT_ROW:
            return "CURRENT ROW", None
    assert bound.offset is not None
    side = "PRECEDING" if bound.kind is BoundKind.PRECEDING else "FOLLOWING"
    offset = bound.offset
    if not isinstance(offset.type, t.ExactNumericType):
        # Flink itself has no plan for a range of time over a plain timestamp.
        raise NotSupportedYetError(f"RANGE over {offset.type.as_nullable()} on Spark", call.span)
    return sql.exp().Literal.number(str(offset.value)), side


def _refusal(name: str, span: Span | None) -> NotSupportedYetError:
    return NotSupportedYetError(f"the aggregate {name} over these types on Spark", span)
