"""``DataType`` and its kinds, each a logical type of the engine under PyFlink's name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from flowsql.table.types.java_classes import Bridged
from flowsql_core.errors import BindError, NotSupportedYetError
from flowsql_core.types import logical as t
from flowsql_core.types.text import parse_type


class DataType(Bridged):
    """A SQL type with its nullability, immutable. ``str()`` is its SQL text, ``repr()`` PyFlink's.

    >>> from flowsql.table import DataTypes
    >>> str(DataTypes.DECIMAL(10, 2).not_null())
    'DECIMAL(10, 2) NOT NULL'
    """

    __slots__ = ("logical",)

    def __init__(self, nullable: bool = True) -> None:
        """Make a type of no kind: ``DataTypes`` and the classes of the kinds make those of columns."""
        self.logical: t.LogicalType = t.NullType(nullable=nullable)

    @classmethod
    def type_name(cls) -> str:
        """The kind: ``BIGINT``, ``ROW``."""
        return cls.__name__.removesuffix("Type").upper()

    def not_null(self) -> DataType:
        """The same type without NULL."""
        return data_type(self.logical.as_nullable(False))

    def nullable(self) -> DataType:
        """The same type with NULL."""
        return data_type(self.logical.as_nullable())

    def _details(self) -> tuple[object, ...]:
        """What ``repr`` shows before the nullability."""
        return ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DataType) and self.logical == other.logical

    def __hash__(self) -> int:
        return hash(self.logical)

    def __str__(self) -> str:
        return str(self.logical)

    def __repr__(self) -> str:
        shown = [*map(repr, self._details()), "true" if self.logical.nullable else "false"]
        return f"{type(self).__name__}({', '.join(shown)})"


class AtomicType(DataType):
    """Base of the types that consist of no other ones."""

    __slots__ = ()


class NumericType(AtomicType):
    """Base of the types of numbers."""

    __slots__ = ()


class IntegralType(NumericType):
    """Base of the types of whole numbers."""

    __slots__ = ()


class FractionalType(NumericType):
    """Base of the types of numbers with a fraction."""

    __slots__ = ()


class NullType(AtomicType):
    """The type of a bare NULL."""

    __slots__ = ()

    def __init__(self) -> None:
        self.logical = t.NULL


class CharType(AtomicType):
    """Text of exactly ``length`` characters."""

    __slots__ = ()
    logical: t.CharType

    def __init__(self, length: int = 1, nullable: bool = True) -> None:
        self.logical = t.CharType(length=length, nullable=nullable)

    @property
    def length(self) -> int:
        """Characters."""
        return self.logical.length

    def _details(self) -> tuple[object, ...]:
        return (self.length,)


class VarCharType(AtomicType):
    """Text of at most ``length`` characters."""

    __slots__ = ()
    logical: t.VarCharType

    def __init__(self, length: int = 1, nullable: bool = True) -> None:
        self.logical = t.VarCharType(length=length, nullable=nullable)

    @property
    def length(self) -> int:
        """Characters."""
        return self.logical.length

    def _details(self) -> tuple[object, ...]:
        return (self.length,)


class BinaryType(AtomicType):
    """Exactly ``length`` bytes."""

    __slots__ = ()
    logical: t.BinaryType

    def __init__(self, length: int = 1, nullable: bool = True) -> None:
        self.logical = t.BinaryType(length=length, nullable=nullable)

    @property
    def length(self) -> int:
        """Bytes."""
        return self.logical.length

    def _details(self) -> tuple[object, ...]:
        return (self.length,)


class VarBinaryType(AtomicType):
    """At most ``length`` bytes."""

    __slots__ = ()
    logical: t.VarBinaryType

    def __init__(self, length: int = 1, nullable: bool = True) -> None:
        self.logical = t.VarBinaryType(length=length, nullable=nullable)

    @property
    def length(self) -> int:
        """Bytes."""
        return self.logical.length

    def _details(self) -> tuple[object, ...]:
        return (self.length,)


class BooleanType(AtomicType):
    """TRUE, FALSE, NULL."""

    __slots__ = ()

    def __init__(self, nullable: bool = True) -> None:
        self.logical = t.BooleanType(nullable=nullable)


class TinyIntType(IntegralType):
    """An integer of 8 bits."""

    __slots__ = ()

    def __init__(self, nullable: bool = True) -> None:
        self.logical = t.TinyIntType(nullable=nullable)


class SmallIntType(IntegralType):
    """An integer of 16 bits."""

    __slots__ = ()

    def __init__(self, nullable: bool = True) -> None:
        self.logical = t.SmallIntType(nullable=nullable)


class IntType(IntegralType):
    """An integer of 32 bits."""

    __slots__ = ()

    def __init__(self, nullable: bool = True) -> None:
        self.logical = t.IntType(nullable=nullable)


class BigIntType(IntegralType):
    """An integer of 64 bits."""

    __slots__ = ()

    def __init__(self, nullable: bool = True) -> None:
        self.logical = t.BigIntType(nullable=nullable)


class FloatType(FractionalType):
    """A floating-point number of 4 bytes."""

    __slots__ = ()

    def __init__(self, nullable: bool = True) -> None:
        self.logical = t.FloatType(nullable=nullable)


class DoubleType(FractionalType):
    """A floating-point number of 8 bytes."""

    __slots__ = ()

    def __init__(self, nullable: bool = True) -> None:
        self.logical = t.DoubleType(nullable=nullable)


class DecimalType(FractionalType):
    """A decimal number of ``precision`` digits, ``scale`` of them behind the point."""

    __slots__ = ()
    logical: t.DecimalType

    def __init__(self, precision: int = 10, scale: int = 0, nullable: bool = True) -> None:
        self.logical = t.DecimalType(precision=precision, scale=scale, nullable=nullable)

    @property
    def precision(self) -> int:
        """Digits in all."""
        return self.logical.precision

    @property
    def scale(self) -> int:
        """Digits behind the point."""
        return self.logical.scale

    def _details(self) -> tuple[object, ...]:
        return (self.precision, self.scale)


class DateType(AtomicType):
    """A day."""

    __slots__ = ()

    def __init__(self, nullable: bool = True) -> None:
        self.logical = t.DateType(nullable=nullable)


class TimeType(AtomicType):
    """A time of day."""

    __slots__ = ()
    logical: t.TimeType

    def __init__(self, precision: int = 0, nullable: bool = True) -> None:
        self.logical = t.TimeType(precision=precision, nullable=nullable)

    @property
    def precision(self) -> int:
        """Digits of the second's fraction."""
        return self.logical.precision

    def _details(self) -> tuple[object, ...]:
        return (self.precision,)


