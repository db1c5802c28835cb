"""Alarms of one operator by the clock: what has the task wake it.

They are not saved: an operator sets them anew when it opens. What an operator waits for on behalf of a key is state, a
store of its backend (``ctx.state.timers``, or ``stream/timers.py`` for user functions), which needs at most one alarm.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Int64s = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class DueTimers:
    """Alarms that fired: int64 (n,) each, by time, equal times by slot."""

    times_ms: Int64s
    slots: Int64s


class TimerService:
    """Alarms (time, slot), each pair once; a slot is a number of the operator's own. Task thread only."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, int]] = []
        self._live: set[tuple[int, int]] = set()

    def register_processing_timers(self, times_ms: Int64s, slots: Int64s) -> None:
        """Fire when the clock reaches each time; int64 (n,) each; duplicates count once."""
        for alarm in zip(times_ms.tolist(), slots.tolist(), strict=True):
            if alarm not in self._live:
                self._live.add(alarm)
                heapq.heappush(self._heap, alarm)

    def delete_processing_timers(self, times_ms: Int64s, slots: Int64s) -> None:
        """Forget alarms; unknown ones are ignored."""
        self._live.difference_update(zip(times_ms.tolist(), slots.tolist(), strict=True))
        if len(self._heap) > 2 * len(self._live) + 16:
            self._heap = sorted(self._live)
        else:
            self._skip_deleted()

    def _skip_deleted(self) -> None:
        while self._heap and self._heap[0] not in self._live:
            heapq.heappop(self._heap)

    def pop_processing_timers(self, now_ms: int) -> DueTimers | None:
        """Take the alarms with time <= ``now_ms``."""
        due = []
        while self._heap and self._heap[0][0] <= now_ms:
            alarm = heapq.heappop(self._heap)
            if alarm in self._live:
                self._live.remove(alarm)
                due.append(alarm)
        self._skip_deleted()
        if not due:
            return None
        pairs = np.array(due, np.int64)
        return DueTimers(pairs[:, 0].copy(), pairs[:, 1].copy())

    @property
    def next_processing_ms(self) -> int | None:
        """The time of the next alarm; None without alarms."""
        return self._heap[0][0] if self._heap else None
