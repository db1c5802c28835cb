"""Jobs that go on from a checkpoint or a savepoint."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from flowsql_core.element import SnapshotKind
from flowsql_core.errors import BindError, ConnectorError, ExecutionError
from flowsql_core.graph.specs import ExtensionSpec
from flowsql_runtime.checkpoint.storage import METADATA, LocalFolder
from flowsql_runtime.cluster.job import Job, JobStatus
from flowsql_runtime.cluster.local import LocalCluster

from ..graphs import Collected, collect, graph, vertex
from .job_bench import AT_ONCE, ONE, WAIT_S, Bench, Feed, FeedSource, eventually, sums


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
