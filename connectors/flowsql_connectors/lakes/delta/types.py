"""Types of Delta and of SQL. Source: Delta's protocol, "Schema Serialization Format"."""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa

from flowsql_core.errors import BindError, InternalError
from flowsql_core.types import logical as t
from flowsql_core.types.arrow import from_arrow, to_arrow

_MICROSECONDS: Final = 6
_MISSING: Final = (
    t.TimeType,
    t.YearMonthIntervalType,
    t.DayTimeIntervalType,
    t.BitmapType,
    t.VariantType,
    t.NullType,
)


def to_delta(columns: t.Schema) -> pa.Schema:
    """The schema of a new table, in Arrow's words.

    Raises:
        BindError: ``lake-type``, a type that Delta has no counterpart of.
    """
    return pa.schema(
        [pa.field(column.name, _of_type(column.type, column.name), column.type.nullable) for column in columns]
    )


def _of_type(type_: t.LogicalType, column: str) -> Any:
    match type_:
        case t.TimestampType(precision=precision) | t.TimestampLtzType(precision=precision):
            if precision > _MICROSECONDS:
                raise BindError(
                    "lake-type",
                    f"Column '{column}' is {type_.as_nullable()}: Delta's timestamps hold 6 digits of a second.",
                    hint=f"declare it with ({_MICROSECONDS})",
                )
            return pa.timestamp("us", "UTC" if isinstance(type_, t.TimestampLtzType) else None)
        case t.ArrayType(element=element):
            return pa.list_(pa.field("element", _of_type(element, column), element.nullable))
        case t.MapType(key=key, value=value):
            return pa.map_(_of_type(key, column), pa.field("value", _of_type(value, column), value.nullable))
        case t.MultisetType(element=element):
            return pa.map_(_of_type(element, column), pa.field("value", pa.int32(), nullable=False))
        case t.RowType(fields=fields):
            return pa.struct(
                [pa.field(field.name, _of_type(field.type, column), field.type.nullable) for field in fields]
            )
    if isinstance(type_, _MISSING):
        raise BindError("lake-type", f"Column '{column}' is {type_.as_nullable()}, of which Delta has no counterpart.")
    return to_arrow(type_)


def to_columns(schema: pa.Schema, table: str) -> t.Schema:
    """The columns of a table.

    Raises:
        BindError: ``lake-type``, a type that SQL has no counterpart of.
    """
    made = []
    for field in schema:
        try:
            made.append(t.Column(field.name, from_arrow(field.type, field.nullable)))
        except InternalError as error:
            raise BindError(
                "lake-type",
                f"Column '{field.name}' of table '{table}' is {field.type}, of which SQL has no counterpart.",
            ) from error
    return tuple(made)
