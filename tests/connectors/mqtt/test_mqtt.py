"""Topics of an MQTT broker as tables, by the jobs of SQL and by their readers."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Mapping
from itertools import islice
from typing import Any

import pytest

from flowsql.errors import FlowSqlError
from flowsql_connectors import registry
from flowsql_connectors.spi.source import ReaderContext, SourceReader, SplitBatch
from flowsql_core.clock import SystemClock
from flowsql_core.graph.specs import ScanSpec, TableSpec
from flowsql_core.types.logical import INT, Column
from tests.connectors.jdbc.databases import answer, explain, insert, session
from tests.local_servers import LocalServer

from .conftest import KINDS, Place

brokers = pytest.mark.parametrize("place", KINDS, indirect=True)
CHECKPOINTS = {"execution.checkpointing.interval": "100 ms"}


def topic() -> str:
    """One that no other test has."""
    return f"open/{uuid.uuid4().hex[:8]}"


def options(place: Place, more: Mapping[str, str]) -> dict[str, str]:
    words = (part.split("' = '") for part in place.options.strip("'").split("', '"))
    return {**dict(pair for pair in words), "format": "json", **more}


class Reading:
    """A reader of a table with one column ``k``, and what came of it."""

    def __init__(self, options: dict[str, str], configuration: dict[str, str] | None = None) -> None:
        columns = (Column("k", INT),)
        table = TableSpec(("c", "d", "t"), columns, tuple(options.items()))
        made = dict(CHECKPOINTS if configuration is None else configuration)
        source = registry.create_source(ScanSpec(table, (0,), columns), made)
        self.reader: SourceReader = source.create_reader(
            ReaderContext(0, 1, 1000, SystemClock(), made, lambda name, by: None)
        )
        self.reader.add_splits(source.create_enumerator().initial_splits(1)[0])
        self.seen: list[int] = []

    def read(self, count: int, patience_s: float = 30) -> list[int]:
        """All that came, which are at least so many."""
        end = time.monotonic() + patience_s
        while len(self.seen) < count and time.monotonic() < end:
            polled = self.reader.poll(100)
            if isinstance(polled, SplitBatch):
                self.seen += polled.batch.columns[0].to_pylist()
            else:
                time.sleep(0.005)
        return self.seen

    def wait(self, seconds: float) -> None:
        """Let the feed connect."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.read(len(self.seen) + 1, 0.02)

    def durable(self) -> None:
        """A checkpoint is complete."""
        self.reader.positions_durable(self.reader.snapshot())


def subscribed(reading: Reading, place: Place, where: str) -> None:
    """Wait until the reader gets what is published: a message with the number 0."""
    end = time.monotonic() + 30
    while not reading.seen and time.monotonic() < end:
        place.publish(where, '{"k": 0}')
        reading.read(1, 0.2)
    reading.wait(0.3)
    reading.seen.clear()


@brokers
def test_rows_are_published(place: Place) -> None:
    where = topic()
    made = session()
    made.execute_sql(f"CREATE TABLE t (k INT, v STRING) WITH ({place.options}, 'topic' = '{where}', 'format' = 'json')")
    insert(made, "INSERT INTO t VALUES (1, 'é'), (2, 'b')")
    assert place.waited(2) == [(where, '{"k":1,"v":"é"}'.encode()), (where, b'{"k":2,"v":"b"}')]
    place.seen.clear()
    made.execute_sql(
        f"CREATE TABLE own (k INT, topic STRING METADATA) WITH ({place.options}, 'format' = 'csv', 'qos' = '0', "
        f"'sink.retain' = '{'true' if place.keeps else 'false'}')"
    )
    insert(made, f"INSERT INTO own VALUES (1, '{where}/a'), (2, '{where}/b')")
    assert sorted(place.waited(2)) == [(f"{where}/a", b"1"), (f"{where}/b", b"2")]


