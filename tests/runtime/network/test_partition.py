from __future__ import annotations

import threading

import numpy as np
import pyarrow as pa
import pytest

from flowsql_core.batch import ChangelogBatch, LateColumns, RowSource, WatermarkTrack
from flowsql_core.element import END_OF_INPUT, IDLE, Watermark
from flowsql_runtime.metrics.registry import TaskMetrics
from flowsql_runtime.network.channel import ConsumerQueue, Element, LocalChannel
from flowsql_runtime.network.gate import InputGate, InputProcessor
from flowsql_runtime.network.partition import NEVER_FLUSH, OutputFlusher, RecordWriter
from flowsql_runtime.network.selector import (
    AssigningSelector,
    BroadcastSelector,
    ChannelSelector,
    FirstChannelSelector,
    HashSelector,
)
from flowsql_runtime.task.mailbox import Mailbox, TaskCancelled


class ByValue(AssigningSelector):
    def assign(self, batch: ChangelogBatch) -> np.ndarray:
        return np.array(batch.columns[0].to_pylist(), np.int32) % self.channels


class Wire:
    """A writer with the queues of its receivers."""

    def __init__(
        self,
        channels: int = 1,
        selector: ChannelSelector | None = None,
        timeout_ms: int = 100,
        target_rows: int = 10,
        capacity_bytes: int = 1 << 20,
    ) -> None:
        self.producer = Mailbox()
        self.queues = [ConsumerQueue(Mailbox()) for _ in range(channels)]
        self.channels = [LocalChannel(self.producer, queue, 0, 0, capacity_bytes) for queue in self.queues]
        self.metrics = TaskMetrics("t", 0)
        self.writer = RecordWriter(
            self.channels, selector or FirstChannelSelector(channels), self.metrics, timeout_ms, target_rows
        )

    def arrived(self, channel: int = 0) -> list[object]:
        return [shown(element) for _, element, _ in self.queues[channel].entries]


def shown(element: Element) -> object:
    if not isinstance(element, ChangelogBatch):
        return element
    values = element.columns[0].to_pylist()
    if element.track is None:
        return values
    return values, list(zip(element.track.offsets.tolist(), element.track.wm_ms.tolist(), strict=True))


def rows(*values: int, track: list[tuple[int, int]] | None = None) -> ChangelogBatch:
    found = None
    if track is not None:
        found = WatermarkTrack(np.array([o for o, _ in track], np.int32), np.array([w for _, w in track], np.int64))
    return ChangelogBatch.of([pa.array(values, pa.int64())], track=found)


def test_small_batches_wait_and_become_one() -> None:
    wire = Wire()
    for first in range(0, 9, 3):
        wire.writer.emit(rows(first, first + 1, first + 2))
    assert wire.arrived() == []
    wire.writer.emit(rows(9))
    assert wire.arrived() == [[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]]
    assert wire.metrics.buffers_out == 1
    assert wire.metrics.bytes_out == 80


def test_a_large_batch_passes_behind_what_waits() -> None:
    wire = Wire()
    wire.writer.emit(rows(1))
    large = rows(*range(20))
    wire.writer.emit(large)
    assert wire.arrived() == [[1], list(range(20))]
    assert wire.queues[0].entries[1][1] is large


def test_timeout_zero_flushes_every_batch() -> None:
    wire = Wire(timeout_ms=0)
    wire.writer.emit(rows(1))
    wire.writer.emit(rows(2))
    assert wire.arrived() == [[1], [2]]


def test_without_timeout_only_full_or_the_end_flushes() -> None:
    wire = Wire(timeout_ms=NEVER_FLUSH)
    wire.writer.emit(rows(1))
    ticks = iter([False, True])
    flusher = OutputFlusher([wire.writer], wait=lambda seconds: next(ticks))
    flusher.start()
    flusher.stop()
    assert wire.arrived() == []
    wire.writer.end()
    assert wire.arrived() == [[1], END_OF_INPUT]


def test_flusher_hands_over_what_waits_on_its_period() -> None:
    wire = Wire(timeout_ms=100)
    wire.writer.emit(rows(1))
    waited: list[float] = []
    done = threading.Event()

    def wait(seconds: float) -> bool:
        waited.append(seconds)
        if len(waited) == 2:
            done.set()
            return True
        return False

    flusher = OutputFlusher([wire.writer], wait)
    flusher.start()
    assert done.wait(5)
    flusher.stop()
    assert waited == [0.1, 0.1]
    assert wire.arrived() == [[1]]


def test_a_failed_flush_fails_the_next_emit() -> None:
    wire = Wire()
    wire.writer.emit(rows(1))
    wire.writer.emit(ChangelogBatch.of([pa.array(["not a number"])]))  # cannot be joined with the first
    OutputFlusher.flush(wire.writer)
    with pytest.raises(pa.ArrowInvalid):
        wire.writer.emit(rows(2))


