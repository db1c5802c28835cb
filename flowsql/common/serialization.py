"""Schemas: how values become bytes and back; encoders and bulk writers, which write them into files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from flowsql.common.typeinfo import TypeInformation, Types
from flowsql_core.record import record
from flowsql_core.types.logical import BYTES, STRING, Column, Schema

#: The format of messages that hold one value.
RAW: Final = "raw"
_BYTES: Final[Schema] = (Column("value", BYTES),)


@record
class MessageForm:
    """The form of messages: a format of tables, and where asked for a function.

    ``format``: identifier of a table's format; ``options``: of it, under their full names. ``columns``: what it reads
    and writes. ``type``: of the values. ``is_row``: values are rows of the columns, otherwise the only column's values.
    ``convert``: of a column's value to the stream's where messages are read, the other way round where they are
    written; None: they are the same.
    """

    format: str
    options: Mapping[str, str]
    columns: Schema
    type: TypeInformation
    is_row: bool = False
    convert: Callable[[Any], Any] | None = None

    def table_options(self, prefix: str) -> dict[str, str]:
        """The options of a table whose messages have this form; ``prefix``: ``value`` or ``key``."""
        return {f"{prefix}.format": self.format, **{f"{prefix}.{key}": text for key, text in self.options.items()}}


class SerializationSchema:
    """Turns a value into bytes. A class of a program's own overrides :meth:`serialize`."""

    def serialize(self, value: Any) -> bytes:
        """The bytes of a value."""
        raise NotImplementedError(type(self).__name__)

    def written_form(self) -> MessageForm:
        """The form of the messages; by default :meth:`serialize` makes each."""
        return MessageForm(RAW, {}, _BYTES, Types.PICKLED_BYTE_ARRAY(), convert=self.serialize)


class DeserializationSchema:
    """Turns bytes into a value. A class of a program's own overrides :meth:`deserialize`."""

    def deserialize(self, message: bytes) -> Any:
        """The value of some bytes."""
        raise NotImplementedError(type(self).__name__)

    def read_form(self) -> MessageForm:
        """The form of the messages; by default :meth:`deserialize` reads each."""
        return MessageForm(RAW, {}, _BYTES, Types.PICKLED_BYTE_ARRAY(), convert=self.deserialize)


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

    def written_form(self) -> MessageForm:
        """The text of each value."""
        return replace(self.read_form(), convert=str)

    def read_form(self) -> MessageForm:
        """Texts."""
        return MessageForm(RAW, {"raw.charset": self.charset}, (Column("value", STRING),), Types.STRING())


class ByteArraySchema(SerializationSchema, DeserializationSchema):
    """Bytes as they are."""

    def serialize(self, value: Any) -> bytes:
        """The bytes."""
        return bytes(value)

    def deserialize(self, message: bytes) -> bytes:
        """The bytes."""
        return message

    def read_form(self) -> MessageForm:
        """Bytes."""
        return MessageForm(RAW, {}, _BYTES, Types.PRIMITIVE_ARRAY(Types.BYTE()))


class RowFieldExtractorSchema(SerializationSchema):
    """A field of each row, which holds bytes: for the key or the value of a record."""

    def __init__(self, field_index: int) -> None:
        if field_index < 0:
            raise ValueError(f"Field index must be non-negative, got: {field_index}")
        self.field_index = field_index

    def serialize(self, value: Any) -> bytes:
        """The field's bytes."""
        found = value[self.field_index]
        if not isinstance(found, bytes | bytearray):
            raise TypeError(f"Field at index {self.field_index} must be of type bytes, but was {type(found).__name__}")
        return bytes(found)


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
    """A format that writes values by columns, made by the formats: ``CsvBulkWriters``, ``ParquetBulkWriters``.

    ``options``: of the format, as tables have them, and its name under ``format``. ``columns``: of the files.
    ``columns_of``: what makes the columns of a batch of values, for a type of them; None: the values are rows.
    """

    def __init__(
        self, options: Mapping[str, str], columns: Schema, columns_of: Callable[[TypeInformation], Any] | None = None
    ) -> None:
        self.options = options
        self.columns = columns
        self.columns_of = columns_of


class RowDataBulkWriterFactory(BulkWriterFactory):
    """A format whose columns are the fields of a ``RowType``."""

    def __init__(self, options: Mapping[str, str], row_type: Any) -> None:
        super().__init__(options, tuple(Column(field.name, field.type) for field in row_type.logical.fields))
        self._row_type = row_type

    def get_row_type(self) -> Any:
        """The type that the factory was made with."""
        return self._row_type
