"""Aggregate functions as declarations: names, types, accumulators and traits. The runtime says how accumulators fold.

The binder asks :func:`resolve_aggregate`, the planner the traits and :func:`local_columns`, the runtime accumulators.
Source: Flink manual, "Built-in functions", aggregate functions; result types are Flink's: SUM(INT) is INT, AVG(DECIMAL)
is DECIMAL(38, max(6, s)).
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from typing import Final

from flowsql_core.errors import BindError, NotSupportedYetError, did_you_mean
from flowsql_core.expr import AggregateCall, Cast, Expr, Literal
from flowsql_core.record import record
from flowsql_core.span import Span
from flowsql_core.types.logical import (
    BIGINT,
    BITMAP,
    DOUBLE,
    MAX_PRECISION,
    ApproximateType,
    ArrayType,
    BinaryStringType,
    BitmapType,
    BooleanType,
    CharacterType,
    Column,
    DateTimeType,
    DayTimeIntervalType,
    DecimalType,
    FloatType,
    IntegerType,
    LogicalType,
    MapType,
    MultisetType,
    NullType,
    NumericType,
    RawType,
    RowType,
    Schema,
    VarCharType,
    VariantType,
    YearMonthIntervalType,
    is_time_attribute,
    without_attribute,
)


class Fold(enum.Enum):
    """How one accumulator takes a value in.

    ``retractable`` folds undo a value exactly; the others need every value (``values``) once rows may be taken back.
    """

    COUNT = "count"
    SUM = "sum"
    MIN = "min"
    MAX = "max"
    FIRST = "first"
    LAST = "last"
    SINGLE = "single"
    MEAN = "mean"
    SQUARES = "squares"
    VALUES = "values"

    @property
    def retractable(self) -> bool:
        """Whether a value can be taken back from the accumulator alone."""
        return self in (Fold.COUNT, Fold.SUM, Fold.MEAN, Fold.SQUARES)


@record
class AccumulatorColumn:
    """One typed column of a call's state; NULL where it has seen no value."""

    name: str
    fold: Fold
    type: LogicalType


class Needs(enum.Enum):
    """What a function keeps beside fixed-width accumulators when rows may be taken back."""

    NOTHING = "nothing"
    SORTED_VALUES = "sorted values"
    ORDERED_VALUES = "values in arrival order"


@record
class AggregateFunction:
    """A built-in aggregate.

    ``mergeable``: partial accumulators of an insert-only input combine in any order (two-phase plans, shared slices).
    ``order_sensitive``: the answer depends on the order of rows.
    ``needs``: what a retracting input (for LISTAGG, COLLECT, ARRAY_AGG any input) makes it keep.
    """

    name: str
    forms: tuple[str, ...]
    accepts: Callable[[Sequence[LogicalType]], bool]
    result: Callable[[Sequence[LogicalType]], LogicalType]
    accumulators: Callable[[Sequence[LogicalType]], tuple[AccumulatorColumn, ...]]
    mergeable: bool = True
    order_sensitive: bool = False
    needs: Needs = Needs.NOTHING
    #: The result stays NOT NULL over NOT NULL arguments in a grouped, unfiltered call.
    keeps_not_null: bool = True
    #: The result over a single value is NULL, although the type does not say so.
    null_of_one: bool = False


@record
class ResolvedAggregate:
    """What the binder puts into an ``AggregateCall``: canonical name, argument and result types.

    ``declared_type``: what the query sees, NOT NULL in some cases where the result may be NULL.
    """

    name: str
    arg_types: tuple[LogicalType, ...]
    result_type: LogicalType
    declared_type: LogicalType


def _summary(type_: LogicalType) -> str:
    text = type_.as_nullable().text()
    return "VARCHAR(2147483647)" if text == "STRING" else {"INT": "INTEGER"}.get(text, text)


def _numeric(types: Sequence[LogicalType]) -> bool:
    return len(types) == 1 and isinstance(types[0], NumericType | NullType)


def _comparable(types: Sequence[LogicalType]) -> bool:
    return len(types) == 1 and not isinstance(types[0], MapType | MultisetType | RawType | VariantType)


def _one(types: Sequence[LogicalType]) -> bool:
    return len(types) == 1


def _any(types: Sequence[LogicalType]) -> bool:
    return True


def _list_agg(types: Sequence[LogicalType]) -> bool:
    return len(types) in (1, 2) and all(isinstance(type_, CharacterType | NullType) for type_ in types)


def _argument(types: Sequence[LogicalType]) -> LogicalType:
    return types[0]


