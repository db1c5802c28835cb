"""Aligning barriers over all channels of a task: which channels wait, and when a barrier has arrived on all.

Source: Flink, ``SingleCheckpointBarrierHandler`` (exactly once) and ``CheckpointBarrierTracker`` (at least once).
"""

from __future__ import annotations

from collections.abc import Iterable

from flowsql_core.element import CheckpointBarrier
from flowsql_runtime.network.channel import LocalChannel


class BarrierAligner:
    """Barriers of one task. Task thread only.

    A channel whose barrier arrived is blocked until the barrier is there on every channel that has not ended; with
    ``exactly_once`` False none is, and rows behind a barrier are processed before the snapshot.
    """

    __slots__ = ("_arrived", "_current", "_exactly_once", "_given_up", "_open", "blocked")

    def __init__(self, channels: Iterable[LocalChannel], exactly_once: bool = True) -> None:
        self._open = set(channels)
        self._exactly_once = exactly_once
        #: Channels whose elements wait.
        self.blocked: set[LocalChannel] = set()
        #: By number, the barriers under way: the barrier, and where it has arrived. One with ``exactly_once``.
        self._arrived: dict[int, tuple[CheckpointBarrier, set[LocalChannel]]] = {}
        self._current = 0
        self._given_up = 0

    @property
    def aligning(self) -> int | None:
        """Number of the oldest barrier that has arrived on some channels only."""
        return min(self._arrived, default=None)

    def arrived(self, channel: LocalChannel, barrier: CheckpointBarrier) -> CheckpointBarrier | None:
        """A barrier came on a channel; the barrier, if it was the last one missing."""
        number = barrier.checkpoint_id
        if number <= self._given_up or number <= self._current:
            return None
        if self._exactly_once and number not in self._arrived:
            # An older one that is still under way can never become whole: its barrier was lost with its checkpoint.
            self._arrived.clear()
            self.blocked.clear()
        _, channels = self._arrived.setdefault(number, (barrier, set()))
        channels.add(channel)
        if self._exactly_once:
            self.blocked.add(channel)
        return self._whole(number)

    def ended(self, channel: LocalChannel) -> CheckpointBarrier | None:
        """A channel has no more elements: no barrier waits for it any more; the barrier that became whole by that."""
        self._open.discard(channel)
        self.blocked.discard(channel)
        for number in sorted(self._arrived, reverse=True):
            found = self._whole(number)
            if found is not None:
                return found
        return None

    def give_up(self, number: int) -> None:
        """The checkpoint was aborted: nobody waits for its barriers, those that still come mean nothing."""
        self._given_up = max(self._given_up, number)
        for old in [known for known in self._arrived if known <= number]:
            del self._arrived[old]
        if not self._arrived:
            self.blocked.clear()

    def _whole(self, number: int) -> CheckpointBarrier | None:
        barrier, channels = self._arrived[number]
        if not self._open <= channels:
            return None
        self._current = number
        for old in [known for known in self._arrived if known <= number]:
            del self._arrived[old]
        self.blocked.clear()
        return barrier
