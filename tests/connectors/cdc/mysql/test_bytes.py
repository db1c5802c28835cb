"""The bytes of MySQL's log: events of rows, global transaction ids, JSON documents."""

from __future__ import annotations

import json
import struct
from types import SimpleNamespace
from typing import Any, cast

import pytest

from flowsql_connectors.cdc.log import LogBatch
from flowsql_connectors.cdc.mysql.columns.json_binary import json_text
from flowsql_connectors.cdc.mysql.dump import Dump
from flowsql_connectors.cdc.mysql.gtid import GtidSet
from flowsql_connectors.cdc.mysql.layout import Wanted
from flowsql_connectors.cdc.mysql.log import MySqlLog
from flowsql_connectors.cdc.mysql.position import Position
from flowsql_connectors.cdc.mysql.schema import Schemas
from flowsql_connectors.cdc.mysql.server import Server
from flowsql_connectors.cdc.mysql.stream import BinlogStream
from flowsql_connectors.cdc.mysql.tables import Table, TableColumn, captured
from flowsql_core.errors import ConnectorError
from flowsql_core.row import SHORT_STRINGS
from flowsql_core.types import logical as t

from .log_bytes import DELETES, OTHER, SOURCE, UPDATES, WHEN, WRITES, Log, Recorded

TABLE = Table("d", "t", (TableColumn("id", "int", 1), TableColumn("x", "varchar(20)", 0, "utf8mb4", "utf8mb4_bin")))
WANTED = Wanted((t.Column("id", t.INT), t.Column("x", t.STRING)), "UTC", "bytes", legacy_json=True)


def stream_of(packets: bytes, position: Position, at_once: int = 1 << 20, wanted: Wanted = WANTED) -> BinlogStream:
    server = cast(Server, SimpleNamespace(charsets={45: "utf8mb4"}, is_mariadb=False))
    schemas = Schemas(server, [TABLE], [captured(TABLE, None, True)], wanted)
    return BinlogStream(cast(Dump, Recorded(packets, at_once)), schemas, position, False, position.gtids is not None)


def rows_of(batch: LogBatch) -> list[Any]:
    return [
        (SHORT_STRINGS[kind], *row)
        for changes in batch.tables
        for kind, *row in zip(changes.kinds.tolist(), *(column.to_pylist() for column in changes.columns), strict=True)
    ]


def log_of_two(compressed: bool = False) -> Log:
    log = Log("mysql-bin.000007", 1000)
    write = log.compressed if compressed else log.transaction
    write(5, (WRITES, [(1, "a"), (2, None), (-3, "é" * 5)]))
    write(6, (UPDATES, [(1, "a"), (1, "b"), (2, None), (4, None)]), (DELETES, [(-3, "é" * 5)]))
    return log


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("at_once", [1, 2, 3, 100])
def test_rows_and_where_they_stand(at_once: int, compressed: bool) -> None:
    log = log_of_two(compressed)
    stream = stream_of(log.packets, Position("mysql-bin.000007", 1000, f"{SOURCE}:1-4"), at_once)
    found: list[Any] = []
    places: list[Any] = []
    end = None
    for _ in range(40):
        batch = stream.read(100, 0)
        if batch is not None:
            found += rows_of(batch)
            places += [
                (batch.transactions[number].position, ordinal)
                for number, ordinal in zip(batch.transaction.tolist(), batch.ordinal.tolist(), strict=True)
            ]
            assert set(batch.times_ms.tolist()) <= {WHEN * 1000}
            end = batch.end
    assert found == [
        ("+I", 1, "a"), ("+I", 2, None), ("+I", -3, "é" * 5),
        ("-U", 1, "a"), ("+U", 1, "b"), ("-D", 2, None), ("+I", 4, None), ("-D", -3, "é" * 5),
    ]  # fmt: skip
    first = {"file": "mysql-bin.000007", "place": 1000, "gtids": f"{SOURCE}:1-4"}
    assert places[:3] == [(first, 0), (first, 1), (first, 2)]
    assert [ordinal for _, ordinal in places[3:]] == [0, 1, 2, 3, 4]
    assert all(position["gtids"] == f"{SOURCE}:1-5" for position, _ in places[3:])
    assert end is not None
    assert end.position == {"file": "mysql-bin.000007", "place": log.place, "gtids": f"{SOURCE}:1-6"}
    assert end.done == 0


