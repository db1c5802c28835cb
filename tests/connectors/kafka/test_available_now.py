"""Topics that are read up to where they end, and from there on in the next job."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from flowsql.table.session.environment import TableEnvironment
from tests.connectors.kafka.broker import PARTITIONS, MockBroker


def test_a_topic_is_read_up_to_its_end_and_on(broker: MockBroker, tmp_path: Path) -> None:
    topic = broker.topic()
    for partition in range(PARTITIONS - 1):
        broker.write(topic, *({"a": number} for number in range(5)), partition=partition)
    environment = TableEnvironment.create()
    settings = {"flowsql.trigger": "available-now", "execution.checkpointing.savepoint-dir": str(tmp_path)}
    for key, value in settings.items():
        environment.get_config().set(key, value)
    environment.execute_sql(
        f"CREATE TABLE t (a INT) WITH ('connector' = 'kafka', 'topic' = '{topic}', 'format' = 'json', "
        f"'properties.bootstrap.servers' = '{broker.address}', 'scan.startup.mode' = 'earliest-offset')"
    )

    def ask() -> list[Any]:
        result = environment.execute_sql("SELECT a FROM t")
        rows = sorted(row[0] for row in result.collect())
        job = result.get_job_client()
        assert job is not None
        path = job.stopped_with()
        assert path is not None
        environment.get_config().set("execution.state-recovery.path", path)
        return rows

    assert ask() == sorted([*range(5)] * (PARTITIONS - 1))
    broker.write(topic, {"a": 7}, partition=PARTITIONS - 1)
    broker.write(topic, {"a": 8}, partition=0)
    assert ask() == [7, 8]
    assert ask() == []
