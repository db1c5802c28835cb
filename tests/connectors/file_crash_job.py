"""A small job into files that is killed again and again: run as a program by ``test_file_crashes.py``.

It loads everything once and forks a process for every attempt. An attempt goes on from the last whole checkpoint with
another number of writers. The n-th operation on a file of the table or of the checkpoint ends it by SIGKILL; a file
that is opened for writing then gets some torn bytes first. After every attempt a reader looks at the table.
"""

from __future__ import annotations

import base64
import os
import shutil
import signal
import sys
import uuid
from pathlib import Path
from typing import Any

import orjson

from flowsql_connectors.spi.sink import Committable, Committer
from flowsql_core.batch import single_watermark
from flowsql_core.clock import ManualClock
from flowsql_core.graph.specs import TableSpec
from tests.connectors.tables import batch_of, files_table, scan, writer_of

BATCHES = 9
ROWS = 4
EVERY = 2
_DAY_MS = 1_704_067_200_000
_HOUR_MS = 3_600_000
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_TRUNC


def table_in(folder: Path | str, format_: str, compacts: bool) -> TableSpec:
    options = {"auto_compaction": "true"} if compacts else {}
    return files_table(
        "a INT, h STRING", f"{folder}/t", format_, ("h",), sink__partition_commit__trigger="partition-time",
        sink__partition_commit__delay="1 h", sink__partition_commit__policy__kind="success-file",
        partition__time_extractor__timestamp_pattern="2024-01-01 $h:00:00",
        sink__rolling_policy__file_size="30b", **options,
    )  # fmt: skip


def rows_of_batch(number: int) -> list[tuple[int, str]]:
    """Every third batch begins a new hour; row times rise."""
    return [(number * ROWS + at, f"{number // 3}") for at in range(ROWS)]


def watermark_after(number: int) -> int:
    return _DAY_MS + (number // 3) * _HOUR_MS + (number % 3) * _HOUR_MS // 3 + 1


def rows_before(batch: int) -> list[tuple[int, str]]:
    return [row for number in range(batch) for row in rows_of_batch(number)]


# -- one attempt


class Checkpoint:
    """What the last whole checkpoint holds: the position, the writers' states, the committer's, the committables."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "checkpoint"
        self.batch = 0
        #: A job that starts from nothing is a new one.
        self.lineage = str(uuid.uuid4())
        self.states: list[bytes] = []
        self.committer = b""
        self.committables: list[Committable] = []
        if self._path.exists():
            body = orjson.loads(self._path.read_bytes())
            self.batch = body["batch"]
            self.lineage = body["lineage"]
            self.states = [base64.b64decode(text) for text in body["states"]]
            self.committer = base64.b64decode(body["committer"])
            self.committables = [Committable(base64.b64decode(text)) for text in body["committables"]]

    def save(self) -> None:
        def text(data: bytes) -> str:
            return base64.b64encode(data).decode()

        body = {
            "batch": self.batch,
            "lineage": self.lineage,
            "states": [text(state) for state in self.states],
            "committer": text(self.committer),
            "committables": [text(one.data) for one in self.committables],
        }
        beside = self._path.with_suffix(".new")
        beside.write_bytes(orjson.dumps(body))
        beside.rename(self._path)


def attempt(folder: Path, table: TableSpec, number: int, lazy: bool) -> None:
    """From the last checkpoint to the end. ``lazy``: every second checkpoint is committed with the next one."""
    checkpoint = Checkpoint(folder)
    parallelism = 1 + (2 - number) % 3
    clock = ManualClock(number)
    made = [writer_of(table, clock, subtask, parallelism, lineage=checkpoint.lineage) for subtask in range(parallelism)]
    writers = [writer for writer, _ in made]
    committer: Committer | None = made[0][1]
    assert committer is not None
    waiting: list[Committable] = []
    if checkpoint.batch:
        committer.restore(checkpoint.committer)
        committer.commit(checkpoint.committables, end_of_input=False)
        for subtask, writer in enumerate(writers):
            if dealt := checkpoint.states[subtask::parallelism]:
                writer.restore(dealt)
    for batch in range(checkpoint.batch, BATCHES):
        rows = rows_of_batch(batch)
        for subtask, writer in enumerate(writers):
            if own := rows[subtask::parallelism]:
                writer.write(batch_of(table, own))
            writer.write(batch_of(table, []).with_track(single_watermark(0, watermark_after(batch))))
            writer.on_watermark(watermark_after(batch))
        if (batch + 1) % EVERY:
            continue
        checkpoint.states = []
        for writer in writers:
            writer.flush(False)
            waiting += writer.prepare_commit()
            checkpoint.states.append(writer.snapshot())
        checkpoint.committer = committer.snapshot()
        checkpoint.batch = batch + 1
        checkpoint.committables = waiting
        checkpoint.save()
        if not lazy or (batch // EVERY) % 2:
            committer.commit(waiting, end_of_input=False)
            waiting = []
    # The last checkpoint of a job covers its end; what it holds is committed with the end's.
    for writer in writers:
        writer.flush(True)
        waiting += writer.prepare_commit()
    checkpoint.states = []
    checkpoint.committer = committer.snapshot()
    checkpoint.batch = BATCHES
    checkpoint.committables = waiting
    checkpoint.save()
    committer.commit(waiting, end_of_input=True)
    for writer in writers:
        writer.close()


# -- killing it


def kill_at(folder: Path, at: int) -> list[int]:
    """SIGKILL at the ``at``-th operation on the folder's files (never for -1); the list counts them."""
    prefix = str(folder)
    seen = [0]
    busy = [False]

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if busy[0] or event not in ("open", "os.rename", "os.remove", "os.truncate", "os.mkdir"):
            return
        path = arguments[0]
        if isinstance(path, os.PathLike):
            path = os.fspath(path)
        if not isinstance(path, str) or not path.startswith(prefix):
            return
        if event == "open" and not arguments[2] & _WRITES:
            return
        seen[0] += 1
        if seen[0] - 1 != at:
            return
        busy[0] = True
        if event == "open":
            descriptor = os.open(path, arguments[2] | os.O_CREAT, 0o644)
            os.write(descriptor, b"7")
        os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)
    return seen


