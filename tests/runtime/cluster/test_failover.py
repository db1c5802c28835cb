"""Jobs of several parts, of which one fails: the others go on, and every row counts once."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from flowsql_core.batch import ChangelogBatch
from flowsql_core.clock import ManualClock
from flowsql_core.element import SnapshotKind
from flowsql_core.errors import ConnectorError, ExecutionError
from flowsql_core.graph.job import ResultPartitionType, ShipStrategy
from flowsql_core.graph.specs import ExtensionSpec, UnionSpec
from flowsql_runtime.checkpoint.storage import LocalFolder
from flowsql_runtime.cluster.job import Job, JobStatus, Restart
from flowsql_runtime.cluster.local import LocalCluster
from flowsql_runtime.operators.base import Operator
from tests.runtime.checkpoint.job_bench import (
    AT_ONCE,
    ONE,
    ROWS,
    WAIT_S,
    Feed,
    FeedSource,
    Gate,
    Total,
    eventually,
    sums,
    tick,
)

from ..graphs import Collected, collect, edge, graph, vertex


def lost() -> ConnectorError:
    return ConnectorError("lost", "The other side is gone.", retryable=True)


class Pipeline:
    """Source -> total -> collected rows; what the test knows of it."""

    def __init__(self, feed: Feed) -> None:
        self.feed = feed
        self.out = Collected()
        self.totals: list[Total] = []
        #: The batch that fails the next time it comes.
        self.fails_at: int | None = None
        self.fails_in_snapshot = False
        #: Numbers of the batches in the order in which they came.
        self.came: list[int] = []

    def trouble(self, where: str, number: int) -> None:
        if where == "batch":
            self.came.append(number)
            if number == self.fails_at:
                self.fails_at = None
                raise lost()
        elif self.fails_in_snapshot:
            self.fails_in_snapshot = False
            raise lost()

    def rows(self) -> list[int]:
        return [value for batch in self.out.batches for value in batch.columns[0].to_pylist()]


class Pipelines:
    """A job of pipelines side by side that share nothing, with time in the test's hands."""

    def __init__(self, tmp_path: Path, count: int = 2, options: dict[str, str] | None = None) -> None:
        self.parts = [Pipeline(Feed(3)) for _ in range(count)]
        self.clock = ManualClock(1_000_000)
        self.told: list[Restart] = []
        self.options = {
            "execution.checkpointing.interval": "1 s",
            "execution.checkpointing.dir": str(tmp_path / "checkpoints"),
            "execution.buffer-timeout.interval": "0 ms",
            **AT_ONCE,
            "restart-strategy.fixed-delay.attempts": "5",
            **(options or {}),
        }

    def start(self) -> Job:
        vertices, edges = [], []
        resources: dict[str, Any] = {}
        for number, part in enumerate(self.parts):
            a = vertex(10 * number + 1, ExtensionSpec("source", f"source{number}"), output=ONE)
            b = vertex(10 * number + 2, ExtensionSpec("plain", f"total{number}"), output=ONE)
            c = vertex(10 * number + 3, collect(ONE, f"out{number}"))
            vertices += [a, b, c]
            edges += [edge(a, b), edge(b, c)]
            resources[f"source{number}"] = lambda spec, part=part: FeedSource(part.feed)
            resources[f"total{number}"] = lambda spec, part=part: self._total(part)
            resources[f"out{number}"] = part.out
        self.job = LocalCluster(self.clock, seed=1).submit(graph(vertices, edges, self.options, **resources))
        self.job.on_restart(self.told.append)
        eventually(lambda: all(part.feed.opened for part in self.parts), "the sources are open")
        return self.job

    @staticmethod
    def _total(part: Pipeline) -> Total:
        part.totals.append(Total(part.trouble))
        return part.totals[-1]

    def checkpoint(self) -> None:
        """Until all that may come has come, and the next checkpoint is complete."""
        eventually(lambda: all(part.feed.allowed - 1 in part.came for part in self.parts), "rows flow")
        before = len(self.complete())
        eventually(lambda: tick(self.job, self.clock) or len(self.complete()) > before, "a checkpoint")
        # The clock may have begun one more before the pipeline heard of this one.
        coordinator = self.job.master._coordinator  # type: ignore[union-attr]
        eventually(lambda: not coordinator._pending, "no checkpoint is under way")  # type: ignore[union-attr]

    def complete(self) -> list[int]:
        """Checkpoints that the first pipeline that never failed heard of."""
        return [number for total in self.parts[0].totals for kind, number in total.told if kind == "complete"]

    def end(self, batches: int) -> None:
        for part in self.parts:
            part.feed.allow(batches, ends=True)
        assert self.job.wait(WAIT_S) is JobStatus.FINISHED


