"""Where functions run: in the task's thread or in a worker process of each subtask; what a worker leaves behind."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections import deque
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from flowsql.table import TableEnvironment
from flowsql.table.udf import FunctionContext, ScalarFunction, udf
from flowsql_core.batch import ChangelogBatch, WatermarkTrack
from flowsql_core.errors import ExecutionError
from flowsql_core.expr import InputRef
from flowsql_core.graph.python_specs import PythonCalcSpec
from flowsql_core.python_call import PythonFunction, python_call
from flowsql_core.types.logical import BIGINT, Column
from flowsql_runtime.operators.python_calc import IN_FLIGHT, PythonCalcOperator
from flowsql_runtime.python.options import job_parameters
from flowsql_runtime.testing.harness import OperatorHarness

NUMBERS = (
    "CREATE TEMPORARY TABLE n (a BIGINT) WITH ('connector' = 'datagen', 'number-of-rows' = '{rows}', "
    "'rows-per-second' = '10000000', 'fields.a.kind' = 'sequence', 'fields.a.start' = '1', 'fields.a.end' = '{rows}')"
)


def environment(rows: int = 1000, **options: str) -> TableEnvironment:
    made = TableEnvironment.create()
    for key, value in options.items():
        made.get_config().set(key.replace("__", "-").replace("_", "."), value)
    made.execute_sql(NUMBERS.format(rows=rows))
    made.execute_sql("CREATE TEMPORARY TABLE sink (a BIGINT) WITH ('connector' = 'blackhole')")
    return made


def answers(made: TableEnvironment, query: str) -> list[tuple[Any, ...]]:
    with made.execute_sql(query).collect() as rows:
        return [tuple(row) for row in rows]


def workers() -> set[int]:
    """Worker processes of this process."""
    listed = subprocess.run(["ps", "-o", "pid=,args=", "--ppid", str(os.getpid())], capture_output=True, text=True)
    return {int(line.split()[0]) for line in listed.stdout.splitlines() if "flowsql_runtime.python.worker" in line}


@pytest.fixture(autouse=True)
def _nothing_is_left_behind() -> Any:
    yield
    assert not workers()
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("python-worker")]


@pytest.mark.parametrize(
    ("mode", "parallelism", "kind", "processes"),
    [
        ("auto", 1, "general", 0),
        ("auto", 2, "general", 2),
        ("auto", 2, "pandas", 0),
        ("thread", 2, "general", 0),
        ("process", 1, "pandas", 1),
    ],
)
def test_where_functions_run(mode: str, parallelism: int, kind: str, processes: int) -> None:
    made = environment(200, python_execution__mode=mode, parallelism_default=str(parallelism))

    def where(x: Any) -> Any:
        return x * 0 + os.getpid()

    made.create_temporary_function("where_", udf(where, result_type="BIGINT", func_type=kind))
    found = {pid for (pid,) in answers(made, "SELECT DISTINCT where_(a) FROM n")}
    assert len(found - {os.getpid()}) == processes
    assert (os.getpid() in found) == (processes == 0)


class Life(ScalarFunction):
    """Writes down what happens to it, one line each, in a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def note(self, text: str) -> None:
        with self.path.open("a") as file:
            file.write(text + "\n")

    def open(self, function_context: FunctionContext) -> None:
        self.counter = function_context.get_metric_group().add_group("my").counter("seen")
        function_context.get_metric_group().gauge("level", lambda: 7)
        self.meter = function_context.get_metric_group().meter("marked")
        self.sizes = function_context.get_metric_group().distribution("sizes")
        self.by = int(function_context.get_job_parameter("by", "1"))
        self.seen = 0
        self.note(
            f"open {function_context.get_index_of_this_subtask()}/"
            f"{function_context.get_number_of_parallel_subtasks()} {function_context.get_attempt_number()}"
        )

    def eval(self, x: int) -> int:
        self.counter.inc()
        self.meter.mark_event(2)
        self.sizes.update(x)
        self.seen += 1
        return x * self.by

    def close(self) -> None:
        self.note(f"close {self.seen} {self.counter.get_count()}")


