"""Streams of a NATS server as tables, by the jobs of SQL and by their readers."""

from __future__ import annotations

import asyncio
import tempfile
import time
import uuid
from collections.abc import Coroutine, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import nats
import pytest

from flowsql.errors import FlowSqlError
from flowsql.table.session.environment import TableEnvironment
from flowsql_connectors import registry
from flowsql_connectors.spi.source import ReaderContext, ReadStatus, SourceReader, Split, SplitBatch
from flowsql_core.clock import SystemClock
from flowsql_core.graph.specs import ScanSpec, TableSpec
from flowsql_core.types.logical import INT, Column
from tests.connectors.jdbc.databases import answer, explain, insert, session
from tests.local_servers import LocalServer
from tests.local_servers import nats as nats_with

CHECKPOINTS = {"execution.checkpointing.interval": "100 ms"}


class Place:
    """A stream of one test, with the subjects ``NAME.>``."""

    def __init__(self, port: int) -> None:
        self.name = f"s{uuid.uuid4().hex[:8]}"
        self.url = f"nats://127.0.0.1:{port}"
        self._loop = asyncio.new_event_loop()
        self._client = self.run(nats.connect(self.url))
        self.jetstream = self._client.jetstream()
        self.run(self.jetstream.add_stream(name=self.name, subjects=[f"{self.name}.>"]))

    def run(self, asked: Coroutine[Any, Any, Any]) -> Any:
        return self._loop.run_until_complete(asked)

    def publish(self, subject: str, *payloads: str, headers: dict[str, str] | None = None) -> None:
        for payload in payloads:
            self.run(self.jetstream.publish(f"{self.name}.{subject}", payload.encode(), headers=headers))

    def numbers(self, *numbers: int) -> None:
        self.publish("a", *(f'{{"k": {number}}}' for number in numbers))

    def messages(self) -> list[tuple[str, bytes]]:
        """All of the stream."""

        async def read() -> list[tuple[str, bytes]]:
            count = (await self.jetstream.stream_info(self.name)).state.messages
            if not count:
                return []
            subscription = await self.jetstream.pull_subscribe(f"{self.name}.>", stream=self.name)
            found = await subscription.fetch(count, timeout=10)
            await subscription.unsubscribe()
            return [(message.subject.partition(".")[2], message.data) for message in found]

        found: list[tuple[str, bytes]] = self.run(read())
        return found

    def floor(self, consumer: str) -> int:
        """The number up to which a consumer was told of all messages."""
        number: int = self.run(self.jetstream.consumer_info(self.name, consumer)).ack_floor.stream_seq
        return number

    def table(self, made: TableEnvironment, name: str, columns: str, options: str) -> None:
        made.execute_sql(f"CREATE TABLE {name} ({columns}) WITH ('connector' = 'nats', 'url' = '{self.url}'{options})")

    def reading(self, splits: list[Split] | None = None, **more: str) -> Reading:
        given = {"connector": "nats", "url": self.url, "format": "json", "subject": f"{self.name}.a"}
        return Reading({**given, **{key.replace("_", "-"): value for key, value in more.items()}}, splits)

    def close(self) -> None:
        self.run(self._client.close())
        self._loop.close()


class Reading:
    """A reader of a table with one column ``k``, and what came of it."""

    def __init__(self, options: dict[str, str], splits: list[Split] | None) -> None:
        columns = (Column("k", INT),)
        table = TableSpec(("c", "d", "t"), columns, tuple(options.items()))
        source = registry.create_source(ScanSpec(table, (0,), columns), CHECKPOINTS)
        context = ReaderContext(0, 1, 1000, SystemClock(), CHECKPOINTS, lambda name, by: None)
        self.reader: SourceReader = source.create_reader(context)
        self.reader.add_splits(source.create_enumerator().initial_splits(1)[0] if splits is None else splits)
        self.seen: list[int] = []

    def read(self, count: int, patience_s: float = 30) -> list[int]:
        """All that came, which are at least so many."""
        end = time.monotonic() + patience_s
        while len(self.seen) < count and time.monotonic() < end:
            polled = self.reader.poll(100)
            if isinstance(polled, SplitBatch):
                self.seen += polled.batch.columns[0].to_pylist()
            elif polled is ReadStatus.END:
                break
            else:
                time.sleep(0.005)
        return self.seen

    def checkpoint(self) -> list[Split]:
        """One that completes."""
        splits = self.reader.snapshot()
        self.reader.positions_durable(splits)
        return splits


def eventually(holds: Any) -> None:
    end = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.fixture
def place(nats_server: LocalServer) -> Iterator[Place]:
    made = Place(nats_server.port)
    yield made
    made.close()


