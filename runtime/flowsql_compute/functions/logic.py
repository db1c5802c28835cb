"""Logic, comparison and conditional functions: AND .. IS DISTINCT FROM, IN, CASE's relatives, GREATEST and LEAST."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any

import pyarrow as pa

from flowsql_compute.eval.exact_order import compared_exactly, digits_kept, exceed_a_decimal
from flowsql_compute.eval.nested.equality import BY_IDENTITY, nested_equal
from flowsql_compute.eval.total_order import TOTAL_ORDER, compared, in_total_order
from flowsql_compute.functions.registry import (
    CUSTOM,
    NOT_NULL,
    NULLABLE,
    Invocation,
    implicit_cast,
    resolve_call,
    resolve_case,
    scalar,
)
from flowsql_compute.functions.signature import summary
from flowsql_core.arrow import compute as pc
from flowsql_core.errors import BindError, InternalError
from flowsql_core.expr import Call, Case, Cast, Expr, Literal
from flowsql_core.span import Span
from flowsql_core.types import logical as t
from flowsql_core.types.coerce import branch_type, common_type, function_type, mixes_dates

#: The option of a comparison of approximate numbers by Java's total order.


def _to_boolean(args: tuple[Expr, ...], type_: t.LogicalType) -> tuple[Expr, ...]:
    return tuple(implicit_cast(arg, t.BOOLEAN) for arg in args)


@scalar("AND(BOOLEAN, BOOLEAN...) -> BOOLEAN", "AND(ANY, ANY...) -> BOOLEAN",
        returns=lambda args, options: _boolean_result(args), nulls=CUSTOM, coerce=_to_boolean,
        spark="({... AND })")  # fmt: skip
def and_(*operands: Any) -> Any:
    """TRUE when all operands are, FALSE when one is FALSE, else NULL."""
    return reduce(pc.and_kleene, operands)


@scalar("OR(BOOLEAN, BOOLEAN...) -> BOOLEAN", "OR(ANY, ANY...) -> BOOLEAN",
        returns=lambda args, options: _boolean_result(args), nulls=CUSTOM, coerce=_to_boolean,
        spark="({... OR })")  # fmt: skip
def or_(*operands: Any) -> Any:
    """TRUE when one operand is, FALSE when all are FALSE, else NULL."""
    return reduce(pc.or_kleene, operands)


@scalar("NOT(BOOLEAN) -> BOOLEAN", spark="(NOT {0})")
def not_(operand: Any) -> Any:
    """The other truth value; NULL stays NULL."""
    return pc.invert(operand)


def _boolean_result(args: Sequence[Expr]) -> t.LogicalType | None:
    if not all(isinstance(arg.type, t.BooleanType | t.NullType) for arg in args):
        return None
    return t.BooleanType(nullable=any(arg.type.nullable for arg in args))


@scalar("IS NULL(ANY) -> BOOLEAN", nulls=NOT_NULL, aliases=("IS UNKNOWN",), spark="({0} IS NULL)")
def is_null(operand: Any) -> Any:
    """Whether the operand is NULL."""
    return pc.is_null(operand)


@scalar("IS NOT NULL(ANY) -> BOOLEAN", nulls=NOT_NULL, aliases=("IS NOT UNKNOWN",), spark="({0} IS NOT NULL)")
def is_not_null(operand: Any) -> Any:
    """Whether the operand is not NULL."""
    return pc.is_valid(operand)


@scalar("IS TRUE(BOOLEAN) -> BOOLEAN", nulls=NOT_NULL, spark="({0} IS TRUE)")
def is_true(operand: Any) -> Any:
    """Whether the operand is TRUE."""
    return pc.coalesce(operand, pa.scalar(False))


@scalar("IS NOT TRUE(BOOLEAN) -> BOOLEAN", nulls=NOT_NULL, spark="({0} IS NOT TRUE)")
def is_not_true(operand: Any) -> Any:
    """Whether the operand is FALSE or NULL."""
    return pc.invert(pc.coalesce(operand, pa.scalar(False)))


@scalar("IS FALSE(BOOLEAN) -> BOOLEAN", nulls=NOT_NULL, spark="({0} IS FALSE)")
def is_false(operand: Any) -> Any:
    """Whether the operand is FALSE."""
    return pc.invert(pc.coalesce(operand, pa.scalar(True)))


@scalar("IS NOT FALSE(BOOLEAN) -> BOOLEAN", nulls=NOT_NULL, spark="({0} IS NOT FALSE)")
def is_not_false(operand: Any) -> Any:
    """Whether the operand is TRUE or NULL."""
    return pc.coalesce(operand, pa.scalar(True))


# Comparison


def _comparison_type(args: Sequence[Expr], options: dict[str, Any]) -> t.LogicalType | None:
    """BOOLEAN if the operands compare; what ``=`` alone refuses is checked in ``_check_equality``."""
    meet = _meeting_type(args[0].type, args[1].type)
    return None if meet is None else t.BooleanType(nullable=any(_may_be_unknown(arg.type) for arg in args))


def _may_be_unknown(type_: t.LogicalType) -> bool:
    """Whether a comparison of the type may be NULL as Flink's planner sees it: a ROW with a field that may be NULL."""
    if isinstance(type_, t.RowType) and any(_may_be_unknown(field.type) for field in type_.fields):
        return True
    return type_.nullable


