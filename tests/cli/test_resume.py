"""``flowsql -f job.sql --resume DIR`` as a supervisor has it: killed, and started again by the same words."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from flowsql.cli.main import main

ROWS = 4_000
SCRIPT = """SET 'execution.checkpointing.interval' = '50 ms';
CREATE TABLE numbers (n BIGINT) WITH ('connector' = 'datagen', 'rows-per-second' = '2000',
  'fields.n.kind' = 'sequence', 'fields.n.start' = '1', 'fields.n.end' = '{rows}');
CREATE TABLE o (n BIGINT) WITH ('connector' = 'filesystem', 'format' = 'csv', 'path' = '{folder}/out',
  'sink.rolling-policy.file-size' = '100b');
{more}INSERT INTO o SELECT n FROM numbers;
"""


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("FLOWSQL_CONF_DIR", raising=False)
    path = tmp_path / "job.sql"
    path.write_text(SCRIPT.format(rows=ROWS, folder=tmp_path, more=""))
    return path


def begin(script: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "flowsql.cli", "-f", str(script), "--resume", str(script.parent / "state")],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip


def until_visible(folder: Path, before: int = 0) -> None:
    until = time.monotonic() + 60
    while visible(folder).total() <= before:
        assert time.monotonic() < until
        time.sleep(0.02)


def visible(folder: Path) -> Counter[str]:
    found: Counter[str] = Counter()
    for path in (folder / "out").glob("[!.]*"):
        found.update(path.read_text().split())
    return found


def test_a_killed_script_goes_on_and_a_second_process_is_refused(script: Path) -> None:
    folder = script.parent
    first = begin(script)
    until_visible(folder)
    # It waits for the other one, and has the lock meanwhile.
    first.send_signal(signal.SIGSTOP)
    second = begin(script)
    _, told = second.communicate(timeout=60)
    assert second.returncode == 1
    assert "[ERROR] The script cannot run. Reason:\nAnother process goes on from " in told
    first.kill()
    _, told = first.communicate()
    assert "[INFO] Job insert-into_default_catalog.default_database.o starts from its beginning." in told
    # The kill took the lock.
    third = begin(script)
    _, told = third.communicate(timeout=120)
    assert third.returncode == 0, told
    assert f" goes on from {folder}/state/" in told
    assert visible(folder) == Counter(str(n) for n in range(1, ROWS + 1))
    fourth = begin(script)
    _, told = fourth.communicate(timeout=60)
    assert fourth.returncode == 0, told
    assert "has ended before: it does not run again." in told
    assert visible(folder).total() == ROWS


def test_a_script_that_is_terminated_goes_on(script: Path) -> None:
    """As systemd and containers stop it."""
    first = begin(script)
    until_visible(script.parent)
    first.send_signal(signal.SIGTERM)
    first.communicate(timeout=60)
    assert first.returncode == 143
    second = begin(script)
    _, told = second.communicate(timeout=120)
    assert second.returncode == 0, told
    assert " goes on from " in told
    assert visible(script.parent) == Counter(str(n) for n in range(1, ROWS + 1))


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["-s", "x", "--resume", "y"], "--resume finds what jobs go on from by itself, and -s PATH names it"),
        (["--resume", ""], "--resume needs a folder"),
        (["--resume", "s3://bucket/x"], "jobs go on by themselves from a folder of this machine"),
    ],
)
def test_words_that_do_not_fit_are_refused(words: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["-c", "SELECT 1", *words]) in (1, 2)
    assert told in capsys.readouterr().err


@pytest.mark.parametrize(
    "line",
    ["SET 'execution.checkpointing.dir' = '/elsewhere';\n", "SET 'execution.state-recovery.path' = '/elsewhere';\n"],
)
def test_a_script_that_sets_what_resume_decides_is_refused(
    script: Path, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    script.write_text(SCRIPT.format(rows=1, folder=script.parent, more=line))
    assert main(["-f", str(script), "--resume", str(script.parent / "state")]) == 1
    assert "to '/elsewhere', and --resume " in capsys.readouterr().err
    assert not visible(script.parent)
