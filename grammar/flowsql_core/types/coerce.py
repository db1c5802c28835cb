"""How types meet: the common type of several, what casts are allowed, the result types of arithmetic.

Source: Flink's ``LogicalTypeMerging`` and ``LogicalTypeCasts``; Calcite's ``leastRestrictive``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from flowsql_core.types import logical as t

_INTEGERS: tuple[t.LogicalType, ...] = (t.TINYINT, t.SMALLINT, t.INT, t.BIGINT)
_INTEGER_DIGITS = {8: 3, 16: 5, 32: 10, 64: 19}
_MIN_KEPT_SCALE = 6


def as_decimal(type_: t.LogicalType) -> t.DecimalType | None:
    """The DECIMAL that holds every value of an exact numeric type; None for other types."""
    match type_:
        case t.DecimalType():
            return type_
        case t.IntegerType():
            return t.DecimalType(precision=_INTEGER_DIGITS[type_.bits], nullable=type_.nullable)
    return None


def function_type(types: Sequence[t.LogicalType]) -> t.LogicalType | None:
    """The common type of COALESCE's, GREATEST's and LEAST's arguments; None when there is none.

    As ``common_type``, but a FLOAT makes FLOAT of the exact numbers before it (after it a DECIMAL makes DOUBLE).
    """
    made = common_type(types)
    if isinstance(made, t.DoubleType):
        merged: t.LogicalType = t.NULL
        for type_ in types:
            if isinstance(type_, t.FloatType) and isinstance(merged, t.ExactNumericType):
                merged = t.FLOAT
            else:
                merged = common_type((merged, type_)) or t.DOUBLE
        made = merged.as_nullable(made.nullable)
    return made


def common_type(types: Sequence[t.LogicalType], in_order: bool = False) -> t.LogicalType | None:
    """The least type that all types fit into, nullable if one is; None when there is none.

    CASE, COALESCE, VALUES, set operations, IN lists and comparisons meet here. NULLs alone give NULL.

    Args:
        in_order: as Calcite finds the type of branches, rows and elements: a FLOAT and a DOUBLE meet in the first,
            a TIMESTAMP and a TIMESTAMP_LTZ too, but where their digits differ in the second kind with more of them.
    """
    nullable = any(type_.nullable for type_ in types)
    made: t.LogicalType = t.NULL
    for type_ in types:
        merged = _merge(made, t.without_attribute(type_), in_order)
        if merged is None:
            return None
        made = merged
    # A time attribute survives only where all operands are the same attribute.
    if types and t.is_time_attribute(types[0]) and all(type_.same(types[0]) for type_ in types):
        made = types[0]
    return made.as_nullable(nullable)


def branch_type(
    types: Sequence[t.LogicalType],
    in_order: bool = False,
    of: Callable[[Sequence[t.LogicalType]], t.LogicalType | None] | None = None,
) -> t.LogicalType | None:
    """The type of what is one of several values: of COALESCE and, with ``in_order``, of CASE and UNION.

    ``of``: finds the common type instead of ``common_type``.

    A time attribute that stands first, and is as wide as the others, stays one, as in Flink: for the type alone. What
    functions return is a plain timestamp to the operators behind them.
    """
    made = common_type(types, in_order) if of is None else of(types)
    first = next((type_ for type_ in types if not isinstance(type_, t.NullType)), t.NULL)
    if made is not None and t.is_time_attribute(first) and t.without_attribute(first).same(made):
        return first.as_nullable(made.nullable)
    return made


def mixes_dates(types: Sequence[t.LogicalType]) -> bool:
    """Whether some of the types are DATE and some are not: rows, lists and branches of both are none to Flink."""
    return len({isinstance(type_, t.DateType) for type_ in types if not isinstance(type_, t.NullType)}) == 2


def _merge(a: t.LogicalType, b: t.LogicalType, in_order: bool) -> t.LogicalType | None:
    if isinstance(a, t.NullType) or a.same(b):
        return b
    match a, b:
        case _, t.NullType():
            return a
        case t.CharacterType(), t.CharacterType():
            return _merge_lengths(a, b, t.VarCharType)
        case t.BinaryStringType(), t.BinaryStringType():
            return _merge_lengths(a, b, t.VarBinaryType)
        case t.ApproximateType(), t.ApproximateType() if in_order:
            return a
        case t.NumericType(), t.NumericType():
            return _merge_numbers(a, b)
        case t.TimestampType(), t.TimestampType():
            return t.TimestampType(precision=max(a.precision, b.precision))
        case t.TimestampType() | t.TimestampLtzType(), t.TimestampType() | t.TimestampLtzType() if in_order:
            kind = type(a) if a.precision == b.precision else type(b)
            return kind(precision=max(a.precision, b.precision))
        case t.TimestampType() | t.TimestampLtzType(), t.TimestampType() | t.TimestampLtzType():
            return t.TimestampLtzType(precision=max(a.precision, b.precision))
        case t.TimeType(), t.TimeType():
            return t.TimeType(precision=max(a.precision, b.precision))
        case (t.DateType(), t.TimestampType() | t.TimestampLtzType()):
            return b
        case (t.TimestampType() | t.TimestampLtzType(), t.DateType()):
            return a
        case t.YearMonthIntervalType(), t.YearMonthIntervalType():
            return t.YearMonthIntervalType(resolution="MONTH")
        case t.DayTimeIntervalType(), t.DayTimeIntervalType():
            return t.DayTimeIntervalType(resolution="SECOND", fractional_precision=3)
    return _merge_nested(a, b, in_order)


def _merge_lengths(
    a: t.LogicalType, b: t.LogicalType, varying: type[t.VarCharType] | type[t.VarBinaryType]
) -> t.LogicalType:
    return varying(length=max(length_of(a), length_of(b)))


def length_of(type_: t.LogicalType) -> int:
    """Declared length of a character or binary type; 0 for others."""
    if isinstance(type_, t.CharType | t.VarCharType | t.BinaryType | t.VarBinaryType):
        return type_.length
    return 0


def _merge_numbers(a: t.NumericType, b: t.NumericType) -> t.LogicalType:
    if isinstance(a, t.IntegerType) and isinstance(b, t.IntegerType):
        return next(type_ for type_ in _INTEGERS if type_.text() == (a if a.bits >= b.bits else b).text())
    if isinstance(a, t.ApproximateType) or isinstance(b, t.ApproximateType):
        doubles = (t.DoubleType, t.DecimalType)
        return t.DOUBLE if isinstance(a, doubles) or isinstance(b, doubles) else t.FLOAT
    left, right = as_decimal(a), as_decimal(b)
    assert left is not None
    assert right is not None
    scale = max(left.scale, right.scale)
    digits = max(left.precision - left.scale, right.precision - right.scale)
    if digits + scale > t.MAX_PRECISION:
        scale = max(0, t.MAX_PRECISION - digits)
    return t.DecimalType(precision=min(digits + scale, t.MAX_PRECISION), scale=scale)


def _merge_nested(a: t.LogicalType, b: t.LogicalType, in_order: bool) -> t.LogicalType | None:
    match a, b:
        case t.ArrayType(), t.ArrayType():
            element = common_type((a.element, b.element), in_order)
            return None if element is None else t.ArrayType(element=element)
        case t.MultisetType(), t.MultisetType():
            element = common_type((a.element, b.element), in_order)
            return None if element is None else t.MultisetType(element=element)
        case t.MapType(), t.MapType():
            key, value = common_type((a.key, b.key), in_order), common_type((a.value, b.value), in_order)
            return None if key is None or value is None else t.MapType(key=key, value=value)
        case t.StructuredType(), _:
            return None
        case t.RowType(), t.RowType() if len(a.fields) == len(b.fields) and not isinstance(b, t.StructuredType):
            fields = []
            for left, right in zip(a.fields, b.fields, strict=True):
                merged = common_type((left.type, right.type), in_order)
                if merged is None:
                    return None
                fields.append(t.Field(left.name, merged, left.description))
            return t.RowType(fields=tuple(fields))
    return None


# Arithmetic


def plus_minus_type(a: t.LogicalType, b: t.LogicalType) -> t.LogicalType | None:
    """Result of ``a + b`` and ``a - b`` for numbers; None when one is no number."""
    decimals = _decimals(a, b)
    if decimals is None:
        return _numeric(a, b)
    left, right = decimals
    scale = max(left.scale, right.scale)
    digits = max(left.precision - left.scale, right.precision - right.scale)
    return _fitted(digits + scale + 1, scale, a, b)


def multiply_type(a: t.LogicalType, b: t.LogicalType) -> t.LogicalType | None:
    """Result of ``a * b`` for numbers."""
    decimals = _decimals(a, b)
    if decimals is None:
        return _numeric(a, b)
    left, right = decimals
    return _fitted(left.precision + right.precision + 1, left.scale + right.scale, a, b)


def divide_type(a: t.LogicalType, b: t.LogicalType) -> t.LogicalType | None:
    """Result of ``a / b`` for numbers."""
    decimals = _decimals(a, b)
    if decimals is None:
        return _numeric(a, b)
    left, right = decimals
    scale = max(_MIN_KEPT_SCALE, left.scale + right.precision + 1)
    return _fitted(left.precision - left.scale + right.scale + scale, scale, a, b)


def modulo_type(a: t.LogicalType, b: t.LogicalType) -> t.LogicalType | None:
    """Result of ``MOD(a, b)``: the type of ``b`` where neither has a fraction; exact numbers only."""
    nullable = a.nullable or b.nullable
    left_exact, right_exact = as_decimal(a), as_decimal(b)
    if left_exact is not None and right_exact is not None and left_exact.scale == right_exact.scale == 0:
        return b.as_nullable(nullable)
    decimals = _decimals(a, b)
    if decimals is None:
        return _numeric(a, b)
    left, right = decimals
    scale = max(left.scale, right.scale)
    digits = min(left.precision - left.scale, right.precision - right.scale)
    return _fitted(digits + scale, scale, a, b)


def round_type(type_: t.LogicalType, digits: int | None) -> t.LogicalType:
    """Result of ROUND and TRUNCATE; ``digits`` is None when it is no constant."""
    if not isinstance(type_, t.DecimalType) or digits is None or digits >= type_.scale:
        return type_
    precision = 1 + type_.precision - type_.scale + max(digits, 0)
    made = t.DecimalType(precision=min(precision, t.MAX_PRECISION), scale=max(digits, 0))
    return made.as_nullable(type_.nullable)


def _decimals(a: t.LogicalType, b: t.LogicalType) -> tuple[t.DecimalType, t.DecimalType] | None:
    """Both as DECIMAL, when both are exact and at least one is a DECIMAL."""
    if not (isinstance(a, t.DecimalType) or isinstance(b, t.DecimalType)):
        return None
    left, right = as_decimal(a), as_decimal(b)
    return None if left is None or right is None else (left, right)


def _numeric(a: t.LogicalType, b: t.LogicalType) -> t.LogicalType | None:
    both = isinstance(a, t.NumericType | t.NullType) and isinstance(b, t.NumericType | t.NullType)
    return common_type((a, b), in_order=True) if both else None


def _fitted(precision: int, scale: int, a: t.LogicalType, b: t.LogicalType) -> t.DecimalType:
    """38 digits at most: the fraction gives way, but keeps six digits."""
    if precision > t.MAX_PRECISION:
        kept = max(t.MAX_PRECISION - (precision - scale), min(scale, _MIN_KEPT_SCALE))
        precision, scale = t.MAX_PRECISION, kept
    return t.DecimalType(precision=precision, scale=scale, nullable=a.nullable or b.nullable)


# Casts


def implicit_cast_allowed(src: t.LogicalType, dst: t.LogicalType) -> bool:
    """Whether a value may change its type without CAST: widening only (a sink column, an argument)."""
    src, dst = t.without_attribute(src), t.without_attribute(dst)
    if isinstance(src, t.NullType) or src.same(dst):
        return True
    match src, dst:
        case (t.CharacterType(), t.CharacterType()) | (t.BinaryStringType(), t.BinaryStringType()):
            return True
        case t.NumericType(), t.NumericType():
            return True
        case (t.TimestampType() | t.TimestampLtzType() | t.DateType(), t.TimestampType() | t.TimestampLtzType()):
            return True
        case t.TimestampType() | t.TimestampLtzType(), t.DateType() | t.TimeType():
            return True
        case t.TimeType(), t.TimeType():
            return True
        case (t.YearMonthIntervalType(), t.YearMonthIntervalType()):
            return True
        case (t.DayTimeIntervalType(), t.DayTimeIntervalType()):
            return True
    return _nested_cast(src, dst, implicit_cast_allowed)


def argument_cast_allowed(src: t.LogicalType, dst: t.LogicalType) -> bool:
    """Whether Flink casts an argument of a collection function by itself: widening of integers, same family else."""
    src, dst = t.without_attribute(src), t.without_attribute(dst)
    if isinstance(src, t.NullType) or src.same(dst):
        return True
    match src, dst:
        case t.CharacterType(), t.CharType():
            return isinstance(src, t.CharType)
        case t.BinaryStringType(), t.BinaryType():
            return isinstance(src, t.BinaryType)
        case t.IntegerType(), t.IntegerType():
            return src.bits <= dst.bits
        case t.NumericType(), t.DecimalType():
            return True
        case (t.IntegerType() | t.DecimalType(), t.ApproximateType()):
            return True
        case t.ApproximateType(), t.ApproximateType():
            return isinstance(dst, t.DoubleType)
        case t.NumericType(), t.NumericType():
            return False
        case t.DateType(), t.TimestampType() | t.TimestampLtzType():
            return False
        case t.TimestampType() | t.TimestampLtzType(), t.DateType() | t.TimeType():
            return isinstance(src, t.TimestampType)
    return _nested_cast(src, dst, argument_cast_allowed) or (
        not isinstance(src, t.NumericType) and implicit_cast_allowed(src, dst) and not t.is_nested(src)
    )


def explicit_cast_allowed(src: t.LogicalType, dst: t.LogicalType) -> bool:
    """Whether CAST and TRY_CAST accept the pair at all (a value may still fail)."""
    src, dst = t.without_attribute(src), t.without_attribute(dst)
    if isinstance(src, t.VariantType):
        return False
    if implicit_cast_allowed(src, dst):
        return True
    match src, dst:
        case _, t.CharacterType():
            return not isinstance(src, t.DescriptorType)
        case t.CharacterType(), _:
            scalars = (
                t.BooleanType | t.NumericType | t.BinaryStringType | t.DateTimeType
                | t.YearMonthIntervalType | t.DayTimeIntervalType
            )  # fmt: skip
            return isinstance(dst, scalars)
        case (t.BooleanType(), t.NumericType()) | (t.NumericType(), t.BooleanType()):
            return True
        case t.NumericType(), t.BinaryStringType():
            return False
        case (t.ExactNumericType(), t.YearMonthIntervalType() | t.DayTimeIntervalType()):
            return True
        case (t.TimestampType() | t.TimestampLtzType() | t.TimeType(), t.DateTimeType()):
            return not (isinstance(src, t.TimeType) and isinstance(dst, t.DateType))
    return _nested_cast(src, dst, explicit_cast_allowed)


def _nested_cast(
    src: t.LogicalType, dst: t.LogicalType, allowed: Callable[[t.LogicalType, t.LogicalType], bool]
) -> bool:
    match src, dst:
        case t.ArrayType(), t.ArrayType():
            return allowed(src.element, dst.element)
        case t.MultisetType(), t.MultisetType():
            return allowed(src.element, dst.element)
        case t.MapType(), t.MapType():
            return allowed(src.key, dst.key) and allowed(src.value, dst.value)
        case t.RowType(), t.RowType():
            if len(src.fields) != len(dst.fields):
                return False
            return all(allowed(a.type, b.type) for a, b in zip(src.fields, dst.fields, strict=True))
        case t.RawType(), t.RawType():
            return src.class_name == dst.class_name
    return False
