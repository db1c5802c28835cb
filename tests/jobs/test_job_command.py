"""``flowsql job`` against a running process, ``flowsql -s``, and restarts on standard error."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from flowsql.cli.arguments import script
from flowsql.cli.arguments.job import JobInvocation
from flowsql.cli.arguments.job import parse as parse_job_arguments
from flowsql.cli.arguments.parser import UsageError
from flowsql.cli.main import main

UNKNOWN = "0" * 32
SCRIPT = """
CREATE TABLE g (n BIGINT) WITH ('connector' = 'datagen', 'rows-per-second' = '1000', 'fields.n.kind' = 'sequence',
    'fields.n.start' = '1', 'fields.n.end' = '1000000');
CREATE TABLE p (n BIGINT) WITH ('connector' = 'print');
INSERT INTO p SELECT COUNT(*) FROM g;
"""
Output = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FLOWSQL_CONF_DIR", raising=False)
    (tmp_path / "job.sql").write_text(SCRIPT)
    return tmp_path


class Running:
    """A script in a process of its own."""

    def __init__(self, folder: Path, *options: str) -> None:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        self.output = folder / "output.jsonl"
        self.errors = folder / "errors.txt"
        with self.output.open("w") as output, self.errors.open("w") as errors:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "flowsql.cli", "--format", "jsonl", *options, "-f", "job.sql"],
                env=environment,
                cwd=folder,
                stdout=output,
                stderr=errors,
            )

    def rows(self) -> list[tuple[str, int]]:
        lines = map(json.loads, self.output.read_text().splitlines())
        return [(line["op"], line["row"][0]) for line in lines if "sink" in line]


@pytest.fixture
def running(folder: Path) -> Iterator[Running]:
    made = Running(folder)
    yield made
    made.process.kill()
    made.process.wait()


def eventually(condition: Callable[[], Any], what: str) -> Any:
    deadline = time.monotonic() + 30
    while not (found := condition()):
        assert time.monotonic() < deadline, f"never: {what}"
        time.sleep(0.05)
    return found


def listed(capsys: Output, *options: str) -> list[dict[str, Any]]:
    capsys.readouterr()
    assert main(["job", "list", "--format", "jsonl", *options]) == 0
    jobs = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    return [job for job in jobs if job["process"] != os.getpid()]


def job_of(running: Running, capsys: Output) -> dict[str, Any]:
    [job] = eventually(lambda: listed(capsys), "the job is offered")
    assert job["process"] == running.process.pid
    eventually(running.rows, "the first rows")
    return job


def test_a_job_is_saved_stopped_and_started_again(running: Running, capsys: Output, folder: Path) -> None:
    job = job_of(running, capsys)
    assert job["name"] == "insert-into_default_catalog.default_database.p"
    assert (job["status"], job["restarts"], job["last_checkpoint"], job["ended_ms"]) == ("RUNNING", 0, None, None)
    assert job["duration_ms"] > 1_000
    assert main(["job", "list"]) == 0
    text = capsys.readouterr().out
    assert "------------------ Running/Restarting Jobs -------------------" in text
    assert f" : {job['id']} : {job['name']} (RUNNING, " in text
    assert "No scheduled jobs." in text

    # A savepoint that fails leaves the job running.
    assert main(["job", "savepoint", job["id"]]) == 1
    assert "No folder for the savepoint is known." in capsys.readouterr().err
    (folder / "file").write_text("in the way")
    assert main(["job", "stop", "--savepoint-path", "file/below", job["id"]]) == 1
    assert "Savepoint did not complete" in capsys.readouterr().err
    assert [one["status"] for one in listed(capsys, "-r")] == ["RUNNING"]
    assert listed(capsys, "-s") == []

    # The folder is that of who asks, not of the process that runs the job.
    assert main(["job", "savepoint", job["id"], "saved"]) == 0
    beside = capsys.readouterr().out
    assert f"Triggering savepoint for job {job['id']}." in beside
    assert f"Savepoint completed. Path: {folder}/saved/savepoint-" in beside
    assert listed(capsys)

    assert main(["job", "stop", "-p", "saved", job["id"]]) == 0
    stopped = capsys.readouterr().out
    assert f'Suspending job "{job["id"]}" with a CANONICAL savepoint.' in stopped
    path = stopped.split("Path: ")[1].split("\n")[0]
    assert Path(path, "_metadata").is_file()
    assert running.process.wait(20) == 0, running.errors.read_text()
    last = running.rows()[-1]

    again = Running(folder, "-s", path)
    try:
        eventually(again.rows, "rows of the second run")
    finally:
        again.process.kill()
        again.process.wait()
    assert again.rows()[0] == ("-U", last[1])


def test_a_cancelled_script_fails(running: Running, capsys: Output) -> None:
    job = job_of(running, capsys)
    assert main(["job", "cancel", job["id"]]) == 0
    assert f"Cancelled job {job['id']}." in capsys.readouterr().out
    assert running.process.wait(20) == 1
    assert "Job was cancelled." in running.errors.read_text()
    assert main(["job", "cancel", job["id"]]) == 1
    assert "Could not find Flink job" in capsys.readouterr().err


def test_a_killed_process_leaves_nothing_behind(running: Running, capsys: Output, runtime_folder: Path) -> None:
    job = job_of(running, capsys)
    running.process.kill()
    running.process.wait()
    assert list(runtime_folder.glob(f"{running.process.pid}-*.sock"))
    assert main(["job", "savepoint", job["id"], "saved"]) == 1
    assert "Could not find Flink job" in capsys.readouterr().err
    assert not list(runtime_folder.glob(f"{running.process.pid}-*.sock"))


def test_unknown_ids_and_wrong_usage(capsys: Output) -> None:
    assert main(["job", "stop", UNKNOWN]) == 1
    assert f"flowsql job: error: Could not find Flink job ({UNKNOWN})" in capsys.readouterr().err
    assert main(["job", "cancel", "x"]) == 1
    assert "Cannot parse JobID" in capsys.readouterr().err
    assert main(["job"]) == 2
    assert main(["job", "explode", UNKNOWN]) == 2
    assert main(["job", "stop"]) == 2
    assert "usage: flowsql job stop" in capsys.readouterr().err
    assert main(["job", "list"]) == 0


def test_words_of_the_job_command() -> None:
    assert parse_job_arguments(["list", "-a"]).statuses == {"running", "scheduled", "terminated"}
    assert parse_job_arguments(["list"]).statuses == {"running", "scheduled"}
    assert parse_job_arguments(["list", "-s"]).statuses == {"scheduled"}
    assert parse_job_arguments(["savepoint", "a", "b"]) == JobInvocation("savepoint", "a", "b")
    assert parse_job_arguments(["stop", "--drain", "--savepoint-path", "b", "a"]) == JobInvocation(
        "stop", "a", "b", True
    )


def test_from_savepoint_is_the_recovery_options() -> None:
    found = script.parse(["-c", "SELECT 1", "-D", "a=b", "-s", "/p", "--claim", "--allow-non-restored-state"])
    assert found.settings == (
        ("a", "b"),
        ("execution.state-recovery.path", "/p"),
        ("execution.state-recovery.claim-mode", "CLAIM"),
        ("execution.state-recovery.ignore-unclaimed-state", "true"),
    )
    assert script.parse(["-c", "SELECT 1", "--fromSavepoint", "/p"]).settings == (found.settings[1],)
    with pytest.raises(UsageError, match="give one with -s PATH"):
        script.parse(["-c", "SELECT 1", "--claim"])


def test_a_path_without_a_savepoint_is_told(capsys: Output) -> None:
    assert main(["-s", "nowhere", "-f", "job.sql"]) == 1
    assert "There is no checkpoint or savepoint in 'nowhere'" in capsys.readouterr().err


def test_restarts_are_told_with_their_causes(capsys: Output) -> None:
    script = (
        "CREATE TABLE p (n INT) WITH ('connector' = 'print');\nINSERT INTO p SELECT 1 / n FROM (VALUES (0)) AS t(n);\n"
    )
    options = ["restart-strategy.type=fixed-delay", "restart-strategy.fixed-delay.attempts=2"]
    options.append("restart-strategy.fixed-delay.delay=1 ms")
    words = [word for option in options for word in ("-D", option)]
    assert main(["--format", "jsonl", *words, "-c", script]) == 1
    output, errors = capsys.readouterr()
    told = [line for line in errors.splitlines() if line.startswith("[WARNING]")]
    name = "insert-into_default_catalog.default_database.p"
    assert [line.split(":")[0] for line in told] == [
        f"[WARNING] Job {name} failed and starts again in 1 ms (restart {number})" for number in (1, 2)
    ]
    assert all("/ by zero (at <command>:2:22, in operator Calc(" in line for line in told)
    # The log does not say it a second time, and programs that read the answers see none of it.
    assert errors.count("starts again") == 2
    assert [list(json.loads(line)) for line in output.splitlines()] == [["error"]]