@pytest.mark.servers
def test_rows_are_published_once(place: Place) -> None:
    made = session()
    place.table(made, "t", "k INT, v STRING", f", 'subject' = '{place.name}.x', 'format' = 'json'")
    insert(made, "INSERT INTO t VALUES (1, 'é'), (2, 'b')")
    assert place.messages() == [("x", '{"k":1,"v":"é"}'.encode()), ("x", b'{"k":2,"v":"b"}')]
    place.table(
        made, "own", "k INT, subject STRING METADATA, headers MAP<STRING, STRING> METADATA", ", 'format' = 'csv'"
    )
    insert(made, f"INSERT INTO own VALUES (3, '{place.name}.y', MAP['a', 'b'])")
    assert place.messages()[2:] == [("y", b"3")]
    place.table(
        made,
        "back",
        "k INT, subject STRING METADATA, sequence BIGINT METADATA, headers MAP<STRING, STRING> METADATA, "
        "moment TIMESTAMP_LTZ(3) METADATA FROM 'timestamp'",
        f", 'format' = 'csv', 'subject' = '{place.name}.y', 'scan.bounded.mode' = 'latest'",
    )
    ((k, subject, sequence, headers, moment),) = answer(made, "SELECT * FROM back")
    assert (k, subject, sequence, headers["a"]) == (3, f"{place.name}.y", 3, "b")
    assert abs(moment.timestamp() - time.time()) < 600


@pytest.mark.servers
def test_streams_are_read_where_it_is_said(place: Place) -> None:
    place.numbers(1, 2, 3)
    place.publish("b", "no number")
    made = session()
    bounded = f", 'format' = 'json', 'subject' = '{place.name}.a', 'scan.bounded.mode' = 'latest'"
    place.table(made, "t", "k INT", bounded)
    assert answer(made, "SELECT * FROM t") == [(1,), (2,), (3,)]
    place.table(made, "u", "k INT", f"{bounded}, 'scan.startup.mode' = 'specific-sequence', "
                "'scan.startup.specific-sequence' = '3'")  # fmt: skip
    assert answer(made, "SELECT * FROM u") == [(3,)]
    later = int((time.time() + 600) * 1000)
    place.table(made, "v", "k INT", f"{bounded}, 'scan.startup.mode' = 'timestamp', "
                f"'scan.startup.timestamp-millis' = '{later}'")  # fmt: skip
    assert answer(made, "SELECT * FROM v") == []
    place.table(made, "w", "k INT", f", 'format' = 'json', 'stream' = '{place.name}', 'subject' = '{place.name}.a'")
    with made.execute_sql("SELECT * FROM w").collect() as rows:
        assert [tuple(row) for row in islice(rows, 3)] == [(1,), (2,), (3,)]


@pytest.mark.servers
@pytest.mark.parametrize("durable", [False, True])
def test_each_message_once_over_snapshots(place: Place, durable: bool) -> None:
    place.numbers(*range(1, 501))
    more = {"consumer": "job"} if durable else {}
    splits, seen = None, []
    for _ in range(20):
        reading = place.reading(splits, **more)
        seen += reading.read(min(150, 500 - len(seen)))
        splits = reading.checkpoint()
        reading.reader.close()
        if len(seen) >= 500:
            break
    assert seen == list(range(1, 501))


@pytest.mark.servers
def test_a_durable_consumer_knows_what_checkpoints_hold(place: Place) -> None:
    place.numbers(*range(1, 11))
    first = place.reading(consumer="job", ack_wait="2 s")
    assert first.read(10) == list(range(1, 11))
    assert place.floor("job") == 0, "no checkpoint holds them yet"
    old = first.reader.snapshot()
    first.checkpoint()
    eventually(lambda: place.floor("job") == 10)
    place.numbers(11, 12)
    first.read(12)
    first.reader.close()
    again = place.reading(consumer="job", ack_wait="2 s")
    assert again.read(2) == [11, 12], "without a snapshot: what the consumer was not told of"
    again.reader.close()
    place.numbers(13)
    splits = [Split(old[0].id, old[0].data.replace(b"[10,", b"[4,"))]
    restored = place.reading(splits, consumer="job", ack_wait="2 s")
    assert restored.read(9) == list(range(5, 14)), "an older snapshot than the consumer knows of"
    restored.checkpoint()
    eventually(lambda: place.floor("job") == 13)
    restored.reader.close()


@pytest.mark.servers
def test_messages_that_are_delivered_again_count_once(place: Place) -> None:
    reading = place.reading(consumer="job", ack_wait="300 ms")
    place.numbers(1, 2, 3)
    reading.read(3)
    end = time.monotonic() + 1.5
    while time.monotonic() < end:
        reading.read(4, 0.05)
    assert reading.seen == [1, 2, 3]
    reading.checkpoint()
    eventually(lambda: place.floor("job") == 3)
    reading.reader.close()


