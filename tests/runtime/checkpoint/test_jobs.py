"""Running jobs with checkpoints: triggered by the clock, failed, restarted, stopped with a savepoint, restored."""

from __future__ import annotations

import struct
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from flowsql_compute.keys import key_group_range, key_groups
from flowsql_core.batch import ChangelogBatch
from flowsql_core.clock import ManualClock
from flowsql_core.element import SnapshotKind, Watermark
from flowsql_core.errors import BindError, ConnectorError, ExecutionError
from flowsql_core.graph.job import JobGraph, Partitioning, ShipStrategy
from flowsql_core.graph.specs import ExtensionSpec, UnionSpec
from flowsql_core.types.logical import BIGINT
from flowsql_runtime.checkpoint.in_flight import dealt_out
from flowsql_runtime.checkpoint.storage import METADATA, LocalFolder
from flowsql_runtime.cluster.job import Job, JobStatus
from flowsql_runtime.cluster.local import LocalCluster
from flowsql_runtime.network.in_flight import ChannelElement
from flowsql_runtime.operators.base import Operator, OperatorSnapshot, SourceOperator, SourceStatus
from flowsql_runtime.task.restore import TaskPlace

from ..graphs import Collected, collect, edge, graph, schema, vertex

ONE = schema(n=BIGINT)
WAIT_S = 20.0
ROWS = 10
AT_ONCE = {"restart-strategy.type": "fixed-delay", "restart-strategy.fixed-delay.delay": "0 ms"}


def eventually(condition: Callable[[], Any], what: str) -> Any:
    """Wait for what other threads do."""
    deadline = time.monotonic() + WAIT_S
    while not (found := condition()):
        assert time.monotonic() < deadline, f"never: {what}"
        time.sleep(0.002)
    return found


def tick(job: Job, clock: ManualClock) -> None:
    """An interval passes, unless a checkpoint is under way: an impatient clock would let it time out."""
    coordinator = job.master._coordinator  # type: ignore[union-attr]
    if coordinator is None or not coordinator._pending:
        clock.advance(1_000)


class Feed:
    """What the test lets a source emit: batches up to a number; then it waits, or ends."""

    def __init__(self, batches: int, ends: bool = False) -> None:
        self.allowed = batches
        self.ends = ends
        self.wakes: list[Callable[[], None]] = []
        self.opened = 0
        self.lock = threading.Lock()

    def allow(self, batches: int, ends: bool = False) -> None:
        with self.lock:
            self.allowed, self.ends = batches, ends
            wakes, self.wakes = self.wakes, []
        for wake in wakes:
            wake()


class FeedSource(SourceOperator[Any]):
    """Numbers 0, 1, ... in batches of ten."""

    def __init__(self, feed: Feed) -> None:
        super().__init__(None)
        self._feed = feed
        self._batch = 0

    def initialize_state(self, snapshot: OperatorSnapshot | None) -> None:
        self._feed.opened += 1
        if snapshot is not None:
            (self._batch,) = struct.unpack("<q", snapshot.union["at"][0])

    def snapshot_state(self, checkpoint_id: int) -> OperatorSnapshot:
        return OperatorSnapshot(union={"at": (struct.pack("<q", self._batch),)})

    def emit_next(self) -> SourceStatus:
        if self._batch >= self._feed.allowed:
            return SourceStatus.END if self._feed.ends else SourceStatus.NOTHING_NOW
        first = self._batch * ROWS
        self._batch += 1
        self.output.collect(ChangelogBatch.of([pa.array(range(first, first + ROWS), pa.int64())]))
        return SourceStatus.MORE

    def wake_when_available(self, wake: Callable[[], None]) -> None:
        with self._feed.lock:
            if self._batch < self._feed.allowed or self._feed.ends:
                wake()
            else:
                self._feed.wakes.append(wake)


