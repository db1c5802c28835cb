"""The reading end of an exchange: the gate merges channels of one input into one stream with one watermark."""

from __future__ import annotations

from collections.abc import Sequence

from flowsql_core.batch import ChangelogBatch
from flowsql_core.element import CheckpointBarrier, EndOfInput, LatencyMarker, Watermark, WatermarkStatus
from flowsql_core.errors import InternalError
from flowsql_runtime.metrics.registry import TaskMetrics
from flowsql_runtime.network.channel import ConsumerQueue, Element, LocalChannel
from flowsql_runtime.time.watermarks import WatermarkMerger


class InputGate:
    """One input of a task: as many channels as the producer has subtasks."""

    __slots__ = ("_open", "_without_barrier", "channels", "index", "merger")

    def __init__(self, index: int, channels: Sequence[LocalChannel]) -> None:
        self.index = index
        self.channels = tuple(channels)
        self.merger = WatermarkMerger(len(self.channels))
        self._open = len(self.channels)
        self._without_barrier = len(self.channels)

    def accept(self, channel: int, element: Element) -> tuple[Element, ...]:
        """What the task sees of one channel's element: watermarks merged, EndOfInput only after the last channel."""
        match element:
            case ChangelogBatch():
                if element.track is None:
                    return (element,)
                merged = self.merger.advance(channel, element.track)
                if merged is not element.track:
                    element = element.with_track(merged)
                if not element.num_rows:
                    return () if merged is None else (Watermark(merged.last_ms),)
                return (element,)
            case Watermark(timestamp_ms=at):
                lifted = self.merger.advance_to(channel, at)
                return () if lifted is None else (Watermark(lifted),)
            case WatermarkStatus():
                status, lifted = self.merger.set_status(channel, element)
                found: tuple[Element, ...] = () if lifted is None else (Watermark(lifted),)
                return found if status is None else (*found, status)
            case LatencyMarker():
                return (element,)
            case EndOfInput():
                self._open -= 1
                return (element,) if self._open == 0 else ()
            case CheckpointBarrier():
                # Nothing follows a stopping barrier on its channel, so aligning is counting.
                self._without_barrier -= 1
                return (element,) if self._without_barrier == 0 else ()
        raise InternalError(f"unknown element {element!r}")


class InputProcessor:
    """All gates of a task, read in the order of arrival."""

    __slots__ = ("_gates", "_metrics", "_queue")

    def __init__(self, queue: ConsumerQueue, gates: Sequence[InputGate], metrics: TaskMetrics) -> None:
        self._queue = queue
        self._gates = tuple(gates)
        self._metrics = metrics

    def next(self) -> tuple[int, tuple[Element, ...]] | None:
        """``(input index, elements)`` of the oldest arrival, or None when nothing waits. Task thread."""
        entries = self._queue.entries
        if not entries:
            return None
        channel, waiting, size_bytes = entries.popleft()
        element = channel.take(waiting, size_bytes)
        if size_bytes:
            self._metrics.buffers_in += 1
            self._metrics.bytes_in += size_bytes
        return channel.input_index, self._gates[channel.input_index].accept(channel.channel_index, element)

    def stop(self) -> None:
        """Tell all producers that nothing more is wanted, and let go what waits."""
        for gate in self._gates:
            for channel in gate.channels:
                channel.stop()
        self._queue.entries.clear()