def _meeting_type(a: t.LogicalType, b: t.LogicalType) -> t.LogicalType | None:
    """The type two operands are compared in: their common type, or that of the side that is no text."""
    for text, other in ((a, b), (b, a)):
        if isinstance(text, t.CharacterType) and isinstance(
            other, t.NumericType | t.BooleanType | t.DateTimeType | t.YearMonthIntervalType | t.DayTimeIntervalType
        ):
            return t.without_attribute(other)
    dates = isinstance(a, t.DateType), isinstance(b, t.DateType)
    if dates[0] != dates[1] and not isinstance(a, t.NullType) and not isinstance(b, t.NullType):
        return None
    return common_type((t.without_attribute(a), t.without_attribute(b)))


def _check_ordered(args: Sequence[Expr], span: Span | None) -> None:
    """What ``<`` and its like refuse: Flink orders neither nested values nor VARIANT nor BITMAP."""
    for arg in args:
        if t.is_nested(arg.type) or isinstance(arg.type, t.VariantType | t.BitmapType):
            raise BindError("not-comparable", f"Comparable type expected, but was '{arg.type}'.", arg.span or span)


def _to_meeting_type(args: tuple[Expr, ...], type_: t.LogicalType) -> tuple[Expr, ...]:
    meet = _meeting_type(args[0].type, args[1].type)
    if meet is None:
        raise InternalError("operands were matched before they were cast")
    if _same_representation(args[0].type, args[1].type):
        return args
    return tuple(implicit_cast(arg, meet) for arg in args)


def _to_order(args: tuple[Expr, ...], type_: t.LogicalType) -> tuple[Expr, ...]:
    """As :func:`_to_meeting_type`, but numbers of which no DECIMAL holds all digits are compared as they are."""
    return args if exceed_a_decimal(args[0].type, args[1].type) else _to_meeting_type(args, type_)


def _to_distinct_type(args: tuple[Expr, ...], type_: t.LogicalType) -> tuple[Expr, ...]:
    return args if exceed_a_decimal(args[0].type, args[1].type) else _to_equal_type(args, type_)


def _to_equal_numbers(args: tuple[Expr, ...], type_: t.LogicalType) -> tuple[Expr, ...]:
    """As :func:`_to_equal_type`, but a DOUBLE that a FLOAT on its left is compared with becomes one, as in Flink.

    A FLOAT that is written keeps its digits as a DOUBLE: ``x = CAST(0.1 AS FLOAT)`` compares with 0.1.
    """
    first, second = args
    if isinstance(first.type, t.FloatType) and isinstance(second.type, t.DoubleType):
        return first, implicit_cast(second, t.FLOAT)
    return _to_equal_type((digits_kept(first, second), digits_kept(second, first)), type_)


def _to_equal_type(args: tuple[Expr, ...], type_: t.LogicalType) -> tuple[Expr, ...]:
    """As for other comparisons, but what is never equal stays as it is.

    A text that is no moment is NULL beside a moment, unless it is written out.

    Source: Flink, ``ScalarOperatorGens.generateEquals``.
    """
    if _never_equal(args[0].type, args[1].type):
        return args
    made = _to_meeting_type(args, type_)
    return tuple(
        _asked(cast) if isinstance(arg.type, t.CharacterType) else cast for arg, cast in zip(args, made, strict=True)
    )