def _sum_type(types: Sequence[LogicalType]) -> LogicalType:
    if isinstance(types[0], DecimalType):
        return DecimalType(precision=MAX_PRECISION, scale=types[0].scale, nullable=types[0].nullable)
    return types[0]


def _average_type(types: Sequence[LogicalType]) -> LogicalType:
    if isinstance(types[0], DecimalType):
        return DecimalType(precision=MAX_PRECISION, scale=max(6, types[0].scale), nullable=types[0].nullable)
    return types[0]


def _sum_state(type_: LogicalType) -> LogicalType:
    match type_:
        case DecimalType(scale=scale):
            return DecimalType(precision=MAX_PRECISION, scale=scale)
        case IntegerType():
            return BIGINT
        case _:
            return type_.as_nullable()


def _count(name: str = "count") -> AccumulatorColumn:
    return AccumulatorColumn(name, Fold.COUNT, BIGINT.as_nullable(False))


def _sum_accumulators(types: Sequence[LogicalType]) -> tuple[AccumulatorColumn, ...]:
    return AccumulatorColumn("sum", Fold.SUM, _sum_state(types[0])), _count()


def _average_accumulators(types: Sequence[LogicalType]) -> tuple[AccumulatorColumn, ...]:
    # Flink sums FLOAT in DOUBLE for AVG, but in FLOAT for SUM.
    state = DOUBLE if isinstance(types[0], FloatType) else _sum_state(types[0])
    return AccumulatorColumn("sum", Fold.SUM, state), _count()


def _moments(types: Sequence[LogicalType]) -> tuple[AccumulatorColumn, ...]:
    zero = DOUBLE.as_nullable(False)
    return _count(), AccumulatorColumn("mean", Fold.MEAN, zero), AccumulatorColumn("squares", Fold.SQUARES, zero)


def _fold_one(fold: Fold) -> Callable[[Sequence[LogicalType]], tuple[AccumulatorColumn, ...]]:
    def accumulators(types: Sequence[LogicalType]) -> tuple[AccumulatorColumn, ...]:
        type_ = types[0].as_nullable()
        if is_time_attribute(type_):
            type_ = without_attribute(type_)
        # A ROW or collection is no accumulator: the first and the last one are found among all that are kept.
        nested = isinstance(type_, RowType | ArrayType | MapType | MultisetType)
        kept = Fold.VALUES if nested and fold in (Fold.FIRST, Fold.LAST) else fold
        return (AccumulatorColumn(kept.value, kept, type_),)

    return accumulators


def _count_accumulators(types: Sequence[LogicalType]) -> tuple[AccumulatorColumn, ...]:
    return (_count(),)


def _json_entry(types: Sequence[LogicalType]) -> bool:
    return len(types) == 2 and isinstance(types[0], CharacterType)


def _json_result(types: Sequence[LogicalType]) -> LogicalType:
    return VarCharType(length=2000, nullable=False)


def _percentile(types: Sequence[LogicalType]) -> bool:
    """(value, fraction, [frequency]); the fraction is one number or an array of them."""
    if len(types) not in (2, 3) or not isinstance(types[0], NumericType):
        return False
    fraction = types[1].element if isinstance(types[1], ArrayType) else types[1]
    return isinstance(fraction, NumericType) and (len(types) < 3 or isinstance(types[2], IntegerType))


def _percentile_result(types: Sequence[LogicalType]) -> LogicalType:
    return ArrayType(element=DOUBLE) if isinstance(types[1], ArrayType) else DOUBLE


def _moment_function(name: str, samples: bool) -> AggregateFunction:
    return AggregateFunction(name, (f"{name}(<NUMERIC>)",), _numeric, _average_type, _moments, null_of_one=samples)


_BITMAP_NAMES: Final = tuple(
    f"BITMAP_{operation}_{kind}" for operation in ("BUILD", "OR", "AND", "XOR") for kind in ("AGG", "CARDINALITY_AGG")
)


def _bitmap_function(name: str, builds: bool) -> AggregateFunction:
    """A set of all INTs of a group, or a set operation over its BITMAPs; or only how many values that has."""
    result = BIGINT if name.endswith("CARDINALITY_AGG") else BITMAP

    def accepts(types: Sequence[LogicalType]) -> bool:
        if len(types) != 1:
            return False
        type_ = types[0]
        return isinstance(type_, IntegerType) and type_.bits <= 32 if builds else isinstance(type_, BitmapType)

    return AggregateFunction(
        name,
        (f"{name}({'INT' if builds else 'BITMAP'})",),
        accepts,
        lambda types: result,
        _fold_one(Fold.VALUES),
        mergeable=False,
        needs=Needs.ORDERED_VALUES,
        keeps_not_null=False,
    )


