"""Columns of avro files: the schemas in their heads.

Source: Apache Avro specification 1.12, "Logical Types".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa

from flowsql_connectors.formats.avro.container import DamagedError, damaged, open_container, read_header
from flowsql_connectors.formats.avro.factory import LEGACY_TIMESTAMPS
from flowsql_connectors.formats.avro.schema import (
    ArrayOf,
    AvroType,
    Enumeration,
    Fixed,
    MapOf,
    Primitive,
    Record,
    Union,
)
from flowsql_connectors.formats.format import FileView
from flowsql_connectors.formats.inferring.sampling import InferredFormat
from flowsql_connectors.formats.inferring.typed_files import told_columns, without_type
from flowsql_connectors.options import OptionValues
from flowsql_core.types.logical import MAX_PRECISION, TimestampLtzType, TimestampType

_PRIMITIVES: Final = {
    "null": pa.null(), "boolean": pa.bool_(), "int": pa.int32(), "long": pa.int64(), "float": pa.float32(),
    "double": pa.float64(), "bytes": pa.binary(), "string": pa.string(),
}  # fmt: skip
_LOGICAL: Final = {
    "date": pa.date32(), "time-millis": pa.time32("ms"), "time-micros": pa.time64("us"),
    "timestamp-millis": pa.timestamp("ms", "UTC"), "timestamp-micros": pa.timestamp("us", "UTC"),
    "timestamp-nanos": pa.timestamp("ns", "UTC"), "local-timestamp-millis": pa.timestamp("ms"),
    "local-timestamp-micros": pa.timestamp("us"), "local-timestamp-nanos": pa.timestamp("ns"),
}  # fmt: skip


def infer_avro(files: Sequence[FileView], given: OptionValues, suffix: str) -> InferredFormat:
    """Columns of all files, by name; numbers of several widths get the widest. A timestamp of Avro is an instant.

    Raises:
        ConnectorError: a file is damaged, files do not go together, or a column has no SQL type.
    """
    columns = told_columns(files, _schema)
    stamps = any(isinstance(column.type, TimestampType | TimestampLtzType) for column in columns)
    options = ((LEGACY_TIMESTAMPS.key, "false"),) if stamps and not given.has(LEGACY_TIMESTAMPS) else ()
    return InferredFormat(columns, options)


def _schema(file: FileView) -> pa.Schema:
    stream, _ = open_container(file)
    with stream:
        try:
            schema = read_header(stream).schema
        except DamagedError as error:
            raise damaged(file, error) from error
    if not isinstance(schema, Record):
        raise damaged(file, f"its rows are {schema.shown}, not records")
    fields = []
    for field in schema.fields:
        type_ = _arrow(field.type)
        if type_ is None:
            raise without_type(field.name, file.path, field.type.shown)
        fields.append(pa.field(field.name, type_))
    return pa.schema(fields)


def _arrow(schema: AvroType) -> Any:
    """The type of a column; None where SQL has none."""
    match schema:
        case Primitive(logical="decimal") | Fixed(logical="decimal") if schema.precision <= MAX_PRECISION:
            return pa.decimal128(schema.precision, schema.scale)
        case Primitive():
            return _LOGICAL.get(schema.logical or "", _PRIMITIVES[schema.name])
        case Enumeration():
            return pa.string()
        case Fixed():
            return pa.binary()
        case Union():
            others = [branch for branch in schema.branches if branch != Primitive("null")]
            return _arrow(others[0]) if len(others) == 1 else None
        case ArrayOf(items=items):
            below = _arrow(items)
            return None if below is None else pa.list_(below)
        case MapOf(values=values):
            below = _arrow(values)
            return None if below is None else pa.map_(pa.string(), below)
        case Record(fields=fields):
            types = [_arrow(field.type) for field in fields]
            if any(type_ is None for type_ in types):
                return None
            return pa.struct([pa.field(field.name, type_) for field, type_ in zip(fields, types, strict=True)])
    return None
