"""``DataTypes``: Flink's data types under PyFlink's names. A :class:`DataType` wraps a logical type of the engine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from flowsql_core.errors import BindError, NotSupportedYetError
from flowsql_core.types import logical as t
from flowsql_core.types.text import parse_type

__all__ = ["DataType", "DataTypes", "Resolution", "RowField", "RowType", "data_type", "logical_type"]


class DataType:
    """A SQL type with its nullability, immutable. ``str()`` is its SQL text.

    >>> str(DataTypes.DECIMAL(10, 2).not_null())
    'DECIMAL(10, 2) NOT NULL'
    """

    __slots__ = ("logical",)

    def __init__(self, logical: t.LogicalType) -> None:
        self.logical = logical

    def not_null(self) -> DataType:
        """The same type without NULL."""
        return data_type(self.logical.as_nullable(False))

    def nullable(self) -> DataType:
        """The same type with NULL."""
        return data_type(self.logical.as_nullable())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DataType) and self.logical == other.logical

    def __hash__(self) -> int:
        return hash(self.logical)

    def __str__(self) -> str:
        return str(self.logical)

    def __repr__(self) -> str:
        return f"DataType({self.logical})"


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

    def __repr__(self) -> str:
        return f"RowField({self.name}, {self.data_type})"


class RowType(DataType):
    """A ROW: fields by name, in order."""

    __slots__ = ()
    logical: t.RowType

    @property
    def fields(self) -> list[RowField]:
        """The fields in order."""
        return [RowField(field.name, data_type(field.type), field.description) for field in self.logical.fields]

    def field_names(self) -> list[str]:
        """Names in order."""
        return [field.name for field in self.logical.fields]

    def field_types(self) -> list[DataType]:
        """Types in order."""
        return [data_type(field.type) for field in self.logical.fields]

    def __iter__(self) -> Iterator[RowField]:
        return iter(self.fields)

    def __len__(self) -> int:
        return len(self.logical.fields)


class Resolution:
    """A unit of :meth:`DataTypes.INTERVAL`, with its precision where it has one."""

    __slots__ = ("precision", "unit")

    def __init__(self, unit: str, precision: int | None = None) -> None:
        self.unit = unit
        self.precision = precision

    def __str__(self) -> str:
        return self.unit if self.precision is None else f"{self.unit}({self.precision})"


def data_type(logical: t.LogicalType) -> DataType:
    """The DataType of a logical type."""
    return RowType(logical) if isinstance(logical, t.RowType) else DataType(logical)


def logical_type(given: DataType | t.LogicalType | str) -> t.LogicalType:
    """The logical type of whatever a program may give for a type: a DataType, or its SQL text.

    Raises:
        BindError: something else, or a text that names no type.
    """
    match given:
        case DataType():
            return given.logical
        case t.LogicalType():
            return given
        case str():
            return parse_type(given)
    raise BindError("not-a-type", f"Expected a data type such as DataTypes.INT(), got {given!r}.")


def _length(name: str, length: int) -> int:
    if not 1 <= length <= t.MAX_LENGTH:
        raise BindError("bad-type", f"{name} length {length} must be between 1 and {t.MAX_LENGTH}.")
    return length


def _precision(name: str, precision: int) -> int:
    if not 0 <= precision <= 9:
        raise BindError("bad-type", f"{name} precision {precision} must be between 0 and 9 (both inclusive).")
    return precision


class DataTypes:
    """Makes data types: ``DataTypes.STRING()``, ``DataTypes.ROW([DataTypes.FIELD("a", DataTypes.INT())])``."""

    @staticmethod
    def NULL() -> DataType:  # noqa: N802 - PyFlink's names, here and below
        """The type of a bare NULL."""
        return DataType(t.NULL)

    @staticmethod
    def CHAR(length: int, nullable: bool = True) -> DataType:  # noqa: N802
        """Text of exactly ``length`` characters."""
        return DataType(t.CharType(length=_length("CHAR", length), nullable=nullable))

    @staticmethod
    def VARCHAR(length: int, nullable: bool = True) -> DataType:  # noqa: N802
        """Text of at most ``length`` characters."""
        return DataType(t.VarCharType(length=_length("VARCHAR", length), nullable=nullable))

    @staticmethod
    def STRING(nullable: bool = True) -> DataType:  # noqa: N802
        """Text of any length."""
        return DataType(t.VarCharType(nullable=nullable))

    @staticmethod
    def BOOLEAN(nullable: bool = True) -> DataType:  # noqa: N802
        """TRUE, FALSE, NULL."""
        return DataType(t.BooleanType(nullable=nullable))

    @staticmethod
    def BINARY(length: int, nullable: bool = True) -> DataType:  # noqa: N802
        """Exactly ``length`` bytes."""
        return DataType(t.BinaryType(length=_length("BINARY", length), nullable=nullable))

    @staticmethod
    def VARBINARY(length: int, nullable: bool = True) -> DataType:  # noqa: N802
        """At most ``length`` bytes."""
        return DataType(t.VarBinaryType(length=_length("VARBINARY", length), nullable=nullable))

    @staticmethod
    def BYTES(nullable: bool = True) -> DataType:  # noqa: N802
        """Any number of bytes."""
        return DataType(t.VarBinaryType(nullable=nullable))

    @staticmethod
    def DECIMAL(precision: int, scale: int, nullable: bool = True) -> DataType:  # noqa: N802
        """A decimal number of ``precision`` digits, ``scale`` of them behind the point."""
        if not 1 <= precision <= t.MAX_PRECISION or not 0 <= scale <= precision:
            raise BindError(
                "bad-type",
                f"DECIMAL({precision}, {scale}): the precision must be between 1 and {t.MAX_PRECISION}, the scale "
                "between 0 and the precision.",
            )
        return DataType(t.DecimalType(precision=precision, scale=scale, nullable=nullable))

    @staticmethod
    def TINYINT(nullable: bool = True) -> DataType:  # noqa: N802
        """An integer of 8 bits."""
        return DataType(t.TinyIntType(nullable=nullable))

    @staticmethod
    def SMALLINT(nullable: bool = True) -> DataType:  # noqa: N802
        """An integer of 16 bits."""
        return DataType(t.SmallIntType(nullable=nullable))

    @staticmethod
    def INT(nullable: bool = True) -> DataType:  # noqa: N802
        """An integer of 32 bits."""
        return DataType(t.IntType(nullable=nullable))

    @staticmethod
    def BIGINT(nullable: bool = True) -> DataType:  # noqa: N802
        """An integer of 64 bits."""
        return DataType(t.BigIntType(nullable=nullable))

    @staticmethod
    def FLOAT(nullable: bool = True) -> DataType:  # noqa: N802
        """A floating-point number of 4 bytes."""
        return DataType(t.FloatType(nullable=nullable))

    @staticmethod
    def DOUBLE(nullable: bool = True) -> DataType:  # noqa: N802
        """A floating-point number of 8 bytes."""
        return DataType(t.DoubleType(nullable=nullable))

    @staticmethod
    def DATE(nullable: bool = True) -> DataType:  # noqa: N802
        """A day."""
        return DataType(t.DateType(nullable=nullable))

    @staticmethod
    def TIME(precision: int = 0, nullable: bool = True) -> DataType:  # noqa: N802
        """A time of day."""
        return DataType(t.TimeType(precision=_precision("TIME", precision), nullable=nullable))

    @staticmethod
    def TIMESTAMP(precision: int = 6, nullable: bool = True) -> DataType:  # noqa: N802
        """Date and time as a clock on the wall shows them."""
        return DataType(t.TimestampType(precision=_precision("TIMESTAMP", precision), nullable=nullable))

    @staticmethod
    def TIMESTAMP_LTZ(precision: int = 6, nullable: bool = True) -> DataType:  # noqa: N802
        """A point in time, shown in the session's time zone."""
        return DataType(t.TimestampLtzType(precision=_precision("TIMESTAMP_LTZ", precision), nullable=nullable))

    @staticmethod
    def TIMESTAMP_WITH_LOCAL_TIME_ZONE(precision: int = 6, nullable: bool = True) -> DataType:  # noqa: N802
        """See :meth:`TIMESTAMP_LTZ`."""
        return DataTypes.TIMESTAMP_LTZ(precision, nullable)

    @staticmethod
    def ARRAY(element_type: DataType, nullable: bool = True) -> DataType:  # noqa: N802
        """Values of one type in order."""
        return DataType(t.ArrayType(element=logical_type(element_type), nullable=nullable))

    @staticmethod
    def MAP(key_type: DataType, value_type: DataType, nullable: bool = True) -> DataType:  # noqa: N802
        """Values by key."""
        return DataType(t.MapType(key=logical_type(key_type), value=logical_type(value_type), nullable=nullable))

    @staticmethod
    def MULTISET(element_type: DataType, nullable: bool = True) -> DataType:  # noqa: N802
        """Values that may stand several times."""
        return DataType(t.MultisetType(element=logical_type(element_type), nullable=nullable))

    @staticmethod
    def ROW(row_fields: Sequence[RowField] = (), nullable: bool = True) -> RowType:  # noqa: N802
        """Fields of :meth:`FIELD`."""
        fields = tuple(t.Field(field.name, logical_type(field.data_type), field.description) for field in row_fields)
        return RowType(t.RowType(fields=fields, nullable=nullable))

    @staticmethod
    def FIELD(name: str, data_type: DataType, description: str | None = None) -> RowField:  # noqa: N802
        """A field of :meth:`ROW`."""
        return RowField(name, data_type, description)

    @staticmethod
    def SECOND(precision: int = 6) -> Resolution:  # noqa: N802
        """Seconds with so many digits behind the point, for :meth:`INTERVAL`."""
        return Resolution("SECOND", precision)

    @staticmethod
    def MINUTE() -> Resolution:  # noqa: N802
        """Minutes, for :meth:`INTERVAL`."""
        return Resolution("MINUTE")

    @staticmethod
    def HOUR() -> Resolution:  # noqa: N802
        """Hours, for :meth:`INTERVAL`."""
        return Resolution("HOUR")

    @staticmethod
    def DAY(precision: int = 2) -> Resolution:  # noqa: N802
        """Days of so many digits, for :meth:`INTERVAL`."""
        return Resolution("DAY", precision)

    @staticmethod
    def MONTH() -> Resolution:  # noqa: N802
        """Months, for :meth:`INTERVAL`."""
        return Resolution("MONTH")

    @staticmethod
    def YEAR(precision: int = 2) -> Resolution:  # noqa: N802
        """Years of so many digits, for :meth:`INTERVAL`."""
        return Resolution("YEAR", precision)

    @staticmethod
    def INTERVAL(upper_resolution: Resolution, lower_resolution: Resolution | None = None) -> DataType:  # noqa: N802
        """An amount of months, or of milliseconds: ``INTERVAL(DataTypes.DAY(), DataTypes.SECOND(3))``."""
        tail = "" if lower_resolution is None else f" TO {lower_resolution}"
        return DataType(parse_type(f"INTERVAL {upper_resolution}{tail}"))

    @staticmethod
    def LIST_VIEW(element_type: DataType) -> DataType:  # noqa: N802
        """A list in the accumulator of an aggregate function."""
        raise NotSupportedYetError("DataTypes.LIST_VIEW")

    @staticmethod
    def MAP_VIEW(key_type: DataType, value_type: DataType) -> DataType:  # noqa: N802
        """A map in the accumulator of an aggregate function."""
        raise NotSupportedYetError("DataTypes.MAP_VIEW")
