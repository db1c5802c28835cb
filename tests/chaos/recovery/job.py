"""One job of the fault harness: ``python job.py NAME FOLDER [KEY=VALUE ...]``; it ends with its input.

``FOLDER`` holds ``left.csv``, ``right.csv`` and a folder ``arriving``; what the job commits goes below ``FOLDER/out``.
The environment says what happens to it: ``CHAOS_POINT`` where it kills itself (``points.py``), ``CHAOS_PACE_MS`` how
long its sources rest after each batch (so that it runs long enough to be struck), ``CHAOS_CLOCK`` that the machine's
clock jumps (``clocks.py``), ``CHAOS_FAILURES`` that each of its operators fails once (``failures.py``).
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import changelog_sink
import clocks
import failures
import points
from operator_jobs import OPERATOR_JOBS
from stream_jobs import STREAM_JOBS
from tables import CSV, inputs, sink

from flowsql.datastream import StreamExecutionEnvironment
from flowsql.table import StatementSet, StreamTableEnvironment, TableEnvironment
from flowsql_runtime.operators.base import SourceStatus
from flowsql_runtime.operators.source import ScanOperator


def stateless(environment: TableEnvironment, folder: Path) -> None:
    """Filter and project."""
    sink(environment, folder, "o", "id BIGINT, n INT, txt STRING")
    environment.execute_sql("INSERT INTO o SELECT id, n * 2, UPPER(txt) FROM left_rows WHERE n % 3 <> 0").wait()


def aggregate(environment: TableEnvironment, folder: Path) -> None:
    """A group aggregate over the changes of another one."""
    sink(environment, folder, "o", "c BIGINT, many BIGINT, total INT", "changelog")
    environment.execute_sql(
        "INSERT INTO o SELECT c, COUNT(*), SUM(m) FROM "
        "(SELECT k, COUNT(*) AS c, SUM(n) AS m FROM left_rows GROUP BY k) GROUP BY c"
    ).wait()


def window(environment: TableEnvironment, folder: Path) -> None:
    """A window aggregate by event time."""
    sink(environment, folder, "o", "s TIMESTAMP(3), k INT, c BIGINT, total INT")
    environment.execute_sql(
        "INSERT INTO o SELECT window_start, k, COUNT(*), SUM(n) FROM "
        "TABLE(TUMBLE(TABLE left_rows, DESCRIPTOR(ts), INTERVAL '10' SECOND)) GROUP BY window_start, window_end, k"
    ).wait()


def join(environment: TableEnvironment, folder: Path) -> None:
    """Rows meet the changes of an aggregate."""
    sink(environment, folder, "o", "id BIGINT, k INT, best INT", "changelog")
    environment.execute_sql(
        "INSERT INTO o SELECT l.id, l.k, r.best FROM (SELECT id, k FROM left_rows WHERE id % 50 = 0) AS l "
        "JOIN (SELECT k, MAX(n) AS best FROM right_rows GROUP BY k) AS r ON l.k = r.k"
    ).wait()


def statement_set(environment: TableEnvironment, folder: Path) -> None:
    """Two sinks of one job: both show the same checkpoint."""
    sink(environment, folder, "a", "id BIGINT, n INT")
    sink(environment, folder, "b", "k INT, c BIGINT", "changelog")
    statements: StatementSet = environment.create_statement_set()
    statements.add_insert_sql("INSERT INTO a SELECT id, n FROM left_rows")
    statements.add_insert_sql("INSERT INTO b SELECT k, COUNT(*) FROM left_rows GROUP BY k")
    statements.execute().wait()


def pipelines(environment: TableEnvironment, folder: Path) -> None:
    """Two pipelines of one job that share nothing: one can go back while the other goes on, also into one table."""
    sink(environment, folder, "o", "s TIMESTAMP(3), k INT, n BIGINT")
    statements: StatementSet = environment.create_statement_set()
    statements.add_insert_sql("INSERT INTO o SELECT ts, k, id FROM left_rows WHERE n % 3 <> 0")
    statements.add_insert_sql(
        "INSERT INTO o SELECT window_start, k, COUNT(*) FROM "
        "TABLE(TUMBLE(TABLE right_rows, DESCRIPTOR(ts), INTERVAL '10' SECOND)) GROUP BY window_start, window_end, k"
    )
    statements.execute().wait()


def files(environment: TableEnvironment, folder: Path) -> None:
    """New files of a folder to partitioned files; ends with a savepoint once there is a file ``stop``."""
    monitor = "" if (folder / "all-there").exists() else ", 'source.monitor-interval' = '20 ms'"
    environment.execute_sql(
        "CREATE TABLE arriving (id BIGINT, k INT, n INT, txt STRING, ts TIMESTAMP(3)) "
        f"WITH ({CSV}, 'path' = '{folder}/arriving'{monitor})"
    )
    environment.execute_sql(
        f"CREATE TABLE o (id BIGINT, n INT, part INT) PARTITIONED BY (part) WITH ({CSV}, 'path' = '{folder}/out/o', "
        "'sink.rolling-policy.file-size' = '8kb', 'sink.rolling-policy.inactivity-interval' = '200 ms', "
        "'sink.rolling-policy.check-interval' = '50 ms')"
    )
    running = environment.execute_sql("INSERT INTO o SELECT id, n, MOD(k, 4) FROM arriving")
    client = running.get_job_client()
    assert client is not None

    def stop_when_told() -> None:
        while not (folder / "stop").exists():
            time.sleep(0.02)
        client.stop_with_savepoint(False, str(folder / "saved")).result()

    if monitor:
        threading.Thread(target=stop_when_told, daemon=True).start()
    running.wait()


JOBS: Final[dict[str, Callable[[StreamTableEnvironment, Path], None]]] = {
    "stateless": stateless,
    "aggregate": aggregate,
    "window": window,
    "join": join,
    "statement-set": statement_set,
    "pipelines": pipelines,
    **STREAM_JOBS,
    **OPERATOR_JOBS,
    "files": files,
}


def rest_after_batches(pause_s: float) -> None:
    """Sources read as from a slow disk."""
    emit = ScanOperator.emit_next

    def slowly(self: ScanOperator) -> SourceStatus:
        time.sleep(pause_s)
        return emit(self)

    ScanOperator.emit_next = slowly  # type: ignore[method-assign]


def main() -> None:
    """Run one job."""
    name, folder, *options = sys.argv[1:]
    if os.environ.get("CHAOS_POINT"):
        points.install(os.environ["CHAOS_POINT"])
    if os.environ.get("CHAOS_PACE_MS"):
        rest_after_batches(float(os.environ["CHAOS_PACE_MS"]) / 1000)
    if os.environ.get("CHAOS_CLOCK"):
        clocks.install(int(os.environ["CHAOS_CLOCK"]))
    if os.environ.get("CHAOS_FAILURES"):
        failures.install(Path(os.environ["CHAOS_FAILURES"]))
    changelog_sink.register()
    environment = StreamTableEnvironment.create(StreamExecutionEnvironment.get_execution_environment())
    for option in options:
        key, _, value = option.partition("=")
        environment.get_config().set(key, value)
    inputs(environment, Path(folder))
    JOBS[name](environment, Path(folder))


if __name__ == "__main__":
    main()