def _asked(cast: Expr) -> Expr:
    match cast:
        case Cast(operand=Literal()):
            return cast
        case Cast(type=t.DateTimeType() as moment):
            return replace(cast, type=moment.as_nullable(), safe=True)
    return cast


def _same_representation(a: t.LogicalType, b: t.LogicalType) -> bool:
    """Texts of any declared length compare as they are; so do time attributes and plain timestamps."""
    texts = isinstance(a, t.CharacterType) and isinstance(b, t.CharacterType)
    return texts or (isinstance(a, t.BinaryStringType) and isinstance(b, t.BinaryStringType))


def _check_equality(args: Sequence[Expr], span: Span | None) -> None:
    a, b = args[0].type, args[1].type
    for number, text in ((a, b), (b, a)):
        if isinstance(number, t.NumericType) and isinstance(text, t.CharacterType):
            raise BindError(
                "implicit-conversion",
                f"implicit type conversion between {a.root} and {b.root} is not supported now",
                span,
                f"write CAST(... AS {number.as_nullable()})",
            )


def _rewrite_row_equality(args: tuple[Expr, ...], span: Span | None) -> Expr | None:
    """``ROW(a, b) = ROW(c, d)`` is ``a = c AND b = d``: NULL fields make it NULL; other rows are compared whole."""
    a, b = args
    if not (isinstance(a, Call) and isinstance(b, Call) and a.function == b.function == "ROW"):
        return None
    if len(a.args) != len(b.args):
        return None
    pairs = [resolve_call("=", pair, (), span) for pair in zip(a.args, b.args, strict=True)]
    made = pairs[0]
    for pair in pairs[1:]:
        made = resolve_call("AND", (made, pair), (), span)
    return made


@scalar("=(COMPARABLE, COMPARABLE) -> BOOLEAN", nulls=CUSTOM, returns=_comparison_type, coerce=_to_equal_numbers,
        check=_check_equality, rewrite=_rewrite_row_equality, spark="({0} = {1})")  # fmt: skip
def equal(call: Invocation, a: Any, b: Any) -> Any:
    """Whether both are equal; NULL when one is NULL."""
    return _equal(call, a, b, by_equality=call.options != BY_IDENTITY)


def _equal(call: Invocation, a: Any, b: Any, by_equality: bool) -> Any:
    """As :func:`equal`; not ``by_equality``: as IN and IS NOT DISTINCT FROM compare arrays."""
    if _nested(call):
        return nested_equal(call, a, b, by_equality)
    if _never_equal(*call.arg_types):
        return _where_known(a, b, False, call.n)
    if exceed_a_decimal(*call.arg_types):
        return compared_exactly(a, b, call.n, operator.eq)
    return pc.equal(*_typed(a, b))


@scalar("<>(COMPARABLE, COMPARABLE) -> BOOLEAN", nulls=CUSTOM, returns=_comparison_type, coerce=_to_equal_numbers,
        check=_check_equality, spark="({0} <> {1})")  # fmt: skip
def not_equal(call: Invocation, a: Any, b: Any) -> Any:
    """Whether both differ; NULL when one is NULL."""
    if _nested(call):
        return pc.invert(nested_equal(call, a, b, by_equality=call.options != BY_IDENTITY))
    if _never_equal(*call.arg_types):
        return _where_known(a, b, True, call.n)
    if exceed_a_decimal(*call.arg_types):
        return compared_exactly(a, b, call.n, operator.ne)
    return pc.not_equal(*_typed(a, b))


def _never_equal(a: t.LogicalType, b: t.LogicalType) -> bool:
    """Texts beside a BOOLEAN or an interval: Flink compares their objects, which are of different classes."""
    others = t.BooleanType | t.YearMonthIntervalType | t.DayTimeIntervalType
    return (isinstance(a, t.CharacterType) and isinstance(b, others)) or (
        isinstance(b, t.CharacterType) and isinstance(a, others)
    )


