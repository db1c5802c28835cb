"""Tables in memory: changes by key, rows of a moment, what is refused."""

from __future__ import annotations

import itertools
import threading
import time

import pytest

from flowsql.errors import BindError, ConnectorError, PlanError
from flowsql.table import EnvironmentSettings, TableEnvironment
from flowsql_connectors.memory.store import STORES

_NUMBERS = itertools.count()


@pytest.fixture
def name() -> str:
    """Of rows that no other test has."""
    return f"kept-{next(_NUMBERS)}"


@pytest.fixture(params=["streaming", "batch"])
def environment(request: pytest.FixtureRequest) -> TableEnvironment:
    mode = EnvironmentSettings.in_batch_mode if request.param == "batch" else EnvironmentSettings.in_streaming_mode
    made = TableEnvironment.create(mode())
    made.get_config().set("execution.batch.engine", "local")
    return made


@pytest.fixture
def streaming() -> TableEnvironment:
    return TableEnvironment.create(EnvironmentSettings.in_streaming_mode())


def kept(environment: TableEnvironment, name: str, columns: str, **options: str) -> None:
    more = "".join(f", '{key.replace('_', '-')}' = '{value}'" for key, value in options.items())
    environment.execute_sql(f"CREATE TABLE t ({columns}) WITH ('connector' = 'memory', 'name' = '{name}'{more})")


def rows(environment: TableEnvironment, query: str = "SELECT * FROM t") -> list[tuple[object, ...]]:
    return sorted(tuple(row.values()) for row in environment.sql_query(query).to_arrow().to_pylist())


def insert(environment: TableEnvironment, values: str) -> None:
    environment.execute_sql(f"INSERT INTO t {values}").wait()


@pytest.mark.parametrize("parallelism", [1, 3])
def test_inserts_are_added(environment: TableEnvironment, name: str, parallelism: int) -> None:
    environment.get_config().set("parallelism.default", str(parallelism))
    kept(environment, name, "n INT, s STRING")
    assert rows(environment) == []
    insert(environment, "VALUES (1, 'a'), (2, CAST(NULL AS STRING))")
    insert(environment, "VALUES (1, 'a')")
    assert sorted(rows(environment), key=str) == [(1, "a"), (1, "a"), (2, None)]
    assert rows(environment, "SELECT s FROM t WHERE n = 1") == [("a",), ("a",)]


def test_the_last_change_of_a_key_counts(environment: TableEnvironment, name: str) -> None:
    kept(environment, name, "k INT, s STRING, n BIGINT, PRIMARY KEY (k, s) NOT ENFORCED")
    insert(environment, "VALUES (1, 'a', 10), (1, 'b', 20), (2, 'a', 30)")
    insert(environment, "VALUES (1, 'b', 21)")
    assert rows(environment) == [(1, "a", 10), (1, "b", 21), (2, "a", 30)]


def test_updates_and_deletes(streaming: TableEnvironment, name: str) -> None:
    kept(streaming, name, "k STRING PRIMARY KEY NOT ENFORCED, n BIGINT")
    values = "(VALUES ('a', 1), ('b', 2), ('a', 3), ('b', -2)) AS v (k, n)"
    insert(streaming, f"SELECT k, SUM(n) FROM {values} GROUP BY k HAVING SUM(n) > 0")
    assert rows(streaming) == [("a", 4)]


def test_updates_need_a_key(streaming: TableEnvironment, name: str) -> None:
    kept(streaming, name, "k STRING, n BIGINT")
    with pytest.raises(PlanError, match="doesn't support consuming update"):
        insert(streaming, "SELECT k, COUNT(*) FROM (VALUES 'a') AS v (k) GROUP BY k")


def test_a_running_job_is_asked(streaming: TableEnvironment, name: str) -> None:
    kept(streaming, name, "k INT PRIMARY KEY NOT ENFORCED, n BIGINT")
    streaming.execute_sql(
        "CREATE TABLE clicks (k INT) WITH ('connector' = 'datagen', 'rows-per-second' = '2000', "
        "'fields.k.min' = '1', 'fields.k.max' = '5')"
    )
    job = streaming.execute_sql("INSERT INTO t SELECT k, COUNT(*) FROM clicks GROUP BY k").get_job_client()
    assert job is not None
    seen = [0]
    deadline = time.monotonic() + 30
    while len(seen) < 6 and time.monotonic() < deadline:
        now = sum(int(str(n)) for _, n in rows(streaming))
        if now != seen[-1]:
            seen.append(now)
    job.cancel_and_wait()
    assert len(seen) == 6
    assert seen == sorted(seen)
    # The rows stay when the job has ended.
    assert len(rows(streaming)) == 5


def test_a_scan_sees_the_rows_of_its_moment(streaming: TableEnvironment, name: str) -> None:
    kept(streaming, name, "n INT")
    insert(streaming, "VALUES 1, 2, 3")
    store = STORES.table(name, STORES._tables[name].schema, (), 10)
    scan = STORES.begin_scan(store.now(), 2)
    insert(streaming, "VALUES 4")
    found = STORES.scanned(scan)
    assert found is not None
    assert found.num_rows == 3
    STORES.end_part(scan)
    assert STORES.scanned(scan) is not None
    STORES.end_part(scan)
    assert STORES.scanned(scan) is None
    assert not STORES._scans


def test_two_writers_and_a_reader(streaming: TableEnvironment, name: str) -> None:
    kept(streaming, name, "k INT PRIMARY KEY NOT ENFORCED, n BIGINT")
    values = ", ".join(f"({n % 100}, {n})" for n in range(2000))

    def write() -> None:
        insert(streaming, f"SELECT k, MAX(n) FROM (VALUES {values}) AS v (k, n) GROUP BY k")

    threads = [threading.Thread(target=write) for _ in range(2)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        keys = [key for key, _ in rows(streaming)]
        assert len(keys) == len(set(keys))
    assert rows(streaming) == [(k, 1900 + k) for k in range(100)]


def test_other_tables_of_the_same_name(streaming: TableEnvironment, name: str) -> None:
    kept(streaming, name, "n INT")
    insert(streaming, "VALUES 1")
    for columns, message in (
        ("n BIGINT", f"The table '{name}' in memory has the columns n INT."),
        ("n INT PRIMARY KEY NOT ENFORCED", f"The table '{name}' in memory has another primary key: none."),
    ):
        other = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
        kept(other, name, columns)
        with pytest.raises(BindError, match=f"^{message}"):
            rows(other)


def test_a_table_that_is_full(streaming: TableEnvironment, name: str) -> None:
    kept(streaming, name, "n INT", max_rows="2")
    insert(streaming, "VALUES 1, 2")
    with pytest.raises(ConnectorError, match=f"The table '{name}' in memory has more than 2 rows"):
        insert(streaming, "VALUES 3")


def test_the_name_is_needed(streaming: TableEnvironment) -> None:
    streaming.execute_sql("CREATE TABLE t (n INT) WITH ('connector' = 'memory')")
    with pytest.raises(BindError, match="Missing required options are:\n\nname"):
        rows(streaming)