_ALL: Final = (
    AggregateFunction(
        "COUNT",
        ("COUNT(*)", "COUNT(<ANY>...)"),
        _any,
        lambda types: BIGINT.as_nullable(False),
        _count_accumulators,
    ),
    # In OVER windows it is COUNT, as in Flink; groups of batch mode make ``$APPROX_COUNT`` of it.
    AggregateFunction(
        "APPROX_COUNT_DISTINCT",
        ("APPROX_COUNT_DISTINCT(<ANY>)",),
        _one,
        lambda types: BIGINT.as_nullable(False),
        _count_accumulators,
        mergeable=False,
    ),
    # Over registers of HyperLogLog++ (``flowsql_compute.eval.hyperloglog``); nobody writes it.
    AggregateFunction(
        "$APPROX_COUNT",
        ("$APPROX_COUNT(INT)",),
        _one,
        lambda types: BIGINT.as_nullable(False),
        _fold_one(Fold.VALUES),
        mergeable=False,
        needs=Needs.ORDERED_VALUES,
    ),
    AggregateFunction("SUM", ("SUM(<NUMERIC>)",), _numeric, _sum_type, _sum_accumulators),
    # SUM0 is SUM with 0 for no rows; the planner makes it, nobody writes it.
    AggregateFunction(
        "$SUM0", ("$SUM0(<NUMERIC>)",), _numeric, lambda types: _sum_type(types).as_nullable(False), _sum_accumulators
    ),
    AggregateFunction("AVG", ("AVG(<NUMERIC>)",), _numeric, _average_type, _average_accumulators),
    AggregateFunction(
        "MIN",
        ("MIN(<COMPARABLE_TYPE>)",),
        _comparable,
        _argument,
        _fold_one(Fold.MIN),
        needs=Needs.SORTED_VALUES,
    ),
    AggregateFunction(
        "MAX",
        ("MAX(<COMPARABLE_TYPE>)",),
        _comparable,
        _argument,
        _fold_one(Fold.MAX),
        needs=Needs.SORTED_VALUES,
    ),
    AggregateFunction(
        "FIRST_VALUE",
        ("FIRST_VALUE(<ANY>)",),
        _one,
        _argument,
        _fold_one(Fold.FIRST),
        mergeable=False,
        order_sensitive=True,
        needs=Needs.ORDERED_VALUES,
    ),
    AggregateFunction(
        "LAST_VALUE",
        ("LAST_VALUE(<ANY>)",),
        _one,
        _argument,
        _fold_one(Fold.LAST),
        mergeable=False,
        order_sensitive=True,
        needs=Needs.ORDERED_VALUES,
    ),
    AggregateFunction(
        "SINGLE_VALUE",
        ("SINGLE_VALUE(<ANY>)",),
        _one,
        _argument,
        _fold_one(Fold.SINGLE),
        mergeable=False,
        order_sensitive=True,
        needs=Needs.ORDERED_VALUES,
        keeps_not_null=False,
    ),
    AggregateFunction(
        "LISTAGG",
        ("LISTAGG(<CHARACTER>)", "LISTAGG(<CHARACTER>, <CHARACTER_LITERAL>)"),
        _list_agg,
        _argument,
        _fold_one(Fold.VALUES),
        mergeable=False,
        order_sensitive=True,
        needs=Needs.ORDERED_VALUES,
        keeps_not_null=False,
    ),
    AggregateFunction(
        "COLLECT",
        ("COLLECT(<ANY>)",),
        _one,
        lambda types: MultisetType(element=types[0], nullable=False),
        _fold_one(Fold.VALUES),
        mergeable=False,
        needs=Needs.ORDERED_VALUES,
    ),
    AggregateFunction(
        "ARRAY_AGG",
        ("ARRAY_AGG(<ANY>)",),
        _one,
        lambda types: ArrayType(element=types[0], nullable=types[0].nullable),
        _fold_one(Fold.VALUES),
        mergeable=False,
        order_sensitive=True,
        needs=Needs.ORDERED_VALUES,
        keeps_not_null=False,
    ),
    AggregateFunction(
        "JSON_OBJECTAGG",
        ("JSON_OBJECTAGG(KEY <CHARACTER> VALUE <ANY>)",),
        _json_entry,
        _json_result,
        _fold_one(Fold.VALUES),
        mergeable=False,
        needs=Needs.ORDERED_VALUES,
    ),
    AggregateFunction(
        "JSON_ARRAYAGG",
        ("JSON_ARRAYAGG(<ANY>)",),
        _one,
        _json_result,
        _fold_one(Fold.VALUES),
        mergeable=False,
        order_sensitive=True,
        needs=Needs.ORDERED_VALUES,
    ),
    AggregateFunction(
        "PERCENTILE",
        ("PERCENTILE(<NUMERIC>, <NUMERIC>)", "PERCENTILE(<NUMERIC>, <NUMERIC>, <INTEGER>)"),
        _percentile,
        _percentile_result,
        _fold_one(Fold.VALUES),
        mergeable=False,
        needs=Needs.ORDERED_VALUES,
        keeps_not_null=False,
    ),
    *(_bitmap_function(name, "BUILD" in name) for name in _BITMAP_NAMES),
    *(_moment_function(name, name.endswith("SAMP")) for name in ("STDDEV_POP", "STDDEV_SAMP", "VAR_POP", "VAR_SAMP")),
)

