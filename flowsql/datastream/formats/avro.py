"""The avro format of DataStream connectors: container files of generic records, which programs see as dicts."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import orjson
import pyarrow as pa

from flowsql.common.io import InputFormat
from flowsql.common.public_api import public_api
from flowsql.common.refused import refused_name
from flowsql.common.serialization import BulkWriterFactory
from flowsql.common.type_conversion import Converter
from flowsql.common.typeinfo import PickledBytesTypeInfo, TypeInformation
from flowsql.datastream.bridges.columns import objects
from flowsql.datastream.connectors.file_system import FileRecords, FileSource, StreamFormat
from flowsql.datastream.formats.avro_values import normalised, record_maker, record_reader
from flowsql.datastream.plan.operators import BatchMap
from flowsql_connectors.formats.avro.generic import columns_of_schema, kept_fields
from flowsql_connectors.formats.avro.schema import Record, parse_schema
from flowsql_connectors.formats.streams.avro_records import SCHEMA
from flowsql_connectors.formats.streams.registry import AVRO_RECORDS
from flowsql_core.batch import ChangelogBatch
from flowsql_core.errors import ExecutionError, NotSupportedYetError
from flowsql_core.graph.stream_specs import VALUE
from flowsql_core.types.arrow import to_arrow
from flowsql_core.types.logical import Schema

_REFUSED: Final = frozenset({"AvroRowDeserializationSchema", "AvroRowSerializationSchema"})

__all__ = sorted({*_REFUSED, "AvroBulkWriters", "AvroInputFormat", "AvroSchema", "GenericRecordAvroTypeInfo"})


def __getattr__(name: str) -> Any:
    hint = "read or write a table and cross over with to_data_stream and from_data_stream"
    return refused_name(__name__, name, _REFUSED, "the avro format of messages of DataStreams", hint)


@public_api
class AvroSchema:
    """An Avro schema. Made by :meth:`parse_string` and :meth:`parse_file`; ``str()`` is its JSON.

    >>> fields = '[{"name": "id", "type": "long"}]'
    >>> print(AvroSchema.parse_string('{"type": "record", "name": "r", "fields": ' + fields + "}"))
    {"type":"record","name":"r","fields":[{"name":"id","type":"long"}]}
    """

    def __init__(self, text: str) -> None:
        self.parsed = parse_schema(text)
        self.text = orjson.dumps(orjson.loads(text)).decode()

    @staticmethod
    def parse_string(json_schema: str) -> AvroSchema:
        """The schema of a JSON text.

        Raises:
            ConnectorError: it is none.
        """
        return AvroSchema(json_schema)

    @staticmethod
    def parse_file(file_path: str) -> AvroSchema:
        """The schema in a file.

        Raises:
            ConnectorError: the file holds none.
        """
        return AvroSchema(Path(file_path).read_text(encoding="utf-8"))

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"AvroSchema({self.text})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AvroSchema) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)

    @property
    def record(self) -> Record:
        """The schema, if it is one of records.

        Raises:
            NotSupportedYetError: it is not.
        """
        if not isinstance(self.parsed, Record):
            raise NotSupportedYetError(f"files of an Avro schema that is {self.parsed.shown}", hint="use a record")
        return self.parsed

    @property
    def columns(self) -> Schema:
        """The fields as columns."""
        return columns_of_schema(self.record)


class GenericRecordAvroTypeInfo(TypeInformation):
    """The type of records of a schema, which are dicts. Values that an operator with this type emits are checked."""

    def __init__(self, schema: AvroSchema) -> None:
        self.schema = schema

    def converter(self) -> Converter | None:
        """Check a record, and fill in fields that may be null."""
        return normalised(self.schema.record)

    def __repr__(self) -> str:
        return f"GenericRecord({self.schema})"


class AvroInputFormat(InputFormat):
    """Reads the records of Avro files: for ``create_input``.

    Args:
        path: of a file or folder.
        schema: of the records. Files may have another one, from which Avro's rules of schema resolution lead to it.
    """

    def __init__(self, path: str, schema: AvroSchema) -> None:
        self._path = path
        self._schema = schema

    def get_produced_type(self) -> GenericRecordAvroTypeInfo:
        """The type of the records."""
        return GenericRecordAvroTypeInfo(self._schema)

    def source(self) -> FileSource:
        """The source of the files."""
        options = {"format": AVRO_RECORDS, SCHEMA.key: self._schema.text}
        return FileSource(StreamFormat(records=generic_records(options, self._schema, True)), [self._path])


class AvroBulkWriters:
    """Writes records into Avro files."""

    @staticmethod
    def for_generic_record(schema: AvroSchema) -> BulkWriterFactory:
        """For ``FileSink.for_bulk_format``: dicts with the fields of the schema.

        Raises:
            NotSupportedYetError: the schema is no record, or holds what no column does.
        """
        return generic_writer({"format": AVRO_RECORDS, SCHEMA.key: schema.text}, schema)


def generic_records(options: Mapping[str, str], schema: AvroSchema, splittable: bool = False) -> FileRecords:
    """Records of a schema that a format reads as the columns of ``AvroSchema.columns``."""
    columns = schema.columns
    make = record_maker(schema.record)
    fields = kept_fields(schema.record)
    names = [column.name for column in columns]

    def values(batch: ChangelogBatch) -> ChangelogBatch:
        lists = []
        for array, column, field in zip(batch.columns, columns, fields, strict=True):
            if array.null_count and not column.type.nullable:
                raise ExecutionError(
                    "avro-value",
                    f"Field '{field.name}' is missing or null in a file, and {field.type.shown} is neither.",
                )
            lists.append(array.to_pylist())
        rows = zip(*lists, strict=True) if lists else iter([()] * batch.num_rows)
        found = objects([make(dict(zip(names, row, strict=True))) for row in rows])
        return ChangelogBatch((found,), batch.num_rows, None, batch.row_times, batch.track)

    return FileRecords(options, columns, GenericRecordAvroTypeInfo(schema), values, splittable)


def generic_writer(options: Mapping[str, str], schema: AvroSchema) -> BulkWriterFactory:
    """A factory for records of a schema, written as the columns of ``AvroSchema.columns``."""
    columns = schema.columns
    read = record_reader(schema.record)
    types = [to_arrow(column.type) for column in columns]

    def columns_of(type_: TypeInformation) -> BatchMap:
        if not isinstance(type_, GenericRecordAvroTypeInfo | PickledBytesTypeInfo):
            raise TypeError(
                f"Avro files take a stream of records, this one is of {type_!r}: declare it, "
                "map(..., output_type=GenericRecordAvroTypeInfo(schema))"
            )
        return convert

    def convert(batch: ChangelogBatch) -> ChangelogBatch:
        records = [read(value) for value in batch.columns[VALUE].values.tolist()]
        made = tuple(
            pa.array([one[column.name] for one in records], arrow) for column, arrow in zip(columns, types, strict=True)
        )
        return ChangelogBatch(made, batch.num_rows, None, None, batch.track)

    return BulkWriterFactory(options, columns, columns_of)
