"""A job from a folder that is looked at to partitioned files, over checkpoints, restarts and other parallelisms."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from flowsql_connectors.filesystem.commit import FileCommitter
from flowsql_connectors.filesystem.writer import FileWriter
from flowsql_connectors.spi.sink import Committable
from flowsql_core.batch import ChangelogBatch
from flowsql_core.clock import ManualClock
from flowsql_core.errors import ConnectorError
from flowsql_core.graph.job import JobGraph
from flowsql_runtime.cluster.job import Job, JobStatus, Restart
from flowsql_runtime.cluster.local import LocalCluster
from tests.changing_folders import files_below
from tests.runtime.checkpoint.job_bench import AT_ONCE, WAIT_S, eventually
from tests.sql.test_cut import Session

_ROWS = 20


@pytest.mark.parametrize("shuffled", [False, True])
def test_rows_of_a_partition_go_to_one_writer(tmp_path: Path, shuffled: bool) -> None:
    (tmp_path / "in").mkdir()
    for number in range(9):
        (tmp_path / "in" / str(number)).write_text("".join(f"{number},{part}\n" for part in range(5)))
    session = Session(tmp_path, {})
    files = "'connector' = 'filesystem', 'format' = 'csv'"
    session.execute(f"CREATE TABLE src (id INT, part INT) WITH ({files}, 'path' = '{tmp_path / 'in'}')")
    session.execute(
        f"CREATE TABLE dst (id INT, part INT) PARTITIONED BY (part) WITH ({files}, 'path' = '{tmp_path / 'out'}', "
        f"'sink.shuffle-by-partition.enable' = '{str(shuffled).lower()}')"
    )
    LocalCluster().run(session.graph("INSERT INTO dst SELECT id, part FROM src", 3))
    parts = Counter(path.parent.name for path in (tmp_path / "out").rglob("part-*"))
    assert set(parts.values()) == ({1} if shuffled else {3})
    written = Counter((path.parent.name, line) for path in (tmp_path / "out").rglob("part-*") for line in path.open())
    assert written == Counter((f"part={part}", f"{number}\n") for part in range(5) for number in range(9))


class Stream:
    """Folder ``in`` to folder ``out``, with time in the test's hands."""

    def __init__(self, tmp_path: Path, format_: str, more: str = "") -> None:
        self._out = tmp_path / "out"
        self._in = tmp_path / "in"
        self._in.mkdir()
        self._checkpoints = tmp_path / "checkpoints"
        self._session = Session(tmp_path, {})
        self._session.execute(
            "CREATE TABLE arriving (id INT, part INT) WITH ('connector' = 'filesystem', 'format' = 'csv', "
            f"'path' = '{self._in}', 'source.monitor-interval' = '1 s')"
        )
        self._session.execute(
            "CREATE TABLE kept (id INT, part INT) PARTITIONED BY (part) WITH ('connector' = 'filesystem', "
            f"'format' = '{format_}', 'path' = '{self._out}', 'sink.partition-commit.policy.kind' = 'success-file', "
            f"'sink.partition-commit.delay' = '1 h', 'sink.rolling-policy.inactivity-interval' = '5 s', "
            f"'sink.rolling-policy.check-interval' = '1 s'{more})"
        )
        self.wanted: Counter[object] = Counter()
        self.clock = ManualClock(1_000_000)

    def arrive(self, number: int, folder: str = ".") -> None:
        rows = [(number * _ROWS + at, at % 3) for at in range(_ROWS)]
        hidden = self._in / folder / f".{number}"
        hidden.parent.mkdir(exist_ok=True)
        hidden.write_text("".join(f"{id_},{part}\n" for id_, part in rows))
        hidden.rename(hidden.with_name(str(number)))
        self.wanted.update(rows)

    def graph(self, parallelism: int, **options: str) -> JobGraph:
        return self._session.graph(
            "INSERT INTO kept SELECT id, part FROM arriving",
            parallelism,
            **{
                "execution.checkpointing.interval": "1 s",
                "execution.checkpointing.dir": str(self._checkpoints),
                "execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
            }
            | options,
        )

    def start(self, parallelism: int, **options: str) -> Job:
        found = sorted(files_below(self._checkpoints, "_metadata"), key=lambda path: path.stat().st_mtime_ns)
        if found:
            options["execution.state-recovery.path"] = str(found[-1].parent)
        return LocalCluster(self.clock).submit(self.graph(parallelism, **options))

    def seen(self) -> Counter[object]:
        found = self._session.rows("kept") if self._out.exists() else Counter[object]()
        assert found <= self.wanted, "doubled, or of no file"
        return found

    def until_all_is_seen(self) -> None:
        eventually(lambda: self.clock.advance(1_000) or self.seen() == self.wanted, "all rows are seen")

    def hidden(self) -> list[Path]:
        return list(self._out.rglob(".*"))

    def marked(self) -> list[Path]:
        return files_below(self._out, "_SUCCESS")


