"""Columns of Spark's DataFrames as columns of SQL: their types, and frames whose values FlowSQL reads."""

from __future__ import annotations

import importlib
import re
from collections.abc import Sequence
from typing import Any, Final

from flowsql_core.errors import BindError
from flowsql_core.record import record
from flowsql_core.types import logical as t
from flowsql_runtime.spark.errors import condition_of

#: Digits of a second that a TIME keeps.
_TIME_DIGITS: Final = 3
_NANOSECONDS: Final = re.compile(r"timestamp_\w+\(\d\)")
_TYPES: Final[dict[str, t.LogicalType]] = {
    "boolean": t.BOOLEAN,
    "byte": t.TINYINT,
    "short": t.SMALLINT,
    "integer": t.INT,
    "long": t.BIGINT,
    "float": t.FLOAT,
    "double": t.DOUBLE,
    "string": t.STRING,
    "char": t.STRING,
    "varchar": t.STRING,
    "binary": t.BYTES,
    "date": t.DATE,
    "timestamp": t.TimestampLtzType(precision=6),
    "timestamp_ntz": t.TimestampType(precision=6),
}


@record
class PlainFrame:
    """A frame with the types that stand for those of its columns, and the columns of SQL.

    Attributes:
        frame: texts without a collation, TIME as INT (milliseconds), VARIANT as STRING (JSON); others as they are.
        columns: what SQL sees, except that VARIANT is STRING.
        variants: names of the columns that hold JSON texts of VARIANTs.
    """

    frame: Any
    columns: t.Schema
    variants: tuple[str, ...]


def plain_frame(frame: Any) -> PlainFrame:
    """Return a frame as FlowSQL reads it.

    Raises:
        BindError: two columns have one name, or there is no type of SQL for a column.
    """
    try:
        fields = frame.schema.fields
    except ValueError as error:
        # pyspark 4.3 cannot say the type of what counts nanoseconds.
        named = _NANOSECONDS.search(str(error))
        raise BindError(
            "no-sql-type",
            f"from_spark(): pyspark has no type for a column ({named[0] if named else condition_of(error)[1]}).",
            hint="cast timestamps of more than six digits in Spark: CAST(t AS TIMESTAMP_NTZ)",
        ) from error
    names = [field.name for field in fields]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise BindError(
            "column-twice",
            f"from_spark(): the DataFrame has two columns '{twice}'.",
            hint="give them names of their own: frame.toDF(...)",
        )
    columns = tuple(t.Column(field.name, _column_type(field)) for field in fields)
    variants = tuple(field.name for field in fields if _name_of(field.dataType) == "variant")
    return PlainFrame(_converted(frame, fields), columns, variants)


def _column_type(field: Any) -> t.LogicalType:
    match _name_of(field.dataType):
        case "time":
            made: t.LogicalType = t.TimeType(precision=min(field.dataType.precision, _TIME_DIGITS))
        case "variant":
            made = t.STRING
        case _:
            return _type_of(field.dataType, field.name, field.nullable)
    return made.as_nullable(field.nullable)


def _type_of(type_: Any, column: str, nullable: bool) -> t.LogicalType:
    """The type of SQL with the same values as one of Spark."""
    name = _name_of(type_)
    made = _TYPES.get(name)
    if made is None:
        match name:
            case "decimal":
                made = t.DecimalType(precision=type_.precision, scale=type_.scale)
            case "array":
                made = t.ArrayType(element=_type_of(type_.elementType, column, type_.containsNull))
            case "map":
                value = _type_of(type_.valueType, column, type_.valueContainsNull)
                made = t.MapType(key=_type_of(type_.keyType, column, nullable=False), value=value)
            case "struct":
                fields = [t.Field(one.name, _type_of(one.dataType, column, one.nullable)) for one in type_.fields]
                made = t.RowType(fields=tuple(fields))
            case "time" | "variant":
                raise BindError(
                    "no-sql-type",
                    f"from_spark(): {name.upper()} inside of the column '{column}' has no type in SQL.",
                    hint=f"take it out of the column in Spark: {name.upper()} is read as a column of its own",
                )
            case _:
                raise BindError(
                    "no-sql-type",
                    f"from_spark(): there is no type for the column '{column}' ({type_.simpleString()}).",
                    hint="cast it in Spark, or leave the column out",
                )
    return made.as_nullable(nullable)


def _name_of(type_: Any) -> str:
    return str(type_.typeName()).partition(" ")[0]


def _converted(frame: Any, fields: Sequence[Any]) -> Any:
    """The frame, columns of types with other values than SQL's converted."""
    functions: Any = importlib.import_module("pyspark.sql.functions")

    def column(field: Any) -> Any:
        own = functions.col(quoted(field.name))
        match _name_of(field.dataType):
            case "time":
                made = _milliseconds(quoted(field.name), field)
            case "variant":
                made = functions.to_json(own)
            case _:
                plain = _without_collations(field.dataType)
                if plain == field.dataType:
                    return own
                made = own.cast(plain)
        return made.alias(field.name)

    def _milliseconds(name: str, field: Any) -> Any:
        seconds = f"(hour({name}) * 3600 + minute({name}) * 60)"
        if field.dataType.precision <= _TIME_DIGITS:
            return functions.expr(f"CAST({seconds} * 1000 + EXTRACT(SECOND FROM {name}) * 1000 AS INT)")
        micros = f"CAST(EXTRACT(SECOND FROM {name}) * 1000000 AS INT)"
        message = (
            f"from_spark(): a value of the column '{field.name}' has more digits than milliseconds, which TIME keeps: "
            "cast it to TIME(3) in Spark."
        )
        exact = functions.expr(f"CAST({seconds} * 1000 + {micros} DIV 1000 AS INT)")
        failure = functions.raise_error(functions.lit(message)).cast("int")
        return functions.when(functions.expr(f"{micros} % 1000 <> 0"), failure).otherwise(exact)

    asked = [_name_of(field.dataType) in ("time", "variant") or _has_collation(field.dataType) for field in fields]
    if not any(asked):
        return frame
    try:
        made = frame.select(*map(column, fields))
        _ = made.schema
    except Exception as error:
        raise BindError(
            "no-sql-type", f"from_spark(): Spark cannot convert the columns of the DataFrame: {condition_of(error)[1]}"
        ) from error
    return made


def _has_collation(type_: Any) -> bool:
    return bool(_without_collations(type_) != type_)


def _without_collations(type_: Any) -> Any:
    """A type with texts that are compared by their bytes, as SQL compares them."""
    types: Any = importlib.import_module("pyspark.sql.types")
    match _name_of(type_):
        case "string":
            return types.StringType()
        case "array":
            return types.ArrayType(_without_collations(type_.elementType), type_.containsNull)
        case "map":
            key, value = _without_collations(type_.keyType), _without_collations(type_.valueType)
            return types.MapType(key, value, type_.valueContainsNull)
        case "struct":
            return types.StructType(
                [types.StructField(one.name, _without_collations(one.dataType), one.nullable) for one in type_.fields]
            )
    return type_


def quoted(name: str) -> str:
    """Return a column's name as Spark's functions take it."""
    return "`" + name.replace("`", "``") + "`"
