"""Flink's logical types as data. They print as Flink prints them; coercion stands in ``coerce``, Arrow in ``arrow``.

Source: Flink manual, "Data Types"; FLIP-37.
"""

from __future__ import annotations

import enum
from dataclasses import replace
from typing import ClassVar, Self

from flowsql_core.interpreter.large_stack import in_large_stack
from flowsql_core.record import record

MAX_LENGTH = 2147483647
MAX_PRECISION = 38


class TimeAttribute(enum.Enum):
    """Whether a timestamp column is a time attribute, and which."""

    NONE = ""
    ROWTIME = "*ROWTIME*"
    PROCTIME = "*PROCTIME*"


@record(kw_only=True)
class LogicalType:
    """A SQL type with its nullability. ``str()`` is the text that answers carry (``INT NOT NULL``)."""

    nullable: bool = True
    #: Type root, Flink's name: ``INTEGER``, ``VARCHAR``, ``TIMESTAMP_WITHOUT_TIME_ZONE`` ...
    root: ClassVar[str]

    def text(self) -> str:
        """SQL text without nullability."""
        raise NotImplementedError(type(self).__name__)

    def __str__(self) -> str:
        try:
            text = self.text()
        except RecursionError:
            text = in_large_stack(self.text)
        return text if self.nullable else f"{text} NOT NULL"

    def as_nullable(self, nullable: bool = True) -> Self:
        """The same type with the given nullability."""
        return self if self.nullable == nullable else replace(self, nullable=nullable)

    def same(self, other: LogicalType) -> bool:
        """Equal apart from the outermost nullability."""
        if self is other:
            return True
        if type(self) is not type(other):
            return False
        mine, theirs = vars(self), vars(other)
        return all(value == theirs[name] for name, value in mine.items() if name != "nullable")


@record(kw_only=True)
class NullType(LogicalType):
    """The type of a bare NULL."""

    root = "NULL"

    def text(self) -> str:  # noqa: D102
        return "NULL"


@record(kw_only=True)
class BooleanType(LogicalType):
    """BOOLEAN."""

    root = "BOOLEAN"

    def text(self) -> str:  # noqa: D102
        return "BOOLEAN"


class NumericType(LogicalType):
    """Anything arithmetic works on."""

    __slots__ = ()


class ExactNumericType(NumericType):
    """Integers and DECIMAL."""

    __slots__ = ()


class IntegerType(ExactNumericType):
    """TINYINT to BIGINT; ``bits`` orders them."""

    __slots__ = ()
    bits: ClassVar[int]


@record(kw_only=True)
class TinyIntType(IntegerType):
    """8 bits."""

    root = "TINYINT"
    bits = 8

    def text(self) -> str:  # noqa: D102
        return "TINYINT"


@record(kw_only=True)
class SmallIntType(IntegerType):
    """16 bits."""

    root = "SMALLINT"
    bits = 16

    def text(self) -> str:  # noqa: D102
        return "SMALLINT"


@record(kw_only=True)
class IntType(IntegerType):
    """32 bits."""

    root = "INTEGER"
    bits = 32

    def text(self) -> str:  # noqa: D102
        return "INT"


@record(kw_only=True)
class BigIntType(IntegerType):
    """64 bits."""

    root = "BIGINT"
    bits = 64

    def text(self) -> str:  # noqa: D102
        return "BIGINT"


@record(kw_only=True)
class DecimalType(ExactNumericType):
    """DECIMAL(p, s), 1 <= p <= 38, 0 <= s <= p."""

    precision: int = 10
    scale: int = 0
    root = "DECIMAL"

    def text(self) -> str:  # noqa: D102
        return f"DECIMAL({self.precision}, {self.scale})"


class ApproximateType(NumericType):
    """FLOAT and DOUBLE."""

    __slots__ = ()


@record(kw_only=True)
class FloatType(ApproximateType):
    """4 bytes."""

    root = "FLOAT"

    def text(self) -> str:  # noqa: D102
        return "FLOAT"


@record(kw_only=True)
class DoubleType(ApproximateType):
    """8 bytes."""

    root = "DOUBLE"

    def text(self) -> str:  # noqa: D102
        return "DOUBLE"


class CharacterType(LogicalType):
    """CHAR, VARCHAR, STRING."""

    __slots__ = ()


@record(kw_only=True)
class CharType(CharacterType):
    """CHAR(n), n code points; n = 0 only for the empty literal."""

    length: int = 1
    root = "CHAR"

    def text(self) -> str:  # noqa: D102
        return f"CHAR({self.length})"


@record(kw_only=True)
class VarCharType(CharacterType):
    """VARCHAR(n); the longest one prints as STRING."""

    length: int = MAX_LENGTH
    root = "VARCHAR"

    def text(self) -> str:  # noqa: D102
        return "STRING" if self.length == MAX_LENGTH else f"VARCHAR({self.length})"