@pytest.mark.parametrize(("mode", "parallelism"), [("thread", 1), ("thread", 2), ("process", 2)])
def test_life_of_a_function(tmp_path: Path, mode: str, parallelism: int) -> None:
    made = environment(500, python_execution__mode=mode, parallelism_default=str(parallelism))
    made.get_config().set("pipeline.global-job-parameters", "by:3,other:'a,b'")
    made.create_temporary_function("life", udf(Life(tmp_path / "life")))
    result = made.execute_sql("INSERT INTO sink SELECT life(a) FROM n")
    result.wait()
    client = result.get_job_client()
    assert client is not None
    assert client.get_metric("my.seen") == 500
    assert client.get_metric("level") == 7 * parallelism
    assert client.get_metric("marked") == 1000
    assert client.get_metric("sizes.count") == 500
    assert client.get_metric("sizes.sum") == sum(range(1, 501))
    if parallelism == 1:
        found = [client.get_metric(f"sizes.{name}") for name in ("min", "max", "mean")]
        assert found == [1, 500, 250.5]
    lines = (tmp_path / "life").read_text().splitlines()
    opened = sorted(line for line in lines if line.startswith("open"))
    assert opened == [f"open {subtask}/{parallelism} 0" for subtask in range(parallelism)]
    closed = [line.split()[1:] for line in lines if line.startswith("close")]
    assert len(closed) == parallelism
    assert sum(int(seen) for seen, _ in closed) == 500
    assert all(seen == counted for seen, counted in closed)
    assert sum(x for (x,) in answers(made, "SELECT life(a) FROM n")) == 3 * sum(range(501))