def test_only_the_part_that_fails_goes_back(tmp_path: Path) -> None:
    job = Pipelines(tmp_path)
    running = job.start()
    steady, failing = job.parts
    job.checkpoint()
    failing.fails_at = 4
    steady.feed.allow(6)
    failing.feed.allow(6)
    eventually(lambda: running.restarts and running.status is JobStatus.RUNNING, "it runs again")
    eventually(lambda: failing.came.count(5) == 1, "it goes on")
    job.checkpoint()
    eventually(lambda: failing.rows() == steady.rows() == sums(6), "both are shown")
    job.end(8)
    assert steady.rows() == failing.rows() == sums(8), "each row once"
    assert (steady.feed.opened, failing.feed.opened) == (1, 2)
    assert steady.came == list(range(8)), "never back"
    assert failing.came == [0, 1, 2, 3, 4, 3, 4, 5, 6, 7], "back to the checkpoint behind three batches"
    assert [error.message for error in running.restarts] == ["The other side is gone."]
    assert job.told[0].headline == (
        "Job test failed in part and starts 3 of its 6 tasks again in 0 ms (restart 1): v11 (1/1), v12 (1/1), v13 (1/1)"
    )


def test_full_takes_all_back(tmp_path: Path) -> None:
    job = Pipelines(tmp_path, options={"jobmanager.execution.failover-strategy": "full"})
    job.start()
    steady, failing = job.parts
    job.checkpoint()
    failing.fails_at = 4
    failing.feed.allow(6)
    eventually(lambda: failing.came.count(5), "it goes on")
    job.end(8)
    assert steady.rows() == failing.rows() == sums(8)
    assert (steady.feed.opened, failing.feed.opened) == (2, 2)
    assert job.told[0].headline == "Job test failed and starts again in 0 ms (restart 1)"


def test_without_a_checkpoint_a_part_goes_back_to_its_beginning(tmp_path: Path) -> None:
    job = Pipelines(tmp_path)
    job.start()
    steady, failing = job.parts
    eventually(lambda: steady.came == failing.came == [0, 1, 2], "rows flow")
    failing.fails_at = 3
    failing.feed.allow(4)
    eventually(lambda: failing.came.count(3) == 2, "it goes on")
    job.end(5)
    assert failing.came == [0, 1, 2, 3, 0, 1, 2, 3, 4]
    assert steady.came == list(range(5))
    assert steady.rows() == failing.rows() == sums(5)