def test_time_stays_in_order_with_rows() -> None:
    wire = Wire(2, BroadcastSelector(2))
    wire.writer.emit(rows(1, 2, track=[(1, 10)]))
    wire.writer.emit(rows(3, track=[(0, 20), (1, 30)]))
    wire.writer.broadcast(Watermark(40))
    wire.writer.broadcast(IDLE)
    for channel in range(2):
        assert wire.arrived(channel) == [([1, 2, 3], [(1, 10), (2, 20), (3, 30)]), Watermark(40), IDLE]


def test_channels_without_rows_still_learn_the_time() -> None:
    wire = Wire(2, ByValue(2))
    wire.writer.emit(rows(0, 2, track=[(1, 10), (2, 20)]))
    assert wire.arrived(1) == [Watermark(20)]
    wire.writer.emit(rows(1, track=[(1, 30)]))
    wire.writer.emit(rows(4, track=[(1, 40)]))
    wire.writer.flush_all()
    # Channel 0 had rows waiting: the time in which it had no rows stands behind them.
    assert wire.arrived(0) == [([0, 2, 4], [(1, 10), (2, 30), (3, 40)])]
    assert wire.arrived(1) == [Watermark(20), ([1], [(1, 40)])]


def test_a_full_channel_stops_input_and_the_reader_starts_it_again() -> None:
    wire = Wire(timeout_ms=0, capacity_bytes=100)
    wire.writer.emit(rows(*range(10)))
    assert not wire.writer.blocked()
    wire.writer.emit(rows(*range(10)))
    assert wire.writer.blocked()
    gate = InputProcessor(wire.queues[0], [InputGate(0, wire.channels)], TaskMetrics("r", 0))
    gate.next()
    assert wire.writer.blocked() is False
    wire.producer.sleep(0)  # no wake-up yet: the backlog is not below half
    gate.next()
    assert wire.channels[0].backlog_bytes == 0


def test_within_one_input_the_hard_limit_blocks_until_there_is_room() -> None:
    wire = Wire(timeout_ms=0, capacity_bytes=80)
    emitted: list[int] = []
    started = threading.Event()

    def produce() -> None:
        for value in range(12):
            wire.writer.emit(rows(*[value] * 10))
            emitted.append(value)
            if value == 3:
                started.set()

    producer = threading.Thread(target=produce)
    producer.start()
    assert started.wait(5)
    gate = InputProcessor(wire.queues[0], [InputGate(0, wire.channels)], TaskMetrics("r", 0))
    highest, taken = 0, 0
    while taken < 12:
        highest = max(highest, wire.channels[0].backlog_bytes)
        if gate.next() is None:
            wire.queues[0].mailbox.sleep(5)
        else:
            taken += 1
    producer.join(5)
    assert emitted == list(range(12))
    assert highest <= 5 * 80


def test_cancelling_frees_a_blocked_producer() -> None:
    wire = Wire(timeout_ms=0, capacity_bytes=8)
    wire.producer.cancel()
    with pytest.raises(TaskCancelled):
        wire.writer.emit(rows(*range(100)))


def test_gate_merges_time_and_ends_after_the_last_channel() -> None:
    queue = ConsumerQueue(Mailbox())
    channels = [LocalChannel(Mailbox(), queue, 0, index, 1 << 20) for index in range(2)]
    gate = InputProcessor(queue, [InputGate(0, channels)], TaskMetrics("r", 0))

    def send(channel: int, element: Element) -> list[object]:
        channels[channel].put(element)
        found = gate.next()
        assert found is not None
        return [shown(part) for part in found[1]]

    assert send(0, rows(1, 2, track=[(1, 10), (2, 20)])) == [[1, 2]]
    assert send(1, rows(3, 4, track=[(0, 5), (1, 15), (2, 25)])) == [([3, 4], [(0, 5), (1, 15), (2, 20)])]
    assert send(1, END_OF_INPUT) == []
    assert send(0, Watermark(30)) == [Watermark(25)]
    assert send(1, IDLE) == [Watermark(30)]
    assert send(0, END_OF_INPUT) == [END_OF_INPUT]
    assert gate.next() is None


class Stored(RowSource):
    """Rows of a state: which threads gather them."""

    def __init__(self) -> None:
        self.gathered_by: list[int] = []

    def take(self, rows: np.ndarray) -> pa.Array:
        self.gathered_by.append(threading.get_ident())
        return pa.array(rows)

    def row_bytes(self, rows: np.ndarray, most: int) -> None:
        return None


@pytest.mark.parametrize("pad", [False, True])
def test_rows_of_a_state_are_gathered_by_its_task_and_not_by_the_flusher(pad: bool) -> None:
    """The flusher read the state's lists while the task changed them: memory was overwritten (Nexmark q23)."""
    stored = Stored()
    wire = Wire(2, HashSelector(2, (0,), 128))
    late = LateColumns.padded if pad else LateColumns.of
    for first in (0, 3):
        numbers = np.arange(first, first + 3)
        wire.writer.emit(ChangelogBatch(LateColumns.beside([pa.array(numbers)], late([stored], numbers)), 3))
    flusher = threading.Thread(target=wire.writer.flush_all)
    flusher.start()
    flusher.join()
    assert sorted(value for channel in (0, 1) for values in wire.arrived(channel) for value in values) == [*range(6)]
    assert set(stored.gathered_by) == {threading.get_ident()}
