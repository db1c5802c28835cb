"""Streaming projects whose process is killed: the next run goes on from the newest snapshot, or says why not."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from flowsql.cli.main import main

FILES = {
    "flowsql.toml": """[project]
profile = "prod"
[options]
"execution.runtime-mode" = "streaming"
"flowsql.source.batch-rows" = "50"
[profiles.prod.options]
"execution.checkpointing.interval" = "50 ms"
""",
    "tables.sql": """CREATE TABLE numbers (n BIGINT) WITH ('connector' = 'datagen', 'rows-per-second' = '1000',
  'fields.n.kind' = 'sequence', 'fields.n.start' = '1', 'fields.n.end' = '100000');
CREATE TABLE seen (n BIGINT) WITH ('connector' = 'filesystem', 'format' = 'csv', 'path' = 'out',
  'sink.rolling-policy.file-size' = '100b');
""",
    "jobs.sql": "INSERT INTO seen SELECT n FROM numbers;\n",
}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for variable in ("FLOWSQL_CONF_DIR", "FLOWSQL_PROFILE"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.chdir(tmp_path)
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def begin(*words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "flowsql.cli", "run", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip


def visible(folder: Path) -> list[int]:
    return [int(line) for path in (folder / "out").glob("[!.]*") for line in path.read_text().split()]


def commits(process: subprocess.Popen[str], folder: Path, rows: int = 1) -> str:
    """Wait until it has committed some more rows; a line of it."""
    before = len(visible(folder))
    assert process.stdout is not None
    line = process.stdout.readline()
    until = time.monotonic() + 60
    while len(visible(folder)) < before + rows:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < until
        time.sleep(0.02)
    return line


def ends(process: subprocess.Popen[str], number: int) -> str:
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert not err
    return out


def once(folder: Path) -> None:
    """Every row from 1 on is there once."""
    found = Counter(visible(folder))
    assert found == Counter(range(1, len(found) + 1))


def test_a_run_goes_on_from_the_newest_snapshot_whatever_ended_the_last(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    process = begin()
    assert ": started from the beginning, job " in commits(process, project)
    ends(process, signal.SIGKILL)
    assert main(["run", "--dry-run"]) == 0
    assert f"seen  starts: from {project}/.flowsql/checkpoints/" in capsys.readouterr().out
    # Stopped with a savepoint, then killed behind a newer checkpoint, then cancelled behind another one.
    process = begin("--stop-with-savepoint")
    assert f": started from {project}/.flowsql/checkpoints/" in commits(process, project)
    out = ends(process, signal.SIGTERM)
    assert "stopped with" in out
    process = begin()
    assert f": started from {project}/.flowsql/savepoints/" in commits(process, project)
    ends(process, signal.SIGKILL)
    process = begin()
    assert f": started from {project}/.flowsql/checkpoints/" in commits(process, project)
    assert "cancelled" in ends(process, signal.SIGTERM)
    process = begin()
    assert f": started from {project}/.flowsql/checkpoints/" in commits(process, project)
    ends(process, signal.SIGKILL)
    once(project)
    assert main(["plan"]) == 0
    assert "unchanged  jobs.sql:1  seen  goes on from " in capsys.readouterr().out


@pytest.mark.parametrize(
    "how",
    [
        "in memory",
        pytest.param("gone", marks=pytest.mark.nightly),
        pytest.param("damaged", marks=pytest.mark.nightly),
    ],
)
def test_what_would_double_rows_is_refused(project: Path, how: str, capsys: pytest.CaptureFixture[str]) -> None:
    if how == "in memory":
        with (project / "flowsql.toml").open("a") as file:
            file.write('"execution.checkpointing.storage" = "jobmanager"\n')
    process = begin()
    commits(process, project)
    ends(process, signal.SIGKILL)
    if how == "gone":
        shutil.rmtree(project / ".flowsql" / "checkpoints")
    for path in (project / ".flowsql").glob("checkpoints/*/*/_metadata") if how == "damaged" else ():
        path.write_bytes(path.read_bytes()[:-1])
    before = sorted(visible(project))
    capsys.readouterr()
    assert main(["run"]) == 1
    told = capsys.readouterr().err
    if how == "damaged":
        assert "is cut or damaged" in told
        assert "the job goes on from the one before" in told
    else:
        assert "The job cannot go on: its checkpoints " in told
        assert "--full starts it from its beginning" in told
        assert "jobs.sql:1:1" in told
    assert sorted(visible(project)) == before
    process = begin("--full")
    assert ": started from the beginning (--full), job " in commits(process, project)
    ends(process, signal.SIGKILL)


def test_a_process_that_dies_behind_the_end_of_its_job_is_believed(project: Path) -> None:
    (project / "tables.sql").write_text(FILES["tables.sql"].replace("'100000'", "'10'"))
    assert main(["run"]) == 0
    # The job noted its end, and the run did not.
    path = project / ".flowsql" / "state-prod.json"
    form = json.loads(path.read_text())
    ((key, done),) = form["nodes"].items()
    record = {
        "job_id": "0" * 32, "folders": [".flowsql/checkpoints/0"], "committed": True, "savepoint": "",
        "savepoint_id": 0, "stops": False, "stopped": False, "finished": True, "lost": "",
    }  # fmt: skip
    path.write_text(json.dumps({**form, "nodes": {}, "jobs": {key: {"parts": done["parts"], "job": record}}}))
    assert main(["run"]) == 0
    # Nor do options matter that change no row.
    assert main(["run", "--available-now", "-D", "execution.checkpointing.interval=1 s"]) == 0
    assert sorted(visible(project)) == list(range(1, 11))


@pytest.mark.nightly
def test_a_savepoint_that_an_older_version_knew_is_gone_on_from(project: Path) -> None:
    process = begin("--stop-with-savepoint")
    commits(process, project)
    ends(process, signal.SIGTERM)
    path = project / ".flowsql" / "state-prod.json"
    form = json.loads(path.read_text())
    del form["jobs"]
    path.write_text(json.dumps(form))
    for number in (signal.SIGKILL, signal.SIGKILL):
        process = begin()
        assert ": started from /" in commits(process, project)
        ends(process, number)
    once(project)


@pytest.mark.nightly
def test_inserts_into_one_table_are_known_by_what_they_say(project: Path) -> None:
    ups, downs = "INSERT INTO seen SELECT n FROM numbers;\n", "INSERT INTO seen SELECT -n FROM numbers;\n"
    (project / "jobs.sql").write_text(ups + downs)
    process = begin()
    commits(process, project, 200)
    ends(process, signal.SIGKILL)
    (project / "jobs.sql").write_text("INSERT INTO seen SELECT n + 1000000 FROM numbers;\n" + downs + ups)
    process = begin()
    newer = 0
    until = time.monotonic() + 60
    while not newer:
        assert time.monotonic() < until
        time.sleep(0.05)
        newer = sum(n > 1_000_000 for n in visible(project))
    ends(process, signal.SIGKILL)
    assert max(Counter(visible(project)).values()) == 1


@pytest.mark.nightly
def test_a_node_that_was_away_goes_on(project: Path) -> None:
    process = begin()
    commits(process, project)
    ends(process, signal.SIGKILL)
    other = "CREATE TABLE p (n BIGINT) WITH ('connector' = 'blackhole');\nINSERT INTO p VALUES 1;\n"
    (project / "jobs.sql").write_text(other)
    assert main(["run"]) == 0
    (project / "jobs.sql").write_text(FILES["jobs.sql"] + other)
    process = begin()
    commits(process, project)
    ends(process, signal.SIGKILL)
    once(project)


def test_the_project_of_init_names_a_folder_of_checkpoints(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WAREHOUSE", str(project / "warehouse"))
    monkeypatch.setenv("CLICKS", str(project / "clicks"))
    assert main(["init", "new", "--template", "streaming"]) == 0
    monkeypatch.chdir(project / "new")
    text = Path("flowsql.toml").read_text()
    assert '"execution.checkpointing.dir" = ".flowsql/checkpoints"' in text
    Path("flowsql.toml").write_text(text.replace('"10 s"', '"50 ms"'))
    (project / "clicks").mkdir()
    for number in range(2):
        lines = [f"ann,2024-01-01 00:0{number * 3 + minute}:00\n" for minute in range(3)]
        (project / "clicks" / f"{number}.csv").write_text("".join(lines))
        process = begin("--profile", "prod")
        until = time.monotonic() + 60
        while sum(1 for path in (project / "warehouse").rglob("[!.]*") if path.is_file()) <= 0 or number:
            assert time.monotonic() < until
            if list(Path(".flowsql").glob("checkpoints/*/chk-*/_metadata")):
                break
            time.sleep(0.05)
        time.sleep(1.5)
        ends(process, signal.SIGKILL)
    (project / "clicks" / "9.csv").write_text("ann,2024-01-01 00:30:00\n")
    assert main(["run", "--profile", "prod", "--available-now"]) == 0
    found = [json.loads(line) for path in (project / "warehouse").rglob("[!.]*") if path.is_file()
             for line in path.read_text().splitlines()]  # fmt: skip
    assert sorted(row["started"][11:16] for row in found) == [f"00:0{minute}" for minute in range(6)]
    assert {row["clicks"] for row in found} == {1}
