"""A job whose time, rows and troubles are in the test's hands."""

from __future__ import annotations

import os
import struct
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

from flowsql_core.batch import ChangelogBatch
from flowsql_core.clock import ManualClock
from flowsql_core.element import Watermark
from flowsql_core.graph.job import JobGraph, ShipStrategy
from flowsql_core.graph.specs import ExtensionSpec
from flowsql_core.types.logical import BIGINT
from flowsql_runtime.checkpoint.storage import METADATA
from flowsql_runtime.cluster.job import Job
from flowsql_runtime.cluster.local import LocalCluster
from flowsql_runtime.operators.base import Operator, OperatorSnapshot, SourceOperator, SourceStatus

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
    if not is_under_way(job):
        clock.advance(1_000)


def is_under_way(job: Job) -> bool:
    """Whether a checkpoint of a job is."""
    coordinator = job.master._coordinator  # type: ignore[union-attr]
    return coordinator is not None and bool(coordinator._pending)


class Feed:
    """What the test lets a source emit: batches up to a number; then it waits, or ends."""

    def __init__(self, batches: int, ends: bool = False) -> None:
        self.allowed = batches
        self.ends = ends
        self.wakes: list[Callable[[], None]] = []
        self.opened = 0
        #: Batches that the source stands behind.
        self.emitted = 0
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
        self._feed.emitted = self._batch

    def snapshot_state(self, checkpoint_id: int) -> OperatorSnapshot:
        return OperatorSnapshot(union={"at": (struct.pack("<q", self._batch),)})

    def emit_next(self) -> SourceStatus:
        if self._batch >= self._feed.allowed:
            return SourceStatus.END if self._feed.ends else SourceStatus.NOTHING_NOW
        first = self._batch * ROWS
        self._batch += 1
        self.output.collect(ChangelogBatch.of([pa.array(range(first, first + ROWS), pa.int64())]))
        self._feed.emitted = self._batch
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


class Gate(Operator[Any]):
    """Hands on one batch for each permit of the test."""

    def __init__(self, permits: threading.Semaphore) -> None:
        super().__init__(None)
        self._permits = permits

    def process_batch(self, input_index: int, batch: ChangelogBatch) -> None:
        self._permits.acquire(timeout=WAIT_S)
        self.output.collect(batch)


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
        # What is removed meanwhile is passed over.
        return sorted(Path(folder).name for folder, _, files in os.walk(self.root) if METADATA in files)

    def is_under_way(self) -> bool:
        """Whether a checkpoint is."""
        return is_under_way(self.job)

    def tick(self) -> None:
        """An interval passes, unless a checkpoint is under way."""
        tick(self.job, self.clock)

    def checkpoint(self, wanted: int) -> None:
        """Time passes until a checkpoint with this number is complete, behind all rows that are allowed, and no other
        one is begun."""
        eventually(lambda: self.feed.emitted >= self.feed.allowed, "the rows that are allowed")

        def passed() -> bool:
            # It is on the disk before it is no longer under way, and told after that: asked in this order.
            if not self.is_under_way() and f"chk-{wanted}" not in self.snapshots():
                self.clock.advance(1_000)
            return wanted in self.told("complete")

        eventually(passed, f"checkpoint {wanted}")

    def told(self, what: str) -> list[int]:
        return [number for total in self.totals for kind, number in total.told if kind == what]


def sums(batches: int) -> list[int]:
    return [sum(range((number + 1) * ROWS)) for number in range(batches)]
