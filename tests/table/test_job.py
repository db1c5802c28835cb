"""The job behind a statement: what it tells while it runs, when it fails, and how fast it ends and hands on rows."""

from __future__ import annotations

import io
import os
import pty
import select
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from flowsql.common.job_client import JobClient
from flowsql.table.environment_settings import EnvironmentSettings
from flowsql.table.session.environment import TableEnvironment
from flowsql_core.errors import ExecutionError, FlowSqlError
from flowsql_runtime.cluster.job import JobStatus

WAIT_S = 60.0
HOLE = "CREATE TABLE hole (a INT) WITH ('connector' = 'blackhole')"
ENDLESS = "CREATE TABLE endless (a INT) WITH ('connector' = 'datagen', 'rows-per-second' = '1000')"


def session(parallelism: int, *statements: str) -> TableEnvironment:
    env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    env.execute_sql(f"SET 'parallelism.default' = '{parallelism}'")
    for statement in statements:
        env.execute_sql(statement)
    return env


def job_of(env: TableEnvironment, insert: str) -> JobClient:
    job = env.execute_sql(insert).get_job_client()
    assert job is not None
    return job


@pytest.mark.parametrize("parallelism", [1, 2])
def test_an_endless_job_is_canceled_within_a_second(parallelism: int) -> None:
    job = job_of(session(parallelism, ENDLESS, HOLE), "INSERT INTO hole SELECT a FROM endless")
    deadline = time.monotonic() + WAIT_S
    while not job.records_read():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert job.get_job_status() is JobStatus.RUNNING
    started = time.monotonic()
    job.cancel_and_wait()
    assert time.monotonic() - started < 1.0
    assert job.get_job_status() is JobStatus.CANCELED
    assert job.is_over()
    assert job.exceptions() == ()


def test_a_failed_job_names_the_root_cause_first() -> None:
    env = session(2, HOLE, ENDLESS)
    job = job_of(env, "INSERT INTO hole SELECT CAST('x' || CAST(a AS STRING) AS INT) FROM endless")
    with pytest.raises(FlowSqlError):
        job.wait(WAIT_S)
    assert job.get_job_status() is JobStatus.FAILED
    root = job.exceptions()[0]
    assert isinstance(root, ExecutionError)
    assert "For input string" in root.message
    assert root.operator is not None
    assert job.get_accumulators() == {}


@pytest.mark.parametrize("parallelism", [1, 2])
def test_late_rows_are_counted(parallelism: int, tmp_path: Path) -> None:
    rows = ["2024-01-01 00:00:01", "2024-01-01 00:05:00", "2024-01-01 00:00:02", "2024-01-01 00:00:03"]
    (tmp_path / "r.csv").write_text("".join(f"{row}\n" for row in rows))
    table = (
        "CREATE TABLE r (ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH ('connector' = 'filesystem', 'format' = 'csv', "
        f"'path' = '{tmp_path}/r.csv', 'scan.parallelism' = '1')"
    )
    # One reader: a second one that has nothing to read holds the watermark back until it has said so.
    env = session(parallelism, table, "CREATE TABLE counted (c BIGINT) WITH ('connector' = 'blackhole')")
    window = "SELECT COUNT(*) FROM TABLE(TUMBLE(TABLE r, DESCRIPTOR(ts), INTERVAL '1' MINUTE))"
    job = job_of(env, f"INSERT INTO counted {window} GROUP BY window_start, window_end")
    job.wait(WAIT_S)
    assert job.get_metric("numLateRecordsDropped") == 2
    assert job.records_read() == 4


class Clocked(io.StringIO):
    """Remembers when lines came."""

    def __init__(self) -> None:
        super().__init__()
        self.times: list[float] = []

    def write(self, text: str) -> int:
        self.times += [time.monotonic()] * text.count("\n")
        return super().write(text)


@pytest.mark.parametrize("enabled", [True, False])
def test_rows_of_a_slow_source_wait_no_longer_than_the_buffer_timeout(
    enabled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    env = session(
        2,
        "CREATE TABLE slow (a INT) WITH ('connector' = 'datagen', 'rows-per-second' = '2', 'number-of-rows' = '4', "
        "'scan.parallelism' = '1')",
        "CREATE TABLE shown (a INT) WITH ('connector' = 'print', 'sink.parallelism' = '2')",
        f"SET 'execution.buffer-timeout.enabled' = '{str(enabled).lower()}'",
        "SET 'execution.buffer-timeout.interval' = '50 ms'",
    )
    out = Clocked()
    monkeypatch.setattr(sys, "stdout", out)
    job_of(env, "INSERT INTO shown SELECT a FROM slow").wait(WAIT_S)
    ended = time.monotonic()
    assert len(out.times) == 4
    if enabled:
        assert ended - out.times[0] > 1.0
    else:
        assert ended - out.times[0] < 0.5


def test_progress_is_told_on_a_terminal(tmp_path: Path) -> None:
    script = tmp_path / "job.sql"
    script.write_text(f"{ENDLESS};\n{HOLE};\nINSERT INTO hole SELECT a FROM endless;\n")
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "flowsql.cli", "-f", str(script)],
        stdout=subprocess.DEVNULL,
        stderr=theirs,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    os.close(theirs)
    told = b""
    try:
        deadline = time.monotonic() + WAIT_S
        while b"rows read]" not in told and time.monotonic() < deadline:
            if select.select([ours], [], [], 0.5)[0]:
                told += os.read(ours, 4096)
        assert b" s, " in told
        assert b"rows read]" in told
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(WAIT_S)
        os.close(ours)
    assert process.returncode == 130


def test_an_interrupt_that_another_thread_catches_ends_the_wait() -> None:
    """The kernel may hand SIGINT to any thread; the main thread's wait must not sleep through it."""
    result = session(1, ENDLESS, HOLE).execute_sql("INSERT INTO hole SELECT a FROM endless")

    def interrupt_myself() -> None:
        time.sleep(0.3)
        signal.pthread_kill(threading.get_ident(), signal.SIGINT)

    catcher = threading.Thread(target=interrupt_myself)
    catcher.start()
    with pytest.raises(KeyboardInterrupt):
        result.wait(20_000)
    catcher.join()
    result.cancel()
