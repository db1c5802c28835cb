"""Jobs on Spark: INSERT into files, EXPLAIN, errors, types that Spark lacks, cancelling, progress."""

from __future__ import annotations

import importlib.util
import io
import threading
import time
from pathlib import Path
from types import ModuleType

import pytest

from flowsql.cli.progress import progress
from flowsql.table.environment import TableEnvironment
from flowsql_core.config import Configuration
from flowsql_core.errors import ExecutionError
from flowsql_runtime.cluster.local import JobStatus


def load(name: str) -> ModuleType:
    """A module that stands beside this one."""
    spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


machine = load("spark_machine")
pytestmark = machine.ON_SPARK

VALUES = "(VALUES (1, 'a', TIME '10:00:00.5'), (2, 'b', TIME '09:00:00'), (3, 'a', TIME '11:00:00')) AS t(i, s, o)"


@pytest.fixture
def session(tmp_path: Path) -> TableEnvironment:
    machine.hurry()
    values = {
        "execution.runtime-mode": "batch",
        "execution.batch.engine": "spark",
        "table.local-time-zone": "UTC",
        "io.tmp.dirs": str(tmp_path),
    }
    return TableEnvironment.of_configuration(Configuration(values=values))


def rows(session: TableEnvironment, sql: str) -> list[tuple[object, ...]]:
    with session.execute_sql(sql).collect() as found:
        return [tuple(row) for row in found]


def test_insert_writes_the_bytes_of_flowsqls_own_sink(session: TableEnvironment, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    session.execute_sql(
        f"CREATE TABLE sink (s STRING, n BIGINT, o TIME(3)) WITH ('connector' = 'filesystem', 'path' = '{folder}', "
        "'format' = 'csv')"
    )
    session.execute_sql(f"INSERT INTO sink SELECT UPPER(s), COUNT(*), MAX(o) FROM {VALUES} GROUP BY s").wait()
    (part,) = [path for path in folder.iterdir() if not path.name.startswith(".")]
    assert sorted(part.read_text().splitlines()) == ["A,2,11:00:00", "B,1,09:00:00"]
    assert not list(tmp_path.glob("flowsql-spark-*"))


def test_an_order_goes_through_a_job_behind_spark(session: TableEnvironment) -> None:
    session.configuration.set("parallelism.default", "2")
    found = rows(session, f"SELECT UPPER(s), i FROM {VALUES} ORDER BY i DESC")
    assert found == [("A", 3), ("B", 2), ("A", 1)]


def test_failures_are_ours(session: TableEnvironment) -> None:
    with pytest.raises(ExecutionError, match=r"^/ by zero$") as caught:
        rows(session, f"SELECT SUM(i) / (COUNT(*) - 3) FROM {VALUES}")
    assert caught.value.code == "division-by-zero"
    with pytest.raises(ExecutionError, match="more than one row") as caught:
        rows(session, f"SELECT (SELECT i FROM {VALUES}) AS x FROM {VALUES}")
    assert caught.value.at is not None


def test_explain_shows_sparks_sql_and_on_request_its_plan(session: TableEnvironment) -> None:
    text = session.execute_sql(f"EXPLAIN JSON_EXECUTION_PLAN SELECT s, COUNT(*) FROM {VALUES} GROUP BY s").text()
    assert text.startswith("== Abstract Syntax Tree ==\nLogical")
    titles = [line for line in text.splitlines() if line.startswith("== ") and not line.startswith("== Physical Plan")]
    assert titles == [
        "== Abstract Syntax Tree ==",
        "== Optimized Logical Plan ==",
        "== FlowSQL Readers ==",
        "== Spark SQL ==",
        "== Physical Execution Plan ==",
    ]
    assert "COUNT(1) AS c1" in text
    assert "HashAggregate" in text


def test_a_cancelled_job_ends_and_the_next_one_runs(session: TableEnvironment) -> None:
    many = " CROSS JOIN ".join(f"{VALUES.replace('AS t', f'AS t{n}')}" for n in range(16))
    result = session.execute_sql(f"SELECT COUNT(*), MAX(t1.i + t2.i * t3.i) FROM {many}")
    job = result.get_job_client()
    assert job is not None
    deadline = time.monotonic() + 60
    while "Spark" not in job.progress_text() and time.monotonic() < deadline:
        time.sleep(0.1)
    time.sleep(1.0)
    canceller = threading.Thread(target=result.cancel)
    canceller.start()
    canceller.join(60)
    assert not canceller.is_alive()
    assert job.get_job_status() is JobStatus.CANCELED
    assert rows(session, "SELECT COUNT(*) FROM (VALUES (1), (2)) AS t(a)") == [(2,)]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_of_a_query_stands_on_the_terminal_until_it_answers(
    session: TableEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("flowsql.cli.progress.PATIENCE_S", 0.0)
    monkeypatch.setattr("flowsql.cli.progress.PERIOD_S", 0.05)
    terminal = Terminal()
    result = session.execute_sql(f"SELECT s, COUNT(*) FROM {VALUES} GROUP BY s")
    with progress(result, terminal):
        assert sum(batch.num_rows for batch in result.batches()) == 2
    assert "rows read]" in terminal.getvalue()
    assert terminal.getvalue().endswith("\r\x1b[K")
