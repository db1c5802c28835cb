"""The clock that operators see. Injected, so that a test runs a day in milliseconds."""

from __future__ import annotations

import time
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

    def now_ms(self) -> int:
        """Epoch milliseconds, UTC."""
        return self._now_ms

    def advance(self, by_ms: int) -> None:
        """Move forward (or back: real clocks do)."""
        self._now_ms += by_ms
