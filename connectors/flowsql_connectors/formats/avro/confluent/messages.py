"""Messages of a zero, the id of a schema in four bytes, and a record in Avro's binary encoding."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flowsql_compute.eval.columns import string_buffers
from flowsql_connectors.formats.avro.confluent.client import SchemaRegistry
from flowsql_connectors.formats.avro.decode import BadRecordError, RecordDecoder
from flowsql_connectors.formats.avro.encode import EncodedRows, RecordEncoder
from flowsql_connectors.formats.avro.messages import bad_message, not_null
from flowsql_connectors.formats.avro.resolved import ReaderRules, resolve
from flowsql_connectors.formats.avro.schema import parse_schema
from flowsql_connectors.formats.columnar.binary_messages import BadMessageError, BinaryMessages, MessageRows
from flowsql_connectors.formats.format import (
    Columns,
    MessageEncoder,
)
from flowsql_core.arrow import compute as pc
from flowsql_core.errors import BindError, ConnectorError
from flowsql_core.types.arrow import to_arrow
from flowsql_core.types.logical import RowType

#: Bytes before the record.
HEAD_BYTES: Final = 5
_SHOWN_BYTES: Final = 20


class RegistryDecoder(BinaryMessages):
    """Reads rows of one type, whatever the schema of each message.

    Args:
        registry: where the schemas are.
        row: what is wanted.
        rules: further names and defaults of fields.
    """

    def __init__(self, registry: SchemaRegistry, row: RowType, rules: ReaderRules) -> None:
        self._registry = registry
        self._row = row
        self._rules = rules
        self._decoders: dict[int, RecordDecoder] = {}

    def rows(self, messages: Any) -> MessageRows:
        """A row for each message that is not NULL.

        Raises:
            BadMessageError: a message is not of this form, its schema is not in the registry or does not fit the
                columns, or its record cannot be read.
            ConnectorError: the registry does not answer.
        """
        present, numbers = not_null(messages)
        offsets, data = string_buffers(present)
        bounds = offsets.astype(np.int64)
        starts, stops = bounds[:-1].copy(), bounds[1:].copy()
        ids = _ids(data, starts, stops, numbers)
        different = np.unique(ids)
        if not len(different):
            nothing = tuple(pa.array([], to_arrow(field.type)) for field in self._row.fields)
            return MessageRows(Columns(nothing, 0), numbers)
        if len(different) == 1:
            arrays = self._read(int(different[0]), data, starts, stops, None, numbers)
            return MessageRows(Columns(arrays, len(present)), numbers)
        pieces = []
        places = []
        for number in different.tolist():
            rows = np.flatnonzero(ids == number)
            pieces.append(self._read(number, data, starts[rows], stops[rows], rows, numbers))
            places.append(rows)
        order = np.empty(len(ids), np.int64)
        order[np.concatenate(places)] = np.arange(len(ids))
        back = pa.array(order)
        columns = [pa.concat_arrays(parts) for parts in zip(*pieces, strict=True)]
        return MessageRows(Columns(tuple(pc.take(column, back) for column in columns), len(ids)), numbers)

    def _read(
        self,
        number: int,
        data: npt.NDArray[np.uint8],
        starts: npt.NDArray[np.int64],
        stops: npt.NDArray[np.int64],
        rows: npt.NDArray[np.int64] | None,
        numbers: npt.NDArray[np.int64] | None,
    ) -> tuple[Any, ...]:
        try:
            decoder = self._decoder(number)
        except (ConnectorError, BindError) as error:
            if isinstance(error, ConnectorError) and error.code != "no-such-schema":
                raise
            first = 0 if rows is None else int(rows[0])
            place = first if numbers is None else int(numbers[first])
            raise BadMessageError(place, error.code, error.message, hint=error.hint) from error
        try:
            return decoder.each(data, starts + HEAD_BYTES, stops)
        except BadRecordError as bad:
            row = bad.record if rows is None else int(rows[bad.record])
            raise bad_message(BadRecordError(row, bad.column, bad.reason), numbers, number) from bad

    def _decoder(self, number: int) -> RecordDecoder:
        found = self._decoders.get(number)
        if found is None:
            schema = parse_schema(self._registry.schema(number))
            found = self._decoders[number] = RecordDecoder(resolve(schema, self._row, self._rules), plain_millis=True)
        return found


class RegistryEncoder(MessageEncoder):
    """Writes rows in one schema, which is registered before the first one."""

    def __init__(self, registry: SchemaRegistry, subject: str, schema: bytes, row: RowType) -> None:
        self._registry = registry
        self._subject = subject
        self._schema = schema
        self._records = RecordEncoder(parse_schema(schema), row)

    def encode(self, columns: tuple[Any, ...], num_rows: int, kinds: npt.NDArray[np.uint8] | None = None) -> Any:
        """A message a row."""
        if not num_rows:
            return pa.array([], pa.binary())
        number = self._registry.register(self._subject, self._schema)
        rows = self._records.encode(columns, num_rows)
        return _with_heads(rows, b"\0" + number.to_bytes(4, "big"))


def _with_heads(rows: EncodedRows, head: bytes) -> Any:
    """Each row with the same bytes in front of it."""
    return pc.binary_join_element_wise(pa.scalar(head, pa.binary()), rows.messages(), pa.scalar(b"", pa.binary()))


def _ids(
    data: npt.NDArray[np.uint8],
    starts: npt.NDArray[np.int64],
    stops: npt.NDArray[np.int64],
    numbers: npt.NDArray[np.int64] | None,
) -> npt.NDArray[np.int64]:
    """The id of each message's schema."""
    short = stops - starts < HEAD_BYTES
    bad = short.copy()
    bad[~short] = data[starts[~short]] != 0
    if bad.any():
        row = int(np.argmax(bad))
        shown = data[starts[row] : min(stops[row], starts[row] + _SHOWN_BYTES)].tobytes()
        raise BadMessageError(
            row if numbers is None else int(numbers[row]),
            "bad-avro-message",
            f"Unknown data format. Magic number does not match: {shown!r}.",
            hint="messages begin with a zero and the id of their schema; those without are of the format 'avro'",
        )
    ids = np.zeros(len(starts), np.int64)
    for place in range(1, HEAD_BYTES):
        ids = ids << 8 | data[starts + place]
    return ids