def _where_known(a: Any, b: Any, answer: bool, n: int) -> pa.Array:
    known = pc.and_(pc.is_valid(a), pc.is_valid(b))
    made = pc.if_else(known, pa.scalar(answer), pa.scalar(None, pa.bool_()))
    return made if isinstance(made, pa.Array) else pa.repeat(made, n)


def _typed(a: Any, b: Any) -> tuple[Any, Any]:
    """Arrow compares no untyped NULLs: they are NULLs of any type."""
    return (pc.cast(a, pa.uint8()), pc.cast(b, pa.uint8())) if pa.types.is_null(a.type) else (a, b)


def _nested(call: Invocation) -> bool:
    return isinstance(call.arg_types[0], t.ArrayType | t.MapType | t.MultisetType | t.RowType)


def _rewrite_mixed(function: str) -> Callable[[tuple[Expr, ...], Span | None], Expr | None]:
    """Approximate numbers beside DECIMAL: Flink orders them by Java's total order, in which NaN is the greatest."""

    def rewrite(args: tuple[Expr, ...], span: Span | None) -> Expr | None:
        kinds = [isinstance(arg.type, t.ApproximateType) for arg in args]
        if kinds[0] == kinds[1] or not any(isinstance(arg.type, t.DecimalType) for arg in args):
            return None
        type_ = t.BooleanType(nullable=any(arg.type.nullable for arg in args))
        cast = _to_meeting_type(args, type_)
        return Call(function, cast, type_, TOTAL_ORDER, span)

    return rewrite


@scalar("<(COMPARABLE, COMPARABLE) -> BOOLEAN", nulls=CUSTOM, returns=_comparison_type, coerce=_to_order,
        check=_check_ordered, rewrite=_rewrite_mixed("<"), spark="({0} < {1})")  # fmt: skip
def less(call: Invocation, a: Any, b: Any) -> Any:
    """Whether the first is less; text by its UTF-8 bytes."""
    if exceed_a_decimal(*call.arg_types):
        return compared_exactly(a, b, call.n, operator.lt)
    return compared(call, a, b, pc.less, pc.greater_equal)


@scalar("<=(COMPARABLE, COMPARABLE) -> BOOLEAN", nulls=CUSTOM, returns=_comparison_type, coerce=_to_order,
        check=_check_ordered, rewrite=_rewrite_mixed("<="), spark="({0} <= {1})")  # fmt: skip
def less_equal(call: Invocation, a: Any, b: Any) -> Any:
    """Whether the first is less or equal."""
    if exceed_a_decimal(*call.arg_types):
        return compared_exactly(a, b, call.n, operator.le)
    return compared(call, a, b, pc.less_equal, pc.greater)


@scalar(">(COMPARABLE, COMPARABLE) -> BOOLEAN", nulls=CUSTOM, returns=_comparison_type, coerce=_to_order,
        check=_check_ordered, rewrite=_rewrite_mixed(">"), spark="({0} > {1})")  # fmt: skip
def greater(call: Invocation, a: Any, b: Any) -> Any:
    """Whether the first is greater."""
    if exceed_a_decimal(*call.arg_types):
        return compared_exactly(a, b, call.n, operator.gt)
    return compared(call, a, b, pc.greater, pc.less_equal)


@scalar(">=(COMPARABLE, COMPARABLE) -> BOOLEAN", nulls=CUSTOM, returns=_comparison_type, coerce=_to_order,
        check=_check_ordered, rewrite=_rewrite_mixed(">="), spark="({0} >= {1})")  # fmt: skip
def greater_equal(call: Invocation, a: Any, b: Any) -> Any:
    """Whether the first is greater or equal."""
    if exceed_a_decimal(*call.arg_types):
        return compared_exactly(a, b, call.n, operator.ge)
    return compared(call, a, b, pc.greater_equal, pc.less)


@scalar("IS DISTINCT FROM(COMPARABLE, COMPARABLE) -> BOOLEAN", nulls=NOT_NULL, returns=_comparison_type,
        coerce=_to_distinct_type, check=_check_equality, spark="(NOT {0} <=> {1})")  # fmt: skip
def is_distinct_from(call: Invocation, a: Any, b: Any) -> Any:
    """Whether both differ, where NULL is equal to NULL."""
    return pc.invert(is_not_distinct_from(call, a, b))


