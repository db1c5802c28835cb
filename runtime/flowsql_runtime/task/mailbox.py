"""The mailbox: the only way into a task's thread. Callables and wake-ups of other threads meet the task's loop here."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable
from queue import Empty, SimpleQueue


class TaskCancelled(BaseException):
    """Unwinds a task whose job was cancelled or failed elsewhere; no ``Exception``, so that no function swallows it."""


class Mailbox:
    """Mails in order, and a sleep that any wake-up ends.

    A wake-up sets a flag and goes through the queue only when the owner sleeps: handing a batch to a busy task costs no
    system call. The owner looks at its queues after every sleep, so a wake-up that came early is never lost, and one
    too many does no harm. ``SimpleQueue`` because it waits in C; a Condition makes a lock for every wait.
    """

    __slots__ = ("_mails", "_signal", "_sleeping", "_wake_ups", "cancelled")

    def __init__(self) -> None:
        self._mails: deque[Callable[[], None]] = deque()
        self._wake_ups: SimpleQueue[None] = SimpleQueue()
        self._signal = False
        self._sleeping = False
        self.cancelled = False

    def submit(self, mail: Callable[[], None]) -> None:
        """Run ``mail`` in the task's thread, soon (any thread)."""
        self._mails.append(mail)
        self.wake()

    def wake(self) -> None:
        """End the owner's sleep, or its next one (any thread)."""
        self._signal = True
        if self._sleeping:
            self._sleeping = False
            self._wake_ups.put(None)

    def cancel(self) -> None:
        """Make the owner raise :class:`TaskCancelled` at its next look (any thread)."""
        self.cancelled = True
        self.wake()

    def sleep(self, seconds: float | None) -> None:
        """Owner: until a wake-up, at most ``seconds``; raises :class:`TaskCancelled`."""
        # Order matters: announce the sleep, then look at the flag (``wake`` does the reverse).
        self._sleeping = True
        if not self._signal:
            with contextlib.suppress(Empty):
                self._wake_ups.get(timeout=seconds)
        self._sleeping = False
        self._signal = False
        if self.cancelled:
            raise TaskCancelled

    def run_mails(self) -> None:
        """Owner: all mails that are there; raises :class:`TaskCancelled`."""
        while self._mails:
            self._mails.popleft()()
        if self.cancelled:
            raise TaskCancelled
