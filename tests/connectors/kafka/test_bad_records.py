"""``on-error`` of topics: bad records are named, left out, or written elsewhere with where they were."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from flowsql.table import TableEnvironment
from flowsql_connectors.kafka.enumerator import TopicSplit
from flowsql_core.errors import BindError, ConnectorError, ExecutionError, FlowSqlError, NotSupportedYetError
from tests.connectors.kafka.broker import PARTITIONS, Broker, real_broker, sorted_rows
from tests.connectors.kafka.test_real_broker import tables, values
from tests.connectors.tables import drain, reader_of, scan, source_of
from tests.restarted_job import Job

_HEADERS = "__flowsql.errors."
#: Partition 1 of a topic: bad at offsets 1 (the value), 2 (not even JSON) and 4.
_ROWS: list[Any] = [{"a": 1}, {"a": "x"}, "{", {"a": 4}, {"a": [2], "b": 1}, {"a": 6}]
_GOOD = [[1], [4], [6]]


def topic_of(broker: Broker) -> str:
    topic = broker.topic("bad")
    broker.write(topic, *_ROWS, partition=1, key=b"k", headers=[("h", b"v")], timestamp=1_767_225_600_000)
    return topic


def letters_of(broker: Broker, topic: str) -> list[tuple[bytes, dict[str, str]]]:
    return [
        (message.value(), {name.removeprefix(_HEADERS): value.decode() for name, value in message.headers()})
        for message in broker.read(topic)
    ]


def test_bad_records_are_skipped(broker: Broker) -> None:
    topic = topic_of(broker)
    with pytest.raises(ExecutionError, match=rf"at field: a\.[^\n]*\nin topic '{topic}', partition 1, offset 1"):
        scan(broker.table("a INT", topic))
    assert scan(broker.table("a INT", topic, {"on-error": "skip"})) == _GOOD


def test_a_topic_takes_bad_records_as_they_are(broker: Broker) -> None:
    topic, letters = topic_of(broker), broker.topic("letters")
    broker.write(letters)
    options = {"on-error": "dead-letter", "on-error.dead-letter.topic": letters}
    assert scan(broker.table("a INT", topic, options)) == _GOOD
    found = {int(told["offset"]): (value, told) for value, told in letters_of(broker, letters)}
    assert {offset: value for offset, (value, _) in found.items()} == {
        1: b'{"a": "x"}',
        2: b"{",
        4: b'{"a": [2], "b": 1}',
    }
    for offset, (_, told) in found.items():
        assert told["h"] == "v"
        assert (told["topic"], told["partition"], told["table"]) == (topic, "1", "default_catalog.default_database.t")
        assert "field: a" in told["message"] or offset == 2
    message = broker.read(letters)[0]
    assert (message.key(), message.timestamp()[1]) == (b"k", 1_767_225_600_000)


def test_a_restored_reader_writes_no_older_letters(broker: Broker) -> None:
    """And goes on at the offset, whatever rows the bad records before it would have been."""
    topic, letters = topic_of(broker), broker.topic("letters")
    broker.write(letters)
    options = {"on-error": "dead-letter", "on-error.dead-letter.topic": letters}
    source, schema = source_of(broker.table("a INT", topic, options))
    split = TopicSplit(topic, 1, 3, 0, len(_ROWS)).encode()
    assert drain(reader_of(source), [split], schema, max_rows=1) == _GOOD[1:]
    assert [told["offset"] for _, told in letters_of(broker, letters)] == ["4"]


def test_bad_keys_and_tombstones(broker: Broker) -> None:
    topic, letters = broker.topic("keys"), broker.topic("letters")
    broker.write(letters)
    for key, value in (("1", b"10"), ("x", b"11"), ("2", None), ("y", None), ("3", b"z")):
        broker.write(topic, value, key=key.encode())
    options = {
        "connector": "upsert-kafka", "key.format": "csv", "value.format": "csv", "scan.startup.mode": "",
        "value.fields-include": "EXCEPT_KEY", "on-error": "dead-letter", "on-error.dead-letter.topic": letters,
    }  # fmt: skip
    table = broker.table("id INT, n INT", topic, options)
    assert sorted_rows(scan(replace(table, primary_key=("id",)))) == [[1, 10], [2, None]]
    assert sorted((m.key(), m.value()) for m in broker.read(letters) if m.value()) == [(b"3", b"z"), (b"x", b"11")]
    assert [m.key() for m in broker.read(letters) if m.value() is None] == [b"y"]


_LETTERS = (
    "row_bytes BYTES, key_bytes BYTES, error STRING, topic STRING, `partition` INT, `offset` BIGINT, table_name STRING"
)


def session(broker: Broker, topic: str, letters: str, more: str = "") -> TableEnvironment:
    environment = TableEnvironment.create()
    servers = f"'connector' = 'kafka', 'properties.bootstrap.servers' = '{broker.address}'"
    bounds = "'scan.startup.mode' = 'earliest-offset', 'scan.bounded.mode' = 'latest-offset'"
    environment.execute_sql(f"CREATE TABLE letters ({letters.replace('$', f'{servers}, {bounds}')})")
    environment.execute_sql(
        f"CREATE TABLE t (a INT) WITH ({servers}, {bounds}, 'topic' = '{topic}', 'format' = 'json', "
        f"'on-error' = 'dead-letter', 'on-error.dead-letter.table' = 'letters'{more})"
    )
    return environment


def rows_of(environment: TableEnvironment, query: str) -> list[tuple[Any, ...]]:
    with environment.execute_sql(query).collect() as found:
        return sorted(tuple(row) for row in found)


def test_a_table_of_files_takes_letters(broker: Broker, tmp_path: Path) -> None:
    environment = session(
        broker, topic_of(broker),
        f"{_LETTERS}) WITH ('connector' = 'filesystem', 'format' = 'json', 'path' = '{tmp_path / 'dead'}'",
    )  # fmt: skip
    assert rows_of(environment, "SELECT a FROM t") == [(1,), (4,), (6,)]
    assert rows_of(environment, "SELECT a FROM t") == [(1,), (4,), (6,)]
    query = "SELECT `partition`, `offset`, DECODE(row_bytes, 'utf-8'), DECODE(key_bytes, 'utf-8') FROM letters"
    wanted = [(1, 1, '{"a": "x"}', "k"), (1, 2, "{", "k"), (1, 4, '{"a": [2], "b": 1}', "k")]
    # The same records again are the same letters, in whatever batches they come.
    assert rows_of(environment, query) == wanted
    alone = "SELECT a FROM t /*+ OPTIONS('properties.max.poll.records' = '1') */"
    assert rows_of(environment, alone) == [(1,), (4,), (6,)]
    assert rows_of(environment, query) == wanted


def test_letters_of_single_records_are_those_of_batches(broker: Broker, tmp_path: Path) -> None:
    environment = session(
        broker, topic_of(broker),
        f"{_LETTERS}) WITH ('connector' = 'filesystem', 'format' = 'json', 'path' = '{tmp_path / 'dead'}'",
        ", 'properties.max.poll.records' = '1'",
    )  # fmt: skip
    together = "SELECT a FROM t /*+ OPTIONS('properties.max.poll.records' = '100') */"
    for query in ("SELECT a FROM t", together):
        assert rows_of(environment, query) == [(1,), (4,), (6,)]
        assert rows_of(environment, "SELECT `offset` FROM letters") == [(1,), (2,), (4,)]


def test_a_table_of_a_topic_takes_letters(broker: Broker) -> None:
    letters = broker.topic("letters")
    broker.write(letters)
    environment = session(
        broker, topic_of(broker),
        "v STRING, headers MAP<STRING, BYTES> METADATA) WITH "
        f"($, 'topic' = '{letters}', 'format' = 'raw'",
    )  # fmt: skip
    assert rows_of(environment, "SELECT a FROM t") == [(1,), (4,), (6,)]
    found = rows_of(environment, f"SELECT DECODE(headers['{_HEADERS}offset'], 'utf-8'), v FROM letters")
    assert found == [("1", '{"a": "x"}'), ("2", "{"), ("4", '{"a": [2], "b": 1}')]


UNFIT = {
    "json values": ("v STRING) WITH ($, 'topic' = 'l', 'format' = 'json'", "", "must have 'format' = 'raw'"),
    "a table and a topic": (
        "v STRING) WITH ($, 'topic' = 'l', 'format' = 'raw'",
        ", 'on-error.dead-letter.topic' = 'l'",
        "Give 'on-error.dead-letter.table' or 'on-error.dead-letter.topic', not both.",
    ),
    "another cluster": (
        "v STRING) WITH ('connector' = 'kafka', 'topic' = 'l', 'format' = 'raw', "
        "'properties.bootstrap.servers' = 'elsewhere:9092'",
        "",
        "must be one topic of the same 'properties.bootstrap.servers'",
    ),
    "a column": (
        "v STRING) WITH ('connector' = 'filesystem', 'format' = 'json', 'path' = '/x'",
        "",
        "is none of a letter.",
    ),
    "neither": (f"{_LETTERS}) WITH ('connector' = 'print'", "", "not supported yet"),
    "two places": (
        f"{_LETTERS}) WITH ('connector' = 'filesystem', 'format' = 'json', 'path' = '/x'",
        ", 'on-error.dead-letter.topic' = 'l'",
        "needs one of 'on-error.dead-letter.topic'",
    ),
}


@pytest.mark.parametrize(("letters", "more", "message"), UNFIT.values(), ids=UNFIT)
def test_tables_that_do_not_fit(broker: Broker, letters: str, more: str, message: str) -> None:
    with pytest.raises(FlowSqlError, match=re.escape(message)):
        session(broker, "t", letters, more).execute_sql("SELECT a FROM t")


def test_options_that_do_not_fit(broker: Broker) -> None:
    with pytest.raises(BindError, match=r"'on-error\.dead-letter\.topic' needs 'on-error' = 'dead-letter'"):
        scan(broker.table("a INT", "t", {"on-error.dead-letter.topic": "l"}))
    with pytest.raises(BindError, match=r"'on-error' = 'dead-letter' needs one of 'on-error\.dead-letter\.topic'"):
        scan(broker.table("a INT", "t", {"on-error": "dead-letter"}))
    with pytest.raises(BindError, match="needs one of"):
        scan(broker.table("a INT", "t", {"on-error": "dead-letter", "on-error.dead-letter.table": "letters"}))
    with pytest.raises(NotSupportedYetError, match="not supported yet"):
        scan(broker.table("a INT", "t", {"on-error": "dead-letter", "on-error.dead-letter.path": "s3://b/x"}))


def test_letters_that_cannot_be_written_end_the_job(broker: Broker, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    options = {"on-error": "dead-letter", "on-error.dead-letter.path": str(tmp_path / "file" / "x")}
    with pytest.raises(ConnectorError, match=r"Cannot write bad rows of table '.*t' to"):
        scan(broker.table("a INT", topic_of(broker), options))


def test_a_registry_that_is_away_makes_no_record_bad(broker: Broker) -> None:
    topic = broker.topic("avro")
    broker.write(topic, b"\0\0\0\0\1\2")
    options = {"format": "avro-confluent", "avro-confluent.url": "http://127.0.0.1:1", "on-error": "skip"}
    with pytest.raises(ConnectorError, match=r"Registry http://127\.0\.0\.1:1 does not answer"):
        scan(broker.table("a INT", topic, options))


@pytest.mark.servers
def test_no_letter_is_lost_although_the_job_is_killed(kafka_server: dict[str, str], tmp_path: Path) -> None:
    """They may be there twice; rows are there once."""
    broker = real_broker(kafka_server["KAFKA"])
    source, target, letters = (broker.made_topic(name) for name in ("mixed", "good", "letters"))
    bad = set(range(0, 4000, 7))
    job = Job(
        tables(broker.address, source, target, "id BIGINT) WITH ('connector' = 'kafka', 'format' = 'json'").replace(
            "'scan.startup.mode'",
            f"'on-error' = 'dead-letter', 'on-error.dead-letter.topic' = '{letters}', 'scan.startup.mode'",
            1,
        )
        + "INSERT INTO dst SELECT id FROM src;",
        tmp_path,
    )
    for first in range(0, 4000, 1000):
        rows = [f"{{{id_}" if id_ in bad else {"id": id_, "k": 0} for id_ in range(first, first + 1000)]
        broker.write(source, *rows, partition=first // 1000 % PARTITIONS)
        job.start()
        job.wait_for_checkpoint()
        job.kill()
    job.start()
    job.wait_for("rows", lambda: len(values(broker, target)) >= 4000 - len(bad))
    job.kill()
    assert sorted(row["id"] for row in values(broker, target)) == sorted(set(range(4000)) - bad)
    assert {int(message.value()[1:]) for message in broker.read(letters)} == bad