_BY_NAME: Final = {function.name: function for function in _ALL}
_ALIASES: Final = {"STDDEV": "STDDEV_SAMP", "VARIANCE": "VAR_SAMP"}
#: Flink's other aggregates: known to the binder, refused with a name instead of "no match found".
_NOT_YET: Final = frozenset(
    {
        "CUME_DIST", "RANK", "DENSE_RANK", "PERCENT_RANK", "NTILE",
        "LEAD", "LAG", "ROW_NUMBER", "INTERSECTION", "FUSION",
    }
)  # fmt: skip


def aggregate_names() -> frozenset[str]:
    """Every name that calls an aggregate, upper case, those included that are refused as not supported yet."""
    return frozenset(_BY_NAME) | frozenset(_ALIASES) | _NOT_YET


def aggregate_function(name: str) -> AggregateFunction:
    """The declaration of a name or alias.

    Raises:
        NotSupportedYetError: a Flink aggregate that has no declaration.
        BindError: no aggregate of that name.
    """
    upper = name.upper()
    found = _BY_NAME.get(_ALIASES.get(upper, upper))
    if found is not None:
        return found
    if upper in _NOT_YET:
        raise NotSupportedYetError(f"aggregate function {upper}")
    raise BindError(
        "function-not-found", f"No match found for function signature {name}", hint=did_you_mean(name, _BY_NAME)
    )


def resolve_aggregate(
    name: str,
    arg_types: tuple[LogicalType, ...],
    distinct: bool,
    span: Span | None,
    *,
    grouped: bool = True,
    filtered: bool = False,
) -> ResolvedAggregate:
    """Types of a call.

    Args:
        name: as written, any case.
        arg_types: () for COUNT(*).
        grouped: the query has group keys; without any, or with FILTER, a result may be NULL over NOT NULL arguments.

    Raises:
        BindError: the arguments do not fit (Flink's words).
        NotSupportedYetError: a function or argument type that FlowSQL does not aggregate yet.
    """
    try:
        function = aggregate_function(name)
    except (BindError, NotSupportedYetError) as error:
        error.at = error.at or span
        raise
    arity = len(arg_types)
    if (not arity and function.name != "COUNT") or not function.accepts(arg_types):
        shown = ", ".join(f"<{_summary(type_)}>" for type_ in arg_types)
        forms = ", ".join(f"'{form}'" for form in function.forms)
        display = name.upper()
        if arity == 0 or (arity > 1 and function.name not in ("LISTAGG", "PERCENTILE", "JSON_OBJECTAGG")):
            raise BindError(
                "invalid-function-call",
                f"Invalid number of arguments to function '{display}'. Was expecting 1 arguments",
                at=span,
            )
        raise BindError(
            "invalid-function-call",
            f"Cannot apply '{display}' to arguments of type '{display}({shown})'. Supported form(s): {forms}",
            at=span,
        )
    for type_ in arg_types:
        if isinstance(type_, NullType):
            raise BindError("illegal-null", "Illegal use of 'NULL'", span, "cast it: CAST(NULL AS INT)")
        if function.name in ("MIN", "MAX") and isinstance(type_, _UNORDERED):
            raise BindError(
                "invalid-function-call",
                f"{function.name.title()} aggregate function does not support type: '{type_.as_nullable()}'.",
                at=span,
            )
        nested = isinstance(type_, ArrayType | MapType | MultisetType | RowType | RawType)
        nested = nested and (function.name not in _KEEPING_NESTED or isinstance(type_, RawType))
        if nested and function.name != "PERCENTILE":
            raise NotSupportedYetError(f"{name.upper()} of {type_.as_nullable()}", at=span)
    if distinct and function.name == "COUNT" and isinstance(arg_types[0], MapType | MultisetType):
        message = f"COUNT(DISTINCT ...) does not support values of type {arg_types[0].as_nullable()}."
        raise BindError("invalid-function-call", message, span)
    result = function.result(arg_types)
    if function.name in ("COUNT", "APPROX_COUNT_DISTINCT"):
        result = result.as_nullable(False)
    elif function.name not in _KEEPING_NOT_NULL and (not function.keeps_not_null or not grouped or filtered):
        result = result.as_nullable()
    computed = result.as_nullable() if function.null_of_one else result
    return ResolvedAggregate(function.name, arg_types, computed, result)


