"""Timers of user functions, by (time, slot), registered and deleted one at a time: a heap for each time domain.

The store ``timers`` of state backends keeps timers as columns, which suits operators that register a batch at once.
These are its row-wise twin, over keys that are Python objects. The operator's alarm stands at the earliest timer of the
processing-time heap.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from operator import index
from typing import Any, Final

import numpy as np

from flowsql_runtime.operators.base import OperatorContext
from flowsql_runtime.state.object_store import ENTRY_BYTES, packed, unpacked

#: A heap is rebuilt when so much of it, and more than the living, was deleted.
_GARBAGE: Final = 64
_ALARM_SLOT: Final = np.zeros(1, np.int64)


class ObjectTimers:
    """Timers of one domain. A slot is a key token, or the pair of token and window; ``key`` is the user's object.

    A timer that is registered twice is one timer. Timers fire by time, equal times as they were registered.
    """

    __slots__ = ("_heap", "_live", "_max_parallelism", "_name", "_namespaced", "_sequence")

    def __init__(self, name: str, max_parallelism: int, namespaced: bool) -> None:
        self._name = name
        self._max_parallelism = max_parallelism
        self._namespaced = namespaced
        self._heap: list[tuple[int, int, Any, Any]] = []
        #: (time, slot) -> sequence number of the entry of the heap that counts.
        self._live: dict[tuple[int, Any], int] = {}
        self._sequence = 0

    @property
    def next_ms(self) -> int | None:
        """No timer is due before this; None without timers."""
        return self._heap[0][0] if self._heap else None

    @property
    def sequence(self) -> int:
        """Timers registered from now on have a higher number."""
        return self._sequence

    def register(self, time_ms: int, slot: Any, key: Any) -> None:
        """Fire at a time."""
        time_ms = index(time_ms)
        where = (time_ms, slot)
        if where not in self._live:
            self._sequence += 1
            self._live[where] = self._sequence
            heapq.heappush(self._heap, (time_ms, self._sequence, slot, key))

    def delete(self, time_ms: int, slot: Any) -> None:
        """Forget a timer; unknown ones are ignored."""
        if self._live.pop((time_ms, slot), None) is not None and len(self._heap) > 2 * len(self._live) + _GARBAGE:
            self._heap = [timer for timer in self._heap if self._counts(timer)]
            heapq.heapify(self._heap)

    def due(self, until_ms: int, registered_until: int | None = None) -> Iterator[tuple[int, Any, Any]]:
        """Take timers with time <= ``until_ms`` one by one as (time, slot, key), also those registered meanwhile.

        ``registered_until``: leave those with a higher sequence number.
        """
        left: list[tuple[int, int, Any, Any]] = []
        try:
            while self._heap and self._heap[0][0] <= until_ms:
                timer = heapq.heappop(self._heap)
                time_ms, sequence, slot, key = timer
                if self._live.get((time_ms, slot)) != sequence:
                    continue
                if registered_until is not None and sequence > registered_until:
                    left.append(timer)
                    continue
                del self._live[time_ms, slot]
                yield time_ms, slot, key
        finally:
            for timer in left:
                heapq.heappush(self._heap, timer)

    def _counts(self, timer: tuple[int, int, Any, Any]) -> bool:
        return self._live.get((timer[0], timer[2])) == timer[1]

    # -- a store of the state backend

    @property
    def nbytes(self) -> int:
        """An estimate."""
        return 2 * ENTRY_BYTES * len(self._heap)

    def save(self) -> Any:
        """A table of one row a key group; timers in the order in which they fire."""
        timers = sorted((*timer[:2], number) for number, timer in enumerate(self._heap) if self._counts(timer))
        found = (self._heap[number] for _, _, number in timers)
        pairs = ((slot[0] if self._namespaced else slot, (time_ms, slot, key)) for time_ms, _, slot, key in found)
        return packed(self._name, pairs, self._max_parallelism)

    def load(self, table: Any) -> None:
        """Register the timers of saved tables."""
        for time_ms, slot, key in unpacked(table):
            self.register(time_ms, slot, key)


class TimeKeeper:
    """The time of one operator as its functions see it: watermark, clock, and the timers of both.

    ``watermark_ms`` is the watermark before the current element; the operator moves it.
    """

    __slots__ = ("_armed_ms", "_clock", "_ctx", "event", "processing", "watermark_ms")

    def __init__(self, ctx: OperatorContext, watermark_ms: int, keyed: bool, namespaced: bool = False) -> None:
        self._ctx = ctx
        self._clock = ctx.clock
        self.watermark_ms = watermark_ms
        self._armed_ms: int | None = None
        self.event = ObjectTimers("event-time timers", ctx.max_parallelism, namespaced)
        self.processing = ObjectTimers("processing-time timers", ctx.max_parallelism, namespaced)
        if keyed:
            ctx.state.register_objects("timers.event", self.event)
            ctx.state.register_objects("timers.processing", self.processing)

    def now_ms(self) -> int:
        """The clock."""
        return self._clock.now_ms()

    def register_processing(self, time_ms: int, slot: Any, key: Any) -> None:
        """Fire when the clock reaches a time."""
        self.processing.register(time_ms, slot, key)
        if self._armed_ms is None or time_ms < self._armed_ms:
            self.arm()

    def arm(self) -> None:
        """Have the task wake this operator at the earliest processing-time timer."""
        due_ms = self.processing.next_ms
        self._armed_ms = due_ms
        if due_ms is not None:
            self._ctx.timers.register_processing_timers(np.array([due_ms], np.int64), _ALARM_SLOT)

    def due_by_clock(self) -> Iterator[tuple[int, Any, Any]]:
        """Take the processing-time timers that are due; those registered meanwhile have to wait for their own alarm."""
        now_ms = self._clock.now_ms()
        yield from self.processing.due(now_ms, self.processing.sequence)
        self.arm()