class TimestampType(AtomicType):
    """Date and time as a clock on the wall shows them."""

    __slots__ = ()
    logical: t.TimestampType

    def __init__(self, precision: int = 6, nullable: bool = True) -> None:
        self.logical = t.TimestampType(precision=precision, nullable=nullable)

    @property
    def precision(self) -> int:
        """Digits of the second's fraction."""
        return self.logical.precision

    def _details(self) -> tuple[object, ...]:
        return (self.precision,)


class LocalZonedTimestampType(AtomicType):
    """A point in time, shown in the session's time zone."""

    __slots__ = ()
    logical: t.TimestampLtzType

    def __init__(self, precision: int = 6, nullable: bool = True) -> None:
        self.logical = t.TimestampLtzType(precision=precision, nullable=nullable)

    @property
    def precision(self) -> int:
        """Digits of the second's fraction."""
        return self.logical.precision

    def _details(self) -> tuple[object, ...]:
        return (self.precision,)


class ZonedTimestampType(AtomicType):
    """Date and time with a zone. Declared so that programs import: no column is of one, in Flink neither."""

    __slots__ = ("precision",)

    def __init__(self, precision: int = 6, nullable: bool = True) -> None:
        super().__init__(nullable)
        self.precision = precision

    def _details(self) -> tuple[object, ...]:
        return (self.precision,)


class YearMonthIntervalType(DataType):
    """An amount of months. Made by ``DataTypes.INTERVAL``."""

    __slots__ = ()


class DayTimeIntervalType(DataType):
    """An amount of milliseconds. Made by ``DataTypes.INTERVAL``."""

    __slots__ = ()


