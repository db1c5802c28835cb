"""Rows of a query by column, as the server sends them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
from pymysql.constants import COMMAND

from flowsql_compute.kernels.wire.mysql_texts import ENDED, HUGE, REFUSED, walk_texts
from flowsql_connectors.cdc.mysql.packets import Packets
from flowsql_connectors.formats.columnar.ranges import texts
from flowsql_connectors.jdbc.mysql import said
from flowsql_core.errors import ConnectorError

_BATCH_ROWS: Final = 16_384
#: What stands where a length would: no value, or how many bytes the length takes.
_NULL: Final = 251
_WIDTHS: Final = {252: 2, 253: 3, 254: 8}


def read_texts(connection: Any, query: str, types: Sequence[Any], shown: str) -> Iterator[list[Any]]:
    """The rows of a query in batches of arrays of texts or bytes.

    Args:
        connection: of PyMySQL.
        types: ``pa.string()`` or ``pa.binary()`` of each column.
        shown: the server, for messages.

    Raises:
        ConnectorError: the query is refused, or the connection lost.
    """
    with said(shown):
        connection._execute_command(COMMAND.COM_QUERY, query)
        for _ in range(connection._read_packet().read_length_encoded_integer()):
            connection._read_packet()
        connection._read_packet()
    packets = Packets(connection, shown)
    ranges = np.empty((len(types), _BATCH_ROWS), np.int64)
    valid = np.empty((len(types), _BATCH_ROWS), np.uint8)
    state = np.zeros(2, np.int64)
    while True:
        data = packets.data
        rows = walk_texts(data, len(data), ranges, valid, state)
        packets.consume(int(state[0]))
        if rows:
            made = [np.ascontiguousarray(ranges[column, :rows]) for column in range(len(types))]
            known = [valid[column, :rows].astype(np.bool_) for column in range(len(types))]
            yield [
                texts(places, there, data, type_, characters=pa.types.is_string(type_))
                for places, there, type_ in zip(made, known, types, strict=True)
            ]
        elif state[1] == ENDED:
            return
        elif state[1] == REFUSED:
            size = int.from_bytes(packets.data[:3].tobytes(), "little")
            number, text = packets.refusal(packets.data[4 : 4 + size].tobytes())
            raise ConnectorError("database", f"{shown}: {text}.", retryable=number in (1205, 1213))
        elif state[1] == HUGE:
            row = packets.payload()
            if row is None:
                packets.receive(None)
            else:
                yield _alone(row, types)
        else:
            packets.receive(None)


def _alone(row: bytes, types: Sequence[Any]) -> list[Any]:
    """A row that takes several packets."""
    made = []
    at = 0
    for type_ in types:
        head, at = row[at], at + 1
        value: bytes | None = None
        if head != _NULL:
            width = _WIDTHS.get(head, 0)
            size = int.from_bytes(row[at : at + width], "little") if width else head
            at += width + size
            value = row[at - size : at]
        made.append(pa.array([value], pa.binary()).cast(type_))
    return made
