"""The reading end of an exchange: the gate merges channels of one input into one stream with one watermark."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from flowsql_core.batch import ChangelogBatch
from flowsql_core.element import CheckpointBarrier, EndOfInput, LatencyMarker, Watermark, WatermarkStatus
from flowsql_core.errors import InternalError
from flowsql_runtime.metrics.registry import TaskMetrics
from flowsql_runtime.network.alignment import BarrierAligner
from flowsql_runtime.network.channel import ConsumerQueue, Element, LocalChannel, Spilled
from flowsql_runtime.network.in_flight import InFlight, InFlightRecorder
from flowsql_runtime.time.watermarks import WatermarkMerger


class InputGate:
    """One input of a task: as many channels as the producer has subtasks."""

    __slots__ = ("_open", "channels", "index", "merger")

    def __init__(self, index: int, channels: Sequence[LocalChannel]) -> None:
        self.index = index
        self.channels = tuple(channels)
        self.merger = WatermarkMerger(len(self.channels))
        self._open = len(self.channels)

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
        raise InternalError(f"unknown element {element!r}")


class InputProcessor:
    """All gates of a task, read in the order of arrival; barriers are aligned over all of them.

    Args:
        exactly_once: whether channels wait for the barriers of the others.
    """

    __slots__ = ("_aligner", "_gates", "_metrics", "_queue", "_recorder", "_waiting")

    def __init__(
        self, queue: ConsumerQueue, gates: Sequence[InputGate], metrics: TaskMetrics, exactly_once: bool = True
    ) -> None:
        self._queue = queue
        self._gates = tuple(gates)
        self._metrics = metrics
        self._aligner = BarrierAligner((channel for gate in gates for channel in gate.channels), exactly_once)
        #: What arrived on blocked channels, in order. It still counts as backlog, so that producers feel it.
        self._waiting: list[tuple[LocalChannel, Element | Spilled, int]] = []
        self._recorder: InFlightRecorder | None = None

    def next(self) -> tuple[int, tuple[Element, ...]] | None:
        """``(input index, elements)`` of the oldest arrival, or None when nothing waits. Task thread."""
        entries, blocked = self._queue.entries, self._aligner.blocked
        while entries:
            entry = entries.popleft()
            channel, waiting, size_bytes = entry
            if channel in blocked:
                self._waiting.append(entry)
                continue
            element = channel.take(waiting, size_bytes)
            if size_bytes:
                self._metrics.buffers_in += 1
                self._metrics.bytes_in += size_bytes
            if self._recorder is not None:
                self._recorder.taken(channel, element)
            if isinstance(element, CheckpointBarrier):
                whole = self._aligner.arrived(channel, element)
                self._resume()
                return channel.input_index, () if whole is None else (whole,)
            found = self._gates[channel.input_index].accept(channel.channel_index, element)
            if isinstance(element, EndOfInput):
                whole = self._aligner.ended(channel)
                if whole is not None:
                    self._resume()
                    found = (*found, whole)
            return channel.input_index, found
        return None

    def waiting(self, most_rows: int) -> tuple[dict[int, list[ChangelogBatch]], int]:
        """Batches that come next, by input, of about so many rows; and how many elements they stand among."""
        found: dict[int, list[ChangelogBatch]] = {}
        rows = elements = 0
        for channel, element, _ in self._queue.entries.copy():
            if rows >= most_rows:
                break
            elements += 1
            if isinstance(element, ChangelogBatch) and channel not in self._aligner.blocked:
                found.setdefault(channel.input_index, []).append(element)
                rows += element.num_rows
        return found, elements

    # -- unaligned checkpoints

    def on_announced(self, listener: Callable[[LocalChannel, CheckpointBarrier], None]) -> None:
        """Run ``listener`` in the task's thread when a barrier is announced."""
        self._queue.on_announced = listener

    def announced(self, barrier: CheckpointBarrier) -> None:
        """A barrier stands in the queue, maybe behind many elements."""
        recorder = self._recorder
        if recorder is not None and recorder.barrier.checkpoint_id == barrier.checkpoint_id:
            recorder.look_through(self._queue.entries.copy())
        else:
            self._aligner.announced(barrier)

    @property
    def due_ms(self) -> int | None:
        """When :meth:`overtake` is due, epoch ms."""
        return self._aligner.due_ms

    def overtake(self) -> CheckpointBarrier:
        """Begin to note what the announced barrier overtakes; the barrier."""
        barrier, before = self._aligner.overtake()
        self._resume()
        levels = tuple(gate.merger.levels() for gate in self._gates)
        self._recorder = InFlightRecorder(barrier, before, levels)
        self._recorder.look_through(self._queue.entries.copy())
        return barrier

    def recorded(self) -> InFlight | None:
        """What the last barrier overtook, once nothing more can be; then it is forgotten here."""
        recorder = self._recorder
        if recorder is None or not recorder.complete:
            return None
        self._recorder = None
        return recorder.found()

    def put_back(self, in_flight: InFlight) -> None:
        """What was on its way when the snapshot was taken comes before everything else. Before the first element."""
        for gate, levels in zip(self._gates, in_flight.gates, strict=False):
            if len(levels.levels_ms) == len(gate.channels):
                gate.merger.restore(levels)
        found: list[tuple[LocalChannel, Element | Spilled, int]] = []
        for one in reversed(in_flight.elements):
            channels = self._gates[one.input_index].channels
            found.append((channels[one.channel % len(channels)], one.element, 0))
        self._queue.entries.extendleft(found)

    # -- control

    def give_up(self, checkpoint_id: int) -> None:
        """A checkpoint was aborted: its blocked channels go on."""
        self._aligner.give_up(checkpoint_id)
        if self._recorder is not None and self._recorder.barrier.checkpoint_id <= checkpoint_id:
            self._recorder = None
        self._resume()

    def stop(self) -> None:
        """Tell all producers that nothing more is wanted, and let go what waits."""
        for gate in self._gates:
            for channel in gate.channels:
                channel.stop()
        self._queue.entries.clear()
        self._waiting.clear()

    def _resume(self) -> None:
        """Where channels are free again, what waited is the oldest: it arrived before all that is still in the queue.

        What channels that are still blocked sent goes back to waiting when it is met again.
        """
        blocked = self._aligner.blocked
        if any(channel not in blocked for channel, _, _ in self._waiting):
            self._queue.entries.extendleft(reversed(self._waiting))
            self._waiting.clear()