FORMATS = pytest.mark.parametrize(
    ("format_", "more"), [("csv", ""), ("parquet", ""), ("parquet", ", 'auto-compaction' = 'true'")]
)


@FORMATS
def test_every_row_once_over_restarts(tmp_path: Path, format_: str, more: str) -> None:
    stream = Stream(tmp_path, format_, more)
    for attempt, parallelism in enumerate((2, 1, 3)):
        stream.arrive(10 * attempt)
        job = stream.start(parallelism)
        stream.until_all_is_seen()
        stream.arrive(10 * attempt + 1)
        stream.arrive(10 * attempt + 2, folder="later")
        stream.until_all_is_seen()
        stream.arrive(10 * attempt + 3)
        stream.clock.advance(1_000)
        job.cancel_and_wait()
    job = stream.start(2)
    stream.until_all_is_seen()
    path = job.savepoint(str(tmp_path / "savepoints")).result(WAIT_S)
    assert Path(path).exists()
    stream.clock.advance(3_600_000)
    eventually(lambda: stream.clock.advance(1_000) or len(stream.marked()) == 3, "marked")
    job.cancel_and_wait()
    assert not stream.hidden()


@pytest.mark.parametrize("format_", ["csv", "parquet"])
def test_a_commit_that_fails_is_repeated(tmp_path: Path, format_: str, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Stream(tmp_path, format_)
    failures: list[int] = []
    commit = FileCommitter.commit

    def fail_once(self: FileCommitter, committables: list[Committable], end_of_input: bool) -> None:
        if not failures and any(b'"closed":[[' in one.data for one in committables):
            failures.append(1)
            raise ConnectorError("cannot-write", "the disk is full", retryable=True)
        commit(self, committables, end_of_input)

    monkeypatch.setattr(FileCommitter, "commit", fail_once)
    stream.arrive(1)
    job = stream.start(2, **AT_ONCE)
    stream.until_all_is_seen()
    assert failures
    stream.arrive(2)
    stream.until_all_is_seen()
    assert job.status is JobStatus.RUNNING
    job.cancel_and_wait()


@FORMATS
def test_of_subtasks_side_by_side_one_goes_back(
    tmp_path: Path, format_: str, more: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each reader writes what it reads; one fails behind rows that no checkpoint holds, again and again."""
    stream = Stream(tmp_path, format_, more)
    runs: list[int] = []
    due: set[int] = set()
    write, prepare = FileWriter.write, FileWriter.prepare_commit

    def opening(self: FileWriter, *args: Any, **more: Any) -> None:
        create(self, *args, **more)
        runs.append(self._context.subtask)

    def failing(self: FileWriter, batch: ChangelogBatch) -> None:
        write(self, batch)
        if self._context.subtask in due and "write" in due_at:
            due.discard(self._context.subtask)
            raise ConnectorError("cannot-write", "the disk is full", retryable=True)

    def failing_to_prepare(self: FileWriter) -> list[Committable]:
        made = prepare(self)
        if self._context.subtask in due and "prepare" in due_at and b'"closed":[[' in made[0].data:
            due.discard(self._context.subtask)
            raise ConnectorError("cannot-write", "the disk is full", retryable=True)
        return made

    create = FileWriter.__init__
    due_at: set[str] = set()
    monkeypatch.setattr(FileWriter, "__init__", opening)
    monkeypatch.setattr(FileWriter, "write", failing)
    monkeypatch.setattr(FileWriter, "prepare_commit", failing_to_prepare)
    for number in range(6):
        stream.arrive(number)
    job = stream.start(3, **AT_ONCE, **{"restart-strategy.fixed-delay.attempts": "100"})
    told: list[Restart] = []
    job.on_restart(told.append)
    stream.until_all_is_seen()
    for number, place in enumerate(("write", "prepare", "write", "prepare", "write")):
        due.add(number % 3)
        due_at |= {place}
        for file in range(6):
            stream.arrive(10 * number + file + 6)
        stream.until_all_is_seen()
        due_at.clear()
        eventually(lambda: job.status is JobStatus.RUNNING, "it runs")
    assert not due
    assert len(told) == 5
    assert all(len(restart.tasks) == 1 for restart in told)
    assert sorted(runs) == [0] * 3 + [1] * 3 + [2] * 2
    stream.clock.advance(3_600_000)
    eventually(lambda: stream.clock.advance(1_000) or len(stream.marked()) == 3, "marked")
    job.cancel_and_wait()
    assert not stream.hidden()
