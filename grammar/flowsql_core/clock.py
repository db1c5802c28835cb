"""The clock that operators see. Injected, so that a test runs a day in milliseconds."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol


class Clock(Protocol):
    """Processing time."""

    def now_ms(self) -> int:
        """Epoch milliseconds, UTC."""
        ...


class SystemClock:
    """The machine's clock."""

    def now_ms(self) -> int:
        """Epoch milliseconds, UTC."""
        return time.time_ns() // 1_000_000


class ManualClock:
    """A clock that stands until a test moves it."""

    def __init__(self, now_ms: int = 0) -> None:
        self._now_ms = now_ms
        self._listeners: list[Callable[[], None]] = []

    def now_ms(self) -> int:
        """Epoch milliseconds, UTC."""
        return self._now_ms

    def on_advance(self, listener: Callable[[], None]) -> None:
        """Call ``listener`` after each move, so that what waits for a time looks again."""
        self._listeners.append(listener)

    def advance(self, by_ms: int) -> None:
        """Move forward (or back: real clocks do)."""
        self._now_ms += by_ms
        for listener in tuple(self._listeners):
            listener()
