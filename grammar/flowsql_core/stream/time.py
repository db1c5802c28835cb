"""``Time`` and ``Duration``: spans as programs write them; inside everything is whole milliseconds."""

from __future__ import annotations

from datetime import timedelta
from typing import TypeAlias


class Duration:
    """A span of time with nanoseconds."""

    __slots__ = ("_nanos",)

    def __init__(self, nanos: int) -> None:
        self._nanos = nanos

    @staticmethod
    def of_days(days: int) -> Duration:
        """Days of 24 hours."""
        return Duration(days * 86_400_000_000_000)

    @staticmethod
    def of_hours(hours: int) -> Duration:
        """Hours."""
        return Duration(hours * 3_600_000_000_000)

    @staticmethod
    def of_minutes(minutes: int) -> Duration:
        """Minutes."""
        return Duration(minutes * 60_000_000_000)

    @staticmethod
    def of_seconds(seconds: int) -> Duration:
        """Seconds."""
        return Duration(seconds * 1_000_000_000)

    @staticmethod
    def of_millis(millis: int) -> Duration:
        """Milliseconds."""
        return Duration(millis * 1_000_000)

    @staticmethod
    def of_nanos(nanos: int) -> Duration:
        """Nanoseconds."""
        return Duration(nanos)

    def to_milliseconds(self) -> int:
        """Whole milliseconds, rounded down."""
        return self._nanos // 1_000_000

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Duration) and self._nanos == other._nanos

    def __hash__(self) -> int:
        return hash(self._nanos)

    def __repr__(self) -> str:
        return f"Duration({self._nanos} ns)"


class Time:
    """A span of time in milliseconds: sizes and gaps of windows."""

    __slots__ = ("_milliseconds",)

    def __init__(self, milliseconds: int) -> None:
        self._milliseconds = milliseconds

    def to_milliseconds(self) -> int:
        """Whole milliseconds."""
        return self._milliseconds

    @staticmethod
    def milliseconds(milliseconds: int) -> Time:
        """Milliseconds."""
        return Time(milliseconds)

    @staticmethod
    def seconds(seconds: int) -> Time:
        """Seconds."""
        return Time(seconds * 1_000)

    @staticmethod
    def minutes(minutes: int) -> Time:
        """Minutes."""
        return Time(minutes * 60_000)

    @staticmethod
    def hours(hours: int) -> Time:
        """Hours."""
        return Time(hours * 3_600_000)

    @staticmethod
    def days(days: int) -> Time:
        """Days of 24 hours."""
        return Time(days * 86_400_000)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Time) and self._milliseconds == other._milliseconds

    def __hash__(self) -> int:
        return hash(self._milliseconds)

    def __str__(self) -> str:
        return f"{self._milliseconds} ms"

    __repr__ = __str__


Span: TypeAlias = Time | Duration | timedelta


def span_ms(span: Span) -> int:
    """Whole milliseconds of a span.

    Raises:
        TypeError: for anything else, a bare number too: its unit would be a guess.
    """
    if isinstance(span, timedelta):
        return span // timedelta(milliseconds=1)
    if isinstance(span, Time | Duration):
        return span.to_milliseconds()
    raise TypeError(f"a span of time is a Time, a Duration or a timedelta, not {span!r}")