@pytest.mark.servers
def test_a_server_that_returns() -> None:
    with tempfile.TemporaryDirectory() as folder:
        server = nats_with(Path(folder))
        try:
            place = Place(server.port)
            place.numbers(1, 2)
            retry = {"reconnect.initial-delay": "50 ms"}
            reading = place.reading(consumer="job", **retry)
            reading.read(2)
            made = session()
            place.table(made, "t", "k INT", f", 'subject' = '{place.name}.a', 'format' = 'json'")
            server.kill()
            reading.read(3, 0.5)
            server.start()
            insert(made, "INSERT INTO t VALUES (3)")
            assert reading.read(3) == [1, 2, 3]
            reading.checkpoint()
            reading.reader.close()
            place.close()
        finally:
            server.stop()


@pytest.mark.servers
def test_what_the_server_refuses(place: Place) -> None:
    made = session()
    once = ", 'format' = 'json', 'sink.max-retries' = '0', 'reconnect.max-attempts' = '0'"
    place.table(made, "t", "k INT", f", 'subject' = 'nobody.has.this'{once}")
    with pytest.raises(FlowSqlError, match=r"NATS at 127.0.0.1:\d+ has no stream with the subject 'nobody.has.this'"):
        answer(made, "SELECT * FROM t")
    with pytest.raises(FlowSqlError, match=r"NATS at 127.0.0.1:\d+ has no stream that takes these messages"):
        insert(made, "INSERT INTO t VALUES (1)")
    place.table(made, "u", "k INT", f", 'stream' = 'absent'{once}")
    with pytest.raises(FlowSqlError, match=r"says: stream not found"):
        answer(made, "SELECT * FROM u")


@pytest.mark.servers
def test_logins() -> None:
    with tempfile.TemporaryDirectory() as folder:
        server = nats_with(Path(folder), "--user", "ann", "--pass", "right")
        try:
            made = session()
            for name, password in (("wrong", "wrong-one"), ("fine", "right")):
                made.execute_sql(
                    f"CREATE TABLE {name} (k INT) WITH ('connector' = 'nats', "
                    f"'url' = 'nats://127.0.0.1:{server.port}', 'subject' = 'a', 'format' = 'json', "
                    f" 'username' = 'ann', 'password' = '{password}', "
                    "'sink.max-retries' = '0', 'reconnect.max-attempts' = '0')"
                )
            with pytest.raises(
                FlowSqlError, match=r"NATS at 127.0.0.1:\d+ refused: Authorization Violation"
            ) as refused:
                insert(made, "INSERT INTO wrong VALUES (1)")
            assert "wrong-one" not in refused.value.render()
            with pytest.raises(FlowSqlError, match="has no stream that takes"):
                insert(made, "INSERT INTO fine VALUES (1)")
        finally:
            server.stop()


def test_nobody_there() -> None:
    made = session()
    for name, url in (("gone", "nats://127.0.0.1:1"), ("nowhere", "nats://no-such-host.invalid")):
        made.execute_sql(
            f"CREATE TABLE {name} (k INT) WITH ('connector' = 'nats', 'url' = '{url}', 'subject' = 'x', "
            "'format' = 'json', 'sink.max-retries' = '0', 'reconnect.max-attempts' = '0')"
        )
        host = url.partition("//")[2]
        for statement in (f"INSERT INTO {name} VALUES (1)", f"SELECT * FROM {name}"):
            with pytest.raises(FlowSqlError, match=rf"NATS at {host}\S* does not answer: "):
                (insert if statement.startswith("INSERT") else answer)(made, statement)


@pytest.mark.parametrize(
    ("more", "planned", "words"),
    [
        ("", "read", "'subject' or 'stream' says what"),
        ("", "write", "'subject' says where table"),
        (", 'subject' = 'a.>'", "write", "is a filter"),
        (", 'subject' = 'a', 'url2' = 'x'", "read", "Unsupported options"),
        (", 'subject' = 'a', 'ssl.ca-file' = 'x'", "read", "no effect without TLS"),
        (", 'subject' = 'a', 'password' = 'x'", "read", "go together"),
        (", 'subject' = 'a', 'ack-wait' = '1 s'", "read", "no effect without 'consumer'"),
        (", 'subject' = 'a', 'scan.startup.mode' = 'timestamp'", "read", "go together"),
        (", 'subject' = 'a', 'scan.startup.mode' = 'now'", "read", "Supported values are"),
    ],
)
def test_what_cannot_be_is_said(more: str, planned: str, words: str) -> None:
    with pytest.raises(FlowSqlError, match=words):
        explain(f"'connector' = 'nats', 'url' = 'nats://127.0.0.1', 'format' = 'json'{more}", planned)
