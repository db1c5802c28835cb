"""Compressed events of the log, as if they had been written plainly.

MySQL compresses whole transactions (``binlog_transaction_compression``), MariaDB single events (``log_bin_compress``).
Source: MySQL internals, ``Transaction_payload_event``; MariaDB's ``binlog_uncompress`` (``sql/log_event.cc``).
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import pyarrow as pa

from flowsql_compute.kernels.wire.mysql_rows import NEXT, SIZE, START, STOP, TIME, TYPE
from flowsql_connectors.cdc.log import Int64s

_PAYLOAD: Final = 40
_QUERY, _QUERY_COMPRESSED = 2, 165
#: Compressed events of rows, and what they are.
_ROWS: Final = {166: 23, 167: 24, 168: 25, 169: 30, 170: 31, 171: 32}
_UPDATES: Final = (24, 31)
COMPRESSED: Final = (_PAYLOAD, _QUERY_COMPRESSED, *_ROWS)
_HEADER: Final = 19
#: Fields of a payload's header.
_END, _KIND, _PLAIN_SIZE = 0, 2, 3
_ZSTD, _PLAIN = 0, 255


def expanded(data: Any, events: Int64s) -> tuple[Any, Int64s]:
    """Data and places of events in it, none of which is compressed.

    Args:
        data: uint8 (n,). ``events``: (events, 6), as ``scan_events`` has them.

    Raises:
        ValueError: what is compressed cannot be read; the text says why.
    """
    if not np.isin(events[:, TYPE], COMPRESSED).any():
        return data, events
    parts = [data]
    begin = len(data)
    places: list[list[int]] = []
    for event in events.tolist():
        if event[TYPE] not in COMPRESSED:
            places.append(event)
            continue
        body = data[event[START] : event[STOP]].tobytes()
        for plain, at in _payload(body, event) if event[TYPE] == _PAYLOAD else _event(body, event):
            parts.append(np.frombuffer(plain, np.uint8))
            places.append([at[TYPE], at[TIME], at[SIZE], at[NEXT], begin + at[START], begin + at[STOP]])
            begin += len(plain)
    return np.concatenate(parts), np.array(places, np.int64).reshape(-1, 6)


def _payload(body: bytes, event: list[int]) -> Iterator[tuple[bytes, list[int]]]:
    """The events of a transaction: each stands where the transaction ends."""
    kind, size, at = _ZSTD, 0, 0
    while at < len(body):
        field, at = _number(body, at)
        if field == _END:
            break
        length, at = _number(body, at)
        value, _ = _number(body, at)
        if field == _PLAIN_SIZE:
            size = value
        elif field == _KIND:
            kind = value
        at += length
    if kind not in (_ZSTD, _PLAIN):
        raise ValueError(f"transactions that are compressed in an unknown way ({kind})")
    inner = body[at:] if kind == _PLAIN else pa.Codec("zstd").decompress(body[at:], size).to_pybytes()
    at = 0
    while at + _HEADER <= len(inner):
        seconds, code, _, length = struct.unpack_from("<IBII", inner, at)
        if length < _HEADER:
            raise ValueError("a compressed transaction that is broken")
        whole = inner[at : at + length]
        yield whole, [code, seconds, event[SIZE], event[NEXT], _HEADER, len(whole)]
        at += length


def _event(body: bytes, event: list[int]) -> Iterator[tuple[bytes, list[int]]]:
    """One event."""
    if event[TYPE] == _QUERY_COMPRESSED:
        code, begin = _QUERY, 14 + body[8] + int.from_bytes(body[11:13], "little")
    else:
        code = _ROWS[event[TYPE]]
        begin = 8 if code < 30 else 8 + int.from_bytes(body[8:10], "little")
        columns, begin = _number(body, begin)
        begin += (columns + 7) // 8 * (2 if code in _UPDATES else 1)
    plain = bytes(_HEADER) + body[:begin] + _inflated(body[begin:])
    yield plain, [code, event[TIME], event[SIZE], event[NEXT], _HEADER, len(plain)]


def _inflated(data: bytes) -> bytes:
    """What MariaDB compressed: how, and the size before it, stand in front."""
    if not data:
        return data
    head = data[0]
    if head & 0x80 == 0 or head & 0x70:
        raise ValueError("events that are compressed in an unknown way")
    return zlib.decompress(data[1 + (head & 7) :])


def _number(data: bytes, at: int) -> tuple[int, int]:
    """A packed number, and the place behind it."""
    width = {252: 2, 253: 3, 254: 8}.get(data[at], 0)
    if not width:
        return data[at], at + 1
    return int.from_bytes(data[at + 1 : at + 1 + width], "little"), at + 1 + width
