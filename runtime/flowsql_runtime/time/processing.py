"""Processing time for tasks: how long to sleep until the injected clock reaches a timer, and who wakes on a jump."""

from __future__ import annotations

from collections.abc import Callable

from flowsql_core.clock import Clock, ManualClock

#: Longest sleep before the clock is looked at again: real clocks step.
LONGEST_SLEEP_S = 10.0


class ProcessingTime:
    """The clock of a job, as its tasks wait on it.

    With the machine's clock a task sleeps until its next timer; a :class:`ManualClock` wakes the tasks when it moves.
    """

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self._manual = isinstance(clock, ManualClock)

    def seconds_until(self, due_ms: int | None) -> float | None:
        """How long a task may sleep; None: until somebody wakes it."""
        if due_ms is None or self._manual:
            return None
        return min(LONGEST_SLEEP_S, max(0.0, (due_ms - self.clock.now_ms()) / 1000))

    def on_jump(self, wake: Callable[[], None]) -> None:
        """Call ``wake`` whenever a manual clock moves."""
        if isinstance(self.clock, ManualClock):
            self.clock.on_advance(wake)
