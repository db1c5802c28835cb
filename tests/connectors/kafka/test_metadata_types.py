"""Metadata columns of other types than the connector's: what Flink 2.3 casts, and what it refuses."""

from __future__ import annotations

import pytest

from flowsql.table import EnvironmentSettings, TableEnvironment
from flowsql_core.errors import BindError, FlowSqlError

from .broker import Broker

#: Metadata columns, and the sentence of the refusal; None: they are read.
COLUMNS = {
    "castable": ("o STRING METADATA FROM 'offset', h MAP<STRING, STRING> METADATA FROM 'headers'", None),
    "no such cast": ("x BOOLEAN METADATA FROM 'timestamp'", "must be castable from metadata type"),
    "no number of moments": ("x BIGINT METADATA FROM 'timestamp'", "(?i)cast"),
    "twice": ("x INT METADATA FROM 'offset', y BIGINT METADATA FROM 'offset'", "from the same metadata key 'offset'"),
}


@pytest.mark.parametrize(("columns", "message"), COLUMNS.values(), ids=COLUMNS)
def test_types_of_metadata(columns: str, message: str | None) -> None:
    environment = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    environment.execute_sql(
        f"CREATE TABLE t (id INT, {columns}) WITH ('connector' = 'kafka', 'topic' = 't', 'format' = 'json', "
        "'properties.bootstrap.servers' = '127.0.0.1:1', 'scan.startup.mode' = 'earliest-offset')"
    )
    if message is None:
        assert "CAST" in environment.explain_sql("SELECT * FROM t")
        return
    with pytest.raises(BindError, match=message):
        environment.explain_sql("SELECT * FROM t")


def test_values_are_cast(broker: Broker) -> None:
    topic = broker.topic()
    broker.write(topic, {"id": 7}, timestamp=1_700_000_000_123, partition=2)
    environment = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    environment.get_config().set("table.local-time-zone", "Asia/Tokyo")
    environment.execute_sql(
        "CREATE TABLE t (id INT, p STRING METADATA FROM 'partition', o DECIMAL(5, 2) METADATA FROM 'offset', "
        "moment TIMESTAMP(0) METADATA FROM 'timestamp') WITH ('connector' = 'kafka', "
        f"'topic' = '{topic}', 'format' = 'json', 'properties.bootstrap.servers' = '{broker.address}', "
        "'scan.startup.mode' = 'earliest-offset', 'scan.bounded.mode' = 'latest-offset')"
    )
    query = "SELECT id, p, CAST(o AS STRING), CAST(moment AS STRING) FROM t"
    with environment.execute_sql(query).collect() as rows:
        assert [tuple(row) for row in rows] == [(7, "2", "0.00", "2023-11-15 07:13:20")]


def test_one_key_is_written_once() -> None:
    environment = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    environment.execute_sql(
        "CREATE TABLE t (id INT, x TIMESTAMP_LTZ(3) METADATA FROM 'timestamp', y TIMESTAMP_LTZ(3) METADATA FROM "
        "'timestamp') WITH ('connector' = 'kafka', 'topic' = 't', 'format' = 'json', "
        "'properties.bootstrap.servers' = '127.0.0.1:1')"
    )
    with pytest.raises(BindError, match="from the same metadata key 'timestamp'"):
        environment.explain_sql("INSERT INTO t SELECT 1, CURRENT_TIMESTAMP, CURRENT_TIMESTAMP")


def topics_table(broker: Broker, topics: str, options: str = "") -> TableEnvironment:
    made = TableEnvironment.create()
    made.execute_sql(
        f"CREATE TABLE o (id INT, t STRING METADATA FROM 'topic') WITH ('connector' = 'kafka', {topics}, "
        f"'properties.bootstrap.servers' = '{broker.address}', 'format' = 'json'{options})"
    )
    return made


def test_rows_say_their_topic_where_there_are_several(broker: Broker) -> None:
    """As Flink answers: a table of one topic has no such column to write, and a topic is never NULL."""
    one, two = broker.topic("w"), broker.topic("w")
    for name in (one, two):
        broker.write(name)
    for topics in (f"'topic' = '{one};{two}'", "'topic-pattern' = 'w[0-9]+'"):
        made = topics_table(broker, topics)
        made.execute_sql(f"INSERT INTO o VALUES (1, '{one}'), (2, '{two}')").wait()
        with pytest.raises(FlowSqlError, match="Column 't' is NOT NULL, however, a null value"):
            made.execute_sql("INSERT INTO o VALUES (3, CAST(NULL AS STRING))").wait()
    assert [message.value() for message in broker.read(one)] == [b'{"id":1}'] * 2
    assert [message.value() for message in broker.read(two)] == [b'{"id":2}'] * 2
    with pytest.raises(FlowSqlError, match="Invalid metadata key 'topic' in column 't' of table"):
        topics_table(broker, f"'topic' = '{one}'").execute_sql(f"INSERT INTO o VALUES (1, '{one}')")
