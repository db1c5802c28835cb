"""Jobs with threads: exchanges, failures, cancellation, time across tasks."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from flowsql_core.batch import ChangelogBatch
from flowsql_core.clock import ManualClock
from flowsql_core.element import Watermark
from flowsql_core.errors import ExecutionError, InternalError
from flowsql_core.graph.job import JobGraph, ResultPartitionType, ShipStrategy
from flowsql_core.graph.specs import ExtensionSpec, UnionSpec
from flowsql_core.types.logical import BIGINT
from flowsql_runtime.cluster.job import JobStatus
from flowsql_runtime.cluster.local import LocalCluster
from flowsql_runtime.operators.base import Operator, SourceOperator, SourceStatus

from ..graphs import Collected, collect, edge, graph, schema, values, vertex

ONE = schema(n=BIGINT)
WAIT_S = 20


class Pass(Operator[Any]):
    """Hands rows on; remembers its life."""

    def __init__(self, spec: Any) -> None:
        super().__init__(spec)
        self.life: list[str] = []

    def open(self, ctx: Any) -> None:
        self.life.append("open")

    def process_batch(self, input_index: int, batch: ChangelogBatch) -> None:
        self.output.collect(batch.with_track(self.advance_track(input_index, batch.track)))

    def finish(self) -> None:
        self.life.append("finish")

    def close(self) -> None:
        self.life.append("close")


class Count(SourceOperator[Any]):
    """Batches of ``rows`` numbers; endless when ``batches`` is None."""

    def __init__(self, batches: int | None, rows: int = 1000) -> None:
        super().__init__(None)
        self._left = batches
        self._rows = rows
        self._next = 0
        self.closed = False

    def emit_next(self) -> SourceStatus:
        if self._left is not None:
            if not self._left:
                return SourceStatus.END
            self._left -= 1
        numbers = np.arange(self._next, self._next + self._rows)
        self._next += self._rows
        self.output.collect(ChangelogBatch.of([pa.array(numbers)]))
        return SourceStatus.MORE

    def wake_when_available(self, wake: Callable[[], None]) -> None:
        wake()

    def close(self) -> None:
        self.closed = True


class Silent(SourceOperator[Any]):
    """Never has rows."""

    def emit_next(self) -> SourceStatus:
        return SourceStatus.NOTHING_NOW

    def wake_when_available(self, wake: Callable[[], None]) -> None:
        pass


def source(resource: str = "source") -> ExtensionSpec:
    return ExtensionSpec("source", resource)


def plain(resource: str) -> ExtensionSpec:
    return ExtensionSpec("plain", resource)


def numbers(out: Collected) -> list[int]:
    return [value for batch in out.batches for value in batch.columns[0].to_pylist()]


def test_hash_exchange_at_parallelism_three_keeps_the_order_within_a_key() -> None:
    out = Collected()
    a = vertex(1, source(), output=ONE)
    b = vertex(2, plain("pass"), parallelism=3, output=ONE)
    c = vertex(3, collect(ONE))
    edges = [edge(a, b, ShipStrategy.HASH, keys=(0,)), edge(b, c, ShipStrategy.GLOBAL)]
    job = LocalCluster().run(graph([a, b, c], edges, source=lambda spec: Count(20), **{"pass": Pass}, out=out))
    assert job.status is JobStatus.FINISHED
    assert sorted(numbers(out)) == list(range(20_000))
    assert job.metrics.total("numRecordsIn", "CollectSink-3-0") == 20_000
    assert job.metrics.task_total("numBytesOut") == job.metrics.task_total("numBytesIn") == 2 * 8 * 20_000


@pytest.mark.parametrize("kind", list(ResultPartitionType))
def test_a_diamond_does_not_lock_although_its_channels_are_tiny(kind: ResultPartitionType) -> None:
    out = Collected()
    a = vertex(1, source(), output=ONE)
    b, c = vertex(2, plain("pass"), output=ONE), vertex(3, plain("pass"), output=ONE)
    d = vertex(4, UnionSpec(2), collect(ONE))
    edges = [
        edge(a, b, partition_type=kind),
        edge(a, c),
        edge(b, d, input_index=0),
        edge(c, d, input_index=1, partition_type=kind),
    ]
    configuration = {"flowsql.network.channel-memory": "1 kb", "execution.buffer-timeout.interval": "0 ms"}
    job = LocalCluster().submit(
        graph([a, b, c, d], edges, configuration, source=lambda spec: Count(50), **{"pass": Pass}, out=out)
    )
    assert job.wait(WAIT_S) is JobStatus.FINISHED
    assert sorted(numbers(out)) == sorted(2 * list(range(50_000)))


class Broken(Pass):
    def process_batch(self, input_index: int, batch: ChangelogBatch) -> None:
        raise self.spec_error()

    @staticmethod
    def spec_error() -> Exception:
        return ExecutionError("bad-row", "row 7 is bad")


class Raising(Broken):
    @staticmethod
    def spec_error() -> Exception:
        return ValueError("user's own")


@pytest.mark.parametrize("chained", [True, False])
def test_a_failure_names_its_operator_and_closes_everything(chained: bool) -> None:
    made: list[Pass] = []

    def record(kind: type[Pass]) -> Callable[[Any], Pass]:
        def make(spec: Any) -> Pass:
            made.append(kind(spec))
            return made[-1]

        return make

    endless = Count(None)
    resources = {"source": lambda spec: endless, "pass": record(Pass), "broken": record(Broken), "out": Collected()}
    if chained:
        found = graph([vertex(1, source(), plain("pass"), plain("broken"), collect(ONE), output=ONE)], **resources)
        name = "Extension-1-2"
    else:
        a, b = vertex(1, source(), plain("pass"), output=ONE), vertex(2, plain("broken"), collect(ONE), output=ONE)
        found = graph([a, b], [edge(a, b)], **resources)
        name = "Extension-2-0"
    job = LocalCluster().submit(found)
    with pytest.raises(ExecutionError, match="row 7 is bad") as raised:
        job.wait(WAIT_S)
    assert job.status is JobStatus.FAILED
    assert raised.value is job.exception
    assert raised.value.operator == name
    assert f"in operator {name}" in raised.value.render()
    assert endless.closed
    assert [operator.life for operator in made] == [["open", "close"]] * 2
    assert resources["out"].finished == 1


def test_a_users_exception_is_kept_as_the_cause() -> None:
    found = graph(
        [vertex(1, source(), plain("broken"), collect(ONE), output=ONE)],
        source=lambda spec: Count(1),
        broken=Raising,
        out=Collected(),
    )
    with pytest.raises(InternalError, match="ValueError: user's own") as raised:
        LocalCluster().run(found)
    assert isinstance(raised.value.__cause__, ValueError)


def endless_graph(made: list[Count]) -> JobGraph:
    def make(spec: Any) -> Count:
        made.append(Count(None))
        return made[-1]

    a = vertex(1, source(), parallelism=2, output=ONE)
    b = vertex(2, collect(ONE), parallelism=2)

    class Dropping(Collected):
        def accept(self, batch: ChangelogBatch) -> None:
            seen.set()

    seen = threading.Event()
    found = graph([a, b], [edge(a, b, ShipStrategy.REBALANCE)], source=make, out=Dropping(), seen=seen)
    return found


def test_cancelling_stops_all_tasks_and_closes_all_operators() -> None:
    made: list[Count] = []
    found = endless_graph(made)
    ended: list[JobStatus] = []
    job = LocalCluster().submit(found)
    job.on_end(lambda: ended.append(job.status))
    assert found.resources["seen"].wait(WAIT_S)
    assert job.status is JobStatus.RUNNING
    with pytest.raises(TimeoutError):
        job.wait(0)
    job.cancel()
    assert job.wait(WAIT_S) is JobStatus.CANCELED
    assert all(count.closed for count in made)
    assert ended == [JobStatus.CANCELED]
    job.cancel()
    assert job.status is JobStatus.CANCELED


def test_an_idle_task_sleeps_and_can_be_cancelled() -> None:
    job = LocalCluster().submit(graph([vertex(1, source(), collect(ONE), output=ONE)], source=Silent, out=Collected()))
    job.cancel_and_wait()
    assert job.status is JobStatus.CANCELED


class Alarm(Pass):
    """Emits one row when processing time reaches 1000, and one for a mail."""

    def open(self, ctx: Any) -> None:
        ctx.timers.register_processing_timers(np.array([1000]), np.array([0]))
        ctx.resources["submit"].append(ctx.submit)

    def on_processing_timers(self, times_ms: Any, slots: Any) -> None:
        self.emit(int(times_ms[0]))

    def emit(self, value: int) -> None:
        self.output.collect(ChangelogBatch.of([pa.array([value])]))


class Waiting(Collected):
    def __init__(self) -> None:
        super().__init__()
        self.arrived = threading.Semaphore(0)

    def accept(self, batch: ChangelogBatch) -> None:
        super().accept(batch)
        self.arrived.release()


def test_a_manual_clock_fires_timers_and_mails_run_in_the_task() -> None:
    clock, out, submit, made = ManualClock(), Waiting(), [], []

    def make(spec: Any) -> Alarm:
        made.append(Alarm(spec))
        return made[-1]

    a, b = vertex(1, source(), output=ONE), vertex(2, plain("alarm"), collect(ONE), output=ONE)
    job = LocalCluster(clock).submit(graph([a, b], [edge(a, b)], source=Silent, alarm=make, out=out, submit=submit))
    clock.advance(999)
    clock.advance(1)
    assert out.arrived.acquire(timeout=WAIT_S)
    assert numbers(out) == [1000]
    thread: list[str] = []
    submit[0](lambda: (thread.append(threading.current_thread().name), made[0].emit(7)))
    assert out.arrived.acquire(timeout=WAIT_S)
    assert numbers(out) == [1000, 7]
    assert thread == ["v2-0"]
    job.cancel_and_wait()


def test_the_end_brings_the_last_watermark_before_the_end_of_input() -> None:
    heard: list[str] = []

    class Listening(Pass):
        def process_watermark(self, input_index: int, watermark: Watermark) -> None:
            heard.append(f"watermark {watermark.timestamp_ms == 2**63 - 1}")
            super().process_watermark(input_index, watermark)

        def end_input(self, input_index: int) -> None:
            heard.append(f"end {input_index}")

        def finish(self) -> None:
            heard.append("finish")
            self.output.collect(ChangelogBatch.of([pa.array([5])]))

    out = Collected()
    a = vertex(1, source(), parallelism=2, output=ONE)
    b = vertex(2, plain("listen"), collect(ONE), output=ONE)
    LocalCluster().run(
        graph([a, b], [edge(a, b, ShipStrategy.GLOBAL)], source=lambda s: Count(0), listen=Listening, out=out)
    )
    assert heard == ["watermark True", "end 0", "finish"]
    assert numbers(out) == [5]


def test_one_producer_feeds_several_consumers_and_side_outputs() -> None:
    class Splitting(Pass):
        def process_batch(self, input_index: int, batch: ChangelogBatch) -> None:
            self.output.collect(batch.slice(0, 1))
            self.output.collect_side("late", batch.slice(1, batch.num_rows))
            self.output.collect_side("unheard", batch)

    first, second, late = Collected(), Collected(), Collected()
    a = vertex(1, source(), plain("split"), output=ONE)
    sinks = [vertex(index, collect(ONE, name)) for index, name in ((2, "first"), (3, "second"), (4, "late"))]
    edges = [edge(a, sinks[0]), edge(a, sinks[1]), edge(a, sinks[2], tag="late")]
    LocalCluster().run(
        graph([a, *sinks], edges, source=lambda s: Count(1, 3), split=Splitting, first=first, second=second, late=late)
    )
    assert (numbers(first), numbers(second), numbers(late)) == ([0], [0], [1, 2])
    assert first.batches[0] is second.batches[0]


def test_values_come_from_one_subtask_only() -> None:
    out = Collected()
    rows = [(index, str(index)) for index in range(10)]
    a, b = vertex(1, values(rows), parallelism=2), vertex(2, collect())
    LocalCluster().run(graph([a, b], [edge(a, b, ShipStrategy.GLOBAL)], out=out))
    assert out.rows == [("+I", *row) for row in rows]