@brokers
def test_messages_are_rows(place: Place) -> None:
    where = topic()
    if place.keeps:
        place.publish(f"{where}/kept", "kept", retain=True)
    made = session()
    made.execute_sql(
        f"CREATE TABLE t (v STRING, topic STRING METADATA, qos INT METADATA, retained BOOLEAN METADATA) "
        f"WITH ({place.options}, 'topic' = 'open/nothing;{where}/#', 'format' = 'raw')"
    )
    stop = threading.Event()

    def publish() -> None:
        while not stop.wait(0.1):
            place.publish(f"{where}/a/b", "one", "two")

    publisher = threading.Thread(target=publish)
    publisher.start()
    with made.execute_sql("SELECT * FROM t").collect() as rows:
        found = [tuple(row) for row in islice(rows, 3)]
    stop.set()
    publisher.join()
    if place.keeps:
        assert found.pop(0) == ("kept", f"{where}/kept", 1, True)
    assert sorted(found[:2]) == [("one", f"{where}/a/b", 1, False), ("two", f"{where}/a/b", 1, False)]


@pytest.mark.parametrize("place", KINDS[1:], indirect=True)
@pytest.mark.parametrize("version", ["5", "3.1.1"])
def test_what_no_checkpoint_holds_is_delivered_again(place: Place, version: str) -> None:
    where = topic()
    given = options(place, {"topic": where, "client-id": uuid.uuid4().hex, "protocol-version": version})
    first = Reading(given)
    subscribed(first, place, where)
    first.durable()
    first.wait(0.5)
    # 15 of them: without a window of MQTT 5, Mosquitto sends no more than 20 that are not acknowledged.
    place.publish(where, *(f'{{"k": {number}}}' for number in range(1, 16)))
    assert first.read(15) == list(range(1, 16))
    first.durable()
    first.wait(0.5)
    place.publish(where, *(f'{{"k": {number}}}' for number in range(16, 21)))
    assert first.read(20) == list(range(1, 21))
    first.reader.close()
    place.publish(where, '{"k": 21}')
    second = Reading(given)
    assert second.read(6) == list(range(16, 22))
    second.durable()
    second.wait(0.5)
    second.reader.close()
    place.publish(where, '{"k": 22}')
    third = Reading(given)
    assert third.read(1) == [22]
    third.reader.close()


@pytest.mark.parametrize("place", KINDS[1:], indirect=True)
def test_a_window_of_many_messages(place: Place) -> None:
    """Between two checkpoints come more than the 20 that are a broker's default."""
    where = topic()
    reading = Reading(options(place, {"topic": where, "client-id": uuid.uuid4().hex}))
    subscribed(reading, place, where)
    place.publish(where, *(f'{{"k": {number}}}' for number in range(1, 501)))
    assert reading.read(500) == list(range(1, 501))
    reading.reader.close()


@pytest.mark.servers
def test_a_broker_that_returns(mqtt_server: LocalServer) -> None:
    place = Place(mqtt_server.port, "5")
    where = topic()
    given = {"topic": where, "client-id": uuid.uuid4().hex, "reconnect.initial-delay": "50 ms"}
    reading = Reading(options(place, given))
    subscribed(reading, place, where)
    place.publish(where, '{"k": 1}', '{"k": 2}')
    reading.read(2)
    time.sleep(1.5)
    mqtt_server.kill()
    reading.wait(0.5)
    mqtt_server.start()
    place.close()
    other = Place(mqtt_server.port, "5")
    other.publish(where, '{"k": 3}')
    assert reading.read(3) == [1, 2, 3], "what was given is not given again by the same reader"
    reading.reader.close()
    other.close()