class ArrayType(DataType):
    """Values of one type in order."""

    __slots__ = ("_element",)
    logical: t.ArrayType
    _element: DataType

    def __init__(self, element_type: DataType, nullable: bool = True) -> None:
        self._element = element_type
        self.logical = t.ArrayType(element=logical_type(element_type), nullable=nullable)

    @property
    def element_type(self) -> DataType:
        """The type of the values."""
        return getattr(self, "_element", None) or data_type(self.logical.element)

    def _details(self) -> tuple[object, ...]:
        return (self.element_type,)


class MapType(DataType):
    """Values by key."""

    __slots__ = ("_key", "_value")
    logical: t.MapType
    _key: DataType
    _value: DataType

    def __init__(self, key_type: DataType, value_type: DataType, nullable: bool = True) -> None:
        self._key = key_type
        self._value = value_type
        self.logical = t.MapType(key=logical_type(key_type), value=logical_type(value_type), nullable=nullable)

    @property
    def key_type(self) -> DataType:
        """The type of the keys."""
        return getattr(self, "_key", None) or data_type(self.logical.key)

    @property
    def value_type(self) -> DataType:
        """The type of the values."""
        return getattr(self, "_value", None) or data_type(self.logical.value)

    def _details(self) -> tuple[object, ...]:
        return (self.key_type, self.value_type)


class MultisetType(DataType):
    """Values that may stand several times."""

    __slots__ = ("_element",)
    logical: t.MultisetType
    _element: DataType

    def __init__(self, element_type: DataType, nullable: bool = True) -> None:
        self._element = element_type
        self.logical = t.MultisetType(element=logical_type(element_type), nullable=nullable)

    @property
    def element_type(self) -> DataType:
        """The type of the values."""
        return getattr(self, "_element", None) or data_type(self.logical.element)

    def _details(self) -> tuple[object, ...]:
        return (self.element_type,)


class RowField:
    """A named field of a ROW."""

    __slots__ = ("data_type", "description", "name")

    def __init__(self, name: str, data_type: DataType, description: str | None = None) -> None:
        self.name = name
        self.data_type = data_type
        self.description = description

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RowField) and (self.name, self.data_type, self.description) == (
            other.name,
            other.data_type,
            other.description,
        )

    def __hash__(self) -> int:
        return hash((self.name, self.data_type, self.description))

    def __str__(self) -> str:
        return f"RowField({self.name}, {self.data_type})"

    def __repr__(self) -> str:
        return f"RowField({self.name}, {self.data_type!r}, {'...' if self.description is None else self.description})"


class RowType(DataType):
    """A ROW: fields by name, in order."""

    __slots__ = ("_fields",)
    _fields: list[RowField]
    logical: t.RowType

    def __init__(self, fields: Sequence[RowField] = (), nullable: bool = True) -> None:
        self._fields = list(fields)
        made = tuple(t.Field(field.name, logical_type(field.data_type), field.description) for field in fields)
        self.logical = t.RowType(fields=made, nullable=nullable)

    @property
    def fields(self) -> list[RowField]:
        """The fields in order."""
        try:
            return self._fields
        except AttributeError:
            own = self.logical.fields
            self._fields = [RowField(field.name, data_type(field.type), field.description) for field in own]
            return self._fields

    @property
    def names(self) -> list[str]:
        """Names in order."""
        return self.field_names()

    def field_names(self) -> list[str]:
        """Names in order."""
        return [field.name for field in self.logical.fields]

    def field_types(self) -> list[DataType]:
        """Types in order."""
        return [data_type(field.type) for field in self.logical.fields]

    def add(self, field: str | RowField, data_type: DataType | None = None) -> RowType:
        """Give this type one more field, whole or as a name and a type; the type itself."""
        if isinstance(field, str):
            if data_type is None:
                raise ValueError("Must specify DataType if passing name of row_field to create.")
            field = RowField(field, data_type)
        fields = [*self.fields, field]
        self.logical = RowType(fields, self.logical.nullable).logical
        self._fields = fields
        return self

    def __iter__(self) -> Iterator[RowField]:
        return iter(self.fields)

    def __len__(self) -> int:
        return len(self.logical.fields)

    def __getitem__(self, key: str | int | slice) -> RowField | RowType:
        """A field by name or place, a ROW of several by a slice."""
        if isinstance(key, str):
            if key not in self.names:
                raise KeyError(f"No RowField named {key}")
            return self.fields[self.names.index(key)]
        return RowType(self.fields[key]) if isinstance(key, slice) else self.fields[key]

    def __repr__(self) -> str:
        return f"RowType({','.join(map(repr, self.fields))})"


