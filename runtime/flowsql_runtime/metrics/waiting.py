"""How long a thread has been waiting, readable while it waits."""

from __future__ import annotations

from time import perf_counter_ns


class WaitClock:
    """The sum of a thread's waits. The thread begins and ends them, anybody reads.

    Both numbers change in one assignment, so that a reader never counts a wait twice or not at all.
    """

    __slots__ = ("_state",)

    def __init__(self) -> None:
        #: What earlier waits took, and when the one under way began; 0: none is.
        self._state = (0, 0)

    def begin(self) -> None:
        """A wait begins."""
        self._state = (self._state[0], perf_counter_ns())

    def end(self) -> None:
        """It ends."""
        passed_ns, since_ns = self._state
        self._state = (passed_ns + perf_counter_ns() - since_ns, 0)

    def until_ns(self, now_ns: int) -> int:
        """All waits up to ``now_ns`` (``perf_counter_ns``), the one under way included."""
        passed_ns, since_ns = self._state
        return passed_ns + (max(0, now_ns - since_ns) if since_ns else 0)
