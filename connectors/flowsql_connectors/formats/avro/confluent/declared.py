"""What an explicit schema must be: one whose fields, as Flink converts them, are the columns of the table.

Source: Flink's ``RegistryAvroFormatFactory``, ``DebeziumAvroFormatFactory``, ``AvroSchemaConverter.convertToDataType``.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import zip_longest
from typing import Final

from flowsql_connectors.formats.avro.schema import (
    ArrayOf,
    AvroType,
    Enumeration,
    Fixed,
    MapOf,
    Primitive,
    Record,
    Union,
    parse_schema,
)
from flowsql_core.errors import BindError
from flowsql_core.types.logical import (
    BIGINT,
    BOOLEAN,
    BYTES,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    STRING,
    ArrayType,
    DecimalType,
    Field,
    LogicalType,
    MapType,
    RowType,
    Schema,
    TimestampType,
    TimeType,
    VarBinaryType,
)

_PLAIN: Final = {
    "boolean": BOOLEAN, "int": INT, "long": BIGINT, "float": FLOAT, "double": DOUBLE, "string": STRING, "bytes": BYTES,
}  # fmt: skip
#: Other logical types, local timestamps among them, are numbers to Flink.
_LOGICAL: Final[dict[tuple[str, str], LogicalType]] = {
    ("int", "date"): DATE,
    ("int", "time-millis"): TimeType(precision=3),
    ("long", "time-micros"): TimeType(precision=6),
    ("long", "timestamp-millis"): TimestampType(precision=3),
    ("long", "timestamp-micros"): TimestampType(precision=6),
}
_HINT: Final = (
    "the fields of the schema are the columns: the same names in the same order, a union with null where a column may "
    "be NULL"
)


def check_declared(text: str, columns: Schema, said: str, nullable: bool = False) -> None:
    """Refuse the schema of an option that is not one of rows with these columns.

    Args:
        text: the option's value.
        columns: what each message holds.
        said: how the error begins.
        nullable: the record must stand in a union with null; else it may.

    Raises:
        ConnectorError: it is no schema.
        BindError: it is one of other rows.
    """
    wrong = _difference(parse_schema(text), columns, nullable)
    if wrong is not None:
        raise BindError("avro-schema-mismatch", f"{said}: {wrong}.", hint=_HINT)


def _difference(schema: AvroType, columns: Schema, nullable: bool) -> str | None:
    found, may_be_null = _in_union(schema)
    if not isinstance(found, Record):
        return f"it is {schema.shown}, and a row is a record"
    if nullable and not may_be_null:
        return f"{found.shown} is in no union with null"
    for at, (field, column) in enumerate(zip_longest(found.fields, columns)):
        if field is None:
            return f"it has no field for column '{column.name}'"
        if column is None:
            return f"its field '{field.name}' is no column"
        if field.name != column.name:
            return f"its field {at + 1} is '{field.name}', and column {at + 1} is '{column.name}'"
        type_ = _type(field.type)
        if type_ != _without_descriptions(column.type):
            return f"its field '{field.name}' is {type_ or field.type.shown}, and the column is {column.type}"
    return None


def _without_descriptions(type_: LogicalType) -> LogicalType:
    """The type, its rows without what is said of their fields."""
    match type_:
        case RowType(fields=fields):
            return replace(
                type_, fields=tuple(Field(field.name, _without_descriptions(field.type)) for field in fields)
            )
        case ArrayType(element=element):
            return replace(type_, element=_without_descriptions(element))
        case MapType(key=key, value=value):
            return replace(type_, key=_without_descriptions(key), value=_without_descriptions(value))
    return type_


def _in_union(schema: AvroType) -> tuple[AvroType, bool]:
    """What a union of null and one other type, or of one alone, stands for, and whether it has null."""
    if isinstance(schema, Union):
        others = [branch for branch in schema.branches if branch != Primitive("null")]
        if len(others) == 1:
            return others[0], len(schema.branches) > 1
    return schema, False


def _type(schema: AvroType) -> LogicalType | None:
    """The SQL type of values; None where there is none."""
    found, nullable = _in_union(schema)
    type_ = _not_null(found)
    return None if type_ is None else type_.as_nullable(nullable)


def _not_null(schema: AvroType) -> LogicalType | None:
    match schema:
        case Record(fields=fields):
            types = [(field.name, _type(field.type)) for field in fields]
            known = tuple(Field(name, type_) for name, type_ in types if type_ is not None)
            return RowType(fields=known) if len(known) == len(types) else None
        case ArrayOf(items=items):
            element = _type(items)
            return None if element is None else ArrayType(element=element)
        case MapOf(values=values):
            value = _type(values)
            return None if value is None else MapType(key=STRING.as_nullable(False), value=value)
        case Enumeration():
            return STRING
        case Primitive(name="bytes", logical="decimal") | Fixed(logical="decimal"):
            return DecimalType(precision=schema.precision, scale=schema.scale)
        case Fixed(size=size):
            return VarBinaryType(length=size)
        case Primitive(name=name, logical=logical):
            return _PLAIN.get(name) if logical is None else _LOGICAL.get((name, logical), _PLAIN.get(name))
    return None