class UserDefinedType(DataType):
    """A type of objects of a program's own class; ``from_elements`` makes values of its ``sql_type`` of them.

    A subclass says what the SQL type is and how an object becomes a value of it. The class of the objects names the
    type: ``__UDT__ = PointType()``. Functions get and give values of the SQL type, as in PyFlink.
    """

    __slots__ = ()

    def __init__(self, nullable: bool = True) -> None:
        self.logical = logical_type(self.sql_type()).as_nullable(nullable)

    @classmethod
    def type_name(cls) -> str:
        """The name of the class in small letters."""
        return cls.__name__.lower()

    @classmethod
    def sql_type(cls) -> DataType:
        """Return the type of the column; a subclass must."""
        raise NotImplementedError("UDT must implement sql_type().")

    @classmethod
    def module(cls) -> str:
        """Return the name of the module of the type; nothing in FlowSQL asks for it."""
        raise NotImplementedError("UDT must implement module().")

    def serialize(self, obj: Any) -> Any:
        """Return the value of the SQL type for an object; a subclass must."""
        raise NotImplementedError("UDT must implement serialize().")

    def deserialize(self, datum: Any) -> Any:
        """Return the object of a value of the SQL type; for programs, FlowSQL does not call it."""
        raise NotImplementedError("UDT must implement deserialize().")

    def to_sql_type(self, obj: Any) -> Any:
        """Return the value of the SQL type for an object, None for None."""
        return None if obj is None else self.serialize(obj)

    def from_sql_type(self, obj: Any) -> Any:
        """Return the object of a value of the SQL type, None for None."""
        return None if obj is None else self.deserialize(obj)

    def need_conversion(self) -> bool:
        """True."""
        return True

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other)

    def __hash__(self) -> int:
        return hash(type(self))


_KINDS: dict[type[t.LogicalType], type[DataType]] = {
    t.NullType: NullType,
    t.CharType: CharType,
    t.VarCharType: VarCharType,
    t.BinaryType: BinaryType,
    t.VarBinaryType: VarBinaryType,
    t.BooleanType: BooleanType,
    t.TinyIntType: TinyIntType,
    t.SmallIntType: SmallIntType,
    t.IntType: IntType,
    t.BigIntType: BigIntType,
    t.FloatType: FloatType,
    t.DoubleType: DoubleType,
    t.DecimalType: DecimalType,
    t.DateType: DateType,
    t.TimeType: TimeType,
    t.TimestampType: TimestampType,
    t.TimestampLtzType: LocalZonedTimestampType,
    t.YearMonthIntervalType: YearMonthIntervalType,
    t.DayTimeIntervalType: DayTimeIntervalType,
    t.ArrayType: ArrayType,
    t.MapType: MapType,
    t.MultisetType: MultisetType,
    t.RowType: RowType,
}


def data_type(logical: t.LogicalType) -> DataType:
    """The DataType of a logical type."""
    made: DataType = object.__new__(_KINDS.get(type(logical), DataType))
    made.logical = logical
    return made


def logical_type(given: DataType | t.LogicalType | str) -> t.LogicalType:
    """The logical type of whatever a program may give for a type: a DataType, or its SQL text.

    Raises:
        BindError: something else, or a text that names no type.
    """
    match given:
        case ZonedTimestampType():
            raise NotSupportedYetError("TIMESTAMP WITH TIME ZONE", hint="TIMESTAMP_LTZ is a point in time")
        case DataType():
            return given.logical
        case t.LogicalType():
            return given
        case str():
            return parse_type(given)
    raise BindError("not-a-type", f"Expected a data type such as DataTypes.INT(), got {given!r}.")