class BinaryStringType(LogicalType):
    """BINARY, VARBINARY, BYTES."""

    __slots__ = ()


@record(kw_only=True)
class BinaryType(BinaryStringType):
    """BINARY(n), n bytes."""

    length: int = 1
    root = "BINARY"

    def text(self) -> str:  # noqa: D102
        return f"BINARY({self.length})"


@record(kw_only=True)
class VarBinaryType(BinaryStringType):
    """VARBINARY(n); the longest one prints as BYTES."""

    length: int = MAX_LENGTH
    root = "VARBINARY"

    def text(self) -> str:  # noqa: D102
        return "BYTES" if self.length == MAX_LENGTH else f"VARBINARY({self.length})"


class DateTimeType(LogicalType):
    """DATE, TIME, TIMESTAMP, TIMESTAMP_LTZ."""

    __slots__ = ()


@record(kw_only=True)
class DateType(DateTimeType):
    """Days since the epoch."""

    root = "DATE"

    def text(self) -> str:  # noqa: D102
        return "DATE"


@record(kw_only=True)
class TimeType(DateTimeType):
    """TIME(p), p fractional digits; stored to the millisecond, as Flink does."""

    precision: int = 0
    root = "TIME_WITHOUT_TIME_ZONE"

    def text(self) -> str:  # noqa: D102
        return f"TIME({self.precision})"


def _marked_last(type_: LogicalType, attribute: TimeAttribute) -> str:
    """Flink writes the mark of a time attribute behind NOT NULL."""
    text = type_.text()
    if type_.nullable:
        return text
    return f"{text.removesuffix(attribute.value).rstrip()} NOT NULL {attribute.value}".rstrip()


@record(kw_only=True)
class TimestampType(DateTimeType):
    """TIMESTAMP(p): local wall clock, p fractional digits."""

    precision: int = 6
    attribute: TimeAttribute = TimeAttribute.NONE
    root = "TIMESTAMP_WITHOUT_TIME_ZONE"

    def text(self) -> str:  # noqa: D102
        mark = f" {self.attribute.value}" if self.attribute is not TimeAttribute.NONE else ""
        return f"TIMESTAMP({self.precision}){mark}"

    def __str__(self) -> str:
        return _marked_last(self, self.attribute)


@record(kw_only=True)
class TimestampLtzType(DateTimeType):
    """TIMESTAMP_LTZ(p): a point in time, p fractional digits."""

    precision: int = 6
    attribute: TimeAttribute = TimeAttribute.NONE
    root = "TIMESTAMP_WITH_LOCAL_TIME_ZONE"

    def text(self) -> str:  # noqa: D102
        mark = f" {self.attribute.value}" if self.attribute is not TimeAttribute.NONE else ""
        return f"TIMESTAMP_LTZ({self.precision}){mark}"

    def __str__(self) -> str:
        return _marked_last(self, self.attribute)


@record(kw_only=True)
class YearMonthIntervalType(LogicalType):
    """INTERVAL YEAR / YEAR TO MONTH / MONTH; the value is months."""

    resolution: str = "YEAR TO MONTH"
    precision: int = 2
    root = "INTERVAL_YEAR_MONTH"

    def text(self) -> str:  # noqa: D102
        if self.resolution == "MONTH":
            return "INTERVAL MONTH"
        tail = " TO MONTH" if self.resolution == "YEAR TO MONTH" else ""
        return f"INTERVAL YEAR({self.precision}){tail}"


@record(kw_only=True)
class DayTimeIntervalType(LogicalType):
    """INTERVAL DAY .. SECOND; the value is milliseconds."""

    resolution: str = "DAY TO SECOND"
    day_precision: int = 2
    fractional_precision: int = 6
    root = "INTERVAL_DAY_TIME"

    def text(self) -> str:  # noqa: D102
        day, _, end = self.resolution.partition(" TO ")
        head = f"INTERVAL DAY({self.day_precision})" if day == "DAY" else f"INTERVAL {day}"
        if day == "SECOND":
            return f"INTERVAL SECOND({self.fractional_precision})"
        if not end:
            return head
        return f"{head} TO SECOND({self.fractional_precision})" if end == "SECOND" else f"{head} TO {end}"


@record(kw_only=True)
class ArrayType(LogicalType):
    """ARRAY<element>."""

    element: LogicalType
    root = "ARRAY"

    def text(self) -> str:  # noqa: D102
        return f"ARRAY<{self.element}>"


@record(kw_only=True)
class MapType(LogicalType):
    """MAP<key, value>."""

    key: LogicalType
    value: LogicalType
    root = "MAP"

    def text(self) -> str:  # noqa: D102
        return f"MAP<{self.key}, {self.value}>"