@pytest.mark.servers
def test_logins(mqtt_server: LocalServer) -> None:
    made = session()

    def table(name: str, user: str, password: str, where: str = "secret/x") -> None:
        made.execute_sql(
            f"CREATE TABLE {name} (k INT) WITH ('connector' = 'mqtt', 'url' = 'mqtt://127.0.0.1:{mqtt_server.port}', "
            f"'topic' = '{where}', 'format' = 'json', 'username' = '{user}', 'password' = '{password}', "
            "'sink.max-retries' = '0', 'reconnect.max-attempts' = '0')"
        )

    table("wrong", "ann", "wrong-one")
    for statement in ("INSERT INTO wrong VALUES (1)", "SELECT * FROM wrong"):
        with pytest.raises(FlowSqlError, match="refused the login: Not authorized") as refused:
            insert(made, statement) if statement.startswith("INSERT") else answer(made, statement)
        assert "wrong-one" not in refused.value.render()
    table("right_", "ann", "right")
    insert(made, "INSERT INTO right_ VALUES (1)")
    made.execute_sql(
        f"CREATE TABLE nobody (k INT) WITH ('connector' = 'mqtt', 'url' = 'mqtt://127.0.0.1:{mqtt_server.port}', "
        "'topic' = 'secret/x', 'format' = 'json', 'sink.max-retries' = '0')"
    )
    with pytest.raises(FlowSqlError, match="refused a message: Not authorized"):
        insert(made, "INSERT INTO nobody VALUES (1)")


def test_nobody_there() -> None:
    made = session()
    for name, url in (("gone", "mqtt://127.0.0.1:1"), ("nowhere", "mqtts://no-such-host.invalid")):
        made.execute_sql(
            f"CREATE TABLE {name} (k INT) WITH ('connector' = 'mqtt', 'url' = '{url}', 'topic' = 'x', "
            "'format' = 'json', 'sink.max-retries' = '0', 'reconnect.max-attempts' = '0')"
        )
        host = url.partition("//")[2]
        with pytest.raises(FlowSqlError, match=rf"The MQTT broker at {host}\S* does not answer: "):
            insert(made, f"INSERT INTO {name} VALUES (1)")
        with pytest.raises(FlowSqlError, match=rf"The MQTT broker at {host}\S* does not answer: "):
            answer(made, f"SELECT * FROM {name}")


@pytest.mark.parametrize(
    ("more", "planned", "words"),
    [
        ("", "read", "'topic' says what table"),
        ("", "write", "'topic' says where table"),
        (", 'topic' = 'a/#'", "write", "is a filter"),
        (", 'topic' = 'a', 'qos' = '3'", "read", "expected 0, 1 or 2"),
        (", 'topic' = 'a', 'url2' = 'x'", "read", "Unsupported options"),
        (", 'topic' = 'a', 'ssl.ca-file' = 'x'", "read", "no effect without TLS"),
        (", 'topic' = 'a', 'password' = 'x'", "read", "is given without 'username'"),
        (", 'topic' = 'a', 'protocol-version' = '4'", "read", "Supported values are"),
    ],
)
def test_what_cannot_be_is_said(more: str, planned: str, words: str) -> None:
    with pytest.raises(FlowSqlError, match=words):
        explain(f"'connector' = 'mqtt', 'url' = 'mqtt://127.0.0.1', 'format' = 'json'{more}", planned)


def test_plans_tell_the_guarantee() -> None:
    made = session({"execution.checkpointing.interval": "1 s"})
    made.execute_sql("CREATE TABLE s (k INT) WITH ('connector' = 'print')")
    wanted: list[tuple[str, Any]] = [
        ("", "at most once: at least once takes 'client-id'"),
        (", 'client-id' = 'x'", "at least once: what no complete checkpoint holds is delivered again"),
        (", 'client-id' = 'x', 'qos' = '2'", "at most once: at least once takes 'qos' = '1'"),
    ]
    for number, (more, text) in enumerate(wanted):
        made.execute_sql(
            f"CREATE TABLE t{number} (k INT) WITH ('connector' = 'mqtt', 'url' = 'mqtt://127.0.0.1', 'topic' = 'a', "
            f"'format' = 'json'{more})"
        )
        assert text in made.explain_sql(f"INSERT INTO s SELECT * FROM t{number}")