@pytest.mark.parametrize("mode", ["thread", "process"])
def test_a_failed_job_closes_its_functions(tmp_path: Path, mode: str) -> None:
    made = environment(500, python_execution__mode=mode)
    made.create_temporary_function("life", udf(Life(tmp_path / "life")))
    made.create_temporary_function("fail", udf(lambda x: 1 // (x - 300), result_type="BIGINT"))
    with pytest.raises(ExecutionError, match="ZeroDivisionError"):
        made.execute_sql("INSERT INTO sink SELECT life(a) + fail(a) FROM n").wait()
    assert [line.split()[0] for line in (tmp_path / "life").read_text().splitlines()] == ["open", "close"]


@pytest.mark.parametrize(
    ("mode", "place"),
    [("thread", "number 4,321 that the source read"), ("process", "number 4,321 that came to the operator")],
)
def test_the_number_of_a_failed_row_counts_all_batches(mode: str, place: str) -> None:
    made = environment(20_000, python_execution__mode=mode, parallelism_default="1")
    made.create_temporary_function("fail", udf(lambda x: 1 // (x - 4321), result_type="BIGINT"))
    with pytest.raises(ExecutionError) as caught:
        made.execute_sql("INSERT INTO sink SELECT fail(a) FROM n").wait()
    assert f"row: {place}" in caught.value.render()


#: A program whose function stops in the debugger.
STOPPED = """
from flowsql.table import TableEnvironment
from flowsql.table.expressions import col
from flowsql.table.udf import udf


@udf(result_type="BIGINT")
def twice(n):
    made = n * 2
    breakpoint()
    return made


environment = TableEnvironment.create()
environment.get_config().set("parallelism.default", "1")
table = environment.from_elements([(21,)], ["n"])
print([row[0] for row in table.select(twice(col("n"))).execute().collect()])
"""


def test_a_breakpoint_stops_in_the_function(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(STOPPED)
    done = subprocess.run(
        [sys.executable, str(program)],
        input="where\nprint('n is', n)\nmade = 43\ncontinue\n",
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path or os.getcwd() for path in sys.path)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert "n is 21" in done.stdout, done.stderr
    assert "program.py(11)twice()" in done.stdout or "-> return made" in done.stdout
    assert "[43]" in done.stdout


def test_options_are_job_parameters() -> None:
    assert job_parameters({"a": "1", "pipeline.global-job-parameters": "a:2, b : 'x:1,''y''' ,c"}) == {
        "a": "2",
        "b": "x:1,'y'",
        "pipeline.global-job-parameters": "a:2, b : 'x:1,''y''' ,c",
    }


def test_a_worker_that_dies_fails_the_job() -> None:
    made = environment(2000, parallelism_default="2")
    made.create_temporary_function("die", udf(lambda x: x if x < 1500 else os._exit(3), result_type="BIGINT"))
    with pytest.raises(ExecutionError, match="worker process of the Python functions ended with exit code 3"):
        made.execute_sql("INSERT INTO sink SELECT die(a) FROM n").wait()


def test_a_worker_that_is_killed_fails_the_job(tmp_path: Path) -> None:
    made = environment(10, python_execution__mode="process")

    def wait(x: int) -> int:
        (tmp_path / "pid").write_text(str(os.getpid()))
        time.sleep(600)
        return x

    made.create_temporary_function("wait_", udf(wait))
    client = made.execute_sql("INSERT INTO sink SELECT wait_(a) FROM n").get_job_client()
    assert client is not None
    os.kill(_pid_of(tmp_path / "pid"), 9)
    with pytest.raises(ExecutionError, match="was killed by SIGKILL"):
        client.wait(60)


def test_cancelling_ends_a_function_that_does_not_return(tmp_path: Path) -> None:
    made = environment(100_000, python_execution__mode="process")

    def wait(x: int) -> int:
        (tmp_path / "pid").write_text(str(os.getpid()))
        time.sleep(600)
        return x

    made.create_temporary_function("wait_", udf(wait))
    client = made.execute_sql("INSERT INTO sink SELECT wait_(a) FROM n").get_job_client()
    assert client is not None
    pid = _pid_of(tmp_path / "pid")
    began = time.monotonic()
    client.cancel_and_wait()
    assert time.monotonic() - began < 10
    assert client.get_job_status().value == "CANCELED"
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def _pid_of(path: Path) -> int:
    deadline = time.monotonic() + 60
    while not (path.exists() and path.read_text()):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return int(path.read_text())


def test_a_worker_ends_when_its_job_dies() -> None:
    program = (
        "import os, sys, time\n"
        "from flowsql.table import TableEnvironment\n"
        "from flowsql.table.udf import udf\n"
        "def tell(x):\n    print(os.getpid(), flush=True)\n    time.sleep(600)\n    return x\n"
        "e = TableEnvironment.create()\n"
        "e.get_config().set('python.execution-mode', 'process')\n"
        "e.create_temporary_function('tell', udf(tell, result_type='BIGINT'))\n"
        "e.execute_sql('SELECT tell(a) FROM (VALUES (1)) AS t(a)').print()\n"
    )
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, env=environ) as job:
        assert job.stdout is not None
        # What functions print appears in the program's own output.
        pid = int(job.stdout.readline())
        job.kill()
        job.wait()
        os.kill(pid, 9)  # it sleeps: only between calls it would notice


def test_rows_and_watermarks_keep_their_order() -> None:
    """Batches in flight, watermarks between them, and a snapshot that waits for all."""
    call = python_call(PythonFunction("f", "f", "general"), (InputRef(0, BIGINT),), BIGINT, None)
    spec = PythonCalcSpec((InputRef(0, BIGINT), call), (Column("a", BIGINT),))
    resources = {"f": udf(lambda x: x * 10, result_type="BIGINT")}
    mails: deque[Any] = deque()
    harness = OperatorHarness(spec, parameters={"python.execution-mode": "process"}, resources=resources)
    (operator,) = harness.operators
    assert isinstance(operator, PythonCalcOperator)
    # Mails run in this thread, as the mailbox of a task would.
    operator.ctx.submit = mails.append
    try:
        for number in range(3 * IN_FLIGHT):
            track = WatermarkTrack(np.array([1], np.int32), np.array([number * 100]))
            harness.batch(ChangelogBatch.of([pa.array([number, number + 1])], track=track))
            harness.watermark(number * 100 + 50)
            while mails:
                mails.popleft()()
        harness.idle()
        harness.snapshot()
        levels = [level for number in range(3 * IN_FLIGHT) for level in (number * 100, number * 100 + 50)]
        assert harness.watermarks == levels
        assert [row[1:] for row in harness.rows] == [
            (x, 10 * x) for number in range(3 * IN_FLIGHT) for x in (number, number + 1)
        ]
        harness.end()
    finally:
        harness.close()


def test_a_function_that_cannot_be_sent_says_so() -> None:
    made = environment(10, python_execution__mode="process")
    lock = threading.Lock()
    made.create_temporary_function("locked", udf(lambda x: x if lock else 0, result_type="BIGINT"))
    with pytest.raises(ExecutionError, match="The Python function locked cannot be sent to its process: TypeError"):
        answers(made, "SELECT locked(a) FROM n")