@record(kw_only=True)
class MultisetType(LogicalType):
    """MULTISET<element>; carried as a map from element to count."""

    element: LogicalType
    root = "MULTISET"

    def text(self) -> str:  # noqa: D102
        return f"MULTISET<{self.element}>"


@record
class Field:
    """A named field of a ROW."""

    name: str
    type: LogicalType
    description: str | None = None


@record(kw_only=True)
class RowType(LogicalType):
    """ROW<a INT, b STRING>."""

    fields: tuple[Field, ...]
    root = "ROW"

    def text(self) -> str:  # noqa: D102
        inner = ", ".join(
            f"{quote_identifier(f.name)} {f.type}" + (f" {_literal(f.description)}" if f.description else "")
            for f in self.fields
        )
        return f"ROW<{inner}>"


@record(kw_only=True)
class StructuredType(RowType):
    """STRUCTURED<'shop.Item', sku STRING>: a row that knows the name of its class."""

    class_name: str
    root = "STRUCTURED_TYPE"

    def text(self) -> str:  # noqa: D102
        inner = ", ".join(f"{quote_identifier(f.name)} {f.type}" for f in self.fields)
        return f"STRUCTURED<{_literal(self.class_name)}, {inner}>"


@record(kw_only=True)
class BitmapType(LogicalType):
    """A compressed set of 32-bit integers. The physical form stands in ``eval.bitmaps``."""

    root = "BITMAP"

    def text(self) -> str:  # noqa: D102
        return "BITMAP"


@record(kw_only=True)
class VariantType(LogicalType):
    """A value of any type and shape, such as parsed JSON. The physical form stands in ``eval.variant``."""

    root = "VARIANT"

    def text(self) -> str:  # noqa: D102
        return "VARIANT"


@record(kw_only=True)
class RawType(LogicalType):
    """A Python object that SQL only passes along; ``class_name`` is the dotted name of its class."""

    class_name: str
    root = "RAW"

    def text(self) -> str:  # noqa: D102
        return f"RAW('{self.class_name}', '...')"


@record(kw_only=True)
class DescriptorType(LogicalType):
    """The type of ``DESCRIPTOR(column)``."""

    root = "DESCRIPTOR"

    def text(self) -> str:  # noqa: D102
        return "DESCRIPTOR"


def quote_identifier(name: str) -> str:
    """A name in back-ticks, as types and SHOW CREATE print it."""
    return "`" + name.replace("`", "``") + "`"


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


STRING = VarCharType()
BYTES = VarBinaryType()
BOOLEAN = BooleanType()
TINYINT = TinyIntType()
SMALLINT = SmallIntType()
INT = IntType()
BIGINT = BigIntType()
FLOAT = FloatType()
DOUBLE = DoubleType()
DATE = DateType()
VARIANT = VariantType()
BITMAP = BitmapType()
NULL = NullType()


def is_rowtime(type_: LogicalType) -> bool:
    """Whether the type is an event-time attribute."""
    return isinstance(type_, TimestampType | TimestampLtzType) and type_.attribute is TimeAttribute.ROWTIME


def is_proctime(type_: LogicalType) -> bool:
    """Whether the type is a processing-time attribute."""
    return isinstance(type_, TimestampLtzType) and type_.attribute is TimeAttribute.PROCTIME


def is_time_attribute(type_: LogicalType) -> bool:
    """Whether the type is an event-time or processing-time attribute."""
    return is_rowtime(type_) or is_proctime(type_)


def is_nested(type_: LogicalType) -> bool:
    """Whether values of the type hold other values: arrays, maps, multisets, rows."""
    return isinstance(type_, ArrayType | MapType | MultisetType | RowType)


def without_attribute(type_: LogicalType) -> LogicalType:
    """The plain type of a time attribute; other types as they are."""
    if isinstance(type_, TimestampType | TimestampLtzType) and type_.attribute is not TimeAttribute.NONE:
        return replace(type_, attribute=TimeAttribute.NONE)
    return type_


def without_attributes(type_: LogicalType) -> LogicalType:
    """Return a type whose time attributes, those of nested fields and elements included, are plain timestamps.

    >>> rowtime = TimestampType(precision=3, attribute=TimeAttribute.ROWTIME)
    >>> str(without_attributes(RowType(fields=(Field("ts", rowtime),))))
    'ROW<`ts` TIMESTAMP(3)>'
    """
    match type_:
        case ArrayType(element=element) | MultisetType(element=element):
            return replace(type_, element=without_attributes(element))
        case MapType(key=key, value=value):
            return replace(type_, key=without_attributes(key), value=without_attributes(value))
        case RowType(fields=fields) | StructuredType(fields=fields):
            return replace(type_, fields=tuple(replace(field, type=without_attributes(field.type)) for field in fields))
    return without_attribute(type_)


@record
class Column:
    """A name with a type: one column of a row type as plans carry it."""

    name: str
    type: LogicalType


Schema = tuple[Column, ...]
