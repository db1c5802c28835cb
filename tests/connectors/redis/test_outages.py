"""A server that goes away and returns while jobs write, read and look up."""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from flowsql.table.session.environment import TableEnvironment
from tests.connectors.jdbc.databases import answer, session
from tests.local_servers import LocalServer
from tests.local_servers import redis as redis_in

pytestmark = pytest.mark.servers


@pytest.fixture
def server() -> Iterator[LocalServer]:
    with tempfile.TemporaryDirectory() as folder:
        made = redis_in(Path(folder))
        yield made
        made.stop()


def with_tables(server: LocalServer) -> TableEnvironment:
    made = session({"execution.checkpointing.interval": "100 ms", "parallelism.default": "1"})
    url = f"redis://127.0.0.1:{server.port}/0"
    made.execute_sql(
        "CREATE TABLE g (k INT, p AS PROCTIME()) WITH ('connector' = 'datagen', 'rows-per-second' = '100', "
        "'fields.k.kind' = 'sequence', 'fields.k.start' = '1', 'fields.k.end' = '300')"
    )
    made.execute_sql(
        f"CREATE TABLE t (k INT, v INT, PRIMARY KEY (k) NOT ENFORCED) WITH ('connector' = 'redis', 'url' = '{url}', "
        "'key' = 't:{k}', 'sink.max-retries' = '8', 'lookup.max-retries' = '8', 'sink.buffer-flush.interval' = '50 ms')"
    )
    made.execute_sql(
        f"CREATE TABLE s (k INT) WITH ('connector' = 'redis', 'url' = '{url}', 'structure' = 'stream', "
        "'key' = 'events', 'reconnect.initial-delay' = '50 ms', 'sink.max-retries' = '8')"
    )
    return made


def away(server: LocalServer) -> threading.Thread:
    """Soon the server is killed, and a moment later it is there again."""

    def run() -> None:
        time.sleep(1)
        server.kill()
        time.sleep(0.5)
        server.start()

    thread = threading.Thread(target=run)
    thread.start()
    return thread


def test_all_rows_are_written(server: LocalServer) -> None:
    made = with_tables(server)
    outage = away(server)
    made.execute_sql("INSERT INTO t SELECT k, k FROM g ON CONFLICT DO DEDUPLICATE").wait()
    outage.join()
    client = redis.Redis(port=server.port)
    assert len(client.keys("t:*")) == 300


def test_all_rows_are_found(server: LocalServer) -> None:
    made = with_tables(server)
    client = redis.Redis(port=server.port)
    for number in range(1, 301):
        client.hset(f"t:{number}", "v", str(number))
    outage = away(server)
    found = answer(made, "SELECT g.k, t.v FROM g JOIN t FOR SYSTEM_TIME AS OF g.p ON g.k = t.k")
    outage.join()
    assert sorted(found) == [(number, number) for number in range(1, 301)]


def test_each_entry_is_read_once(server: LocalServer) -> None:
    made = with_tables(server)
    client = redis.Redis(port=server.port, retry=None)
    outage = away(server)
    found: list[int] = []
    with made.execute_sql("SELECT * FROM s").collect() as rows:
        for number in range(100):
            end = time.monotonic() + 30
            while True:
                try:
                    client.xadd("events", {"k": number}, id=f"{number + 1}-0")
                    break
                except redis.ResponseError:
                    break
                except redis.ConnectionError:
                    assert time.monotonic() < end
                    time.sleep(0.05)
            time.sleep(0.02)
        for row in rows:
            found.append(row[0])
            if len(found) == 100:
                break
    outage.join()
    assert found == list(range(100))
