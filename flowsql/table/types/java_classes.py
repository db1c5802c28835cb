"""Java's classes that Flink converts values of scalar types to; other types have one for each of their parts."""

from __future__ import annotations

from typing import Final, Self

from flowsql_core.types import logical as t

_TEXTS: Final = ("java.lang.String", "[B", "org.apache.flink.table.data.StringData")
_BYTES: Final = ("[B", "java.nio.ByteBuffer")
_DECIMALS: Final = ("java.math.BigDecimal", "org.apache.flink.table.data.DecimalData")
_MOMENTS: Final = ("java.time.LocalDateTime", "java.sql.Timestamp", "org.apache.flink.table.data.TimestampData")
_CLASSES: Final[dict[type[t.LogicalType], tuple[str, ...]]] = {
    t.CharType: _TEXTS,
    t.VarCharType: _TEXTS,
    t.BinaryType: _BYTES,
    t.VarBinaryType: _BYTES,
    t.BooleanType: ("java.lang.Boolean", "boolean"),
    t.TinyIntType: ("java.lang.Byte", "byte"),
    t.SmallIntType: ("java.lang.Short", "short"),
    t.IntType: ("java.lang.Integer", "int"),
    t.BigIntType: ("java.lang.Long", "long"),
    t.FloatType: ("java.lang.Float", "float"),
    t.DoubleType: ("java.lang.Double", "double"),
    t.DecimalType: _DECIMALS,
    t.DateType: ("java.time.LocalDate", "java.sql.Date", "java.lang.Integer", "int"),
    t.TimeType: ("java.time.LocalTime", "java.sql.Time", "java.lang.Integer", "int", "java.lang.Long", "long"),
    t.TimestampType: _MOMENTS,
    t.TimestampLtzType: (
        "java.time.Instant", "java.lang.Integer", "int", "java.lang.Long", "long", "java.sql.Timestamp",
        "org.apache.flink.table.data.TimestampData",
    ),
}  # fmt: skip


class Bridged:
    """Base of data types: which of Java's classes has their values says nothing to Python."""

    __slots__ = ()
    logical: t.LogicalType

    def bridged_to(self, conversion_cls: str) -> Self:
        """The same type: which of Java's classes has its values, which Python never sees.

        Args:
            conversion_cls: the name of a class, such as ``java.sql.Timestamp``.

        Raises:
            ValueError: Flink does not convert values of the type to this class.
        """
        classes = _CLASSES.get(type(self.logical))
        if classes is not None and conversion_cls not in classes:
            raise ValueError(
                f"Logical type '{self}' does not support a conversion from or to class '{conversion_cls}', "
                f"but to {', '.join(classes)}."
            )
        return self
