"""``DataTypes``: Flink's data types under PyFlink's names."""

from __future__ import annotations

from collections.abc import Sequence

from flowsql.common.public_api import public_api
from flowsql.table.types.data_type import (
    ArrayType,
    DataType,
    MapType,
    MultisetType,
    RowField,
    RowType,
    data_type,
)
from flowsql_core.errors import BindError
from flowsql_core.types import logical as t
from flowsql_core.types.text import parse_type


class Resolution:
    """A unit of :meth:`DataTypes.INTERVAL`, with its precision where it has one."""

    __slots__ = ("precision", "unit")

    def __init__(self, unit: str, precision: int | None = None) -> None:
        self.unit = unit
        self.precision = precision

    def __str__(self) -> str:
        return self.unit if self.precision is None else f"{self.unit}({self.precision})"


def _length(name: str, length: int) -> int:
    if not 1 <= length <= t.MAX_LENGTH:
        raise BindError("bad-type", f"{name} length {length} must be between 1 and {t.MAX_LENGTH}.")
    return length


def _precision(name: str, precision: int) -> int:
    if not 0 <= precision <= 9:
        raise BindError("bad-type", f"{name} precision {precision} must be between 0 and 9 (both inclusive).")
    return precision


@public_api
class DataTypes:
    """Makes data types: ``DataTypes.STRING()``, ``DataTypes.ROW([DataTypes.FIELD("a", DataTypes.INT())])``."""

    @staticmethod
    def NULL() -> DataType:  # noqa: N802 - PyFlink's names, here and below
        """The type of a bare NULL."""
        return data_type(t.NULL)

    @staticmethod
    def CHAR(length: int, nullable: bool = True) -> DataType:  # noqa: N802
        """Text of exactly ``length`` characters."""
        return data_type(t.CharType(length=_length("CHAR", length), nullable=nullable))

    @staticmethod
    def VARCHAR(length: int, nullable: bool = True) -> DataType:  # noqa: N802
        """Text of at most ``length`` characters."""
        return data_type(t.VarCharType(length=_length("VARCHAR", length), nullable=nullable))

    @staticmethod
    def STRING(nullable: bool = True) -> DataType:  # noqa: N802
        """Text of any length."""
        return data_type(t.VarCharType(nullable=nullable))

    @staticmethod
    def BOOLEAN(nullable: bool = True) -> DataType:  # noqa: N802
        """TRUE, FALSE, NULL."""
        return data_type(t.BooleanType(nullable=nullable))

    @staticmethod
    def BINARY(length: int, nullable: bool = True) -> DataType:  # noqa: N802
        """Exactly ``length`` bytes."""
        return data_type(t.BinaryType(length=_length("BINARY", length), nullable=nullable))

    @staticmethod
    def VARBINARY(length: int, nullable: bool = True) -> DataType:  # noqa: N802
        """At most ``length`` bytes."""
        return data_type(t.VarBinaryType(length=_length("VARBINARY", length), nullable=nullable))

    @staticmethod
    def BYTES(nullable: bool = True) -> DataType:  # noqa: N802
        """Any number of bytes."""
        return data_type(t.VarBinaryType(nullable=nullable))

    @staticmethod
    def DECIMAL(precision: int, scale: int, nullable: bool = True) -> DataType:  # noqa: N802
        """A decimal number of ``precision`` digits, ``scale`` of them behind the point."""
        if not 1 <= precision <= t.MAX_PRECISION or not 0 <= scale <= precision:
            raise BindError(
                "bad-type",
                f"DECIMAL({precision}, {scale}): the precision must be between 1 and {t.MAX_PRECISION}, the scale "
                "between 0 and the precision.",
            )
        return data_type(t.DecimalType(precision=precision, scale=scale, nullable=nullable))

    @staticmethod
    def TINYINT(nullable: bool = True) -> DataType:  # noqa: N802
        """An integer of 8 bits."""
        return data_type(t.TinyIntType(nullable=nullable))

    @staticmethod
    def SMALLINT(nullable: bool = True) -> DataType:  # noqa: N802
        """An integer of 16 bits."""
        return data_type(t.SmallIntType(nullable=nullable))

    @staticmethod
    def INT(nullable: bool = True) -> DataType:  # noqa: N802
        """An integer of 32 bits."""
        return data_type(t.IntType(nullable=nullable))

    @staticmethod
    def BIGINT(nullable: bool = True) -> DataType:  # noqa: N802
        """An integer of 64 bits."""
        return data_type(t.BigIntType(nullable=nullable))

    @staticmethod
    def FLOAT(nullable: bool = True) -> DataType:  # noqa: N802
        """A floating-point number of 4 bytes."""
        return data_type(t.FloatType(nullable=nullable))

    @staticmethod
    def DOUBLE(nullable: bool = True) -> DataType:  # noqa: N802
        """A floating-point number of 8 bytes."""
        return data_type(t.DoubleType(nullable=nullable))

    @staticmethod
    def DATE(nullable: bool = True) -> DataType:  # noqa: N802
        """A day."""
        return data_type(t.DateType(nullable=nullable))

    @staticmethod
    def TIME(precision: int = 0, nullable: bool = True) -> DataType:  # noqa: N802
        """A time of day."""
        return data_type(t.TimeType(precision=_precision("TIME", precision), nullable=nullable))

    @staticmethod
    def TIMESTAMP(precision: int = 6, nullable: bool = True) -> DataType:  # noqa: N802
        """Date and time as a clock on the wall shows them."""
        return data_type(t.TimestampType(precision=_precision("TIMESTAMP", precision), nullable=nullable))

    @staticmethod
    def TIMESTAMP_LTZ(precision: int = 6, nullable: bool = True) -> DataType:  # noqa: N802
        """A point in time, shown in the session's time zone."""
        return data_type(t.TimestampLtzType(precision=_precision("TIMESTAMP_LTZ", precision), nullable=nullable))

    @staticmethod
    def TIMESTAMP_WITH_LOCAL_TIME_ZONE(precision: int = 6, nullable: bool = True) -> DataType:  # noqa: N802
        """See :meth:`TIMESTAMP_LTZ`."""
        return DataTypes.TIMESTAMP_LTZ(precision, nullable)

    @staticmethod
    def ARRAY(element_type: DataType, nullable: bool = True) -> DataType:  # noqa: N802
        """Values of one type in order."""
        return ArrayType(element_type, nullable)

    @staticmethod
    def MAP(key_type: DataType, value_type: DataType, nullable: bool = True) -> DataType:  # noqa: N802
        """Values by key."""
        return MapType(key_type, value_type, nullable)

    @staticmethod
    def MULTISET(element_type: DataType, nullable: bool = True) -> DataType:  # noqa: N802
        """Values that may stand several times."""
        return MultisetType(element_type, nullable)

    @staticmethod
    def ROW(row_fields: Sequence[RowField] = (), nullable: bool = True) -> RowType:  # noqa: N802
        """Fields of :meth:`FIELD`."""
        return RowType(row_fields, nullable)

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
        return data_type(parse_type(f"INTERVAL {upper_resolution}{tail}"))

    @staticmethod
    def LIST_VIEW(element_type: DataType) -> DataType:  # noqa: N802
        """A ``ListView`` in the accumulator of an aggregate function; elsewhere an ARRAY."""
        return DataTypes.ARRAY(element_type)

    @staticmethod
    def MAP_VIEW(key_type: DataType, value_type: DataType) -> DataType:  # noqa: N802
        """A ``MapView`` in the accumulator of an aggregate function; elsewhere a MAP."""
        return DataTypes.MAP(key_type, value_type)
