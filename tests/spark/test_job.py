"""Jobs on Spark: INSERT into files, EXPLAIN, errors, types that Spark lacks, cancelling, progress."""

from __future__ import annotations

import importlib.util
import io
import os
import re
import signal
import sys
import threading
import time
from pathlib import Path
from types import ModuleType

import pytest

from flowsql.cli.main import main
from flowsql.cli.progress import progress
from flowsql.table import DataTypes
from flowsql.table.session.environment import TableEnvironment
from flowsql.table.udf import udf
from flowsql_core.config import Configuration
from flowsql_core.errors import ConnectorError, ExecutionError
from flowsql_runtime.cluster.job import JobStatus
from flowsql_runtime.spark.sessions.classic import ClassicHost


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
#: A function of Python waits inside of a task. (Spark interrupts no loop of its own code: a cancelled join of many rows
#: keeps its core.)
SLOW = f"SELECT MAX(f) FROM (SELECT slow(n) AS f FROM (SELECT s, COUNT(*) AS n FROM {VALUES} GROUP BY s))"


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


@pytest.fixture
def slow(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> str:
    """The statement that makes a function known that takes minutes."""
    folder = tmp_path_factory.mktemp("modules")
    (folder / "slow_functions.py").write_text(
        "import pathlib\n"
        "import time\n"
        "from flowsql.table import DataTypes\n"
        "from flowsql.table.udf import udf\n\n\n"
        "@udf(result_type=DataTypes.BIGINT())\n"
        "def slow(number):\n"
        "    pathlib.Path(__file__).with_name('started').touch()\n"
        "    time.sleep(120)\n"
        "    return number\n"
    )
    monkeypatch.syspath_prepend(str(folder))
    return "CREATE TEMPORARY FUNCTION slow AS 'slow_functions.slow' LANGUAGE PYTHON"


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


def test_functions_run_between_two_queries_of_spark(session: TableEnvironment) -> None:
    """Also Python functions; whatever FlowSQL computes there is kept nowhere."""

    @udf(result_type=DataTypes.STRING())
    def shout(text: str, times: int) -> str:
        return text.upper() + "!" * times

    session.create_temporary_function("shout", shout)
    counted = f"(SELECT s, COUNT(*) AS n FROM {VALUES} GROUP BY s)"
    found = rows(
        session,
        f"SELECT h, SUM(n) AS n FROM (SELECT shout(s, CAST(n AS INT)) AS h, n FROM {counted}) GROUP BY h ORDER BY h",
    )
    assert found == [("A!!", 2), ("B!", 1)]
    both = f"{VALUES} JOIN {VALUES.replace('AS t', 'AS b')} ON shout(t.s, 1) = shout(b.s, 1)"
    found = rows(session, f"SELECT t.i, b.i FROM {both} ORDER BY 1, 2")
    assert found == [(1, 1), (1, 3), (2, 2), (3, 1), (3, 3)]


def test_a_failing_python_function_between_queries_is_the_users_error(session: TableEnvironment) -> None:
    @udf(result_type=DataTypes.INT())
    def fail(number: int) -> int:
        raise ValueError(f"no {number}")

    session.create_temporary_function("fail", fail)
    counted = f"(SELECT s, COUNT(*) AS n FROM {VALUES} GROUP BY s HAVING COUNT(*) > 1)"
    with pytest.raises(ExecutionError, match="no 2"):
        rows(session, f"SELECT MAX(f) AS f FROM (SELECT fail(CAST(n AS INT)) AS f FROM {counted}) WHERE f > 0")


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
        "== Batch Engine ==",
    ]
    assert "COUNT(1) AS c1" in text
    assert "HashAggregate" in text


def test_keys_of_spark_reach_the_session(session: TableEnvironment) -> None:
    question = f"EXPLAIN JSON_EXECUTION_PLAN SELECT s, COUNT(*) FROM {VALUES} GROUP BY s"
    session.configuration.set("spark.sql.shuffle.partitions", "7")
    assert re.search(r"hashpartitioning\(c0#\d+, 7\)", session.execute_sql(question).text())
    session.configuration.reset("spark.sql.shuffle.partitions")
    assert not re.search(r"hashpartitioning\(c0#\d+, 7\)", session.execute_sql(question).text())


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("spark.master", "local[13]", "'spark.master' cannot change"),
        ("spark.driver.memory", "777m", "'spark.driver.memory' cannot change"),
        ("spark.sql.ansi.enabled", "true", "must be 'false'"),
        ("spark.sql.session.timeZone", "Asia/Tokyo", "the session's zone"),
    ],
)
def test_keys_without_effect_are_refused(session: TableEnvironment, key: str, value: str, message: str) -> None:
    assert rows(session, "SELECT COUNT(*) FROM (VALUES (1), (2)) AS t(a)") == [(2,)]
    session.configuration.set(key, value)
    with pytest.raises(ConnectorError, match=re.escape(message)):
        rows(session, "SELECT COUNT(*) FROM (VALUES (1), (2)) AS t(a)")


def test_extremes_over_a_table_are_nan_if_the_first_value_is(session: TableEnvironment, tmp_path: Path) -> None:
    (tmp_path / "n.csv").write_text("1,NaN\n2,1.5\n2,NaN\n2,-3\n1,7\n")
    session.execute_sql(
        f"CREATE TABLE n (k INT, d DOUBLE) WITH ('connector' = 'filesystem', 'path' = '{tmp_path}/n.csv', "
        "'format' = 'csv')"
    )
    found = rows(session, "SELECT k, CAST(MIN(d) AS STRING), CAST(MAX(d) AS STRING) FROM n GROUP BY k ORDER BY k")
    assert found == [(1, "NaN", "NaN"), (2, "-3.0", "1.5")]


