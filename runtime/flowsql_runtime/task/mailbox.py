"""The mailbox: the only way into a task's thread. Callables and wake-ups of other threads meet the task's loop here."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable


class TaskCancelled(BaseException):
    """Unwinds a task whose job was cancelled or failed elsewhere; no ``Exception``, so that no function swallows it."""


class Mailbox:
    """Mails in order, and a sleep that any wake-up ends.

    A wake-up sets a flag and takes the lock only when the owner sleeps: handing a batch to a busy task costs no system
    call. The owner looks at its queues after every sleep, so a wake-up that came early is never lost.
    """

    __slots__ = ("_condition", "_mails", "_signal", "_sleeping", "cancelled")

    def __init__(self) -> None:
        self._mails: deque[Callable[[], None]] = deque()
        self._condition = threading.Condition(threading.Lock())
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
            with self._condition:
                self._condition.notify()

    def cancel(self) -> None:
        """Make the owner raise :class:`TaskCancelled` at its next look (any thread)."""
        self.cancelled = True
        self.wake()

    def sleep(self, seconds: float | None) -> None:
        """Owner: until a wake-up, at most ``seconds``; raises :class:`TaskCancelled`."""
        with self._condition:
            # Order matters: announce the sleep, then look at the flag (``wake`` does the reverse).
            self._sleeping = True
            if not self._signal:
                self._condition.wait(seconds)
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
