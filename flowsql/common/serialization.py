"""Schemas: how values become bytes and back, and :class:`Encoder`, which writes them into files."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flowsql_core.errors import NotSupportedYetError


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
    """Writes values into a file; made by :meth:`simple_string_encoder`.

    ``encode(text)`` gives the bytes of one value's text.
    """

    def __init__(self, encode: Callable[[str], bytes]) -> None:
        self.encode = encode

    @staticmethod
    def simple_string_encoder(charset_name: str = "UTF-8") -> Encoder:
        """Each value's text on a line of its own."""
        "".encode(charset_name)
        return Encoder(lambda text: f"{text}\n".encode(charset_name))


class BulkWriterFactory:
    """Makes writers of column formats."""

    def __init__(self) -> None:
        raise NotSupportedYetError(
            "bulk formats of DataStream file sinks", hint="write through a table: INSERT INTO a filesystem table"
        )