@pytest.mark.parametrize("engine", ["spark", "auto"])
def test_the_clock_stands_still(session: TableEnvironment, tmp_path: Path, engine: str) -> None:
    lines = [f"{number}\n" for number in range(200_000)]
    (tmp_path / "t.csv").write_text("".join(lines))
    session.execute_sql(
        f"CREATE TABLE t (i INT) WITH ('connector' = 'filesystem', 'path' = '{tmp_path}/t.csv', 'format' = 'csv')"
    )
    session.configuration.set("execution.batch.engine", engine)
    if engine == "spark":
        found = rows(session, "SELECT CURRENT_TIMESTAMP = MAX(c), COUNT(*) FROM (SELECT NOW() AS c FROM t) GROUP BY c")
        assert found == [(True, 200_000)]
    else:
        assert len(set(rows(session, "SELECT CURRENT_TIMESTAMP FROM t"))) == 1


def test_the_zone_is_that_of_the_session(session: TableEnvironment) -> None:
    moments = "(VALUES (TO_TIMESTAMP_LTZ(0, 3)), (TO_TIMESTAMP_LTZ(5, 3))) AS t(m)"
    question = f"SELECT CAST(MIN(m) AS STRING) AS m, EXTRACT(HOUR FROM MAX(m)) AS h FROM {moments}"
    for zone, answer in (("UTC", ("1970-01-01 00:00:00.000", 0)), ("Asia/Tokyo", ("1970-01-01 09:00:00.000", 9))):
        session.configuration.set("table.local-time-zone", zone)
        assert rows(session, question) == [answer]


@pytest.mark.skipif(threading.current_thread() is not threading.main_thread(), reason="signals come to the main thread")
def test_ctrl_c_ends_an_insert_and_leaves_nothing(session: TableEnvironment, slow: str, tmp_path: Path) -> None:
    assert rows(session, "SELECT COUNT(*) FROM (VALUES (1), (2)) AS t(a)") == [(2,)]
    from pyspark.sql import SparkSession

    tracker = SparkSession.active().sparkContext.statusTracker()
    java = SparkSession.active().sparkContext._gateway.proc.pid
    sql = (
        f"CREATE TABLE sink (n BIGINT) WITH ('connector' = 'filesystem', 'path' = '{tmp_path}/out', 'format' = 'csv');"
        f"{slow}; INSERT INTO sink {SLOW}"
    )

    def interrupt() -> None:
        deadline = time.monotonic() + 60
        while not tracker.getActiveStageIds() and time.monotonic() < deadline:
            time.sleep(0.05)
        # A terminal sends it to all of its processes.
        os.kill(java, signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt).start()
    options = {"execution.runtime-mode": "batch", "execution.batch.engine": "spark", "io.tmp.dirs": str(tmp_path)}
    assert main([*(word for key, value in options.items() for word in ("-D", f"{key}={value}")), "-c", sql]) == 130
    deadline = time.monotonic() + 60
    while (tracker.getActiveStageIds() or list(tmp_path.iterdir())) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not list(tmp_path.iterdir())
    assert not tracker.getActiveStageIds()
    assert rows(session, "SELECT COUNT(*) FROM (VALUES (1), (2)) AS t(a)") == [(2,)]


def test_a_cancelled_job_ends_and_the_next_one_runs(session: TableEnvironment, slow: str) -> None:
    from pyspark.sql import SparkSession

    tracker = SparkSession.active().sparkContext.statusTracker()
    session.execute_sql(slow)
    result = session.execute_sql(SLOW)
    job = result.get_job_client()
    assert job is not None
    deadline = time.monotonic() + 60
    while not ("Spark" in job.progress_text() and tracker.getActiveStageIds()) and time.monotonic() < deadline:
        time.sleep(0.05)
    canceller = threading.Thread(target=result.cancel)
    canceller.start()
    canceller.join(60)
    assert not canceller.is_alive()
    assert job.get_job_status() is JobStatus.CANCELED
    assert rows(session, "SELECT COUNT(*) FROM (VALUES (1), (2)) AS t(a)") == [(2,)]


def test_a_query_that_is_being_handed_over_is_cancelled_too(
    session: TableEnvironment, slow: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    cancel = ClassicHost.cancel

    def late(host: ClassicHost, job_id: str) -> None:
        # Spark knew nothing of it when it was told for the first time.
        asked.append(job_id)
        if len(asked) > 1:
            cancel(host, job_id)

    monkeypatch.setattr(ClassicHost, "cancel", late)
    session.execute_sql(slow)
    result = session.execute_sql(SLOW)
    job = result.get_job_client()
    assert job is not None
    started = Path(sys.path[0]) / "started"
    deadline = time.monotonic() + 60
    while not started.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    canceller = threading.Thread(target=result.cancel, daemon=True)
    canceller.start()
    canceller.join(60)
    assert job.get_job_status() is JobStatus.CANCELED
    assert len(asked) > 1


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_nothing_is_told_where_nobody_looks(session: TableEnvironment, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("flowsql.cli.progress.PATIENCE_S", 0.0)
    file = io.StringIO()
    result = session.execute_sql(f"SELECT s, COUNT(*) FROM {VALUES} GROUP BY s")
    with progress(result, file):
        assert sum(batch.num_rows for batch in result.batches()) == 2
    assert not file.getvalue()


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