def test_another_server_goes_on() -> None:
    """By global transaction ids: the first transaction stands where it stood on the server before."""
    log = Log("replica.000002", 4)
    log.transaction(6, (DELETES, [(1, "a")]))
    log.transaction(1, (DELETES, [(2, "b")]), source=OTHER)
    stood = Position("mysql-bin.000007", 1234, f"{SOURCE}:1-5")
    batch = stream_of(log.packets, stood).read(100, 0)
    assert batch is not None
    assert batch.transactions[0].position == stood.to_json()
    assert batch.transactions[1].position["file"] == "replica.000002"
    assert batch.end.position["gtids"] == f"{SOURCE}:1-6,{OTHER}:1"
    mark = Position("mysql-bin.000009", 4, f"{SOURCE}:1-6").to_json()
    log_of = object.__new__(MySqlLog)
    assert log_of.seen(mark, batch.transactions).tolist() == [True, False]
    assert not log_of.passed(mark, batch.transactions[0].position)
    assert log_of.passed(mark, batch.end.position)


def test_other_events() -> None:
    log = log_of_two()
    log.packet(39, b"...")
    stream = stream_of(log.packets, Position("mysql-bin.000007", 1000))
    batch = stream.read(100, 0)
    assert batch is not None
    assert len(rows_of(batch)) == 8
    with pytest.raises(ConnectorError, match=r"parts of JSON documents before mysql-bin\.000007:"):
        stream.read(100, 0)
    for kind, body, said in (
        (26, b"...", "incident"),
        (42, b"...", "with tags"),
        (40, b"\2\1\7\0...", r"in an unknown way \(7\)"),
        (40, b"\2\1\0\0...", r"The log has at b\.1:4"),
        (166, b"\x2a\0\0\0\0\0\1\0\2\3\x92", "in an unknown way"),
    ):
        log = Log("b.1")
        log.packet(kind, body)
        with pytest.raises(ConnectorError, match=said):
            stream_of(log.packets, Position("b.1", 4)).read(100, 0)


def test_rows_without_their_table() -> None:
    log = Log("b.1")
    log.packet(WRITES, b"\x2b\0\0\0\0\0\1\0\2\0\2\3\xfc\1\0\0\0\0")
    with pytest.raises(ConnectorError, match="whose table it does not name"):
        stream_of(log.packets, Position("b.1", 4)).read(100, 0)


def test_rows_that_are_not_as_their_table_says() -> None:
    for body, said in (
        (b"\x2a\0\0\0\0\0\1\0\2\0\3\7\xf8\1\0\0\0", "not as it says"),
        (b"\x2a\0\0\0\0\0\1\0\2\0\2\1\xfc\1\0\0\0", "only parts of rows"),
        (b"\x2a\0\0\0\0\0\1\0\2\0\2\3\xfc\1\0\0\0\x09a", "not as it says"),
    ):
        log = Log("b.1")
        log.transaction(1)
        log.packet(WRITES, body)
        with pytest.raises(ConnectorError, match=said):
            stream_of(log.packets, Position("b.1", 4)).read(100, 0)