@scalar("IS NOT DISTINCT FROM(COMPARABLE, COMPARABLE) -> BOOLEAN", nulls=NOT_NULL, returns=_comparison_type,
        coerce=_to_distinct_type, check=_check_equality, spark="({0} <=> {1})")  # fmt: skip
def is_not_distinct_from(call: Invocation, a: Any, b: Any) -> Any:
    """Whether both are equal, where NULL is equal to NULL."""
    same = _equal(call, a, b, by_equality=False)
    return pc.coalesce(same, pc.and_(pc.is_null(a), pc.is_null(b)))


def _in_type(args: Sequence[Expr], options: dict[str, Any]) -> t.LogicalType | None:
    meet = _in_meeting_type(args)
    return None if meet is None else t.BooleanType(nullable=any(_may_be_unknown(arg.type) for arg in args))


def _in_meeting_type(args: Sequence[Expr]) -> t.LogicalType | None:
    values = common_type([arg.type for arg in args[1:]])
    if values is None:
        return None
    operand = args[0].type
    written = all(isinstance(arg, Literal) for arg in args[1:])
    if (
        isinstance(operand, t.FloatType)
        and isinstance(values, t.NumericType)
        and (written or isinstance(values, t.ApproximateType))
    ):
        return operand
    if isinstance(operand, t.DecimalType) and isinstance(values, t.IntegerType) and written:
        return operand
    if isinstance(operand, t.IntegerType) and written:
        # Flink looks numbers up in a set of the operand's type: 3 IN (3.5) is TRUE.
        return operand if isinstance(values, t.NumericType | t.CharacterType | t.NullType) else None
    if isinstance(operand, t.CharacterType) and not isinstance(values, t.CharacterType | t.NullType):
        # The values become texts as long as the operand's type says: '2020-01-01' IN (TIMESTAMP ...) may be TRUE.
        return None if _meeting_type(operand, values) is None else operand
    return _meeting_type(operand, values)


def _to_in_type(args: tuple[Expr, ...], type_: t.LogicalType) -> tuple[Expr, ...]:
    meet = _in_meeting_type(args)
    if meet is None or all(_same_representation(args[0].type, arg.type) for arg in args[1:]):
        return args
    return tuple(implicit_cast(_in_operands_type(arg, args[0].type), meet) for arg in args)


def _in_operands_type(arg: Expr, operand: t.LogicalType) -> Expr:
    """A whole number that is looked for among DECIMALs is NULL where it has no place in their type."""
    if isinstance(arg.type, t.IntegerType) and isinstance(operand, t.DecimalType):
        return implicit_cast(arg, operand.as_nullable())
    return arg


def _rewrite_rows_in(args: tuple[Expr, ...], span: Span | None) -> Expr | None:
    """Rows written out are compared field by field, so that NULL fields make the answer NULL."""
    if not all(isinstance(arg, Call) and arg.function == "ROW" for arg in args):
        return None
    tests = tuple(resolve_call("=", (args[0], arg), (), span) for arg in args[1:])
    return tests[0] if len(tests) == 1 else resolve_call("OR", tests, (), span)


@scalar("IN(COMPARABLE, COMPARABLE, COMPARABLE...) -> BOOLEAN", nulls=CUSTOM, returns=_in_type, coerce=_to_in_type,
        rewrite=_rewrite_rows_in, spark="({0} IN ({1..., }))")  # fmt: skip
def in_(call: Invocation, operand: Any, *values: Any) -> Any:
    """Whether the operand equals one of the values; NULL when none does and a NULL takes part."""
    if all(isinstance(value, pa.Scalar) for value in values) and not _nested(call):
        known = [value for value in values if value.is_valid]
        listed = pa.concat_arrays([pa.repeat(value, 1) for value in known]) if known else None
        if listed is None:
            return pa.nulls(call.n, pa.bool_())
        found = pc.is_in(operand, value_set=listed)
        if len(known) < len(values):
            found = pc.if_else(found, found, pa.scalar(None, pa.bool_()))
        return pc.if_else(pc.is_valid(operand), found, pa.scalar(None, pa.bool_()))
    pair = replace(call, arg_types=call.arg_types[:2])
    return reduce(pc.or_kleene, [_equal(pair, operand, value, by_equality=False) for value in values])


# Conditionals


