"""Unaligned checkpoints of running jobs: rows that a barrier overtook."""

from __future__ import annotations

import threading
from pathlib import Path

import pyarrow as pa
import pytest

from flowsql_compute.keys import key_group_range, key_groups
from flowsql_core.batch import ChangelogBatch
from flowsql_core.clock import ManualClock
from flowsql_core.errors import BindError
from flowsql_core.graph.job import JobGraph, Partitioning, ShipStrategy
from flowsql_core.graph.specs import ExtensionSpec
from flowsql_runtime.checkpoint.in_flight import dealt_out
from flowsql_runtime.checkpoint.recovery import SnapshotReader
from flowsql_runtime.checkpoint.storage import LocalFolder
from flowsql_runtime.cluster.local import LocalCluster
from flowsql_runtime.network.in_flight import ChannelElement
from flowsql_runtime.task.restore import TaskPlace

from ..graphs import Collected, collect, edge, graph, vertex
from .job_bench import ONE, Bench, Feed, FeedSource, Gate, eventually, tick


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
    # What is on its way is Arrow: it is read without loading any object.
    reader = SnapshotReader(LocalFolder(path), objects=False)
    on_its_way = reader.task(["u200"], TaskPlace(0, 1, range(128), 128)).in_flight
    assert on_its_way is not None
    assert on_its_way.elements
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
