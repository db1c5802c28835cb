"""Schemas: how values become bytes and back; encoders and bulk writers, which write them into files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flowsql_core.types.logical import Column, Schema


class SerializationSchema:
    """Turns a value into bytes."""

    def serialize(self, value: Any) -> bytes:
        """The bytes of a value."""
        raise NotImplementedError(type(self).__name__)


class DeserializationSchema:
    """Turns bytes into a value."""

    def deserialize(self, message: bytes) -> Any:
        """The value of some bytes."""
        raise NotImplementedError(type(self).__name__)


class SimpleStringSchema(SerializationSchema, DeserializationSchema):
    """Text in a character set."""

    def __init__(self, charset: str = "UTF-8") -> None:
        "".encode(charset)  # an unknown name fails here
        self.charset = charset

    def serialize(self, value: Any) -> bytes:
        """The text's bytes."""
        return str(value).encode(self.charset)

    def deserialize(self, message: bytes) -> str:
        """The bytes' text."""
        return message.decode(self.charset)


class ByteArraySchema(SerializationSchema, DeserializationSchema):
    """Bytes as they are."""

    def serialize(self, value: Any) -> bytes:
        """The bytes."""
        return bytes(value)

    def deserialize(self, message: bytes) -> bytes:
        """The bytes."""
        return message


class Encoder:
    """Writes values into a file; made by :meth:`simple_string_encoder`."""

    def __init__(self, charset: str) -> None:
        "".encode(charset)  # an unknown name fails here
        self.charset = charset

    @staticmethod
    def simple_string_encoder(charset_name: str = "UTF-8") -> Encoder:
        """Each value's text on a line of its own."""
        return Encoder(charset_name)


class BulkWriterFactory:
    """A format that writes rows by columns, made by the formats: ``CsvBulkWriters``, ``ParquetBulkWriters``.

    ``options``: of the format, as tables have them, and its name under ``format``. ``columns``: of the files.
    """

    def __init__(self, options: Mapping[str, str], columns: Schema) -> None:
        self.options = options
        self.columns = columns


class RowDataBulkWriterFactory(BulkWriterFactory):
    """A format whose columns are the fields of a ``RowType``."""

    def __init__(self, options: Mapping[str, str], row_type: Any) -> None:
        super().__init__(options, tuple(Column(field.name, field.type) for field in row_type.logical.fields))
        self._row_type = row_type

    def get_row_type(self) -> Any:
        """The type that the factory was made with."""
        return self._row_type