def _rewrite_if(args: tuple[Expr, ...], span: Span | None) -> Expr:
    condition, positive, negative = args
    if isinstance(positive.type, t.DateTimeType):
        # Of numbers and texts both count; of moments Flink takes the first type.
        negative = implicit_cast(negative, t.without_attribute(positive.type))
    made = resolve_case((condition,), (positive,), negative, span)
    assert isinstance(made, Case)
    # Flink's IF is a function: NULL in the condition counts as an argument that may be NULL.
    return replace(made, type=made.type.as_nullable(made.type.nullable or condition.type.nullable), is_if=True)


def _check_if(args: Sequence[Expr], span: Span | None) -> None:
    if (
        common_type([args[1].type, args[2].type]) is None
        or not isinstance(args[0].type, t.BooleanType)
        or any(t.is_nested(arg.type) for arg in args[1:])
        or mixes_dates([arg.type for arg in args[1:]])
    ):
        shown = ", ".join(f"<{summary(arg.type)}>" for arg in args)
        raise BindError(
            "argument-types",
            f"Cannot apply 'IF' to arguments of type 'IF({shown})'. Supported form(s): 'IF(<BOOLEAN>, <ANY>, <ANY>)'",
            span,
        )


@scalar("IF(ANY, ANY, ANY) -> BOOLEAN", rewrite=_rewrite_if, check=_check_if, spark="IF({0}, {1}, {2})")
def if_(condition: Any, positive: Any, negative: Any) -> Any:
    """The second where the first is TRUE, else the third."""
    return pc.if_else(pc.coalesce(condition, pa.scalar(False)), positive, negative)


def _rewrite_nullif(args: tuple[Expr, ...], span: Span | None) -> Expr:
    value, other = args
    test = resolve_call("=", (value, other), (), span)
    type_ = value.type.as_nullable()
    return Case((test,), (Literal(None, type_, span),), value, type_, span)


@scalar("NULLIF(ANY, ANY) -> BOOLEAN", rewrite=_rewrite_nullif, spark="NULLIF({0}, {1})")
def nullif(value: Any, other: Any) -> Any:
    """NULL where both are equal, else the first."""
    return pc.if_else(pc.coalesce(pc.equal(value, other), pa.scalar(False)), pa.scalar(None, value.type), value)


def _coalesce_meet(args: Sequence[Expr]) -> t.LogicalType | None:
    """The type in which the arguments meet; of a TIMESTAMP and a DATE or TIME only the latter is left."""
    types = [t.without_attribute(arg.type) for arg in args if not isinstance(arg.type, t.NullType)]
    parts = [type_ for type_ in types if isinstance(type_, t.DateType | t.TimeType)]
    if any(isinstance(type_, t.TimestampType | t.TimestampLtzType) for type_ in types) and parts:
        left = common_type(parts)
        whole = all(isinstance(type_, t.DateType | t.TimeType | t.TimestampType) for type_ in types)
        return None if left is None or not whole else left.as_nullable(any(arg.type.nullable for arg in args))
    meet = branch_type([arg.type for arg in args], of=function_type)
    return None if isinstance(meet, t.NullType) else meet


def _coalesce_type(args: Sequence[Expr], options: dict[str, Any]) -> t.LogicalType | None:
    meet = _coalesce_meet(args)
    return None if meet is None else meet.as_nullable(all(arg.type.nullable for arg in args))


@scalar("COALESCE(ANY, ANY...) -> $1", nulls=CUSTOM, returns=_coalesce_type,
        coerce=lambda args, type_: tuple(implicit_cast(arg, type_) for arg in args),
        spark="COALESCE({..., })")  # fmt: skip
def coalesce(*values: Any) -> Any:
    """The first value that is not NULL."""
    return pc.coalesce(*values)


def _rewrite_ifnull(args: tuple[Expr, ...], span: Span | None) -> Expr | None:
    value, other = args
    if not value.type.nullable:
        meet = _coalesce_meet(args)
        if meet is None or isinstance(value.type, t.CharacterType):
            return None if meet is None else value
        if isinstance(meet, t.DecimalType):
            # A DECIMAL that overflowed is NULL all the same, and IFNULL asks, other than COALESCE.
            asked = Cast(value, meet.as_nullable(), implicit=True, span=value.span)
            return Call("COALESCE", (asked, implicit_cast(other, meet)), meet.as_nullable(False), (), span)
        return implicit_cast(value, meet)
    return resolve_call("COALESCE", (value, other), (), span)