def forked(work: Any) -> int | None:
    """Run in a process of its own: its exit code, None when it was killed."""
    child = os.fork()
    if not child:
        code = 70
        try:
            code = work()
        except BaseException:
            import traceback

            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        assert os.WTERMSIG(status) == signal.SIGKILL
        return None
    return os.WEXITSTATUS(status)


# -- looking at it


def look(folder: Path, table: TableSpec, ended: bool) -> None:
    """What a reader sees: rows of whole checkpoints, each once; all rows of partitions that are marked."""
    if not (folder / "t").exists():
        assert not ended
        return
    rows = [tuple(row) for row in scan(table)]
    assert len(rows) == len(set(rows)), f"doubled: {sorted(row for row in set(rows) if rows.count(row) > 1)}"
    covered = set(rows_before(Checkpoint(folder).batch))
    assert set(rows) <= covered, f"of an unfinished checkpoint: {sorted(set(rows) - covered)}"
    for marked in folder.rglob("_SUCCESS"):
        hour = marked.parent.name.partition("=")[2]
        wanted = {row for row in rows_before(BATCHES) if row[1] == hour}
        assert wanted <= set(rows), f"partition {hour} was marked too early"
    if ended:
        assert set(rows) == set(rows_before(BATCHES)), "rows are lost"
        assert len(list(folder.rglob("_SUCCESS"))) == BATCHES // 3
        hidden = list((folder / "t").rglob(f".*.{Checkpoint(folder).lineage}*"))
        assert not hidden, f"left behind: {hidden}"
        assert list((folder / "t").glob(strange_name())), "a file of another job is gone"


def strange_name() -> str:
    return f".part-{uuid.UUID(int=7)}-0-0.inprogress.other"


def play(folder: Path, format_: str, compacts: bool, lazy: bool, kills: list[int]) -> int:
    """Attempts that die at ``kills``, then one that ends; the number of operations of the last one."""
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "t").mkdir(parents=True)
    (folder / "t" / strange_name()).write_text("1,2\n")
    table = table_in(folder, format_, compacts)
    for number, at in enumerate([*kills, -1]):

        def run(number: int = number, at: int = at) -> int:
            seen = kill_at(folder, at)
            attempt(folder, table, number, lazy)
            (folder / "operations").write_text(str(seen[0]))
            return 0

        code = forked(run)
        assert code in (None, 0), f"attempt {number} failed"

        def judge(ended: bool = code == 0) -> int:
            look(folder, table, ended)
            return 0

        assert forked(judge) == 0, f"{format_} compacts={compacts} lazy={lazy} kills={kills} attempt {number}"
        if code == 0:
            break
    return int((folder / "operations").read_text())


def main() -> None:
    folder, format_, compacts, lazy, stride = sys.argv[1:]
    options = (format_, compacts == "True", lazy == "True")
    # Kernels that are loaded here need not be loaded by each attempt.
    warm = Path(folder) / "warm"
    warm.mkdir()
    attempt(warm, table_in(warm, format_, compacts=False), 0, lazy=False)
    scan(table_in(warm, format_, compacts=False))
    operations = play(Path(folder) / "whole", *options, [])
    kills = 0
    for first in range(0, operations, int(stride)):
        # The second and third attempts die early and somewhere: restores and repeated commits are hit, too.
        sequence = [first, first % 7, (first * 5) % 23]
        play(Path(folder) / "killed", *options, sequence)
        kills += len(sequence)
    print(f"operations={operations} kills={kills}")


if __name__ == "__main__":
    main()