def test_gtid_sets() -> None:
    text = f"{str(SOURCE).upper()}:1-5:7, {OTHER}:9"
    made = GtidSet(text)
    assert str(made) == f"{SOURCE}:1-5:7,{OTHER}:9"
    made.add(str(SOURCE), 6)
    made.add(str(SOURCE), 8)
    made.add(str(OTHER), 3)
    assert str(made) == f"{SOURCE}:1-8,{OTHER}:3:9"
    assert made.has(str(SOURCE), 8)
    assert not made.has(str(SOURCE), 9)
    assert GtidSet(text).within(made)
    assert not made.within(GtidSet(text))
    assert GtidSet().within(GtidSet())
    sid = struct.pack
    assert made.encoded() == (
        sid("<Q", 2) + SOURCE.bytes + sid("<QQQ", 1, 1, 9) + OTHER.bytes + sid("<QQQQQ", 2, 3, 4, 9, 10)
    )  # fmt: skip
    for wrong, said in (("x:1", "badly formed"), (f"{SOURCE}:1-b", "invalid literal"), (f"{SOURCE}:tag:1", "tag")):
        with pytest.raises(ValueError, match=said):
            GtidSet(wrong)


def binary(value: Any, large: bool) -> tuple[int, bytes]:
    """A document as MySQL keeps it: its type and bytes. Numbers stand apart from where they could."""
    match value:
        case None | True | False:
            return 4, bytes([[None, True, False].index(value)])
        case int():
            for kind, code in ((5, "<h"), (7, "<i"), (9, "<q")):
                try:
                    return kind, struct.pack(code, value)
                except struct.error:
                    continue
            return 10, struct.pack("<Q", value)
        case float():
            return 11, struct.pack("<d", value)
        case str():
            text = value.encode()
            size, length = b"", len(text)
            while length > 127:
                size, length = size + bytes([length & 127 | 128]), length >> 7
            return 12, size + bytes([length]) + text
    code, width = ("<I", 4) if large else ("<H", 2)
    is_object = isinstance(value, dict)
    keys = [key.encode() for key in value] if is_object else []
    inner = [binary(one, large) for one in (value.values() if is_object else value)]
    entries = len(keys) * (width + 2) + len(inner) * (width + 1)
    place = 2 * width + entries
    head, body = b"", b""
    for key in keys:
        head += struct.pack(code, place + len(body)) + struct.pack("<H", len(key))
        body += key
    for kind, data in inner:
        if kind in (4, 5) or (large and kind == 7):
            head += bytes([kind]) + data.ljust(width, b"\0")
        else:
            head += bytes([kind]) + struct.pack(code, place + len(body))
            body += data
    made = struct.pack(code, len(inner)) + struct.pack(code, place + len(body)) + head + body
    return (large if is_object else 2 + large), made


@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize(
    "value",
    [
        {"a": [1, 2]}, {}, [], None, True, "text", 'q"\\\n', "é𝄞" * 100, 1, -40000, 2**40, 2**64 - 1, 1.5, -0.25,
        [None, [True, {"k": {"n": [[]]}}], "x" * 20000, 123456, False], {"": "", "b": None, "ключ": [1.5e300]},
    ],
)  # fmt: skip
def test_json(value: Any, large: bool) -> None:
    kind, data = binary(value, large)
    for compact, separators in ((False, (", ", ": ")), (True, (",", ":"))):
        found = json_text(bytes([kind]) + data, compact)
        assert found.replace("e+300", "e300") == json.dumps(value, ensure_ascii=False, separators=separators).replace(
            "e+300", "e300"
        )


def test_json_of_mysql_alone() -> None:
    """Decimals and moments, which JSON does not know."""
    opaque = {
        "-12.50": (246, b"\x04\x02" + b"\x73\xcd"),
        '"2026-01-02"': (10, struct.pack("<q", (((2026 * 13 + 1) << 5 | 2) << 17) << 24)),
        '"2026-01-02 03:04:05.000006"': (
            12, struct.pack("<q", ((((2026 * 13 + 1) << 5 | 2) << 17 | 3 << 12 | 4 << 6 | 5) << 24) | 6)
        ),
        '"-03:04:05.000000"': (11, struct.pack("<q", -((3 << 12 | 4 << 6 | 5) << 24))),
        '"base64:type252:AP8="': (252, b"\x00\xff"),
    }  # fmt: skip
    for text, (kind, data) in opaque.items():
        assert json_text(b"\x0f" + bytes([kind, len(data)]) + data, compact=True) == text
    assert json_text(b"", compact=True) == "null"
