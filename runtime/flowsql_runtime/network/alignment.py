"""Barriers over all channels of a task: which channels wait for the others, and which elements a barrier overtakes.

Source: Flink, ``SingleCheckpointBarrierHandler`` (exactly once, also unaligned) and ``CheckpointBarrierTracker`` (at
least once); FLIP-76 (unaligned checkpoints).
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

    __slots__ = ("_arrived", "_current", "_exactly_once", "_given_up", "_open", "blocked", "waiting_for")

    def __init__(self, channels: Iterable[LocalChannel], exactly_once: bool = True) -> None:
        self._open = set(channels)
        self._exactly_once = exactly_once
        #: Channels whose elements wait.
        self.blocked: set[LocalChannel] = set()
        #: By number, the barriers under way: the barrier, and where it has arrived. One with ``exactly_once``.
        self._arrived: dict[int, tuple[CheckpointBarrier, set[LocalChannel]]] = {}
        #: The newest barrier that was announced and may become an unaligned one.
        self.waiting_for: CheckpointBarrier | None = None
        self._current = 0
        self._given_up = 0

    def arrived(self, channel: LocalChannel, barrier: CheckpointBarrier) -> CheckpointBarrier | None:
        """A barrier came on a channel; the barrier, if it was the last one missing."""
        number = barrier.checkpoint_id
        if self._is_over(number):
            return None
        if self._exactly_once and any(known > number for known in self._arrived):
            # A newer one is under way: this one's checkpoint is lost, and its other barriers may never come.
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

    def announced(self, barrier: CheckpointBarrier) -> None:
        """A barrier is on its way that need not be waited for longer than it says."""
        newest = 0 if self.waiting_for is None else self.waiting_for.checkpoint_id
        if not self._is_over(barrier.checkpoint_id) and barrier.checkpoint_id > newest:
            self.waiting_for = barrier

    @property
    def due_ms(self) -> int | None:
        """When the announced barrier is not waited for any longer, epoch ms."""
        barrier = self.waiting_for
        if barrier is None or barrier.unaligned_after_ms is None:
            return None
        return barrier.timestamp_ms + barrier.unaligned_after_ms

    def overtake(self) -> tuple[CheckpointBarrier, set[LocalChannel]]:
        """Stop waiting for the announced barrier: it, and the channels on which elements are still before it."""
        barrier = self.waiting_for
        assert barrier is not None
        number = barrier.checkpoint_id
        _, behind = self._arrived.get(number, (barrier, set()))
        before = self._open - behind
        self._finish(number)
        return barrier, before

    def give_up(self, number: int) -> None:
        """The checkpoint was aborted: nobody waits for its barriers, those that still come mean nothing."""
        self._given_up = max(self._given_up, number)
        self._forget(number)
        if not self._arrived:
            self.blocked.clear()

    def _is_over(self, number: int) -> bool:
        return number <= self._given_up or number <= self._current

    def _whole(self, number: int) -> CheckpointBarrier | None:
        barrier, channels = self._arrived[number]
        if not self._open <= channels:
            return None
        self._finish(number)
        return barrier

    def _finish(self, number: int) -> None:
        self._current = number
        self._forget(number)
        self.blocked.clear()

    def _forget(self, number: int) -> None:
        for old in [known for known in self._arrived if known <= number]:
            del self._arrived[old]
        if self.waiting_for is not None and self.waiting_for.checkpoint_id <= number:
            self.waiting_for = None
