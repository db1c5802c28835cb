"""Running jobs with checkpoints: triggered by the clock, failed, restarted, kept or not when they end."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from flowsql_core.batch import ChangelogBatch
from flowsql_core.clock import ManualClock
from flowsql_core.errors import ConnectorError, ExecutionError
from flowsql_core.graph.job import JobGraph
from flowsql_core.graph.specs import ExtensionSpec, UnionSpec
from flowsql_runtime.checkpoint.storage import LocalFolder
from flowsql_runtime.cluster.job import JobStatus
from flowsql_runtime.cluster.local import LocalCluster
from flowsql_runtime.operators.base import OperatorSnapshot

from ..graphs import Collected, collect, edge, graph, vertex
from .job_bench import ONE, WAIT_S, Bench, Feed, FeedSource, Total, eventually, sums, tick


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