def test_a_checkpoint_under_way_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is written when a part fails that it counts on: nobody may go back to it, nor be told that it is complete."""
    armed, entered, hanging = threading.Event(), threading.Event(), threading.Event()
    write = LocalFolder.publish
    given_up: list[int] = []

    def publish(self: LocalFolder, metadata: bytes) -> None:
        if armed.is_set() and not entered.is_set():
            given_up.append(int(self.path.rpartition("-")[2]))
            entered.set()
            hanging.wait(WAIT_S)
        write(self, metadata)

    monkeypatch.setattr(LocalFolder, "publish", publish)
    job = Pipelines(tmp_path)
    running = job.start()
    steady, failing = job.parts
    job.checkpoint()
    armed.set()
    for part in job.parts:
        part.feed.allow(5)
    eventually(lambda: steady.came == failing.came == list(range(5)), "rows flow")
    eventually(lambda: tick(running, job.clock) or entered.is_set(), "a further checkpoint is written")
    failing.fails_at = 5
    failing.feed.allow(6)
    eventually(lambda: running.restarts, "it failed")
    hanging.set()
    eventually(lambda: failing.came.count(5) == 2, "it goes on")
    assert failing.came == [0, 1, 2, 3, 4, 5, 3, 4, 5]
    assert steady.rows() == sums(3), "rows behind the first checkpoint wait"
    job.checkpoint()
    assert given_up[0] not in job.complete()
    job.end(8)
    assert steady.rows() == failing.rows() == sums(8)


def test_a_part_that_has_ended_is_not_run_again(tmp_path: Path) -> None:
    job = Pipelines(tmp_path)
    job.start()
    ended, failing = job.parts
    ended.feed.allow(3, ends=True)
    eventually(lambda: [task.over for task in job.job._tasks].count(True) == 3, "one part has ended")
    failing.fails_at = 4
    failing.feed.allow(6)
    eventually(lambda: failing.came.count(5), "it goes on")
    job.end(7)
    assert ended.rows() == sums(3)
    assert failing.rows() == sums(7)
    assert ended.feed.opened == 1


def test_two_parts_fail_one_behind_the_other_and_at_once(tmp_path: Path) -> None:
    job = Pipelines(tmp_path, 3)
    job.start()
    failing = job.parts[1:]
    job.checkpoint()
    for part in failing:
        part.fails_at = 3
    for part in job.parts:
        part.feed.allow(5)
    eventually(lambda: all(part.came.count(4) for part in failing), "both go on")
    job.checkpoint()
    for part in failing:
        part.fails_at = 5
    job.end(8)
    assert [part.rows() for part in job.parts] == [sums(8)] * 3
    assert [part.feed.opened for part in job.parts] == [1, 3, 3]
    assert len(job.told) == 4


def test_attempts_are_counted_over_all_parts(tmp_path: Path) -> None:
    job = Pipelines(tmp_path, options={"restart-strategy.fixed-delay.attempts": "1"})
    running = job.start()
    for part in job.parts:
        part.fails_at = 3
    job.parts[0].feed.allow(4)
    eventually(lambda: job.parts[0].came.count(3) == 2, "the first one goes on")
    job.parts[1].feed.allow(4)
    with pytest.raises(ConnectorError, match="The other side is gone"):
        running.wait(WAIT_S)
    assert running.status is JobStatus.FAILED
    assert len(running.restarts) == 1


def test_a_job_is_cancelled_while_a_part_waits(tmp_path: Path) -> None:
    job = Pipelines(tmp_path, options={"restart-strategy.fixed-delay.delay": "1 h"})
    running = job.start()
    job.parts[1].fails_at = 3
    job.parts[1].feed.allow(4)
    eventually(lambda: running.status is JobStatus.RESTARTING, "it waits")
    job.parts[0].feed.allow(4)
    eventually(lambda: 3 in job.parts[0].came, "the other part goes on")
    with pytest.raises(ExecutionError, match="only a running job"):
        running.savepoint(str(tmp_path))
    running.cancel_and_wait()
    assert running.status is JobStatus.CANCELED


def test_the_whole_job_fails_while_a_part_waits(tmp_path: Path) -> None:
    """The other part uses the last attempt: the job is over, and nobody waits for an hour."""
    delays = {"restart-strategy.fixed-delay.delay": "1 h", "restart-strategy.fixed-delay.attempts": "1"}
    job = Pipelines(tmp_path, options=delays)
    running = job.start()
    for part in job.parts:
        part.fails_at = 3
    job.parts[1].feed.allow(4)
    eventually(lambda: running.status is JobStatus.RESTARTING, "it waits")
    job.parts[0].feed.allow(4)
    with pytest.raises(ConnectorError, match="The other side is gone"):
        running.wait(WAIT_S)


def test_a_damaged_checkpoint_takes_the_whole_job_to_the_one_before(tmp_path: Path) -> None:
    job = Pipelines(tmp_path, options={"execution.checkpointing.num-retained": "2"})
    running = job.start()
    steady, failing = job.parts
    job.checkpoint()
    for part in job.parts:
        part.feed.allow(5)
    eventually(lambda: steady.came == failing.came == list(range(5)), "rows flow")
    job.checkpoint()
    root = Path(running.last_checkpoint or "").parent

    def newest() -> Path:
        return max(root.glob("chk-*"), key=lambda path: int(path.name.removeprefix("chk-")))

    # The clock may have begun one more, which stands on disk before the job knows it.
    eventually(lambda: Path(running.last_checkpoint or "") == newest(), "the job knows the newest one")
    metadata = newest() / "_metadata"
    metadata.write_bytes(metadata.read_bytes()[:-1])
    failing.fails_at = 5
    failing.feed.allow(6)
    eventually(lambda: failing.came.count(5) == 2, "it goes on")
    eventually(lambda: steady.feed.opened == 2, "the other part starts again too")
    job.end(7)
    assert set(steady.rows()) == set(failing.rows()) == set(sums(7))


def test_a_savepoint_holds_a_part_that_went_back(tmp_path: Path) -> None:
    job = Pipelines(tmp_path)
    running = job.start()
    steady, failing = job.parts
    job.checkpoint()
    failing.fails_at = 4
    for part in job.parts:
        part.feed.allow(6)
    eventually(lambda: failing.came.count(5), "it goes on")
    path = running.savepoint(str(tmp_path / "saved"), SnapshotKind.SUSPEND).result(WAIT_S)
    assert running.wait(WAIT_S) is JobStatus.FINISHED
    assert steady.rows() == failing.rows() == sums(6)
    again = Pipelines(tmp_path, options={"execution.state-recovery.path": path})
    again.start()
    again.parts[1].fails_at = 7
    again.end(8)
    assert again.parts[1].came == [6, 7, 6, 7], "a part that fails before the first checkpoint begins as the job did"
    assert [part.rows() for part in again.parts] == [sums(8)[6:]] * 2


@pytest.mark.parametrize(("kind", "taken_back"), [(SnapshotKind.SUSPEND, False), (SnapshotKind.DRAIN, True)])
def test_a_part_fails_while_the_job_is_being_stopped(tmp_path: Path, kind: SnapshotKind, taken_back: bool) -> None:
    """The savepoint fails and the job goes on; behind a drain only as a whole, as the last watermark is out."""
    job = Pipelines(tmp_path)
    running = job.start()
    steady, failing = job.parts
    eventually(lambda: steady.came == failing.came == [0, 1, 2], "rows flow")
    failing.fails_in_snapshot = True
    with pytest.raises(ExecutionError, match="did not complete"):
        running.savepoint(str(tmp_path / "saved"), kind).result(WAIT_S)
    eventually(lambda: running.status is JobStatus.RUNNING and failing.feed.opened == 2, "it goes on")
    job.end(6)
    assert steady.rows() == failing.rows() == sums(6)
    assert steady.feed.opened == (2 if taken_back else 1)


def test_a_task_that_had_ended_before_the_checkpoint_is_not_run_again(tmp_path: Path) -> None:
    """A short and a long source into one operator, which fails; beside them a pipeline of its own."""
    short, long, other = Feed(2, ends=True), Feed(3), Pipeline(Feed(3))
    clock, out, left = ManualClock(0), Collected(), list[int]()
    a = vertex(1, ExtensionSpec("source", "short"), output=ONE)
    b = vertex(2, ExtensionSpec("source", "long"), output=ONE)
    c = vertex(3, UnionSpec(2), ExtensionSpec("plain", "once"), collect(ONE), inputs=2, output=ONE)
    d = vertex(4, ExtensionSpec("source", "other"), collect(ONE, "beside"), output=ONE)
    options = {
        "execution.checkpointing.interval": "1 s",
        "execution.checkpointing.dir": str(tmp_path),
        "execution.buffer-timeout.interval": "0 ms",
        **AT_ONCE,
    }
    made: dict[str, Any] = {
        "short": lambda spec: FeedSource(short),
        "long": lambda spec: FeedSource(long),
        "other": lambda spec: FeedSource(other.feed),
        "once": lambda spec: Once(left),
    }
    edges = [edge(a, c, input_index=0), edge(b, c, input_index=1)]
    job = LocalCluster(clock).submit(graph([a, b, c, d], edges, options, out=out, beside=other.out, **made))
    eventually(lambda: [task.over for task in job._tasks].count(True) == 1, "the short source has ended")
    eventually(lambda: tick(job, clock) or (len(out.batches) == 5 and len(other.out.batches) == 3), "a checkpoint")
    left.append(1)
    for feed in (long, other.feed):
        feed.allow(6, ends=True)
    assert job.wait(WAIT_S) is JobStatus.FINISHED
    shown = sorted(value for batch in out.batches for value in batch.columns[0].to_pylist())
    assert shown == sorted([*range(2 * ROWS), *range(6 * ROWS)]), "each row once"
    assert other.rows() == list(range(6 * ROWS))
    assert (short.opened, long.opened, other.feed.opened) == (1, 2, 1)


def test_a_savepoint_without_checkpoints_while_a_part_starts_again(tmp_path: Path) -> None:
    """The coordinator is made for the savepoint; afterwards a part fails, and a second savepoint is whole."""
    job = Pipelines(tmp_path, options={"execution.checkpointing.interval": "0 ms"})
    job.options |= {"execution.checkpointing.mode": "AT_LEAST_ONCE"}
    running = job.start()
    steady, failing = job.parts
    eventually(lambda: running.savepoint(str(tmp_path)).result(WAIT_S), "a savepoint")
    eventually(lambda: failing.rows() == sums(3), "rows are shown at once")
    failing.fails_at = 3
    failing.feed.allow(4)
    with pytest.raises(ConnectorError, match="The other side is gone"):
        running.wait(WAIT_S)
    assert steady.feed.opened == 1, "rows that the program has seen would come again"


@pytest.mark.parametrize("strategy", [ShipStrategy.FORWARD, ShipStrategy.HASH])
def test_of_a_job_without_shuffles_one_subtask_goes_back(tmp_path: Path, strategy: ShipStrategy) -> None:
    feed, out, clock = Feed(3), Collected(), ManualClock(0)
    opened: list[int] = []
    failed = threading.Event()

    class Struck(Total):
        def open(self, ctx: Any) -> None:
            opened.append(ctx.subtask)

        def process_batch(self, input_index: int, batch: ChangelogBatch) -> None:
            if self.ctx.subtask == 1 and max(batch.columns[0].to_pylist()) >= 4 * ROWS and not failed.is_set():
                failed.set()
                raise lost()
            self.output.collect(batch)

    class Source(FeedSource):
        def initialize_state(self, snapshot: Any) -> None:
            # The state of each subtask is its own.
            self._feed.opened += 1
            if snapshot is not None and snapshot.lists.get("own"):
                (found,) = snapshot.lists["own"]
                subtask, self._batch = found
                assert subtask == self.ctx.subtask

        def snapshot_state(self, checkpoint_id: int) -> Any:
            from flowsql_runtime.operators.base import OperatorSnapshot

            return OperatorSnapshot(lists={"own": (bytes([self.ctx.subtask, self._batch]),)})

    a = vertex(1, ExtensionSpec("source", "source"), output=ONE, parallelism=3)
    b = vertex(2, ExtensionSpec("plain", "struck"), output=ONE, parallelism=3)
    c = vertex(3, collect(ONE), parallelism=3)
    options = {
        "execution.checkpointing.interval": "1 s",
        "execution.checkpointing.dir": str(tmp_path),
        "execution.buffer-timeout.interval": "0 ms",
        **AT_ONCE,
    }
    made = {"source": lambda spec: Source(feed), "struck": lambda spec: Struck()}
    edges = [edge(a, b, strategy, keys=(0,) if strategy is ShipStrategy.HASH else ()), edge(b, c)]
    job = LocalCluster(clock).submit(graph([a, b, c], edges, options, out=out, **made))
    eventually(lambda: tick(job, clock) or out.batches, "a checkpoint with rows")
    feed.allow(6, ends=True)
    assert job.wait(WAIT_S) is JobStatus.FINISHED
    shown = sorted(value for batch in out.batches for value in batch.columns[0].to_pylist())
    assert shown == sorted(list(range(6 * ROWS)) * 3), "each row of each subtask once"
    assert len(job.restarts) == 1
    alone = strategy is ShipStrategy.FORWARD
    assert sorted(opened) == ([0, 1, 1, 2] if alone else [0, 0, 1, 1, 2, 2])
    assert feed.opened == (4 if alone else 6)


def test_rows_in_flight_of_the_part_alone_are_put_back(tmp_path: Path) -> None:
    """Each part has nine batches before an operator that waits; an unaligned checkpoint holds them; one part fails."""
    feeds, outs, clock = [Feed(10), Feed(10)], [Collected(), Collected()], ManualClock(0)
    permits = [threading.Semaphore(1), threading.Semaphore(1)]
    fails = threading.Event()
    vertices, edges = [], []
    resources: dict[str, Any] = {}
    came = [0, 0]

    class Waiting(Gate):
        def process_batch(self, input_index: int, batch: ChangelogBatch) -> None:
            came[permits.index(self._permits)] += 1
            self._permits.acquire(timeout=WAIT_S)
            if self._permits is permits[1] and fails.is_set():
                fails.clear()
                raise lost()
            self.output.collect(batch)

    for number in range(2):
        a = vertex(10 * number + 1, ExtensionSpec("source", f"source{number}"), output=ONE)
        b = vertex(10 * number + 2, ExtensionSpec("plain", f"gate{number}"), output=ONE)
        c = vertex(10 * number + 3, collect(ONE, f"out{number}"))
        vertices += [a, b, c]
        edges += [edge(a, b), edge(b, c)]
        resources[f"source{number}"] = lambda spec, number=number: FeedSource(feeds[number])
        resources[f"gate{number}"] = lambda spec, number=number: Waiting(permits[number])
        resources[f"out{number}"] = outs[number]
    options = {
        "execution.checkpointing.interval": "1 s",
        "execution.checkpointing.dir": str(tmp_path),
        "execution.checkpointing.unaligned.enabled": "true",
        "execution.buffer-timeout.interval": "0 ms",
        **AT_ONCE,
    }
    job = LocalCluster(clock).submit(graph(vertices, edges, options, **resources))
    for number in (1, 11):
        name = f"Extension-{number}-0"
        eventually(lambda name=name: job.metrics.total("numRecordsOut", name) == 100, "all rows are sent")
    # Between two batches an operator would take the barrier.
    eventually(lambda: came == [2, 2], "both operators wait with their second batch")
    master: Any = job.master
    eventually(
        lambda: tick(job, clock) or any(len(one.acknowledged) == 2 for one in [*master._coordinator._pending.values()]),
        "a barrier behind each source",
    )
    for one in permits:
        one.release()
    eventually(master._completed.newest_first, "a checkpoint")
    fails.set()
    permits[1].release()
    eventually(lambda: job.restarts and job.status is JobStatus.RUNNING, "one part starts again")
    for one in permits:
        one.release(100)
    for feed in feeds:
        feed.allow(11, ends=True)
    assert job.wait(WAIT_S) is JobStatus.FINISHED
    for out in outs:
        assert [value for batch in out.batches for value in batch.columns[0].to_pylist()] == list(range(110))
    assert [feed.opened for feed in feeds] == [1, 2]


class Once(Operator[Any]):
    """Hands on; raises at the first batch of all."""

    def __init__(self, left: list[int]) -> None:
        super().__init__(None)
        self._left = left

    def process_batch(self, input_index: int, batch: ChangelogBatch) -> None:
        if self._left:
            self._left.pop()
            raise lost()
        self.output.collect(batch)


@pytest.mark.parametrize("share", ["memory", "files"])
def test_a_consumer_of_blocking_results_reads_them_again(tmp_path: Path, share: str) -> None:
    """The producer has ended and is not run again; its rows are in memory, or in files."""
    feed, out, left = Feed(5, ends=True), Collected(), [1]
    a = vertex(1, ExtensionSpec("source", "source"), output=ONE)
    b = vertex(2, ExtensionSpec("plain", "once"), collect(ONE), output=ONE)
    edges = [edge(a, b, partition_type=ResultPartitionType.BLOCKING)]
    options = {"io.tmp.dirs": str(tmp_path), **AT_ONCE}
    made: dict[str, Callable[[Any], Any]] = {"source": lambda spec: FeedSource(feed), "once": lambda spec: Once(left)}
    cluster = LocalCluster(memory_bytes=(1 << 30) if share == "memory" else 256)
    job = cluster.submit(graph([a, b], edges, options, out=out, **made))
    assert job.wait(WAIT_S) is JobStatus.FINISHED
    assert [value for batch in out.batches for value in batch.columns[0].to_pylist()] == list(range(50))
    assert feed.opened == 1
    assert len(job.restarts) == 1
    assert not left
    assert cluster.budget is not None
    assert cluster.budget.reserved_bytes == 0
    assert not list(tmp_path.rglob("*.arrows"))


def test_what_follows_a_producer_that_fails_starts_again_with_it(tmp_path: Path) -> None:
    """A producer of blocking results takes its consumer along, and not what stands beside them."""
    feed, out, other, left = Feed(5, ends=True), Collected(), Collected(), [1]
    a = vertex(1, ExtensionSpec("source", "source"), ExtensionSpec("plain", "once"), output=ONE)
    b = vertex(2, collect(ONE))
    alone = vertex(3, ExtensionSpec("source", "source"), collect(ONE, "other"), output=ONE)
    made: dict[str, Callable[[Any], Any]] = {"source": lambda spec: FeedSource(feed), "once": lambda spec: Once(left)}
    edges = [edge(a, b, partition_type=ResultPartitionType.BLOCKING)]
    options = {"io.tmp.dirs": str(tmp_path), **AT_ONCE}
    told: list[Restart] = []
    job = LocalCluster().submit(graph([a, b, alone], edges, options, out=out, other=other, **made))
    job.on_restart(told.append)
    assert job.wait(WAIT_S) is JobStatus.FINISHED
    for found in (out, other):
        assert [value for batch in found.batches for value in batch.columns[0].to_pylist()] == list(range(50))
    assert told[0].tasks == ("v1 (1/1)", "v2 (1/1)")
    assert feed.opened == 3