@scalar("IFNULL(ANY, ANY) -> $1", rewrite=_rewrite_ifnull, returns=lambda args, options: None,
        spark="IFNULL({0}, {1})")  # fmt: skip
def ifnull(value: Any, other: Any) -> Any:
    """The second where the first is NULL."""
    return pc.coalesce(value, other)


def _check_comparable(args: Sequence[Expr], span: Span | None) -> None:
    _check_ordered(args, span)
    for arg in args[1:]:
        if common_type([args[0].type, arg.type]) is None or mixes_dates([args[0].type, arg.type]):
            raise BindError(
                "argument-types",
                "All types in a comparison should support both 'EQUALS' and 'ORDER' comparison with each other. "
                f"Can not compare {args[0].type} with {arg.type}",
                span,
            )


@scalar("GREATEST(ANY, ANY...) -> $1", nulls=CUSTOM, check=_check_comparable,
        returns=lambda args, options: _extreme_type(args),
        coerce=lambda args, type_: tuple(implicit_cast(arg, type_) for arg in args), spark=None)  # fmt: skip
def greatest(call: Invocation, *values: Any) -> Any:
    """The greatest value; NULL when one is NULL."""
    return _extreme(call, values, pc.greater)


@scalar("LEAST(ANY, ANY...) -> $1", nulls=CUSTOM, check=_check_comparable,
        returns=lambda args, options: _extreme_type(args),
        coerce=lambda args, type_: tuple(implicit_cast(arg, type_) for arg in args), spark=None)  # fmt: skip
def least(call: Invocation, *values: Any) -> Any:
    """The least value; NULL when one is NULL."""
    return _extreme(call, values, pc.less)


def _extreme_type(args: Sequence[Expr]) -> t.LogicalType | None:
    return function_type([arg.type for arg in args])


def _extreme(call: Invocation, values: tuple[Any, ...], better: Any) -> Any:
    best = values[0]
    for value in values[1:]:
        # A comparison with NULL is NULL, and if_else hands that on.
        best = pc.if_else(better(in_total_order(value), in_total_order(best)), value, best)
    return best if isinstance(best, pa.Array) else pa.repeat(best, 1)


def _of_field(args: tuple[Expr, ...], span: Span | None) -> Expr | None:
    """A field of a row that may be NULL has its declared type, NOT NULL included."""
    match args[0]:
        case Call(function="FIELD" | "ITEM") as access if isinstance(access.args[0].type, t.RowType):
            fields = access.args[0].type.fields
            chosen = dict(access.options).get("index")
            if chosen is None and isinstance(access.args[1], Literal):
                key = access.args[1].value
                names = [field.name for field in fields]
                chosen = key - 1 if isinstance(key, int) else names.index(key)
            if chosen is None or fields[chosen].type == access.type:
                return None
            serializable = len(args) > 1 and isinstance(args[1], Literal) and bool(args[1].value)
            return Literal(_type_text(fields[chosen].type, serializable), t.STRING, span)
    return None


@scalar("TYPEOF(ANY, [BOOLEAN]) -> STRING", nulls=NULLABLE, rewrite=_of_field, spark=None)
def typeof(call: Invocation, operand: Any, serializable: Any = None) -> Any:
    """The type of the expression as text; ``serializable`` spells STRING and BYTES with their lengths."""
    long = isinstance(serializable, pa.Scalar) and bool(serializable.as_py())
    return pa.scalar(_type_text(call.arg_types[0], long), pa.string())


def _type_text(type_: t.LogicalType, serializable: bool) -> str:
    text = str(type_)
    return _SHORT_NAMES.sub(lambda found: _LONG_NAMES.get(found[0], found[0]), text) if serializable else text


#: Field names in back-ticks are matched whole, so that nothing inside of them is replaced.
_SHORT_NAMES = re.compile(r"`(?:[^`]|``)*`|\bSTRING\b|\bBYTES\b")
_LONG_NAMES = {"STRING": f"VARCHAR({t.MAX_LENGTH})", "BYTES": f"VARBINARY({t.MAX_LENGTH})"}
