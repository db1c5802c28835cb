"""``flowsql sample``: live rows of jobs in other processes, which are not slowed down by it."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from itertools import islice, pairwise

import pytest

from flowsql.jobs import handlers
from flowsql.jobs.control_protocol import decode_answer, encode_request
from flowsql.jobs.endpoint import ControlEndpoint
from flowsql.jobs.everywhere import act_on, follow
from flowsql.jobs.registry import JobRegistry
from flowsql.jobs.remote import RemoteProcess
from flowsql.jobs.watch import JOBS
from flowsql.table.session.environment import TableEnvironment
from flowsql_core.errors import ExecutionError
from flowsql_core.graph.job import JobGraph
from flowsql_runtime.cluster.job import Job

from .conftest import NAME, Command, Script, eventually

#: As fast as it can be made.
FAST = (
    "CREATE TABLE g (n BIGINT) WITH ('connector' = 'datagen', 'rows-per-second' = '100000000')",
    "CREATE TABLE hole (n BIGINT) WITH ('connector' = 'blackhole')",
    "INSERT INTO hole SELECT n + 1 FROM g",
)


def test_the_operators_of_a_job_are_listed_with_their_columns(grouped: Script, command: Command) -> None:
    head, *rows = command.lines("sample", grouped.id)
    assert [name for name, _ in head["columns"]] == ["id", "uid", "operator", "to", "columns"]
    edges = {row["row"][2].partition("(")[0]: (row["row"][3], row["row"][4]) for row in rows}
    assert edges["Source: clicks[1]"] == ("chain -> 2", "n BIGINT")
    assert edges["GroupAggregate"] == ("chain -> 6", "EXPR$0 INT, EXPR$1 BIGINT NOT NULL")
    assert edges["Calc"][0] == "chain -> 7"
    assert "HASH[EXPR$0] -> 5" in [row["row"][3] for row in rows]


def test_rows_of_an_edge_within_a_chain_with_their_kinds(grouped: Script, command: Command) -> None:
    for named in ("GroupAgg", "5", "groupaggregate-"):
        head, *rows = command.lines("sample", grouped.id[:8], named, "--rows", "40")
        assert head == {"columns": [["EXPR$0", "INT"], ["EXPR$1", "BIGINT NOT NULL"]]}
        assert len(rows) == 40
        assert {row["op"] for row in rows} == {"-U", "+U"}
        for before, after in pairwise(rows):
            if before["op"] == "-U":
                assert after["op"] == "+U"
                assert before["row"][0] == after["row"][0]
                assert before["row"][1] < after["row"][1]


def test_rows_of_an_exchange(grouped: Script, command: Command) -> None:
    (exchange,) = (edge for edge in act_on("edges", grouped.id)["edges"] if edge["ways"][0][0].startswith("HASH"))
    head, *rows = command.lines("sample", NAME, str(exchange["node"]), "--rows", "30")
    assert head == {"columns": [["EXPR$0", "INT"]]}
    assert {(row["op"], row["row"][0]) for row in rows} == {("+I", 0), ("+I", 1), ("+I", 2)}


def test_of_a_sink_the_rows_that_come_to_it(grouped: Script, command: Command) -> None:
    head, *rows = command.lines("sample", grouped.id, "Sink", "--rows", "6")
    assert head == {"columns": [["k", "BIGINT"], ["c", "BIGINT"]]}
    assert {row["op"] for row in rows} == {"-U", "+U"}


@pytest.mark.parametrize(
    ("form", "begins"),
    [
        ("csv", "op,n\n+I,"),
        ("tableau", "+----+----------------------+\n| op |                    n |\n"),
        ("vertical", "-[ RECORD 1 ]"),
        ("markdown", "| op | n |\n|:---|---:|\n| +I |"),
    ],
)
def test_forms(grouped: Script, command: Command, form: str, begins: str) -> None:
    code, output, _ = command("sample", grouped.id, "clicks", "--rows", "3", "--format", form)
    assert code == 0
    assert output.startswith(begins)


def test_the_time_is_over(grouped: Script, command: Command) -> None:
    begun = time.monotonic()
    rows = command.lines("sample", grouped.id, "GroupAggregate", "--timeout", "0.6")
    assert len(rows) > 1
    assert time.monotonic() - begun < 15


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("JOB", "99"), "'99' is not an operator of the job.\nhint: one of 1 (TableSourceScan-"),
        (("JOB", "Calc"), "'Calc' fits several operators of the job.\nhint: one of 2 (Calc-"),
        (("nothing", "1"), "'nothing' is not a running job.\nhint: running: "),
        (("0" * 32, "1"), "is not a running job.\nhint: running: "),
    ],
)
def test_names_that_are_none(grouped: Script, command: Command, words: tuple[str, ...], told: str) -> None:
    code, output, errors = command("sample", *(word.replace("JOB", grouped.id) for word in words))
    assert (code, output) == (1, "")
    assert told in errors
    if "running" in told:
        assert f"{grouped.id} ({NAME})" in errors


def test_jobs_that_end_meanwhile(begin: Callable[[str], Script], command: Command) -> None:
    script = ";\n".join(FAST).replace("100000000", "20") + ";\n"
    bounded = begin(script.replace("'20'", "'20', 'number-of-rows' = '60'"))
    cancelled, killed = begin(script), begin(script)

    code, output, errors = command("sample", bounded.id, "g", "--format", "csv")
    assert code == 0
    assert len(output.splitlines()) > 5
    assert errors.endswith(f"[INFO] Job {bounded.id} has ended: FINISHED.\n")

    threading.Timer(0.2, act_on, ("cancel", cancelled.id)).start()
    code, _, errors = command("sample", cancelled.id, "g")
    assert code == 1
    assert f"Job {cancelled.id} has ended: CANCELED." in errors

    assert killed.id
    threading.Timer(0.2, killed.process.kill).start()
    code, _, errors = command("sample", killed.id, "g")
    assert code == 1
    assert f"Process {killed.process.pid} ended before it answered." in errors
    # Its socket goes with whoever looks next.
    assert "is not a running job" in command("sample", killed.id, "g")[2]


def test_ctrl_c_ends_it(grouped: Script) -> None:
    words = [sys.executable, "-m", "flowsql.cli", "sample", grouped.id, "clicks", "--format", "csv"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"op,n\n"
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=20)
        assert process.returncode == 130


# -- in this process, where it can be seen what a reader costs


@pytest.fixture
def fast() -> Iterator[Job]:
    """A job of this process that is never idle."""
    environment = TableEnvironment.create()
    for statement in FAST[:-1]:
        environment.execute_sql(statement)
    result = environment.execute_sql(FAST[-1])
    client = result.get_job_client()
    assert client is not None
    job = JOBS.alive(client.get_job_id())
    assert job is not None
    yield job
    client.cancel_and_wait()


@pytest.fixture
def endpoint() -> Iterator[ControlEndpoint]:
    made = ControlEndpoint(
        lambda method, arguments: handlers.handle(JOBS, method, arguments),
        lambda method, arguments: handlers.follow(JOBS, method, arguments),
    )
    yield made
    made.close()


def rows_read(job: Job) -> int:
    return max(operator.records_out for operator in job.metrics.operators())


def test_a_reader_that_does_not_read_stops_nobody(fast: Job, endpoint: ControlEndpoint) -> None:
    eventually(lambda: rows_read(fast), "rows")
    with contextlib.closing(socket.socket(socket.AF_UNIX)) as client:
        client.connect(str(endpoint.path))
        client.sendall(encode_request("sample", {"job": fast.id, "operator": "1"}))
        eventually(fast.taps.open, "somebody looks")

        # The buffers of the connection, and the tap's own, are full by then.
        time.sleep(1.0)
        before = rows_read(fast)
        eventually(lambda: rows_read(fast) > before + 100_000, "the job goes on, whoever looks")
        # What was left out is counted.
        client.settimeout(10)
        received = client.makefile("rb")
        passed = taken = 0
        for line in islice(received, 200):
            answer = decode_answer(line)
            passed, taken = answer["passed"], answer["taken"]
            if passed > taken + 10_000:
                break
        assert passed > taken + 10_000
        assert taken > 0
        received.close()
    eventually(lambda: not fast.taps.open(), "the tap goes with its reader")


def test_a_reader_that_does_not_read_does_not_keep_the_process(fast: Job) -> None:
    made = ControlEndpoint(
        lambda method, arguments: handlers.handle(JOBS, method, arguments),
        lambda method, arguments: handlers.follow(JOBS, method, arguments),
    )
    with contextlib.closing(socket.socket(socket.AF_UNIX)) as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.connect(str(made.path))
        client.sendall(encode_request("sample", {"job": fast.id, "operator": "1"}))
        eventually(fast.taps.open, "somebody looks")
        time.sleep(0.5)
        begun = time.monotonic()
        made.close()
        assert time.monotonic() - begun < 3
    eventually(lambda: not fast.taps.open(), "the tap goes with its reader")


def test_the_end_of_a_process_ends_a_sample(fast: Job) -> None:
    made = ControlEndpoint(
        lambda method, arguments: handlers.handle(JOBS, method, arguments),
        lambda method, arguments: handlers.follow(JOBS, method, arguments),
    )
    answers = RemoteProcess(os.getpid(), made.path).follow("sample", {"job": fast.id, "operator": "1"})
    assert next(answers)["columns"] == [["n", "BIGINT"]]
    begun = time.monotonic()
    closing = threading.Thread(target=made.close)
    closing.start()
    with pytest.raises(ExecutionError, match="ended before it answered"):
        list(answers)
    closing.join()
    assert time.monotonic() - begun < 3


def test_nobody_looks_nothing_is_taken(fast: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not fast.taps.open()
    answers = follow("sample", fast.id, operator="1")
    assert not fast.taps.open(), "a tap begins with the first answer"
    assert next(answers)["columns"] == [["n", "BIGINT"]]
    assert fast.taps.open() == {(1, None): 1}
    also = follow("sample", fast.id, operator="1")
    next(also)
    assert fast.taps.open() == {(1, None): 2}
    answers.close()  # type: ignore[attr-defined]
    assert fast.taps.open() == {(1, None): 1}
    also.close()  # type: ignore[attr-defined]
    assert fast.taps.point(1).taps is None


@pytest.mark.parametrize("graph", ["none", "not deployed"])
def test_jobs_whose_tasks_are_elsewhere(graph: str, fast: Job) -> None:
    made = Job(JobGraph("job", (), ()) if graph == "none" else fast.graph)
    registry = JobRegistry()
    registry.add(made)
    with pytest.raises(ExecutionError, match="its tasks run in other processes"):
        handlers.follow(registry, "sample", {"job": made.id, "operator": "1"})
    if graph == "none":
        with pytest.raises(ExecutionError, match="its tasks run in other processes"):
            handlers.handle(registry, "edges", {"job": made.id})
    # All that is known of it is shown.
    (told,) = handlers.handle(registry, "metrics", {"job": made.id})["jobs"]
    assert (told["info"]["id"], list(told["reading"]["tasks"])) == (made.id, [])


def test_a_tap_outlives_a_restart() -> None:
    environment = TableEnvironment.create()
    for statement in (
        "SET 'restart-strategy.type' = 'fixed-delay'",
        "SET 'restart-strategy.fixed-delay.attempts' = '1000'",
        "SET 'restart-strategy.fixed-delay.delay' = '1 ms'",
        "CREATE TABLE g (n BIGINT) WITH ('connector' = 'datagen', 'rows-per-second' = '1000', "
        "'fields.n.kind' = 'sequence', 'fields.n.start' = '1', 'fields.n.end' = '1000')",
        "CREATE TABLE hole (n BIGINT) WITH ('connector' = 'blackhole')",
    ):
        environment.execute_sql(statement)
    client = environment.execute_sql("INSERT INTO hole SELECT 1 / (n - 100) FROM g").get_job_client()
    assert client is not None
    answers = follow("sample", client.get_job_id(), operator="g")
    next(answers)
    job = JOBS.alive(client.get_job_id())
    assert job is not None
    before = len(job.restarts)
    eventually(lambda: len(job.restarts) > before + 2, "restarts")
    assert any("rows" in answer for answer in islice(answers, 20))
    answers.close()  # type: ignore[attr-defined]
    client.cancel_and_wait()
    with pytest.raises(Exception, match="it has no rows to look at any more"):
        follow("sample", client.get_job_id(), operator="g")
