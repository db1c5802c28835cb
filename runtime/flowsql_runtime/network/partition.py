"""The writing end of an exchange: ``RecordWriter`` with its channels, coalescing of small batches, and the flusher.

Flush rules are Flink's: ``execution.buffer-timeout.interval`` > 0 flushes on a period, 0 after every batch,
``execution.buffer-timeout.enabled=false`` only when full; time and barriers flush in order.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

import numpy as np

from flowsql_core.batch import ChangelogBatch, WatermarkTrack, concat_batches
from flowsql_core.config import option, parse_bool, parse_duration_ms, parse_memory_bytes
from flowsql_core.element import END_OF_INPUT, CheckpointBarrier, LatencyMarker, Watermark, WatermarkStatus
from flowsql_runtime.metrics.registry import TaskMetrics
from flowsql_runtime.network.channel import Element, LocalChannel, referenced_bytes
from flowsql_runtime.network.selector import ChannelSelector

BUFFER_TIMEOUT_MS = option(
    "execution.buffer-timeout.interval", parse_duration_ms, 100, "Longest wait of a row in an exchange; 0: none."
)
BUFFER_TIMEOUT_ENABLED = option(
    "execution.buffer-timeout.enabled", parse_bool, True, "false: exchanges hand on only full buffers."
)
BATCH_ROWS = option("flowsql.network.batch-rows", int, 16_384, "Rows to which an exchange gathers small batches.")
CHANNEL_BYTES = option(
    "flowsql.network.channel-memory", parse_memory_bytes, 8 << 20, "Bytes that may wait in one channel."
)

#: ``timeout_ms`` of a writer that flushes only when full.
NEVER_FLUSH = -1


class _Pending:
    """Small batches of one channel that wait to become one."""

    __slots__ = ("batches", "rows")

    def __init__(self) -> None:
        self.batches: list[ChangelogBatch] = []
        self.rows = 0


class RecordWriter:
    """All rows and time of one operator output to the subtasks of one consumer.

    Task thread, except :meth:`flush_all`, which the flusher also calls: ``_lock`` guards what waits.
    """

    def __init__(
        self,
        channels: Sequence[LocalChannel],
        selector: ChannelSelector,
        metrics: TaskMetrics,
        timeout_ms: int,
        target_rows: int,
    ) -> None:
        self.timeout_ms = timeout_ms
        self._channels = tuple(channels)
        self._selector = selector
        self._metrics = metrics
        self._target_rows = target_rows
        self._pending = [_Pending() for _ in channels]
        self._any_pending = False
        self._turn = -1
        self._lock = threading.Lock()
        self._failure: BaseException | None = None
        self._maybe_full: set[LocalChannel] = set()

    def emit(self, batch: ChangelogBatch) -> None:
        """Deal out a batch; its watermarks reach every channel."""
        self._check()
        parts = self._selector.select(batch)
        for part in parts:
            if part is not None:
                part.leave_states()
        track = batch.track
        with self._lock:
            for index, part in enumerate(parts):
                if part is None:
                    if track is not None and len(track):
                        self._add_track_only(index, track)
                elif part.num_rows or part.track is not None:
                    self._add(index, part)
        if self._maybe_full:
            self._await_room()

    def broadcast(self, element: Element) -> None:
        """Time and control elements: behind everything that was emitted, on every channel."""
        self._check()
        with self._lock:
            for index, channel in enumerate(self._channels):
                self._flush(index)
                channel.put(element)
        if isinstance(element, CheckpointBarrier) and element.unaligned_after_ms is not None:
            for channel in self._channels:
                channel.announce(element)

    def send_in_turn(self, element: Element) -> None:
        """An element for one receiver, behind what was emitted for it; the next one goes to the next receiver."""
        self._check()
        with self._lock:
            self._turn = (self._turn + 1) % len(self._channels)
            self._flush(self._turn)
            self._channels[self._turn].put(element)

    def end(self) -> None:
        """No more elements."""
        self.broadcast(END_OF_INPUT)

    def flush_all(self) -> None:
        """Hand over everything that waits (task thread or flusher)."""
        if self._any_pending:
            with self._lock:
                for index in range(len(self._channels)):
                    self._flush(index)
                self._any_pending = False

    def on_stop(self, listener: Callable[[], None]) -> None:
        """Run ``listener`` in the task's thread whenever a receiver wants no more."""
        for channel in self._channels:
            channel.on_stop = listener

    def wants_more(self) -> bool:
        """Whether any receiver still takes rows."""
        return not all(channel.stopped for channel in self._channels)

    def fail(self, error: BaseException) -> None:
        """The flusher failed: the next ``emit`` raises it in the task."""
        self._failure = error

    def blocked(self) -> bool:
        """Whether the producer should take no further input now."""
        if not self._maybe_full:
            return False
        for channel in tuple(self._maybe_full):
            if channel.full():
                return True
            self._maybe_full.discard(channel)
        return False

    def backlog_bytes(self) -> int:
        """Bytes that wait at the receivers."""
        return sum(channel.backlog_bytes for channel in self._channels)

    def _await_room(self) -> None:
        """In the middle of an input only the hard limit blocks."""
        for channel in tuple(self._maybe_full):
            if channel.overfull():
                self._metrics.back_pressured.begin()
                channel.await_room()
                self._metrics.back_pressured.end()

    def _check(self) -> None:
        if self._failure is not None:
            raise self._failure

    def _add(self, index: int, part: ChangelogBatch) -> None:
        pending = self._pending[index]
        if self.timeout_ms == 0 or 2 * part.num_rows >= self._target_rows:
            self._flush(index)
            self._put(index, part)
            return
        pending.batches.append(part)
        pending.rows += part.num_rows
        if pending.rows >= self._target_rows:
            self._flush(index)
        else:
            self._any_pending = True

    def _add_track_only(self, index: int, track: WatermarkTrack) -> None:
        """No rows for this channel, but the time: only the last watermark matters there."""
        pending = self._pending[index]
        if pending.batches and self.timeout_ms != 0:
            # Behind the waiting rows, as the end of the last of them.
            last = pending.batches[-1]
            pending.batches[-1] = last.with_track(_with_end(last, track.last_ms))
            return
        self._flush(index)
        self._channels[index].put(Watermark(track.last_ms))

    def _flush(self, index: int) -> None:
        pending = self._pending[index]
        if pending.batches:
            batches, pending.batches, pending.rows = pending.batches, [], 0
            for batch in concat_batches(batches):
                self._put(index, batch)

    def _put(self, index: int, batch: ChangelogBatch) -> None:
        channel = self._channels[index]
        size_bytes = referenced_bytes(batch)
        self._metrics.buffers_out += 1
        self._metrics.bytes_out += size_bytes
        channel.put(batch, size_bytes)
        if channel.backlog_bytes >= channel.capacity_bytes:
            self._maybe_full.add(channel)


