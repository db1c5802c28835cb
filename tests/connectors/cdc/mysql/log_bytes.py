"""Events of a binary log as bytes, as MySQL writes them."""

from __future__ import annotations

import struct
import uuid
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from flowsql_compute.kernels.wire.mysql_rows import scan_events
from flowsql_connectors.cdc.log import Int64s

SOURCE = uuid.UUID("3e11fa47-71ca-11e1-9e33-c80aa9429562")
OTHER = uuid.UUID("7e11fa47-71ca-11e1-9e33-c80aa9429562")
#: Seconds since 1970 of all events.
WHEN = 1_700_000_000
ROTATE, XID, TABLE_MAP, WRITES, UPDATES, DELETES, GTID, PAYLOAD = 4, 16, 19, 30, 31, 32, 33, 40


class Log:
    """A file of a log, event behind event; each has a checksum that nobody looks at."""

    def __init__(self, file: str, place: int = 4) -> None:
        self.file = file
        self.place = place
        self.packets = b""
        self.packet(ROTATE, struct.pack("<Q", place) + file.encode(), artificial=True)

    def packet(self, kind: int, body: bytes, *, artificial: bool = False) -> None:
        """An event with its header, in a packet."""
        size = 19 + len(body) + 4
        if not artificial:
            self.place += size
        event = struct.pack("<IBIIIH", 0 if artificial else WHEN, kind, 1, size, 0 if artificial else self.place, 0)
        event = b"\0" + event + body + b"\1\2\3\4"
        self.packets += struct.pack("<I", len(event))[:3] + b"\7" + event

    def transaction(self, number: int, *rows: tuple[int, Sequence[Any]], source: uuid.UUID = SOURCE) -> None:
        """Events of rows ``(id, x)`` of a table, in a transaction with an id."""
        self._begin(number, source)
        for kind, body in _events(number, rows):
            self.packet(kind, body)

    def compressed(self, number: int, *rows: tuple[int, Sequence[Any]]) -> None:
        """The same, compressed."""
        self._begin(number, SOURCE)
        inner = b"".join(
            struct.pack("<IBIIIH", WHEN, kind, 1, 19 + len(body), 0, 0) + body for kind, body in _events(number, rows)
        )
        data = pa.Codec("zstd").compress(inner, asbytes=True)
        size, plain = b"\xfc" + struct.pack("<H", len(data)), b"\xfc" + struct.pack("<H", len(inner))
        self.packet(PAYLOAD, b"\1\3" + size + b"\2\1\0" + b"\3\3" + plain + b"\0" + data)

    def _begin(self, number: int, source: uuid.UUID) -> None:
        self.packet(GTID, b"\1" + source.bytes + struct.pack("<Q", number) + b"\2" + b"\0" * 16)


def _events(number: int, rows: Sequence[tuple[int, Sequence[Any]]]) -> Iterator[tuple[int, bytes]]:
    yield TABLE_MAP, table_map()
    for kind, images in rows:
        present = b"\x03" * (2 if kind == UPDATES else 1)
        yield kind, b"\x2a\0\0\0\0\0" + b"\1\0" + b"\2\0" + b"\2" + present + b"".join(map(image, images))
    yield XID, struct.pack("<Q", number)


def table_map() -> bytes:
    """Of table d.t (id int PRIMARY KEY, x varchar(20)), with all that binlog_row_metadata = FULL adds."""
    signs, collation, key = b"\x01\x01\x00", b"\x02\x01\x2d", b"\x08\x01\x00"
    names = b"\x04\x05\x02id\x01x"
    return (
        b"\x2a\0\0\0\0\0" + b"\1\0" + b"\1d\0" + b"\1t\0" + b"\2\x03\x0f" + b"\2\x50\0" + b"\2"
        + signs + collation + names + key
    )  # fmt: skip


def image(row: tuple[int, str | None]) -> bytes:
    """A row as it was or is."""
    id_, x = row
    if x is None:
        return b"\xfe" + struct.pack("<i", id_)
    return b"\xfc" + struct.pack("<i", id_) + bytes([len(x.encode())]) + x.encode()


class Recorded:
    """What a connection would give: all packets at once, or some events at a time."""

    def __init__(self, packets: bytes, at_once: int = 1 << 20) -> None:
        self._packets = packets
        self._at_once = at_once

    def read(self, timeout_s: float) -> tuple[Any, Int64s] | None:
        """Data and the places of events in it."""
        if not self._packets:
            return None
        data = np.frombuffer(self._packets, np.uint8)
        events = np.empty((self._at_once, 6), np.int64)
        consumed = np.zeros(1, np.int64)
        count = scan_events(data, len(data), 4, events, consumed)
        self._packets = self._packets[int(consumed[0]) :]
        return data, events[:count]

    def close(self) -> None:
        """Nothing is open."""
