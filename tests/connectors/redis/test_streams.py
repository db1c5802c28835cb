"""Streams of a Redis server as tables."""

from __future__ import annotations

import base64
import datetime
import json
from pathlib import Path

import pytest
import redis

from flowsql.errors import FlowSqlError
from flowsql_connectors import registry
from flowsql_connectors.spi.source import ReaderContext, ReadStatus, SplitBatch
from flowsql_core.clock import SystemClock
from flowsql_core.graph.specs import ScanSpec, TableSpec
from flowsql_core.types.logical import INT, Column

from .conftest import KINDS
from .test_redis import Place

both = pytest.mark.parametrize("server", KINDS, indirect=True)


@pytest.fixture
def place(server: redis.Redis) -> Place:
    return Place(server)


STREAM = ", 'structure' = 'stream', 'key' = 'events'"
ENDS = ", 'scan.bounded.mode' = 'latest'"


@both
def test_entries_are_added_and_read(place: Place) -> None:
    columns = "k INT, n DECIMAL(5, 2), a ARRAY<INT>, t STRING"
    place.table("t", columns, STREAM + ENDS)
    place.insert("INSERT INTO t VALUES (1, 1.50, ARRAY[1, 2], 'x'), (2, CAST(NULL AS DECIMAL(5, 2)), "
                 "CAST(NULL AS ARRAY<INT>), 'y')", keyed=False)  # fmt: skip
    found = place.client.xrange("events")
    assert [fields for _, fields in found] == [
        {b"k": b"1", b"n": b"1.50", b"a": b"[1,2]", b"t": b"x"},
        {b"k": b"2", b"t": b"y"},
    ]
    assert place.answer("SELECT t, k, a FROM t") == [("x", 1, [1, 2]), ("y", 2, None)]
    place.table("m", "k INT, id STRING METADATA, moment TIMESTAMP_LTZ(3) METADATA FROM 'timestamp'", STREAM + ENDS)
    place.client.xadd("events", {"k": "3"}, id="9000000000000-7")
    assert place.answer("SELECT id, moment FROM m WHERE k = 3") == [
        ("9000000000000-7", datetime.datetime(2255, 3, 14, 16, 0, tzinfo=datetime.UTC))
    ]


@both
def test_streams_begin_where_it_is_said(place: Place) -> None:
    for number in range(1, 6):
        place.client.xadd("events", {"k": str(number)}, id=f"{number}-1")
    place.table("t", "k INT", STREAM + ENDS + ", 'scan.startup.mode' = 'specific-id', 'scan.startup.specific-id' = '3'")
    assert place.answer("SELECT * FROM t") == [(3,), (4,), (5,)]
    place.table("l", "k INT", STREAM + ENDS + ", 'scan.startup.mode' = 'latest'")
    assert place.answer("SELECT * FROM l") == []
    place.table("cut", "k INT", STREAM + ", 'sink.max-length' = '2'")
    place.insert("INSERT INTO cut VALUES (6), (7)", keyed=False)
    assert [fields[b"k"] for _, fields in place.client.xrange("events")] == [b"6", b"7"]


@both
def test_each_entry_once_over_snapshots(place: Place) -> None:
    for number in range(60):
        place.client.xadd("events", {"k": str(number)})
    columns = (Column("k", INT),)
    options = {
        "connector": "redis", "url": f"redis://127.0.0.1:{place.port}/0", "structure": "stream", "key": "events",
        "scan.bounded.mode": "latest",
    }  # fmt: skip
    table = TableSpec(("c", "d", "t"), columns, tuple(options.items()))
    source = registry.create_source(ScanSpec(table, (0,), columns), {})
    splits = source.create_enumerator().initial_splits(1)[0]
    seen: list[int] = []
    for _ in range(100):
        reader = source.create_reader(ReaderContext(0, 1, 1000, SystemClock(), {}, lambda name, by: None))
        reader.add_splits(splits)
        reader.no_more_splits()
        found = 0
        while found < 25 and (polled := reader.poll(17)) is not ReadStatus.END:
            if isinstance(polled, SplitBatch) and polled.batch.num_rows:
                seen += polled.batch.columns[0].to_pylist()
                found += polled.batch.num_rows
        splits = reader.snapshot()
        reader.close()
        if not splits:
            break
    assert seen == list(range(60))


@both
def test_entries_that_are_no_rows_are_named(place: Place) -> None:
    place.client.xadd("events", {"k": "one"}, id="1-1")
    place.table("t", "k INT", STREAM + ENDS)
    with pytest.raises(FlowSqlError, match=r"A value of stream 'events', entries 1-1 to 1-1, column 'k', is no INT"):
        place.answer("SELECT * FROM t")
    place.table("u", "k INT", ", 'structure' = 'stream', 'key' = 'of:{k}'")
    with pytest.raises(FlowSqlError, match=r"none is left for its values"):
        place.answer("SELECT * FROM u")


@both
def test_entries_that_cannot_be_read_are_kept_once(place: Place, tmp_path: Path) -> None:
    for number, fields in enumerate([{"k": "1"}, {"k": "x", "v": b"\xffy"}, {"v": "z"}, {"k": "3"}]):
        place.client.xadd("events", fields, id=f"{number + 1}-0")
    dead = f", 'on-error' = 'dead-letter', 'on-error.dead-letter.path' = '{tmp_path}'"
    place.table("t", "k INT, v BYTES", STREAM + ENDS + dead)
    for _ in range(2):
        assert place.answer("SELECT k FROM t") == [(1,), (None,), (3,)]
    assert place.answer("SELECT k, v FROM t") == [(1, None), (None, b"z"), (3, None)]
    letters = [json.loads(line) for file in tmp_path.glob("*") for line in file.read_text().splitlines()]
    assert sorted(base64.b64decode(letter["row_bytes"]) for letter in letters) == [
        b'{"k":"x","v":"%FFy"}',
        b'{"k":"x"}',
    ]
    assert {letter["source_position"] for letter in letters} == {'"2-0"'}
    assert letters[0]["source"].endswith("/0 events")
    assert letters[0]["source_metadata"] == {"id": "2-0", "timestamp": "1970-01-01 00:00:00.002Z"}
    place.table("h", "k INT", ", 'key' = 'h:{k}', 'on-error' = 'skip'")
    with pytest.raises(FlowSqlError, match="'on-error' has no effect with 'structure' = 'hash'"):
        place.answer("SELECT * FROM h")
