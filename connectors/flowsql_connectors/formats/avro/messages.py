"""Messages, each of which is one record in Avro's binary encoding, in the schema that the table's columns give."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from flowsql_compute.eval.columns import string_buffers
from flowsql_connectors.formats.avro.decode import BadRecordError, RecordDecoder
from flowsql_connectors.formats.avro.derived import message_schema
from flowsql_connectors.formats.avro.encode import RecordEncoder
from flowsql_connectors.formats.avro.files import row_of
from flowsql_connectors.formats.avro.resolved import resolve
from flowsql_connectors.formats.columnar.binary_messages import BadMessageError, BinaryMessages, MessageRows
from flowsql_connectors.formats.format import (
    Columns,
    DecodeContext,
    MessageEncoder,
)
from flowsql_core.arrow import compute as pc
from flowsql_core.types.logical import Schema


class AvroMessageDecoder(BinaryMessages):
    """Reads records of the schema that Flink derives from the columns.

    All columns of the table are in the messages; those that nobody wants are passed over.
    """

    def __init__(self, context: DecodeContext, legacy: bool) -> None:
        wanted = tuple(context.columns[index] for index in context.projection)
        writer = message_schema(context.columns, legacy)
        self._records = RecordDecoder(resolve(writer, row_of(wanted)), plain_millis=True)

    def rows(self, messages: Any) -> MessageRows:
        """A row for each message that is not NULL."""
        present, numbers = not_null(messages)
        offsets, data = string_buffers(present)
        bounds = offsets.astype(np.int64)
        try:
            arrays = self._records.each(data, bounds[:-1].copy(), bounds[1:].copy())
        except BadRecordError as bad:
            raise bad_message(bad, numbers) from bad
        return MessageRows(Columns(arrays, len(present)), numbers)


class AvroMessageEncoder(MessageEncoder):
    """Writes records of the schema that Flink derives from the columns."""

    def __init__(self, columns: Schema, legacy: bool) -> None:
        self._records = RecordEncoder(message_schema(columns, legacy), row_of(columns))

    def encode(self, columns: tuple[Any, ...], num_rows: int, kinds: npt.NDArray[np.uint8] | None = None) -> Any:
        """A record a row."""
        return self._records.encode(columns, num_rows).messages()


def not_null(messages: Any) -> tuple[Any, npt.NDArray[np.int64] | None]:
    """The messages that are not NULL, and their numbers; None where all are."""
    if not messages.null_count:
        return messages, None
    numbers = np.flatnonzero(np.asarray(pc.is_valid(messages)))
    return messages.drop_null(), numbers


def bad_message(
    bad: BadRecordError, numbers: npt.NDArray[np.int64] | None, schema: int | None = None
) -> BadMessageError:
    """The error of a record, told of its message; ``schema``: the id of the one that it should have been written in."""
    number = bad.record if numbers is None else int(numbers[bad.record])
    where = f", field '{bad.column}'" if bad.column else ""
    if schema is not None:
        where += f", schema {schema}"
    return BadMessageError(number, "bad-avro-record", f"Failed to deserialize Avro record: {bad.reason}{where}.")
