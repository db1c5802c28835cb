"""Jobs in processes of their own, seen from this one: all of it in a runtime folder that nobody else looks into."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

from flowsql.cli.main import main

Output = pytest.CaptureFixture[str]

#: Every row changes a group: kinds of change all the way, and an exchange in the middle.
GROUPED = """
SET 'parallelism.default' = '2';
SET 'execution.checkpointing.interval' = '200 ms';
CREATE TABLE clicks (n BIGINT, ts AS CAST(CURRENT_TIMESTAMP AS TIMESTAMP(3)), WATERMARK FOR ts AS ts)
    WITH ('connector' = 'datagen', 'rows-per-second' = '2000', 'fields.n.kind' = 'sequence', 'fields.n.start' = '1',
    'fields.n.end' = '100000000');
CREATE TABLE counts (k BIGINT, c BIGINT) WITH ('connector' = 'print');
INSERT INTO counts SELECT MOD(n, 3), COUNT(*) FROM clicks WHERE n > 5 GROUP BY MOD(n, 3);
"""
NAME = "insert-into_default_catalog.default_database.counts"


def eventually(condition: Callable[[], Any], what: str) -> Any:
    deadline = time.monotonic() + 30
    while not (found := condition()):
        assert time.monotonic() < deadline, f"never: {what}"
        time.sleep(0.05)
    return found


class Script:
    """A script in a process of its own, which offers its job."""

    def __init__(self, folder: Path, text: str) -> None:
        path = folder / f"{uuid.uuid4().hex[:8]}.sql"
        path.write_text(text)
        self.errors = path.with_suffix(".errors")
        with self.errors.open("w") as errors:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "flowsql.cli", "--format", "jsonl", "-f", str(path)],
                env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
                cwd=folder,
                stdout=subprocess.DEVNULL,
                stderr=errors,
            )

    @cached_property
    def id(self) -> str:
        """Of its job, waited for."""
        found: str = eventually(self._find, f"a job of {self.process.pid}")
        return found

    def _find(self) -> str | None:
        from flowsql.jobs.everywhere import known_jobs

        assert self.process.poll() is None, self.errors.read_text()
        return next((job.id for job in known_jobs().jobs if job.process == self.process.pid), None)

    def end(self) -> None:
        self.process.kill()
        self.process.wait()


@pytest.fixture(scope="module", autouse=True)
def runtime_folder() -> Iterator[Path]:
    # Paths of sockets are short: not below the test's own folder.
    folder = Path(tempfile.mkdtemp(prefix="flowsql-live-"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FLOWSQL_RUNTIME_DIR", str(folder))
        patch.delenv("FLOWSQL_CONF_DIR", raising=False)
        yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def grouped(runtime_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Script]:
    """The job of :data:`GROUPED`, which tests look at and leave running."""
    made = Script(tmp_path_factory.mktemp("grouped"), GROUPED)
    assert made.id
    yield made
    made.end()


@pytest.fixture
def begin(tmp_path: Path) -> Iterator[Callable[[str], Script]]:
    """Starts a script of the test's own."""
    started: list[Script] = []

    def made(text: str) -> Script:
        started.append(Script(tmp_path, text))
        return started[-1]

    yield made
    for one in started:
        one.end()


class Command:
    """The command, in this process: its words in, exit code, output and errors out."""

    def __init__(self, capsys: Output) -> None:
        self._capsys = capsys

    def __call__(self, *words: str) -> tuple[int, str, str]:
        self._capsys.readouterr()
        code = main(words)
        return code, *self._capsys.readouterr()

    def lines(self, *words: str) -> list[Any]:
        """What a command that succeeds prints as lines of JSON."""
        code, output, errors = self(*words, "--format", "jsonl")
        assert code == 0, errors
        return [json.loads(line) for line in output.splitlines()]


@pytest.fixture
def command(capsys: Output) -> Command:
    return Command(capsys)
