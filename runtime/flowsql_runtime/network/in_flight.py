"""Elements that an unaligned barrier overtook: noted while they are still before it, saved with the snapshot, put back.

An element is on its way from a channel to the task's operators. What stands in the queue before the barrier is noted
at once; on a channel whose barrier is not in the queue yet, elements are noted as they leave the queue, until the
barrier is there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from flowsql_core.batch import ChangelogBatch
from flowsql_core.element import CheckpointBarrier, EndOfInput, Watermark, WatermarkStatus
from flowsql_runtime.network.channel import Element, LocalChannel, Spilled
from flowsql_runtime.time.watermarks import GateLevels


@dataclass(frozen=True, slots=True)
class ChannelElement:
    """An element with its way: input and channel (the producer's subtask) of the consuming task."""

    input_index: int
    channel: int
    element: ChangelogBatch | Watermark | WatermarkStatus


@dataclass(frozen=True, slots=True)
class InFlight:
    """What was on its way to one task, by channel in order, and where the watermarks of its channels stood."""

    gates: tuple[GateLevels, ...]
    elements: Sequence[ChannelElement] = field(default_factory=tuple)


class InFlightRecorder:
    """Notes what one barrier overtakes on the way into one task. Task thread only."""

    def __init__(
        self, barrier: CheckpointBarrier, before: Iterable[LocalChannel], gates: tuple[GateLevels, ...]
    ) -> None:
        self.barrier = barrier
        self._gates = gates
        #: Channels whose barrier has not been seen.
        self._open = set(before)
        self._elements: list[ChannelElement] = []

    @property
    def complete(self) -> bool:
        """Whether nothing more can be overtaken."""
        return not self._open

    def look_through(self, entries: Iterable[tuple[LocalChannel, Element | Spilled, int]]) -> None:
        """Note what waits before the barrier on channels where it stands in the queue by now."""
        entries = list(entries)
        number = self.barrier.checkpoint_id
        here = {
            channel
            for channel, element, _ in entries
            if isinstance(element, CheckpointBarrier) and element.checkpoint_id == number
        }
        for channel, element, _ in entries:
            if channel not in here or channel not in self._open:
                continue
            if isinstance(element, CheckpointBarrier) and element.checkpoint_id == number:
                self._open.discard(channel)
            else:
                self._note(channel, element)

    def taken(self, channel: LocalChannel, element: Element) -> None:
        """An element leaves the queue for the operators."""
        if channel not in self._open:
            return
        if isinstance(element, EndOfInput) or (
            isinstance(element, CheckpointBarrier) and element.checkpoint_id >= self.barrier.checkpoint_id
        ):
            self._open.discard(channel)
        else:
            self._note(channel, element)

    def found(self) -> InFlight:
        """Everything, once complete."""
        return InFlight(self._gates, tuple(self._elements))

    def _note(self, channel: LocalChannel, element: Element | Spilled) -> None:
        if isinstance(element, ChangelogBatch | Watermark | WatermarkStatus):
            self._elements.append(ChannelElement(channel.input_index, channel.channel_index, element))
