"""Columns as a database has them, and which declared types they fit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from flowsql_core.errors import ConnectorError, did_you_mean
from flowsql_core.record import record
from flowsql_core.types import logical as t

_INTEGERS: Final = (t.TinyIntType, t.SmallIntType, t.IntType, t.BigIntType)


@record
class NativeColumn:
    """A column of a table of a database.

    ``type_name``: the type as the database spells it. ``type``: the SQL type that holds all of its values; None where
    only their texts have one. ``key``: place in the primary key, from 1; 0 outside of it.
    """

    name: str
    type_name: str
    type: t.LogicalType | None
    nullable: bool = True
    key: int = 0


def fits(native: t.LogicalType | None, declared: t.LogicalType) -> bool:
    """Whether values of a database may be read as a declared type without loss. A DECIMAL may be rounded, as in Flink's
    connector, and fractions of seconds cut. Moments with a zone may be read as those of the session's."""
    match declared, native:
        case t.TimestampType(), t.TimestampLtzType():
            return True
        case (t.CharacterType(), None | t.CharacterType()) | (t.BinaryStringType(), t.BinaryStringType()):
            return True
        case t.DecimalType(), t.DecimalType():
            return True
        case t.DoubleType(), t.ApproximateType():
            return True
        case t.ArrayType(element=wanted), t.ArrayType(element=element):
            return fits(element, wanted)
        case t.IntegerType(), t.IntegerType():
            return _INTEGERS.index(type(declared)) >= _INTEGERS.index(type(native))
    scalar = (t.BooleanType, t.FloatType, t.DateType, t.TimeType, t.TimestampType, t.TimestampLtzType)
    return isinstance(declared, scalar) and type(declared) is type(native)


def takes(native: t.LogicalType | None, declared: t.LogicalType) -> bool:
    """Whether a column of a database may be written as a declared type: what does not fit is refused by the database,
    value by value, and nothing is cut silently but digits behind the scale."""
    exact = t.IntegerType | t.DecimalType
    if isinstance(declared, exact):
        return isinstance(native, exact | t.ApproximateType)
    return fits(native, declared) or (native is not None and fits(declared, native))


def matched(
    table: str,
    native: dict[str, NativeColumn],
    declared: t.Schema,
    *,
    any_type: bool = False,
    suits: Callable[[t.LogicalType | None, t.LogicalType], bool] = fits,
) -> tuple[NativeColumn, ...]:
    """The columns of a table that declared ones stand for.

    Args:
        any_type: values of any type may stand in each column; they are judged one by one.
        suits: :func:`fits` to read, :func:`takes` to write.

    Raises:
        ConnectorError: there is no such column, or its values do not fit.
    """
    found = []
    for column in declared:
        there = native.get(column.name) or _in_other_case(column.name, native)
        if there is None:
            raise ConnectorError(
                "no-such-column",
                f"Table '{table}' of the database has no column '{column.name}'.",
                hint=did_you_mean(column.name, native) or "it has " + ", ".join(native),
            )
        if not any_type and not suits(there.type, column.type):
            named = "STRING" if there.type is None else str(there.type.as_nullable())
            raise ConnectorError(
                "column-type",
                f"Column '{column.name}' of table '{table}' is {there.type_name} in the database, which does not fit "
                f"{column.type.as_nullable()}.",
                hint=f"declare it as {named}",
            )
        found.append(there)
    return tuple(found)


def _in_other_case(name: str, native: dict[str, NativeColumn]) -> NativeColumn | None:
    """The one column whose name has other capitals: databases know columns in one case, or in any."""
    alike = [column for column in native.values() if column.name.lower() == name.lower()]
    return alike[0] if len(alike) == 1 else None
