"""Columns to Avro schemas, as Flink derives them (``AvroSchemaConverter.convertToSchema``)."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any, Final

import orjson

from flowsql_connectors.formats.avro.schema import AvroType, parse_schema
from flowsql_core.errors import BindError
from flowsql_core.types.logical import (
    INT,
    ArrayType,
    BigIntType,
    BinaryStringType,
    BooleanType,
    CharacterType,
    Column,
    DateType,
    DecimalType,
    DoubleType,
    Field,
    FloatType,
    IntegerType,
    LogicalType,
    MapType,
    MultisetType,
    NullType,
    RowType,
    Schema,
    TimestampLtzType,
    TimestampType,
    TimeType,
)

NAMESPACE: Final = "org.apache.flink.avro.generated"
ROW_NAME: Final = "record"
#: Java's letters and digits.
_NAME: Final = re.compile(r"[^\W\d]\w*")
#: Digits of milliseconds.
MILLIS: Final = 3


def derived_schema(columns: Schema, legacy: bool, name: str = ROW_NAME, nullable: bool = False) -> Any:
    """The schema of rows as a JSON document; ``nullable``: as a branch of a union.

    Args:
        columns: of the rows.
        legacy: ``avro.timestamp_mapping.legacy``: TIMESTAMP is what Avro calls an instant.
        name: of the outermost record; records inside of it are named after their fields.

    Raises:
        BindError: a column has a type or precision that Avro has not.
    """
    document = _Derived(legacy).record(tuple(Field(c.name, c.type) for c in columns), name)
    document = {"type": "record", "name": name, "namespace": NAMESPACE, "fields": document["fields"]}
    return ["null", document] if nullable else document


def message_schema(columns: Schema, legacy: bool) -> AvroType:
    """The schema of messages without one of their own: the derived one, but that times are milliseconds.

    Flink 2.3 writes and reads milliseconds whatever the digits of a column, which cuts those behind them off.

    Raises:
        BindError: a column has a type or precision that Avro has not.
    """
    derived_schema(columns, legacy)
    cut = tuple(Column(column.name, _in_millis(column.type)) for column in columns)
    return parse_schema(orjson.dumps(derived_schema(cut, legacy)))


def _in_millis(type_: LogicalType) -> LogicalType:
    match type_:
        case TimestampType(precision=precision) | TimestampLtzType(precision=precision):
            return replace(type_, precision=min(precision, MILLIS))
        case ArrayType(element=element):
            return replace(type_, element=_in_millis(element))
        case MapType(value=value):
            return replace(type_, value=_in_millis(value))
        case RowType(fields=fields):
            return replace(type_, fields=tuple(replace(field, type=_in_millis(field.type)) for field in fields))
    return type_


def columns_of_row(type_: RowType) -> Schema:
    """The fields of a row as columns."""
    return tuple(Column(field.name, field.type) for field in type_.fields)


class _Derived:
    def __init__(self, legacy: bool) -> None:
        self._legacy = legacy
        #: Of each record its fields.
        self._records: dict[str, Any] = {}

    def record(self, fields: tuple[Field, ...], name: str) -> dict[str, Any]:
        made: list[dict[str, Any]] = []
        for field in fields:
            if _NAME.fullmatch(field.name) is None:
                place = name.removeprefix(ROW_NAME).removeprefix("_")
                raise BindError(
                    "avro-name",
                    f"Avro has no name for {f'the field of {place!r}' if place else 'column'} '{field.name}': names "
                    "are letters, digits and underscores, and begin with no digit.",
                    hint="give it another name",
                )
            document: dict[str, Any] = {"name": field.name, "type": self.type(field.type, f"{name}_{field.name}")}
            if field.type.nullable:
                document["default"] = None
            made.append(document)
        if self._records.setdefault(name, made) != made:
            raise BindError(
                "avro-name",
                f"Two different rows are both called '{name}' in Avro: rows are called after their columns and fields, "
                f"joined by underscores ('{name.removeprefix(ROW_NAME + '_')}').",
                hint="give one of the columns or fields another name",
            )
        return {"type": "record", "name": name, "fields": made}

    def type(self, type_: LogicalType, name: str) -> Any:
        document = self._type(type_, name)
        return ["null", document] if type_.nullable and not isinstance(type_, NullType) else document

    def _type(self, type_: LogicalType, name: str) -> Any:
        match type_:
            case NullType():
                return "null"
            case BooleanType():
                return "boolean"
            case BigIntType():
                return "long"
            case IntegerType():
                return "int"
            case FloatType():
                return "float"
            case DoubleType():
                return "double"
            case CharacterType():
                return "string"
            case BinaryStringType():
                return "bytes"
            case DecimalType(precision=precision, scale=scale):
                return {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": scale}
            case DateType():
                return {"type": "int", "logicalType": "date"}
            case TimeType(precision=precision):
                if precision > 3:
                    raise _too_fine("TIME", precision, 3)
                return {"type": "int", "logicalType": "time-millis"}
            case TimestampType(precision=precision):
                return self._timestamp("timestamp" if self._legacy else "local-timestamp", precision)
            case TimestampLtzType(precision=precision) if not self._legacy:
                return self._timestamp("timestamp", precision)
            case ArrayType(element=element):
                return {"type": "array", "items": self.type(element, name)}
            case MapType(key=key, value=value):
                return self._map(key, value, name)
            case MultisetType(element=element):
                return self._map(element, INT, name)
            case RowType(fields=fields):
                return self.record(fields, name)
        hint = "'avro.timestamp_mapping.legacy' = 'false'" if isinstance(type_, TimestampLtzType) else None
        raise BindError("unsupported-type", f"Unsupported to derive Schema for type: {type_.as_nullable()}", hint=hint)

    def _timestamp(self, name: str, precision: int) -> Any:
        if precision <= 3:
            return {"type": "long", "logicalType": f"{name}-millis"}
        if self._legacy:
            raise _too_fine("TIMESTAMP", precision, 3)
        if precision <= 6:
            return {"type": "long", "logicalType": f"{name}-micros"}
        raise _too_fine("LOCAL TIMESTAMP" if name.startswith("local") else "TIMESTAMP", precision, 6)

    def _map(self, key: LogicalType, value: LogicalType, name: str) -> Any:
        if not isinstance(key, CharacterType):
            raise BindError(
                "unsupported-type",
                f"Avro format doesn't support non-string as key type of map. The key type is: {key.as_nullable()}",
            )
        return {"type": "map", "values": self.type(value, name)}


def _too_fine(name: str, precision: int, most: int) -> BindError:
    hint = None
    if most == 3 and name == "TIMESTAMP":
        hint = "TIMESTAMP(3), or 'avro.timestamp_mapping.legacy' = 'false' for up to 6 digits"
    return BindError(
        "unsupported-type",
        f"Avro does not support {name} type with precision: {precision}, it only supports precision less than {most}.",
        hint=hint,
    )
