"""Casts that keep unequal values unequal, so that a key that is cast is a key still.

Source: Flink's ``LogicalTypeCasts.supportsInjectiveCast``, which leaves some out that would do, as DATE to TIMESTAMP.
"""

from __future__ import annotations

from typing import Final

from flowsql_core.types.logical import (
    MAX_LENGTH,
    BigIntType,
    BinaryType,
    BooleanType,
    CharType,
    DateType,
    DoubleType,
    FloatType,
    IntegerType,
    IntType,
    LogicalType,
    RowType,
    SmallIntType,
    TimestampLtzType,
    TimestampType,
    TimeType,
    TinyIntType,
    VarBinaryType,
    VarCharType,
)

#: Characters of the longest text of a value.
_TEXT_LENGTHS: Final[dict[type[LogicalType], int]] = {
    BooleanType: 5, TinyIntType: 4, SmallIntType: 6, IntType: 11, BigIntType: 20, FloatType: 15, DoubleType: 24,
    DateType: 10,
}  # fmt: skip
#: Bytes of a character in UTF-8, at most.
_CHARACTER_BYTES: Final = 4


def is_injective(source: LogicalType, target: LogicalType) -> bool:
    """Whether a cast gives different values for different ones; nullability does not matter."""
    if source.as_nullable() == target.as_nullable():
        return True
    match target:
        case RowType():
            return (
                isinstance(source, RowType)
                and len(source.fields) == len(target.fields)
                and all(is_injective(a.type, b.type) for a, b in zip(source.fields, target.fields, strict=True))
            )
        case CharType(length=room) | VarCharType(length=room):
            if isinstance(source, CharType | VarCharType):
                # What is shorter than a CHAR is padded, and is then equal to what ended in blanks.
                return source.length <= room and (isinstance(target, VarCharType) or isinstance(source, CharType))
            length = _text_length(source)
            return length is not None and length <= room
        case BinaryType(length=room) | VarBinaryType(length=room):
            if isinstance(source, CharType | VarCharType):
                return room == MAX_LENGTH or source.length * _CHARACTER_BYTES <= room
            if not isinstance(source, BinaryType | VarBinaryType) or source.length > room:
                return False
            return isinstance(target, VarBinaryType) or isinstance(source, BinaryType)
        case IntegerType():
            return isinstance(source, IntegerType) and source.bits <= target.bits
        case TimestampType() | TimestampLtzType():
            return isinstance(source, TimestampType | TimestampLtzType) and source.precision == target.precision
    return False


def _text_length(type_: LogicalType) -> int | None:
    match type_:
        case TimeType(precision=precision):
            return 8 + _fraction(precision)
        case TimestampType(precision=precision) | TimestampLtzType(precision=precision):
            return 19 + _fraction(precision)
    return _TEXT_LENGTHS.get(type(type_))


def _fraction(precision: int) -> int:
    return precision + 1 if precision else 0
