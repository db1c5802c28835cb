"""``flowsql top``: tables and the screen of jobs in other processes, and where the time of tasks goes."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from flowsql.cli.live.board import Observer, rate_text, span_text
from flowsql.jobs import everywhere
from flowsql.jobs.registry import JobRegistry
from flowsql.jobs.remote import RemoteProcess
from flowsql.jobs.watch import JOBS
from flowsql.table.session.environment import TableEnvironment
from tests.cli.shell.terminal import shell

from .conftest import NAME, Command, Script, eventually


def test_jobs_as_a_table_for_programs(grouped: Script, command: Command) -> None:
    head, *rows = command.lines("top", "--once", "--interval", "300ms")
    names = [name for name, _ in head["columns"]]
    (found,) = (dict(zip(names, row["row"], strict=True)) for row in rows if row["row"][0] == grouped.id)
    assert (found["name"], found["status"], found["process"]) == (NAME, "RUNNING", grouped.process.pid)
    assert found["uptime"] > 1000
    assert found["numRestarts"] == 0
    assert 500 < found["numRecordsInPerSecond"] < 8000
    assert found["numRecordsOutPerSecond"] > 0
    assert found["lastCompletedCheckpointId"] > 0
    assert found["lastCheckpointDuration"] >= 0
    assert found["lastCheckpointFullSize"] > 0
    assert found["stateBytes"] > 0


def test_jobs_as_json(grouped: Script, command: Command) -> None:
    code, output, _ = command("top", grouped.id[:6], "--once", "--interval", "300ms", "--format", "json")
    assert code == 0
    found: dict[str, Any] = json.loads(output)
    assert found["id"] == grouped.id
    assert found["checkpoints"]["numberOfCompletedCheckpoints"] > 0
    source, sink = found["vertices"]
    assert (source["parallelism"], sink["parallelism"]) == (2, 2)
    for vertex in (source, sink):
        assert len(vertex["subtasks"]) == 2
        for shares in (vertex, *vertex["subtasks"]):
            parts = [shares[f"{name}TimeMsPerSecond"] for name in ("busy", "idle", "backPressured")]
            assert sum(parts) == pytest.approx(1000, abs=1)
            # It has little to do.
            assert shares["idleTimeMsPerSecond"] > 300
    operators = {one["name"].partition("(")[0]: one for vertex in (source, sink) for one in vertex["operators"]}
    assert operators["Source: clicks[1]"]["numRecordsIn"] == 0
    assert operators["Source: clicks[1]"]["numRecordsOutPerSecond"] > 500
    assert operators["Source: clicks[1]"]["currentOutputWatermark"] is None
    assert operators["WatermarkAssigner"]["currentOutputWatermark"] > 1_700_000_000_000
    aggregate = operators["GroupAggregate"]
    assert aggregate["numRecordsIn"] > 0
    assert 0 <= aggregate["watermarkLag"] < 60_000
    assert aggregate["stateBytes"] > 0
    assert operators["Sink"]["stateBytes"] is None


def test_tables_for_people(grouped: Script, command: Command) -> None:
    code, output, errors = command("top", "--once", "--interval", "100ms", "--format", "vertical")
    assert (code, errors) == (0, "")
    assert re.search(rf"^job +\| {NAME}\nid +\| {grouped.id}\nstate +\| RUNNING\nuptime +\| ", output, re.MULTILINE)
    assert re.search(r"^checkpoint \| #\d+, \d+ ms, [\d.]+ kB$", output, re.MULTILINE)
    # What is no terminal gets the table, too.
    code, output, _ = command("top", NAME, "--interval", "100ms", "--format", "markdown")
    assert code == 0
    assert output.startswith(
        "| operator | par | rows/s in | rows/s out | busy | idle | back-pr | watermark | lag | state size |\n"
    )
    assert re.search(
        r"^\| 1 Source: clicks\[1\] \| 2 \| - \| [\d,.]+ \| \d+% \| \d+% \| 0% \| - \| - \| - \|$", output, re.M
    )


def test_jobs_that_are_not_there(grouped: Script, command: Command, begin: Callable[[str], Script]) -> None:
    code, output, errors = command("top", "nothing", "--once")
    assert (code, output) == (1, "")
    assert "flowsql top: error: 'nothing' is not a running job.\nhint: running: " in errors
    assert f"{grouped.id} ({NAME})" in errors
    code, _, errors = command("top", "--interval", "1 ms")
    assert code == 2
    assert "expected a time of 50 ms at least" in errors


def test_without_jobs(command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLOWSQL_RUNTIME_DIR", str(tmp_path / "none"))
    monkeypatch.setattr(everywhere, "JOBS", JobRegistry())
    assert command("top", "--once") == (0, "Empty set\n", "")
    code, _, errors = command("top", "x", "--once")
    assert code == 1
    assert "No job 'x': none of your jobs is running on this machine." in errors


def test_a_job_that_has_ended_says_how(command: Command) -> None:
    environment = TableEnvironment.create()
    environment.execute_sql("CREATE TABLE g (n BIGINT) WITH ('connector' = 'datagen', 'number-of-rows' = '3')")
    environment.execute_sql("CREATE TABLE forever (n BIGINT) WITH ('connector' = 'datagen')")
    environment.execute_sql("CREATE TABLE hole (n BIGINT) WITH ('connector' = 'blackhole')")
    finished = environment.execute_sql("INSERT INTO hole SELECT n FROM g")
    finished.wait()
    cancelled = environment.execute_sql("INSERT INTO hole SELECT n FROM forever")
    cancelled.cancel()
    for result, status, code in ((finished, "FINISHED", 0), (cancelled, "CANCELED", 1)):
        client = result.get_job_client()
        assert client is not None
        job_id = client.get_job_id()
        assert command("top", job_id, "--once") == (code, "", f"[INFO] Job {job_id} has ended: {status}.\n")
        code, output, errors = command("sample", job_id, "1")
        assert (code, output) == (1, "")
        assert f"Job {job_id} is {status}: it has no rows to look at any more." in errors


def test_a_process_of_another_release(monkeypatch: pytest.MonkeyPatch, grouped: Script, command: Command) -> None:
    plain = RemoteProcess.ask

    def ask(self: RemoteProcess, method: str, arguments: Any, timeout_s: float | None = None) -> Any:
        answer = plain(self, method, arguments, timeout_s)
        if method == "metrics":
            del answer["jobs"][0]["reading"]["tasks"][0]["idle_ns"]
        return answer

    monkeypatch.setattr(RemoteProcess, "ask", ask)
    code, _, errors = command("top", "--once")
    assert code == 0
    assert "[WARNING] Jobs are missing: A process tells the metrics of its jobs in another form." in errors
    code, _, errors = command("top", grouped.id, "--once")
    assert code == 1
    assert "both processes need the same release of FlowSQL" in errors


def still(screen: str) -> str:
    """A screen without what another run would show differently."""
    named = re.sub(r"\b([0-9a-f]{32}|[0-9a-f]{8})\b", "ID", screen)
    numbered = re.sub(r"#?\d[\d,.:]*(%| (min|s|ms|kB|MB|d|h)\b)?", "N", named)
    # Sizes of a few rows may be there or not yet, and numbers push each other around.
    shown = re.sub(r"N( [N-])*", "N", re.sub(r" +", " ", numbered))
    return "\n".join(line for line in shown.splitlines() if line.strip())


def test_the_screen(begin: Callable[[str], Script], tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    job = begin(
        "CREATE TABLE clicks (n BIGINT) WITH ('connector' = 'datagen', 'rows-per-second' = '500');"
        "CREATE TABLE hole (n BIGINT) WITH ('connector' = 'blackhole');"
        "INSERT INTO hole SELECT COUNT(*) FROM clicks WHERE n > 0;"
    )
    folder = os.environ["FLOWSQL_RUNTIME_DIR"]
    with shell(tmp_path, "top", job.id, "--interval", "250ms", FLOWSQL_RUNTIME_DIR=folder) as one:
        one.wait_for("GroupAggregate")
        # Alone there is no way to other jobs.
        one.press("b")
        one.wait_for("Escape All jobs")
        one.press("q")
        one.wait_for_end()
    with shell(tmp_path, "top", "--interval", "250ms", FLOWSQL_RUNTIME_DIR=folder) as top:
        top.wait_for(job.id[:8])
        # The newest job stands first.
        screen = top.wait_for(lambda shown: re.search(rf"{job.id[:8]} +RUNNING .* [1-9]\d\d ", shown) is not None)
        assert still("\n".join(line for line in screen.splitlines() if NAME[-12:] not in line)) == snapshot(name="jobs")
        top.press("Enter")
        top.wait_for("GroupAggregate")
        screen = top.wait_for(
            lambda shown: (
                re.search(r"^1 Source.* [1-9]\d\d ", shown, re.MULTILINE) is not None
                and shown.endswith("Escape All jobs")
            )
        )
        assert still(screen) == snapshot(name="operators")
        top.press("Right", "r")
        top.wait_for(lambda shown: [line[0] for line in shown.splitlines() if line[:2] in ("1 ", "2 ")] == ["2", "1"])
        top.press("Left")
        top.wait_for(lambda shown: [line[0] for line in shown.splitlines() if line[:2] in ("1 ", "2 ")] == ["2", "1"])
        top.press("Escape")
        top.wait_for("Enter Open job")
        top.press("Enter", "c")
        top.wait_for(f"Cancel job {job.id[:8]}, insert-into_default_catalog.default_database.hole? (Y/N)")
        top.press("n")
        top.wait_for(lambda shown: "Cancel job " + job.id[:8] not in shown and "GroupAggregate" in shown)
        assert job.process.poll() is None
        top.press("C")
        top.wait_for("(Y/N)")
        top.press("y")
        top.wait_for("Job has ended, or its process")
        assert "GroupAggregate" in top.screen()
        assert job.process.wait(20) == 1
        assert "Job was cancelled." in job.errors.read_text()
        top.press("Escape")
        top.wait_for(lambda shown: "database.hole" not in shown and "Enter Open job" in shown)
        top.press("Q")
        top.wait_for_end()


# -- where the time goes


def test_a_slow_sink_holds_back_what_is_before_it() -> None:
    environment = TableEnvironment.create()
    environment.execute_sql("SET 'parallelism.default' = '2'")
    environment.execute_sql("SET 'flowsql.network.channel-memory' = '64 kb'")
    environment.execute_sql("CREATE TABLE g (n BIGINT) WITH ('connector' = 'datagen', 'rows-per-second' = '10000000')")
    # Nobody takes the rows: the sink waits in the middle of a batch, which is its work.
    result = environment.execute_sql("SELECT n, COUNT(*) AS c FROM g GROUP BY n")
    client = result.get_job_client()
    assert client is not None
    observer = Observer(client.get_job_id())

    def shares() -> dict[str, Any] | None:
        (job,) = observer.look()
        found = {one.vertex.name.partition(" ")[0].partition("(")[0]: one for one in job.vertices}
        head = next(one for name, one in found.items() if name.startswith("Source"))
        last = found[max(found, key=lambda name: found[name].vertex.id)]
        is_held_back = head.mean is not None and head.mean.back_pressured > 990
        return found if is_held_back and last.mean is not None and last.mean.busy > 900 else None

    try:
        found = eventually(shares, "the source is back-pressured")
        job = JOBS.alive(client.get_job_id())
        assert job is not None
        for vertex in found.values():
            for one in vertex.shares.values():
                assert one.busy + one.idle + one.back_pressured == pytest.approx(1000, abs=1)
        last = found[max(found, key=lambda name: found[name].vertex.id)]
        assert last.mean.back_pressured < 10
        # A wait that has not ended counts.
        assert max(task.values()["backPressuredTimeMsPerSecond"] for task in job.metrics.tasks) > 0
    finally:
        result.cancel()


@pytest.mark.parametrize(
    ("span_ms", "text"),
    [
        (None, "-"), (0, "0 ms"), (999, "999 ms"), (1000, "1.0 s"), (59_999, "60.0 s"), (245_000, "4 min 5 s"),
        (3_600_000, "1 h 0 min"), (11_520_000, "3 h 12 min"), (86_400_000, "1 d 0 h"), (-1500, "-1.5 s"),
    ],
)  # fmt: skip
def test_spans(span_ms: int | None, text: str) -> None:
    assert span_text(span_ms) == text


@pytest.mark.parametrize(
    ("rate", "text"), [(None, "-"), (0.0, "0"), (0.25, "0.2"), (9.94, "9.9"), (9.96, "10"), (1234.5, "1,234")]
)
def test_rates(rate: float | None, text: str) -> None:
    assert rate_text(rate) == text