class Total(Operator[Any]):
    """The sum so far after each batch; ``trouble`` may raise at a batch, at a snapshot, or at a completion."""

    def __init__(self, trouble: Callable[[str, int], None] | None = None) -> None:
        super().__init__(None)
        self._trouble = trouble or (lambda where, number: None)
        self._sum = 0
        self.told: list[tuple[str, int]] = []

    def initialize_state(self, snapshot: OperatorSnapshot | None) -> None:
        if snapshot is not None:
            self._sum = sum(struct.unpack("<q", part)[0] for part in snapshot.lists["sum"])

    def snapshot_state(self, checkpoint_id: int) -> OperatorSnapshot:
        self._trouble("snapshot", checkpoint_id)
        return OperatorSnapshot(lists={"sum": (struct.pack("<q", self._sum),)})

    def process_batch(self, input_index: int, batch: ChangelogBatch) -> None:
        numbers = batch.columns[0].to_pylist()
        self._trouble("batch", numbers[0] // ROWS)
        self._sum += sum(numbers)
        self.output.collect(ChangelogBatch.of([pa.array([self._sum], pa.int64())]))

    def process_watermark(self, input_index: int, watermark: Watermark) -> None:
        self.told.append(("watermark", watermark.timestamp_ms))
        super().process_watermark(input_index, watermark)

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        self.told.append(("complete", checkpoint_id))

    def notify_checkpoint_aborted(self, checkpoint_id: int) -> None:
        self.told.append(("aborted", checkpoint_id))


class Bench:
    """A job of source -> total -> collected rows, with time in the test's hands."""

    def __init__(
        self,
        tmp_path: Path,
        options: dict[str, str] | None = None,
        trouble: Callable[[str, int], None] | None = None,
        feed: Feed | None = None,
        chained: bool = False,
    ) -> None:
        self.root = tmp_path / "checkpoints"
        self.feed = feed or Feed(3)
        self.out = Collected()
        self.totals: list[Total] = []
        self.trouble = trouble
        self.clock = ManualClock(1_000_000)
        self.options = {
            "execution.checkpointing.interval": "1 s",
            "execution.checkpointing.dir": str(self.root),
            "restart-strategy.type": "none",
            **(options or {}),
        }
        self.chained = chained

    def graph(self) -> JobGraph:
        def total(spec: Any) -> Total:
            self.totals.append(Total(self.trouble))
            return self.totals[-1]

        source = ExtensionSpec("source", "source")
        middle = ExtensionSpec("plain", "total")
        if self.chained:
            vertices, edges = [vertex(1, source, middle, collect(ONE), output=ONE)], []
        else:
            vertices = [vertex(1, source, output=ONE), vertex(2, middle, output=ONE), vertex(3, collect(ONE))]
            edges = [edge(vertices[0], vertices[1], ShipStrategy.GLOBAL), edge(vertices[1], vertices[2])]
        options = {"execution.buffer-timeout.interval": "0 ms", **self.options}
        return graph(vertices, edges, options, source=lambda spec: FeedSource(self.feed), total=total, out=self.out)

    def start(self) -> Job:
        self.job = LocalCluster(self.clock, seed=1).submit(self.graph())
        eventually(lambda: self.feed.opened, "the source is open")
        return self.job

    def rows(self) -> list[int]:
        return [value for batch in self.out.batches for value in batch.columns[0].to_pylist()]

    def snapshots(self) -> list[str]:
        return sorted(path.parent.name for path in self.root.rglob(METADATA))

    def tick(self) -> None:
        """An interval passes, unless a checkpoint is under way."""
        tick(self.job, self.clock)

    def checkpoint(self, wanted: int) -> None:
        """Time passes until a checkpoint with this number is complete."""
        eventually(lambda: self.tick() or wanted in self.told("complete"), f"checkpoint {wanted}")

    def told(self, what: str) -> list[int]:
        return [number for total in self.totals for kind, number in total.told if kind == what]


def sums(batches: int) -> list[int]:
    return [sum(range((number + 1) * ROWS)) for number in range(batches)]


@pytest.mark.parametrize("chained", [False, True])
def test_a_checkpoint_is_complete_when_all_tasks_acknowledged(tmp_path: Path, chained: bool) -> None:
    bench = Bench(tmp_path, chained=chained)
    job = bench.start()
    bench.checkpoint(1)
    eventually(lambda: 1 in bench.told("complete"), "the operators hear of it")
    bench.feed.allow(3, ends=True)
    assert job.wait(WAIT_S) is JobStatus.FINISHED
    assert bench.rows() == sums(3)
    assert not bench.snapshots(), "a finished job keeps nothing"
    assert not list(bench.root.iterdir())


def test_rows_of_a_select_wait_for_their_checkpoint(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.start()
    eventually(lambda: bench.totals and bench.job.metrics.total("numRecordsIn", "CollectSink-3-0") == 3, "rows arrive")
    assert not bench.rows()
    bench.checkpoint(1)
    eventually(lambda: bench.rows() == sums(3), "the program sees them")
    bench.job.cancel_and_wait()


def test_a_job_that_fails_goes_on_from_its_last_checkpoint(tmp_path: Path) -> None:
    once = threading.Event()

    def trouble(where: str, number: int) -> None:
        if where == "batch" and number == 5 and not once.is_set():
            once.set()
            raise ConnectorError("lost", "The other side is gone.", retryable=True)

    bench = Bench(
        tmp_path, {"restart-strategy.type": "fixed-delay", "restart-strategy.fixed-delay.delay": "0 ms"}, trouble
    )
    job = bench.start()
    bench.checkpoint(1)
    bench.feed.allow(8, ends=True)
    assert job.wait(WAIT_S) is JobStatus.FINISHED
    assert [error.message for error in job.restarts] == ["The other side is gone."]
    assert bench.feed.opened == 2
    assert bench.rows() == sums(8), "each row once"


def test_at_least_once_shows_rows_at_once_and_may_show_them_twice(tmp_path: Path) -> None:
    once = threading.Event()

    def trouble(where: str, number: int) -> None:
        if where == "batch" and number == 5 and not once.is_set():
            once.set()
            raise ConnectorError("lost", "The other side is gone.", retryable=True)

    options = {
        "execution.checkpointing.mode": "AT_LEAST_ONCE",
        "restart-strategy.type": "fixed-delay",
        "restart-strategy.fixed-delay.delay": "0 ms",
    }
    bench = Bench(tmp_path, options, trouble)
    job = bench.start()
    eventually(lambda: bench.rows() == sums(3), "rows are shown")
    bench.checkpoint(1)
    bench.feed.allow(8, ends=True)
    assert job.wait(WAIT_S) is JobStatus.FINISHED
    assert set(bench.rows()) == set(sums(8))


def test_a_select_without_checkpoints_is_not_restarted_once_rows_were_seen(tmp_path: Path) -> None:
    def trouble(where: str, number: int) -> None:
        if where == "batch" and number == 2:
            raise ConnectorError("lost", "The other side is gone.", retryable=True)

    options = {"execution.checkpointing.interval": "0 ms", "restart-strategy.type": "fixed-delay"}
    bench = Bench(tmp_path, options, trouble, Feed(2))
    job = bench.start()
    eventually(lambda: bench.rows() == sums(2), "rows are shown")
    bench.feed.allow(3)
    with pytest.raises(ConnectorError, match="The other side is gone"):
        job.wait(WAIT_S)
    assert bench.feed.opened == 1


@pytest.mark.parametrize(
    ("options", "attempts"),
    [
        ({"type": "none"}, 1),
        ({"type": "fixed-delay", "fixed-delay.attempts": "3", "fixed-delay.delay": "1 ms"}, 4),
        ({"type": "failure-rate", "failure-rate.max-failures-per-interval": "2", "failure-rate.delay": "1 ms"}, 3),
        (
            {
                "type": "exponential-delay",
                "exponential-delay.initial-backoff": "1 ms",
                "exponential-delay.max-backoff": "2 ms",
                "exponential-delay.attempts-before-reset-backoff": "4",
            },
            5,
        ),
    ],
)
def test_a_strategy_gives_so_many_attempts(tmp_path: Path, options: dict[str, str], attempts: int) -> None:
    def trouble(where: str, number: int) -> None:
        if where == "batch":
            raise ConnectorError("lost", "The other side is gone.", retryable=True)

    bench = Bench(tmp_path, {f"restart-strategy.{key}": value for key, value in options.items()}, trouble)
    job = bench.start()
    with pytest.raises(ConnectorError, match="The other side is gone"):
        job.wait(WAIT_S)
    assert bench.feed.opened == attempts
    assert job.status is JobStatus.FAILED
    assert len(job.restarts) == attempts - 1


def test_without_a_strategy_a_bad_row_is_not_tried_again(tmp_path: Path) -> None:
    def trouble(where: str, number: int) -> None:
        if where == "batch":
            raise ExecutionError("bad-row", "row 7 is bad")

    bench = Bench(tmp_path, trouble=trouble)
    del bench.options["restart-strategy.type"]
    with pytest.raises(ExecutionError, match="row 7 is bad"):
        bench.start().wait(WAIT_S)
    assert bench.feed.opened == 1


def test_a_cancelled_job_does_not_wait_for_its_restart(tmp_path: Path) -> None:
    def trouble(where: str, number: int) -> None:
        if where == "batch":
            raise ConnectorError("lost", "The other side is gone.", retryable=True)

    bench = Bench(
        tmp_path, {"restart-strategy.type": "fixed-delay", "restart-strategy.fixed-delay.delay": "1 h"}, trouble
    )
    job = bench.start()
    eventually(lambda: job.status is JobStatus.RESTARTING, "it waits")
    job.cancel_and_wait()
    assert job.status is JobStatus.CANCELED


@pytest.mark.parametrize("tolerable", [0, 2])
def test_failed_checkpoints_are_tolerated_so_many_times(tmp_path: Path, tolerable: int) -> None:
    def trouble(where: str, number: int) -> None:
        if where == "snapshot":
            raise ExecutionError("no", "no snapshot today")

    bench = Bench(tmp_path, {"execution.checkpointing.tolerable-failed-checkpoints": str(tolerable)}, trouble)
    job = bench.start()
    eventually(lambda: bench.tick() or job.is_over(), "the job fails")
    with pytest.raises(ExecutionError, match="no snapshot today"):
        job.wait(WAIT_S)
    assert sorted(set(bench.told("aborted")))[:tolerable] == list(range(1, tolerable + 1))
    assert not bench.snapshots()


def test_a_success_forgives_failures_before(tmp_path: Path) -> None:
    def trouble(where: str, number: int) -> None:
        if where == "snapshot" and number % 2:
            raise ExecutionError("no", "no snapshot today")

    bench = Bench(tmp_path, {"execution.checkpointing.tolerable-failed-checkpoints": "1"}, trouble)
    bench.start()
    for number in (2, 4, 6):
        bench.checkpoint(number)
    bench.job.cancel_and_wait()


def test_a_checkpoint_that_takes_too_long_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The storage hangs for ever; the next checkpoint, on a storage that works again, is not held up by it."""
    entered, hanging = threading.Event(), threading.Event()
    write = LocalFolder.publish

    def publish(self: LocalFolder, metadata: bytes) -> None:
        if self.path.endswith("chk-1"):
            entered.set()
            hanging.wait(WAIT_S)
        write(self, metadata)

    monkeypatch.setattr(LocalFolder, "publish", publish)
    options = {"execution.checkpointing.timeout": "5 s", "execution.checkpointing.tolerable-failed-checkpoints": "1"}
    bench = Bench(tmp_path, options)
    bench.start()
    eventually(lambda: bench.tick() or entered.is_set(), "it is written")
    bench.clock.advance(5_000)
    eventually(lambda: 1 in bench.told("aborted"), "it is given up")
    bench.checkpoint(2)
    hanging.set()
    bench.feed.allow(4, ends=True)
    assert bench.job.wait(WAIT_S) is JobStatus.FINISHED
    assert bench.rows() == sums(4)


def test_a_full_disk_fails_the_checkpoint_not_the_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: LocalFolder, metadata: bytes) -> None:
        raise ConnectorError("snapshot-storage", "Cannot write: No space left on device.", retryable=True)

    monkeypatch.setattr(LocalFolder, "publish", refuse)
    bench = Bench(tmp_path, {"execution.checkpointing.tolerable-failed-checkpoints": "1000000"})
    job = bench.start()
    eventually(lambda: bench.tick() or len(bench.told("aborted")) > 3, "checkpoints fail")
    assert job.status is JobStatus.RUNNING
    job.cancel_and_wait()


def test_no_more_checkpoints_are_kept_than_asked_for(tmp_path: Path) -> None:
    bench = Bench(tmp_path, {"execution.checkpointing.num-retained": "2"})
    bench.start()
    bench.checkpoint(4)
    eventually(lambda: len(bench.snapshots()) == 2, "older ones go")
    assert not {"chk-1", "chk-2"} & set(bench.snapshots())
    bench.job.cancel_and_wait()


@pytest.mark.parametrize(
    ("retention", "ending", "kept"),
    [
        ("RETAIN_ON_CANCELLATION", "cancel", True),
        ("RETAIN_ON_CANCELLATION", "fail", True),
        ("RETAIN_ON_CANCELLATION", "finish", False),
        ("DELETE_ON_CANCELLATION", "cancel", False),
        ("DELETE_ON_CANCELLATION", "fail", True),
        ("NO_EXTERNALIZED_CHECKPOINTS", "fail", False),
    ],
)
def test_what_stays_when_the_job_has_ended(tmp_path: Path, retention: str, ending: str, kept: bool) -> None:
    def trouble(where: str, number: int) -> None:
        if where == "batch" and number == 4:
            raise ExecutionError("bad-row", "row 7 is bad")

    bench = Bench(tmp_path, {"execution.checkpointing.externalized-checkpoint-retention": retention}, trouble)
    job = bench.start()
    bench.checkpoint(1)
    match ending:
        case "cancel":
            job.cancel_and_wait()
        case "fail":
            bench.feed.allow(5)
            with pytest.raises(ExecutionError):
                job.wait(WAIT_S)
        case _:
            bench.feed.allow(4, ends=True)
            job.wait(WAIT_S)
    assert bool(bench.snapshots()) is kept


def test_a_new_job_goes_on_from_a_retained_checkpoint(tmp_path: Path) -> None:
    first = Bench(tmp_path, {"execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION"})
    first.start()
    first.checkpoint(1)
    eventually(lambda: first.rows() == sums(3), "rows of the checkpoint")
    first.job.cancel_and_wait()
    (path,) = [found.parent for found in first.root.rglob(METADATA)]
    before = sorted(file.name for file in path.iterdir())
    second = Bench(tmp_path, {"execution.state-recovery.path": str(path)}, feed=Feed(6, ends=True))
    assert second.start().wait(WAIT_S) is JobStatus.FINISHED
    assert second.rows() == sums(6)[3:]
    assert sorted(file.name for file in path.iterdir()) == before, "NO_CLAIM leaves it alone"


def test_a_claimed_snapshot_goes_when_a_newer_one_is_there(tmp_path: Path) -> None:
    first = Bench(tmp_path, {"execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION"})
    first.start()
    first.checkpoint(1)
    first.job.cancel_and_wait()
    (path,) = [found.parent for found in first.root.rglob(METADATA)]
    options = {"execution.state-recovery.path": str(path), "execution.state-recovery.claim-mode": "CLAIM"}
    second = Bench(tmp_path, options)
    second.start()
    eventually(lambda: second.tick() or not (path / METADATA).exists(), "it goes")
    eventually(lambda: second.snapshots(), "there is a newer one")
    second.job.cancel_and_wait()


def test_state_that_nobody_takes_is_refused_unless_it_may_go(tmp_path: Path) -> None:
    first = Bench(tmp_path, {"execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION"})
    first.start()
    first.checkpoint(1)
    first.job.cancel_and_wait()
    (path,) = [found.parent for found in first.root.rglob(METADATA)]
    other = vertex(7, ExtensionSpec("source", "source"), collect(ONE), output=ONE)

    def job(options: dict[str, str]) -> Job:
        resources: dict[str, Any] = {"source": lambda spec: FeedSource(Feed(1, ends=True)), "out": Collected()}
        options = {"execution.state-recovery.path": str(path), **options}
        return LocalCluster().run(graph([other], [], options, **resources))

    with pytest.raises(BindError, match="no operator of the job takes"):
        job({})
    assert job({"execution.state-recovery.ignore-unclaimed-state": "true"}).status is JobStatus.FINISHED


@pytest.mark.parametrize("periodic", [True, False])
@pytest.mark.parametrize("chained", [True, False])
def test_a_savepoint_ends_the_job_and_starts_another(tmp_path: Path, periodic: bool, chained: bool) -> None:
    options = {} if periodic else {"execution.checkpointing.interval": "0 ms"}
    first = Bench(tmp_path, options, chained=chained)
    job = first.start()
    eventually(lambda: job.metrics.total("numRecordsOut") >= 30, "rows flow")
    path = job.savepoint(str(tmp_path / "saved"), SnapshotKind.SUSPEND).result(WAIT_S)
    assert job.wait(WAIT_S) is JobStatus.FINISHED
    assert first.rows() == sums(3)
    assert not first.told("watermark"), "a suspended job does not end its time"
    second = Bench(tmp_path, {"execution.state-recovery.path": path}, feed=Feed(5, ends=True), chained=chained)
    assert second.start().wait(WAIT_S) is JobStatus.FINISHED
    assert second.rows() == sums(5)[3:]


def test_draining_sends_the_last_watermark_before_the_savepoint(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    job = bench.start()
    job.savepoint(str(tmp_path), SnapshotKind.DRAIN).result(WAIT_S)
    assert job.wait(WAIT_S) is JobStatus.FINISHED
    assert bench.told("watermark") == [2**63 - 1]


def test_a_savepoint_beside_the_running_job_stays_when_the_job_ends(tmp_path: Path) -> None:
    bench = Bench(tmp_path, {"execution.checkpointing.savepoint-dir": str(tmp_path / "saved")})
    job = bench.start()
    path = Path(job.savepoint().result(WAIT_S))
    assert path.name.startswith(f"savepoint-{job.id[:6]}-")
    bench.feed.allow(3, ends=True)
    job.wait(WAIT_S)
    assert (path / METADATA).exists()
    with pytest.raises(ExecutionError, match="FINISHED"):
        job.savepoint()


def test_a_savepoint_needs_a_folder(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    job = bench.start()
    with pytest.raises(ExecutionError, match="No folder"):
        job.savepoint()
    (tmp_path / "file").write_text("")
    with pytest.raises(ExecutionError, match="did not complete"):
        job.savepoint(str(tmp_path / "file")).result(WAIT_S)
    assert job.status is JobStatus.RUNNING, "a savepoint that fails does not harm the job"
    job.cancel_and_wait()


def test_checkpoints_go_on_when_a_source_has_finished(tmp_path: Path) -> None:
    """A bounded and an unbounded source into one operator; the restored job does not read the bounded one again."""
    feeds = {"short": Feed(2, ends=True), "long": Feed(3)}
    out = Collected()

    def job_graph(options: dict[str, str]) -> JobGraph:
        a = vertex(1, ExtensionSpec("source", "short"), output=ONE)
        b = vertex(2, ExtensionSpec("source", "long"), output=ONE)
        c = vertex(3, UnionSpec(2), ExtensionSpec("plain", "total"), collect(ONE), inputs=2, output=ONE)
        edges = [edge(a, c, input_index=0), edge(b, c, input_index=1)]
        made = {name: (lambda spec, feed=feed: FeedSource(feed)) for name, feed in feeds.items()}
        options = {
            "execution.checkpointing.interval": "1 s",
            "execution.checkpointing.dir": str(tmp_path),
            "execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
            "execution.buffer-timeout.interval": "0 ms",
            **options,
        }
        return graph([a, b, c], edges, options, total=lambda spec: Total(), out=out, **made)

    clock = ManualClock(0)
    job = LocalCluster(clock).submit(job_graph({}))
    eventually(lambda: [task.over for task in job._tasks].count(True) == 1, "the short source has finished")
    eventually(lambda: tick(job, clock) or len(out.batches) == 5, "a checkpoint")
    job.cancel_and_wait()
    feeds["long"].allow(4, ends=True)
    LocalCluster(clock).run(job_graph({"execution.state-recovery.path": str(tmp_path / job.id)}))
    shown = [value for batch in out.batches for value in batch.columns[0].to_pylist()]
    assert shown[5:] == [sum(range(20)) + sum(range(40))]


@pytest.mark.parametrize(("concurrent", "pause", "wanted"), [("1", "0 ms", 1), ("2", "0 ms", 2), ("2", "1 ms", 1)])
def test_so_many_checkpoints_are_under_way_at_a_time(concurrent: str, pause: str, wanted: int) -> None:
    """The second task is stuck in a batch, so that no checkpoint completes: how many are triggered?"""
    triggered: list[int] = []
    hold = threading.Event()

    class Slow(Total):
        def process_batch(self, input_index: int, batch: ChangelogBatch) -> None:
            hold.wait(WAIT_S)

    class Noting(FeedSource):
        def snapshot_state(self, checkpoint_id: int) -> OperatorSnapshot:
            triggered.append(checkpoint_id)
            return super().snapshot_state(checkpoint_id)

    a = vertex(1, ExtensionSpec("source", "source"), output=ONE)
    b = vertex(2, ExtensionSpec("plain", "slow"), collect(ONE), output=ONE)
    clock, feed = ManualClock(0), Feed(1)
    options = {
        "execution.checkpointing.interval": "1 s",
        "execution.checkpointing.max-concurrent-checkpoints": concurrent,
        "execution.checkpointing.min-pause": pause,
        "execution.buffer-timeout.interval": "0 ms",
    }
    resources: dict[str, Any] = {"source": lambda spec: Noting(feed), "slow": lambda spec: Slow(), "out": Collected()}
    job = LocalCluster(clock).submit(graph([a, b], [edge(a, b)], options, **resources))
    eventually(lambda: clock.advance(1_000) or len(triggered) >= wanted, "the first checkpoints")
    for _ in range(20):
        clock.advance(1_000)
    assert len(triggered) == wanted
    hold.set()
    eventually(lambda: clock.advance(1_000) or len(triggered) > wanted, "the next one follows")
    job.cancel_and_wait()


class Gate(Operator[Any]):
    """Hands on one batch for each permit of the test."""

    def __init__(self, permits: threading.Semaphore) -> None:
        super().__init__(None)
        self._permits = permits

    def process_batch(self, input_index: int, batch: ChangelogBatch) -> None:
        self._permits.acquire(timeout=WAIT_S)
        self.output.collect(batch)


def slow_job(
    tmp_path: Path,
    options: dict[str, str],
    feed: Feed,
    permits: threading.Semaphore,
    out: Collected,
    parallelism: int = 1,
) -> JobGraph:
    """A fast source before an operator that waits for the test."""
    a = vertex(1, ExtensionSpec("source", "source"), output=ONE)
    b = vertex(2, ExtensionSpec("plain", "gate"), output=ONE, parallelism=parallelism)
    c = vertex(3, collect(ONE))
    options = {
        "execution.checkpointing.interval": "1 s",
        "execution.checkpointing.dir": str(tmp_path),
        "execution.checkpointing.unaligned.enabled": "true",
        "execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
        "execution.buffer-timeout.interval": "0 ms",
        **options,
    }
    edges = [edge(a, b, ShipStrategy.HASH, keys=(0,)), edge(b, c, ShipStrategy.GLOBAL)]
    made = {"source": lambda spec: FeedSource(feed), "gate": lambda spec: Gate(permits)}
    return graph([a, b, c], edges, options, out=out, **made)


@pytest.mark.parametrize("parallelism", [1, 2])
def test_an_unaligned_checkpoint_holds_the_rows_that_it_overtook(tmp_path: Path, parallelism: int) -> None:
    """Nine batches wait before the slow operator; the checkpoint does not wait for them, and a restore brings them."""
    out, clock, permits, feed = Collected(), ManualClock(0), threading.Semaphore(1), Feed(10)
    job = LocalCluster(clock).submit(slow_job(tmp_path, {}, feed, permits, out))
    eventually(lambda: job.metrics.total("numRecordsOut", "Extension-1-0") == 100, "all rows wait")
    completed = job.master._completed  # type: ignore[union-attr]
    pending = job.master._coordinator._pending  # type: ignore[union-attr]
    eventually(lambda: tick(job, clock) or any(one.acknowledged for one in [*pending.values()]), "a barrier")
    permits.release()  # the operator looks up between two batches
    eventually(completed.newest_first, "a checkpoint")
    assert job.metrics.total("numRecordsIn", "CollectSink-3-0") < 100
    job.cancel()
    for _ in range(20):
        permits.release()
    job.cancel_and_wait()
    path = completed.newest_first()[0].folder.path
    feed.allow(10, ends=True)
    again, plenty = Collected(), threading.Semaphore(1000)
    options = {"execution.state-recovery.path": path}
    LocalCluster().run(slow_job(tmp_path, options, feed, plenty, again, parallelism))
    shown = [value for one in (out, again) for batch in one.batches for value in batch.columns[0].to_pylist()]
    assert (shown if parallelism == 1 else sorted(shown)) == list(range(100)), "each row once"


def test_rows_in_flight_of_a_forward_exchange_stay_where_they_are(tmp_path: Path) -> None:
    """Such rows restore at their parallelism only; at another one the job is refused."""
    place = TaskPlace(0, 2, range(0, 64), 128, ((Partitioning(ShipStrategy.FORWARD), 2),))
    row = ChannelElement(0, 0, ChangelogBatch.of([pa.array([1])]))
    with pytest.raises(BindError, match="FORWARD exchange"):
        dealt_out([row], place, "Calc")


def test_rows_in_flight_of_a_hash_exchange_go_where_their_keys_belong() -> None:
    rows = [ChannelElement(0, n % 3, ChangelogBatch.of([pa.array(range(n * 10, n * 10 + 10))])) for n in range(9)]
    hashed = Partitioning(ShipStrategy.HASH, (0,))
    found: list[int] = []
    for subtask in range(4):
        groups = key_group_range(128, 4, subtask)
        dealt = dealt_out(rows, TaskPlace(subtask, 4, groups, 128, ((hashed, 3),)), "Aggregate")
        for one in dealt.elements:
            assert isinstance(one.element, ChangelogBatch)
            assert all(group in groups for group in key_groups([one.element.columns[0]], 128).tolist())
            found += one.element.columns[0].to_pylist()
    assert sorted(found) == list(range(90))


def test_unaligned_checkpoints_need_exactly_once(tmp_path: Path) -> None:
    options = {"execution.checkpointing.unaligned.enabled": "true", "execution.checkpointing.mode": "AT_LEAST_ONCE"}
    with pytest.raises(BindError, match="EXACTLY_ONCE"):
        Bench(tmp_path, options).start()


def test_a_restore_that_fails_counts_as_an_attempt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The job fails once, and its first restart finds the storage away."""
    once, read, away = threading.Event(), LocalFolder.read, [2]

    def trouble(where: str, number: int) -> None:
        if where == "batch" and number == 5 and not once.is_set():
            once.set()
            raise ConnectorError("lost", "The other side is gone.", retryable=True)

    def refuse(self: LocalFolder, name: str) -> memoryview:
        if away[0]:
            away[0] -= 1
            raise ConnectorError("snapshot-storage", "The disk is away.", retryable=True)
        return read(self, name)

    options = {**AT_ONCE, "restart-strategy.fixed-delay.attempts": "5"}
    bench = Bench(tmp_path, options, trouble)
    job = bench.start()
    bench.checkpoint(1)
    monkeypatch.setattr(LocalFolder, "read", refuse)
    bench.feed.allow(8, ends=True)
    assert job.wait(WAIT_S) is JobStatus.FINISHED
    assert len(job.restarts) == 3
    assert bench.rows() == sums(8)


def test_a_job_whose_checkpoints_are_all_damaged_does_not_start_over(tmp_path: Path) -> None:
    once = threading.Event()

    def trouble(where: str, number: int) -> None:
        if where == "batch" and number == 5 and not once.is_set():
            once.set()
            for path in bench.root.rglob(METADATA):
                path.write_bytes(path.read_bytes()[:-1])
            raise ConnectorError("lost", "The other side is gone.", retryable=True)

    bench = Bench(tmp_path, {**AT_ONCE, "restart-strategy.fixed-delay.attempts": "5"}, trouble)
    job = bench.start()
    bench.checkpoint(1)
    eventually(lambda: bench.rows() == sums(3), "rows of the checkpoint")
    bench.feed.allow(8, ends=True)
    with pytest.raises(ExecutionError, match="None of the job's checkpoints"):
        job.wait(WAIT_S)
    assert bench.rows() == sums(3), "no row was shown twice"
    assert bench.feed.opened == 1
