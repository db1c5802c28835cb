"""``Types``: what the values of a stream are, under PyFlink's names.

A type does two things. Where an operator declares it for its output, every value passes its ``converter`` on its way
out: rows become :class:`Row`, tuples tuples, FLOAT is rounded to four bytes, and a value that does not fit is refused.
And it gives the columns of a table that is made from the stream (``flowsql.datastream.bridges.columns``).
"""

# ruff: noqa: N802 - PyFlink's names

from __future__ import annotations

import datetime
import decimal
import enum
from collections.abc import Sequence
from typing import Any, Final

from flowsql.common.row import Row
from flowsql.common.time import Instant
from flowsql.common.type_conversion import (
    Converter,
    eight_byte_float,
    fields_of,
    four_byte_float,
    instance_of,
    integer,
    list_of,
    refused,
)
from flowsql.common.without_java import WithoutJava
from flowsql_core.row import RowKind


class TypeInformation(WithoutJava):
    """The type of a stream's values, of a key or of a state."""

    def converter(self) -> Converter | None:
        """What every value passes where it leaves an operator; None where values go on as they are."""
        return None

    #: An expression over ``{v}``, true for values that need no conversion; None where all are converted.
    unchanged: str | None = None

    def nullable_converter(self) -> Converter | None:
        """The converter of a field: None is a value there."""
        convert = self.converter()
        if convert is None:
            return None
        return lambda value: None if value is None else convert(value)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash(repr(self))


class BasicType(enum.Enum):
    """The indivisible types; values are the names that they print."""

    STRING = "String"
    BYTE = "Byte"
    BOOLEAN = "Boolean"
    SHORT = "Short"
    INT = "Integer"
    LONG = "Long"
    FLOAT = "Float"
    DOUBLE = "Double"
    CHAR = "Char"
    BIG_INT = "BigInteger"
    BIG_DEC = "BigDecimal"
    INSTANT = "Instant"


#: Bits of the integer types.
_INTEGER_BITS: Final = {BasicType.BYTE: 8, BasicType.SHORT: 16, BasicType.INT: 32, BasicType.LONG: 64}
#: Expressions that are true for values which pass as they are.
_UNCHANGED: Final = {
    BasicType.STRING: "type({v}) is str",
    BasicType.CHAR: "type({v}) is str",
    BasicType.BOOLEAN: "type({v}) is bool",
    BasicType.DOUBLE: "type({v}) is float",
    BasicType.BIG_INT: "type({v}) is int",
    **{
        kind: f"(type({{v}}) is int and {-(1 << bits - 1)} <= {{v}} < {1 << bits - 1})"
        for kind, bits in _INTEGER_BITS.items()
    },
}
#: Python types that pass as they are.
_CLASSES: Final[dict[BasicType, type]] = {
    BasicType.STRING: str,
    BasicType.CHAR: str,
    BasicType.BIG_DEC: decimal.Decimal,
    BasicType.INSTANT: Instant,
}


class BasicTypeInfo(TypeInformation):
    """A number, a text, a truth value."""

    def __init__(self, basic_type: BasicType) -> None:
        self._basic_type = basic_type

    @property
    def unchanged(self) -> str | None:  # type: ignore[override]
        """What passes as it is."""
        return _UNCHANGED.get(self._basic_type)

    @property
    def basic_type(self) -> BasicType:
        """Which one."""
        return self._basic_type

    def converter(self) -> Converter | None:
        """Integers are checked for their range; FLOAT is rounded to four bytes; anything is a truth value."""
        match self._basic_type:
            case BasicType.BYTE | BasicType.SHORT | BasicType.INT | BasicType.LONG:
                return integer(self, _INTEGER_BITS[self._basic_type])
            case BasicType.BIG_INT:
                return integer(self, None)
            case BasicType.BOOLEAN:
                return bool
            case BasicType.FLOAT:
                return four_byte_float(self)
            case BasicType.DOUBLE:
                return eight_byte_float(self)
            case _:
                return instance_of(self, _CLASSES[self._basic_type])

    def __repr__(self) -> str:
        return self._basic_type.value


class InstantTypeInfo(BasicTypeInfo):
    """A point in time."""

    def __init__(self, basic_type: BasicType = BasicType.INSTANT) -> None:
        super().__init__(basic_type)


class DateTypeInfo(TypeInformation):
    """A day."""

    def converter(self) -> Converter | None:
        """A ``datetime`` loses its time of day."""

        def convert(value: Any) -> datetime.date:
            if isinstance(value, datetime.datetime):
                return value.date()
            if isinstance(value, datetime.date):
                return value
            raise refused(value, self)

        return convert

    def __repr__(self) -> str:
        return "DateTypeInfo"


