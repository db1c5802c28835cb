"""A process ends within ten seconds of a SIGTERM or of its ``--timeout``, whatever keeps its interpreter."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FUNCTIONS = """
import re
import sys
from flowsql.table.udf import udf

def told():
    print("inside", file=sys.stderr, flush=True)

@udf(result_type="BOOLEAN")
def stuck(x: int):
    # In C, with the interpreter's lock: no other thread runs.
    told()
    return re.match(r"(a|aa)+$", "a" * 80 + "b") is not None

@udf(result_type="BOOLEAN")
def spin(x: int):
    told()
    while True:
        pass
"""
SCRIPT = """
CREATE TEMPORARY FUNCTION {name} AS 'functions.{name}' LANGUAGE PYTHON;
CREATE TABLE numbers (n INT) WITH ('connector' = 'datagen');
SELECT {name}(n) FROM numbers;
"""


def started(folder: Path, script: str, *options: str) -> subprocess.Popen[str]:
    (folder / "functions.py").write_text(FUNCTIONS)
    path = folder / "job.sql"
    path.write_text(script)
    roots = [ROOT, *(ROOT / part for part in ("grammar", "planner", "runtime", "connectors")), folder]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, roots))}
    command = [sys.executable, "-m", "flowsql.cli", *options, "-f", str(path)]
    return subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )


def wait_for(job: subprocess.Popen[str], word: str) -> None:
    assert job.stderr is not None
    for line in job.stderr:
        if word in line:
            return
    raise AssertionError(f"the job ended with {job.wait()}")


@pytest.mark.parametrize("name", ["stuck", pytest.param("spin", marks=pytest.mark.nightly)])
def test_sigterm_ends_what_never_comes_back(tmp_path: Path, name: str) -> None:
    job = started(tmp_path, SCRIPT.format(name=name))
    try:
        wait_for(job, "inside")
        job.send_signal(signal.SIGTERM)
        began = time.monotonic()
        assert job.wait(30) in (143, -signal.SIGKILL)
        assert time.monotonic() - began < 10
    finally:
        job.kill()
        job.communicate()


#: Patterns that only an engine that goes back and forth can answer, and texts that keep it busy.
HOSTILE = """
SET 'flowsql.regex.timeout' = '1 h';
CREATE TABLE numbers (n INT) WITH ('connector' = 'datagen', 'fields.n.min' = '0', 'fields.n.max' = '60');
SELECT REGEXP_EXTRACT(REPEAT('a', n) || 'b', p), REGEXP_REPLACE(REPEAT('aab', n), p, '<>')
FROM numbers CROSS JOIN (VALUES
  '(?=(a|aa)+$)a', '(a*)*\\1c', '(?:(a|aa)+)++c', '(?!(a|aa)+$)c', '(?:a|aa)+(?<=c)d') AS v(p);
"""


@pytest.mark.nightly
def test_sigterm_at_any_moment_of_endless_patterns(tmp_path: Path) -> None:
    drawn = random.Random(34)
    for _ in range(12):
        job = started(tmp_path, HOSTILE)
        try:
            time.sleep(drawn.uniform(0.05, 4))
            assert job.poll() is None
            job.send_signal(signal.SIGTERM)
            began = time.monotonic()
            assert job.wait(30) in (143, -signal.SIGTERM, -signal.SIGKILL)
            assert time.monotonic() - began < 10
        finally:
            job.kill()
            job.communicate()


@pytest.mark.nightly
def test_workers_end_with_their_job(tmp_path: Path) -> None:
    script = "SET 'python.execution-mode' = 'process'; SET 'parallelism.default' = '2';" + SCRIPT.format(name="stuck")
    job = started(tmp_path, script)
    try:
        wait_for(job, "inside")
        tasks = Path(f"/proc/{job.pid}/task").glob("*/children")
        children = [Path(f"/proc/{child}") for task in tasks for child in task.read_text().split()]
        assert len(children) > 1
        job.send_signal(signal.SIGTERM)
        began = time.monotonic()
        job.wait(30)
        assert time.monotonic() - began < 10
        while any(child.exists() for child in children):
            assert time.monotonic() - began < 12
            time.sleep(0.05)
    finally:
        job.kill()
        job.communicate()


@pytest.mark.nightly
def test_a_timeout_ends_it_too(tmp_path: Path) -> None:
    job = started(tmp_path, SCRIPT.format(name="stuck"), "--timeout", "1")
    try:
        wait_for(job, "inside")
        began = time.monotonic()
        assert job.wait(40) == -signal.SIGKILL
        assert time.monotonic() - began < 11
    finally:
        job.kill()
        job.communicate()


def test_nothing_is_left_of_a_process_that_ends(tmp_path: Path) -> None:
    job = started(tmp_path, "SELECT 1;")
    # The watching child holds no end of this pipe, and ends with its parent.
    assert job.communicate(timeout=60)[1].count("ERROR") == 0
    assert job.returncode == 0