def check_literals(name: str, args: Sequence[Expr]) -> None:
    """Refuse a separator of LISTAGG that is no literal.

    Raises:
        BindError: with Flink's words.
    """
    if name.upper() != "LISTAGG" or len(args) < 2:
        return
    separator = innermost = args[1]
    while isinstance(innermost, Cast):
        innermost = innermost.operand
    if isinstance(innermost, Literal) and innermost.value is None:
        raise BindError("aggregate-argument", "Argument to function 'LISTAGG' must not be NULL", separator.span)
    if not isinstance(separator, Literal):
        raise BindError("aggregate-argument", "Argument to function 'LISTAGG' must be a literal", separator.span)


#: Types that can be compared and yet have no least and no greatest value in Flink.
_UNORDERED: Final = (
    BinaryStringType, YearMonthIntervalType, DayTimeIntervalType, ArrayType, RowType, BitmapType,
)  # fmt: skip

#: Aggregates of ROWs and collections too.
_KEEPING_NESTED: Final = frozenset(
    {"COUNT", "COLLECT", "ARRAY_AGG", "FIRST_VALUE", "LAST_VALUE", "SINGLE_VALUE", "JSON_ARRAYAGG", "JSON_OBJECTAGG"}
)

#: Whose results may be NULL only where arguments may, without group keys and with FILTER too, as Flink's planner says.
_KEEPING_NOT_NULL: Final = frozenset({"COLLECT", "$SUM0", "JSON_OBJECTAGG", "JSON_ARRAYAGG", "LISTAGG", "ARRAY_AGG"})


def needs_values(call: AggregateCall, input_retracts: bool) -> bool:
    """Whether a call keeps its values (sorted or in order) in state: no two-phase plan, no shared slices."""
    function = aggregate_function(call.function)
    if any(column.fold is Fold.VALUES for column in function.accumulators(_types(call))):
        return True
    return input_retracts and function.needs is not Needs.NOTHING


def is_mergeable(call: AggregateCall, input_retracts: bool) -> bool:
    """Whether partial accumulators of the call combine: what Local/Global plans and shared window slices need."""
    return aggregate_function(call.function).mergeable and not call.distinct and not needs_values(call, input_retracts)


def counts_approximately(type_: LogicalType) -> bool:
    """Whether APPROX_COUNT_DISTINCT counts values of a type, in groups of batch mode."""
    return isinstance(type_, NumericType | DateTimeType | CharacterType | NullType)


def is_order_sensitive(call: AggregateCall) -> bool:
    """Whether the answer depends on the order of rows."""
    return aggregate_function(call.function).order_sensitive


def _types(call: AggregateCall) -> tuple[LogicalType, ...]:
    return tuple(arg.type for arg in call.args) or (BooleanType(),)


def accumulator_columns(call: AggregateCall) -> tuple[AccumulatorColumn, ...]:
    """The declared accumulators of a call, in order."""
    return aggregate_function(call.function).accumulators(_types(call))


def local_columns(grouping: Schema, calls: Sequence[AggregateCall], input_retracts: bool) -> Schema:
    """Output of a LocalGroupAggregate: grouping columns, accumulators of each call, and ``count1$`` if rows retract.

    Raises:
        NotSupportedYetError: a call that does not merge.
    """
    columns = list(grouping)
    for index, call in enumerate(calls):
        if not is_mergeable(call, input_retracts):
            raise NotSupportedYetError(f"two-phase {call.function}", at=call.span)
        columns.extend(Column(f"{part.name}${index}", part.type) for part in accumulator_columns(call))
    if input_retracts:
        columns.append(Column("count1$", BIGINT.as_nullable(False)))
    return tuple(columns)


#: Types whose values fit fixed-width words; the rest are bytes.
FIXED_TYPES: Final = (NumericType, BooleanType, DateTimeType, DayTimeIntervalType, YearMonthIntervalType)


def is_float(type_: LogicalType) -> bool:
    """FLOAT or DOUBLE."""
    return isinstance(type_, ApproximateType)
