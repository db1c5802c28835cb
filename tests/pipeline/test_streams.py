"""Projects in streaming mode as processes: stopped with savepoints, gone on from them, and compared with them."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from flowsql.cli.main import main

TOTALS = """CREATE TABLE totals (who STRING, n BIGINT) WITH ('connector' = 'print');
INSERT INTO totals SELECT who, COUNT(*) FROM clicks GROUP BY who;
"""
OTHER = TOTALS.replace("SELECT who", "SELECT UPPER(who)").replace("BY who", "BY UPPER(who)")
FILES = {
    "flowsql.toml": """[options]
"execution.runtime-mode" = "streaming"
""",
    "clicks.sql": """CREATE TABLE clicks (who STRING)
WITH ('connector' = 'filesystem', 'path' = 'clicks', 'format' = 'csv', 'source.monitor-interval' = '50 ms');""",
    "totals.sql": TOTALS,
    "clicks/1.csv": "ann\nann\n",
}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    for variable in ("FLOWSQL_CONF_DIR", "FLOWSQL_PROFILE"):
        monkeypatch.delenv(variable, raising=False)
    # Paths of sockets are short: not below the test's own folder.
    sockets = Path(tempfile.mkdtemp(prefix="flowsql-jobs-"))
    monkeypatch.setenv("FLOWSQL_RUNTIME_DIR", str(sockets))
    monkeypatch.chdir(tmp_path)
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    yield tmp_path
    shutil.rmtree(sockets, ignore_errors=True)


def begin(*words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "flowsql.cli", "run", *words],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip


def read_to(process: subprocess.Popen[str], line: str) -> list[str]:
    """What is printed up to a line."""
    assert process.stdout is not None
    read: list[str] = []
    while not read or read[-1] != line:
        found = process.stdout.readline()
        assert found, (read, process.communicate())
        read.append(found.rstrip("\n"))
    return read


def end(process: subprocess.Popen[str], number: int) -> tuple[int, str]:
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert err == ""
    return process.returncode, out


def record(folder: Path) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = json.loads((folder / ".flowsql" / "state.json").read_text())["stopped"]
    return found


def test_a_stream_goes_on_from_the_savepoint_of_its_stop(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    process = begin("--stop-with-savepoint")
    first = read_to(process, "+U[ann, 2]")
    assert first[0].startswith("totals.sql:2 totals: started from the beginning, job ")
    assert main(["run"]) == 1
    assert "Another process runs the project" in capsys.readouterr().err
    code, out = end(process, signal.SIGTERM)
    assert code == 0
    (stopped,) = record(project).values()
    assert f"totals.sql:2 totals: stopped with {stopped['savepoint']}" in out
    # What the savepoint gives to the statement as it is, and to others.
    assert main(["plan"]) == 0
    told = capsys.readouterr().out
    assert told.startswith("unchanged  totals.sql:2  totals  goes on from ")
    assert "    kept      GroupAggregate-" in told
    (project / "totals.sql").write_text(OTHER)
    (project / "new.sql").write_text(TOTALS.replace("totals", "more"))
    assert main(["plan"]) == 3
    told = capsys.readouterr().out
    assert "new        new.sql:2     more\n" in told
    assert "changed    totals.sql:2  totals  its statement changed, goes on from " in told
    assert "dropped   GroupAggregate-" in told or "rebuilt   GroupAggregate-" in told
    (project / "totals.sql").unlink()
    assert main(["plan"]) == 0
    told = capsys.readouterr().out
    assert "removed    -          default_catalog.default_database.totals  nothing goes on from" in told
    (project / "new.sql").unlink()
    (project / "totals.sql").write_text(TOTALS)
    # It goes on: rows are neither forgotten nor read again.
    (project / "clicks" / "2.csv").write_text("ann\n")
    process = begin("--stop-with-savepoint")
    assert read_to(process, "+U[ann, 3]")[1:] == ["-U[ann, 2]", "+U[ann, 3]"]
    assert end(process, signal.SIGINT)[0] == 0
    (again,) = record(project).values()
    assert again["savepoint"] != stopped["savepoint"]
    # From the beginning, and cancelled: the savepoint of before is not taken again.
    process = begin("--full")
    assert read_to(process, "+U[ann, 3]")[1] == "+I[ann, 1]"
    code, out = end(process, signal.SIGINT)
    assert code == 130
    assert "totals.sql:2  totals  cancelled" in out
    assert record(project) == {}


def test_a_job_that_another_process_stops_goes_on_too(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    process = begin()
    job = read_to(process, "+U[ann, 2]")[0].split()[-1]
    until = time.monotonic() + 60
    while main(["job", "stop", job]) != 0 and time.monotonic() < until:
        time.sleep(0.1)  # it is offered once it has been running for a second
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    (stopped,) = record(project).values()
    assert f"totals.sql:2 totals: stopped with {stopped['savepoint']}" in out
    assert stopped["savepoint"].startswith(str(project / ".flowsql" / "savepoints"))
    assert main(["run", "--dry-run"]) == 0
    assert capsys.readouterr().out.endswith(f"totals.sql:2  totals  starts: from {stopped['savepoint']}\n")
    shutil.rmtree(stopped["savepoint"])
    assert main(["plan"]) == 1
    assert main(["run"]) == 1
