"""Time as functions see it: the two domains and the service that registers timers."""

from __future__ import annotations

import enum
from abc import ABC, abstractmethod


class TimeDomain(enum.Enum):
    """What a timer waits for: the watermark, or the clock."""

    EVENT_TIME = 0
    PROCESSING_TIME = 1


class TimerService(ABC):
    """Asks for the time and registers timers of the current key. All times are epoch milliseconds.

    Several timers of one key and time in one domain are one timer.
    """

    @abstractmethod
    def current_processing_time(self) -> int:
        """The clock."""

    @abstractmethod
    def current_watermark(self) -> int:
        """The watermark that stands before the current element."""

    @abstractmethod
    def register_processing_time_timer(self, timestamp: int) -> None:
        """Call ``on_timer`` when the clock reaches ``timestamp``."""

    @abstractmethod
    def register_event_time_timer(self, timestamp: int) -> None:
        """Call ``on_timer`` when the watermark reaches ``timestamp``."""

    @abstractmethod
    def delete_processing_time_timer(self, timestamp: int) -> None:
        """Forget a timer; unknown ones are ignored."""

    @abstractmethod
    def delete_event_time_timer(self, timestamp: int) -> None:
        """Forget a timer; unknown ones are ignored."""