class TimeTypeInfo(TypeInformation):
    """A time of day, to the millisecond."""

    def converter(self) -> Converter | None:
        """What is below a millisecond is cut off, as in Flink."""

        def convert(value: Any) -> datetime.time:
            if not isinstance(value, datetime.time):
                raise refused(value, self)
            return value.replace(microsecond=value.microsecond // 1000 * 1000)

        return convert

    def __repr__(self) -> str:
        return "TimeTypeInfo"


class TimestampTypeInfo(TypeInformation):
    """A wall clock's date and time, to the millisecond."""

    def converter(self) -> Converter | None:
        """What is below a millisecond is cut off, as in Flink."""

        def convert(value: Any) -> datetime.datetime:
            if not isinstance(value, datetime.datetime):
                raise refused(value, self)
            return value.replace(microsecond=value.microsecond // 1000 * 1000)

        return convert

    def __repr__(self) -> str:
        return "TimestampTypeInfo"


class LocalTimeTypeInfo(TypeInformation):
    """``datetime`` values that came from a table."""

    class TimeType(enum.Enum):
        """Which one."""

        LOCAL_DATE = 0
        LOCAL_TIME = 1
        LOCAL_DATE_TIME = 2

    def __init__(self, time_type: LocalTimeTypeInfo.TimeType) -> None:
        self._time_type = time_type

    @property
    def time_type(self) -> LocalTimeTypeInfo.TimeType:
        """Day, time of day, or both."""
        return self._time_type

    def __repr__(self) -> str:
        return f"LocalTimeTypeInfo<{self._time_type.name}>"


class _ElementTypeInfo(TypeInformation):
    """Values that hold elements of one type."""

    def __init__(self, element_type: TypeInformation) -> None:
        self._element_type = element_type

    @property
    def element_type(self) -> TypeInformation:
        """Of the elements."""
        return self._element_type

    def converter(self) -> Converter | None:
        """A list of converted elements."""
        return list_of(self, self._element_type.nullable_converter())


class PrimitiveArrayTypeInfo(_ElementTypeInfo):
    """A list of numbers without gaps; ``bytes`` for BYTE."""

    def __init__(self, element_type: TypeInformation) -> None:
        if not isinstance(element_type, BasicTypeInfo) or element_type.basic_type in (
            BasicType.STRING,
            BasicType.BIG_INT,
            BasicType.BIG_DEC,
            BasicType.INSTANT,
        ):
            raise TypeError("Invalid element type for a primitive array.")
        super().__init__(element_type)

    @property
    def is_bytes(self) -> bool:
        """Whether values are ``bytes``."""
        return self._element_type == Types.BYTE()

    def converter(self) -> Converter | None:
        """``bytes``, or a list of converted elements."""
        if not self.is_bytes:
            return list_of(self, self._element_type.converter())

        def convert(value: Any) -> bytes:
            if isinstance(value, bytes | bytearray | memoryview):
                return bytes(value)
            raise refused(value, self)

        return convert

    def __repr__(self) -> str:
        return f"PrimitiveArrayTypeInfo<{self._element_type!r}>"


class BasicArrayTypeInfo(_ElementTypeInfo):
    """A list of basic values or None."""

    def __init__(self, element_type: TypeInformation) -> None:
        if not isinstance(element_type, BasicTypeInfo):
            raise TypeError("Invalid element type for a basic array.")
        super().__init__(element_type)

    def __repr__(self) -> str:
        return f"BasicArrayTypeInfo<{self._element_type!r}>"


class ObjectArrayTypeInfo(_ElementTypeInfo):
    """A list of anything."""

    def __repr__(self) -> str:
        return f"ObjectArrayTypeInfo<{self._element_type!r}>"


class ListTypeInfo(_ElementTypeInfo):
    """A list."""

    @property
    def elem_type(self) -> TypeInformation:
        """Of the elements, under PyFlink's name."""
        return self._element_type

    def __repr__(self) -> str:
        return f"ListTypeInfo<{self._element_type!r}>"


class MapTypeInfo(TypeInformation):
    """A dict."""

    def __init__(self, key_type_info: TypeInformation, value_type_info: TypeInformation) -> None:
        self._key_type_info = key_type_info
        self._value_type_info = value_type_info

    @property
    def key_type(self) -> TypeInformation:
        """Of the keys."""
        return self._key_type_info

    @property
    def value_type(self) -> TypeInformation:
        """Of the values."""
        return self._value_type_info

    def converter(self) -> Converter | None:
        """A dict of converted keys and values."""
        key, item = self._key_type_info.converter(), self._value_type_info.nullable_converter()

        def convert(value: Any) -> dict[Any, Any]:
            if not isinstance(value, dict):
                raise refused(value, self)
            return {(k if key is None else key(k)): (v if item is None else item(v)) for k, v in value.items()}

        return convert

    def __repr__(self) -> str:
        return f"MapTypeInfo<{self._key_type_info!r}, {self._value_type_info!r}>"


class PickledBytesTypeInfo(TypeInformation):
    """Any Python object; what a stream has that declares nothing."""

    def __repr__(self) -> str:
        return "PickledByteArrayTypeInfo"


class RowTypeInfo(TypeInformation):
    """:class:`Row` with typed fields; without names they are ``f0``, ``f1``, ..."""

    def __init__(self, field_types: Sequence[TypeInformation], field_names: Sequence[str] | None = None) -> None:
        if field_names is not None and len(field_names) != len(field_types):
            raise ValueError(f"{len(field_types)} field types do not fit {len(field_names)} field names")
        self._field_types = list(field_types)
        self._field_names = None if field_names is None else list(field_names)

    def get_field_names(self) -> list[str]:
        """Names in order."""
        return self._field_names or [f"f{index}" for index in range(len(self._field_types))]

    def get_field_index(self, field_name: str) -> int:
        """The place of a declared name; -1 when names were not declared."""
        return self._field_names.index(field_name) if self._field_names else -1

    def get_field_types(self) -> list[TypeInformation]:
        """Types in order."""
        return self._field_types

    def converter(self) -> Converter | None:
        """A Row of a Row, a tuple, a list, a dict or an object with attributes; the kind of change is kept."""
        names = tuple(self.get_field_names())
        fields = [field.nullable_converter() for field in self._field_types]
        plain = not any(fields)

        def convert(value: Any) -> Row:
            if isinstance(value, Row):
                kind = value.get_row_kind()
                values = value.get_fields_by_names(names) if value.has_names(names) else list(value)
            else:
                kind = RowKind.INSERT
                values = self._values_of(value, names)
            if len(values) != len(names):
                raise ValueError(f"{value!r} has {len(values)} fields, {self!r} has {len(names)}")
            if not plain:
                values = [v if field is None else field(v) for v, field in zip(values, fields, strict=True)]
            return Row.of_names(names, values, kind)

        checks = [field.unchanged for field in self._field_types]
        converters = [field.converter() for field in self._field_types]
        return fields_of(checks, converters, convert, lambda values: Row.of_names(names, values))

    def _values_of(self, value: Any, names: tuple[str, ...]) -> list[Any]:
        if isinstance(value, tuple | list):
            return list(value)
        if isinstance(value, dict):
            return [value.get(name) for name in names]
        if hasattr(value, "__dict__"):
            return [vars(value).get(name) for name in names]
        raise refused(value, self)

    def __eq__(self, other: object) -> bool:
        # Names do not count, as in PyFlink.
        return isinstance(other, RowTypeInfo) and self._field_types == other._field_types

    def __hash__(self) -> int:
        return hash(tuple(map(repr, self._field_types)))

    def __repr__(self) -> str:
        if self._field_names is None:
            return f"RowTypeInfo({', '.join(map(repr, self._field_types))})"
        fields = zip(self._field_names, self._field_types, strict=True)
        return f"RowTypeInfo({', '.join(f'{name}: {type_!r}' for name, type_ in fields)})"


class TupleTypeInfo(TypeInformation):
    """A tuple with typed fields."""

    def __init__(self, field_types: Sequence[TypeInformation]) -> None:
        self._field_types = list(field_types)

    def get_field_types(self) -> list[TypeInformation]:
        """Types in order."""
        return self._field_types

    def converter(self) -> Converter | None:
        """A tuple of a tuple, a list or a Row."""
        fields = [field.nullable_converter() for field in self._field_types]
        width = len(fields)

        def convert(value: Any) -> tuple[Any, ...]:
            if not isinstance(value, tuple | list | Row):
                raise refused(value, self)
            if len(value) != width:
                raise ValueError(f"{value!r} has {len(value)} fields, {self!r} has {width}")
            return tuple([v if field is None else field(v) for v, field in zip(value, fields, strict=True)])

        converters = [field.converter() for field in self._field_types]
        return fields_of([field.unchanged for field in self._field_types], converters, convert)

    def __repr__(self) -> str:
        return f"TupleTypeInfo({', '.join(map(repr, self._field_types))})"


class ExternalTypeInfo(TypeInformation):
    """The type of a stream that came from a table."""

    def __init__(self, type_info: TypeInformation) -> None:
        self._type_info = type_info

    @property
    def type_info(self) -> TypeInformation:
        """What it is for programs."""
        return self._type_info

    def converter(self) -> Converter | None:
        """As the type inside."""
        return self._type_info.converter()

    def __repr__(self) -> str:
        return f"ExternalTypeInfo<{self._type_info!r}>"


def row_type_of(type_: TypeInformation) -> RowTypeInfo | None:
    """The row type of a stream of rows; None for others."""
    inner = type_.type_info if isinstance(type_, ExternalTypeInfo) else type_
    return inner if isinstance(inner, RowTypeInfo) else None


class Types:
    """Makes the types: ``Types.INT()``, ``Types.ROW_NAMED(["id", "name"], [Types.INT(), Types.STRING()])``."""

    @staticmethod
    def STRING() -> TypeInformation:
        """``str``."""
        return BasicTypeInfo(BasicType.STRING)

    @staticmethod
    def BYTE() -> TypeInformation:
        """``int`` of 8 bits."""
        return BasicTypeInfo(BasicType.BYTE)

    @staticmethod
    def BOOLEAN() -> TypeInformation:
        """``bool``."""
        return BasicTypeInfo(BasicType.BOOLEAN)

    @staticmethod
    def SHORT() -> TypeInformation:
        """``int`` of 16 bits."""
        return BasicTypeInfo(BasicType.SHORT)

    @staticmethod
    def INT() -> TypeInformation:
        """``int`` of 32 bits."""
        return BasicTypeInfo(BasicType.INT)

    @staticmethod
    def LONG() -> TypeInformation:
        """``int`` of 64 bits."""
        return BasicTypeInfo(BasicType.LONG)

    @staticmethod
    def FLOAT() -> TypeInformation:
        """``float`` of 4 bytes."""
        return BasicTypeInfo(BasicType.FLOAT)

    @staticmethod
    def DOUBLE() -> TypeInformation:
        """``float``."""
        return BasicTypeInfo(BasicType.DOUBLE)

    @staticmethod
    def CHAR() -> TypeInformation:
        """``str`` of one character."""
        return BasicTypeInfo(BasicType.CHAR)

    @staticmethod
    def BIG_INT() -> TypeInformation:
        """``int`` of any size."""
        return BasicTypeInfo(BasicType.BIG_INT)

    @staticmethod
    def BIG_DEC() -> TypeInformation:
        """``decimal.Decimal``."""
        return BasicTypeInfo(BasicType.BIG_DEC)

    @staticmethod
    def INSTANT() -> TypeInformation:
        """:class:`~flowsql.common.Instant`."""
        return InstantTypeInfo()

    @staticmethod
    def SQL_DATE() -> TypeInformation:
        """``datetime.date``."""
        return DateTypeInfo()

    @staticmethod
    def SQL_TIME() -> TypeInformation:
        """``datetime.time``, to the millisecond."""
        return TimeTypeInfo()

    @staticmethod
    def SQL_TIMESTAMP() -> TypeInformation:
        """``datetime.datetime``, to the millisecond."""
        return TimestampTypeInfo()

    @staticmethod
    def PICKLED_BYTE_ARRAY() -> TypeInformation:
        """Any Python object."""
        return PickledBytesTypeInfo()

    @staticmethod
    def ROW(field_types: Sequence[TypeInformation]) -> RowTypeInfo:
        """:class:`Row` with fields ``f0``, ``f1``, ..."""
        return RowTypeInfo(field_types)

    @staticmethod
    def ROW_NAMED(field_names: Sequence[str], field_types: Sequence[TypeInformation]) -> RowTypeInfo:
        """:class:`Row` with named fields."""
        return RowTypeInfo(field_types, field_names)

    @staticmethod
    def TUPLE(field_types: Sequence[TypeInformation]) -> TupleTypeInfo:
        """``tuple``."""
        return TupleTypeInfo(field_types)

    @staticmethod
    def PRIMITIVE_ARRAY(element_type: TypeInformation) -> TypeInformation:
        """A list of numbers; ``bytes`` for BYTE."""
        return PrimitiveArrayTypeInfo(element_type)

    @staticmethod
    def BASIC_ARRAY(element_type: TypeInformation) -> TypeInformation:
        """A list of basic values or None."""
        return BasicArrayTypeInfo(element_type)

    @staticmethod
    def OBJECT_ARRAY(element_type: TypeInformation) -> TypeInformation:
        """A list of anything."""
        return ObjectArrayTypeInfo(element_type)

    @staticmethod
    def MAP(key_type_info: TypeInformation, value_type_info: TypeInformation) -> TypeInformation:
        """A dict."""
        return MapTypeInfo(key_type_info, value_type_info)

    @staticmethod
    def LIST(element_type_info: TypeInformation) -> TypeInformation:
        """A list."""
        return ListTypeInfo(element_type_info)
