"""Slices of processing time for loops over rows: when to hand on what was made, and how many rows to take at once.

A row-wise function may take long, and a batch of its rows much longer. So that timers, watermarks and receivers wait
for one row and not for a batch, a loop tests after each row whether its slice is over.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Final

from flowsql_core.clock import Clock, ManualClock, SystemClock

#: Flink's default of ``execution.buffer-timeout.interval``; also where rows wait for full buffers: timers do not.
DEFAULT_SLICE_MS: Final = 100
#: The shortest slice: a timeout of 0 means at once, a slice for each row would cost more than the row.
SHORTEST_SLICE_MS: Final = 1
#: The most rows of one piece, for loops over Python objects.
MOST_ROWS: Final = 1_024


class TimeSlice:
    """The slice of one operator in a task. ``over`` and ``due`` fill from another thread, the task empties them.

    A loop writes ``if over: ...next()`` with ``over`` as a local name: nothing is tested faster than a list.

    ``over``: not empty once the slice has ended; the loop calls :meth:`next` between two rows.
    ``due``: the same for rows that gather while one element is worked on; who hands them on calls ``due.clear()``.
    """

    __slots__ = ("_clock", "_let_time_pass", "_running", "due", "length_ms", "over")

    def __init__(self, clock: Clock | None = None, let_time_pass: Callable[[], None] | None = None) -> None:
        self._clock = clock or SystemClock()
        self._let_time_pass = let_time_pass
        self._running = False
        self.length_ms = DEFAULT_SLICE_MS
        self.over: list[None] = []
        self.due: list[None] = []

    def start(self, length_ms: int) -> None:
        """Slices of ``length_ms`` from now on; a :class:`ManualClock` ends one whenever it moves."""
        self.length_ms = max(SHORTEST_SLICE_MS, length_ms)
        if self._running or self._let_time_pass is None:
            return
        self._running = True
        if isinstance(self._clock, ManualClock):
            self._clock.on_advance(self.end)
        else:
            _TICKER.add(self)

    def stop(self) -> None:
        """No further slices."""
        if self._running:
            self._running = False
            _TICKER.remove(self)

    def end(self) -> None:
        """The slice is over (any thread)."""
        if not self.over:
            self.over.append(None)
        if not self.due:
            self.due.append(None)

    def next(self) -> None:
        """Let timers fire, of this operator and of those behind it in the task; the next slice begins."""
        self.over.clear()
        if self._let_time_pass is not None:
            self._let_time_pass()


class Pace:
    """How many rows may go on together, so that they and all that follows in the task take no longer than a slice.

    It grows while rows are quick and shrinks at once when they are not: for what stands before a slow function in its
    task, time passes between two pieces. The first piece is of one row: nobody knows yet how slow rows are.
    """

    __slots__ = ("_clock", "_most_rows", "_slice", "rows")

    def __init__(self, clock: Clock, time_slice: TimeSlice, most_rows: int) -> None:
        self._clock = clock
        self._slice = time_slice
        self._most_rows = most_rows
        self.rows = 1

    def begin(self) -> int:
        """When a piece begins."""
        return self._clock.now_ms()

    def done(self, rows: int, began_ms: int) -> None:
        """A piece that began then was of so many rows, and they have left."""
        took_ms = self._clock.now_ms() - began_ms
        slice_ms = self._slice.length_ms
        if took_ms > slice_ms:
            self.rows = max(1, rows * slice_ms // (2 * took_ms))
        elif 4 * took_ms < slice_ms and self.rows <= rows < self._most_rows:
            self.rows = min(2 * rows, self._most_rows)


class _Ticker:
    """One thread of the process ends the slices of all running tasks; it lives while there are any."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        #: When each slice ends next, in monotonic seconds.
        self._slices: dict[TimeSlice, float] = {}
        self._wake = threading.Event()
        self._thread: threading.Thread | None = None

    def add(self, time_slice: TimeSlice) -> None:
        with self._lock:
            self._slices[time_slice] = time.monotonic() + time_slice.length_ms / 1000
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="flowsql-time-slices", daemon=True)
                self._thread.start()
            self._wake.set()

    def remove(self, time_slice: TimeSlice) -> None:
        with self._lock:
            self._slices.pop(time_slice, None)
            if not self._slices:
                self._wake.set()

    def _run(self) -> None:
        while True:
            with self._lock:
                if not self._slices:
                    self._thread = None
                    return
                self._wake.clear()
                now = time.monotonic()
                for time_slice, ends in self._slices.items():
                    if ends <= now:
                        time_slice.end()
                        self._slices[time_slice] = now + time_slice.length_ms / 1000
                seconds = min(self._slices.values()) - now
            self._wake.wait(seconds)


_TICKER: Final = _Ticker()