def _with_end(batch: ChangelogBatch, watermark_ms: int) -> WatermarkTrack:
    old = batch.track
    if old is None:
        return WatermarkTrack(np.array([batch.num_rows], np.int32), np.array([watermark_ms], np.int64))
    if watermark_ms <= old.last_ms:
        return old
    if int(old.offsets[-1]) == batch.num_rows:
        levels = old.wm_ms.copy()
        levels[-1] = watermark_ms
        return WatermarkTrack(old.offsets, levels)
    return WatermarkTrack(
        np.append(old.offsets, np.int32(batch.num_rows)).astype(np.int32), np.append(old.wm_ms, np.int64(watermark_ms))
    )


def _periodic(writers: Sequence[RecordWriter]) -> list[RecordWriter]:
    return [writer for writer in writers if writer.timeout_ms > 0]


class OutputFlusher:
    """One thread for the writers of a job that flush on a period. A failure is handed to the writer it struck."""

    def __init__(self, writers: Sequence[RecordWriter], wait: Callable[[float], bool] | None = None) -> None:
        self._writers = _periodic(writers)
        self._stop = threading.Event()
        self._wait = wait or self._stop.wait
        self._thread = threading.Thread(target=self._run, name="flowsql-output-flusher", daemon=True)

    def exchange(self, old: Sequence[RecordWriter], new: Sequence[RecordWriter]) -> None:
        """Flush new writers instead of old ones (any thread, one at a time)."""
        self._writers = [writer for writer in self._writers if writer not in old] + _periodic(new)

    def start(self) -> None:
        """Begin, if any writer flushes on a period."""
        if self._writers:
            self._thread.start()

    def stop(self) -> None:
        """End the thread."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        tick_ms = min(writer.timeout_ms for writer in self._writers)
        elapsed_ms = 0
        while not self._wait(tick_ms / 1000):
            elapsed_ms += tick_ms
            for writer in self._writers:
                if elapsed_ms // writer.timeout_ms != (elapsed_ms - tick_ms) // writer.timeout_ms:
                    self.flush(writer)

    @staticmethod
    def flush(writer: RecordWriter) -> None:
        """One writer; its task hears of a failure at its next emit."""
        try:
            writer.flush_all()
        except Exception as error:
            writer.fail(error)


class RecordWriterOutput:
    """End of a chain: rows and time go through a writer."""

    __slots__ = ("_writer",)

    def __init__(self, writer: RecordWriter) -> None:
        self._writer = writer

    def collect(self, batch: ChangelogBatch) -> None:
        """Deal out."""
        self._writer.emit(batch)

    def emit_watermark(self, watermark: Watermark) -> None:
        """To every channel, in order."""
        self._writer.broadcast(watermark)

    def emit_watermark_status(self, status: WatermarkStatus) -> None:
        """To every channel, in order."""
        self._writer.broadcast(status)

    def emit_latency_marker(self, marker: LatencyMarker) -> None:
        """To one channel, each in turn, in order with its rows."""
        self._writer.send_in_turn(marker)

    def end(self) -> None:
        """No more elements on any channel."""
        self._writer.end()

    def wants_more(self) -> bool:
        """Whether any receiver still takes rows."""
        return self._writer.wants_more()
