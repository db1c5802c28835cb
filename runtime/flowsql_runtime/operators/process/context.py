"""What a process table function sees of its call while it runs."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any, Final

from flowsql_core.element import MIN_WATERMARK
from flowsql_core.errors import ExecutionError
from flowsql_core.process_function import Moment, OnTimerContext, TableSemantics, TimeContext
from flowsql_core.row import ChangelogMode
from flowsql_core.types.logical import LogicalType, TimestampLtzType
from flowsql_runtime.operators.process.timers import PartitionTimers
from flowsql_runtime.python.values_in import tzinfo_of

_EPOCH: Final = datetime.datetime(1970, 1, 1)
_LAST_MS: Final = (datetime.datetime.max - _EPOCH) // datetime.timedelta(milliseconds=1)
_FIRST_MS: Final = (datetime.datetime.min - _EPOCH) // datetime.timedelta(milliseconds=1)


class Moments:
    """Milliseconds of a time attribute as functions see them, and back. ``zone``: of TIMESTAMP_LTZ."""

    def __init__(self, type_: LogicalType | None, zone: str) -> None:
        self._zone = tzinfo_of(zone) if isinstance(type_, TimestampLtzType) else None

    def shown(self, time_ms: int | None, kind: type) -> Any:
        """A moment as datetime or int."""
        if time_ms is None or kind is int:
            return time_ms
        # The watermark behind all rows is later than any datetime.
        moment = _EPOCH + datetime.timedelta(milliseconds=min(max(time_ms, _FIRST_MS), _LAST_MS))
        if self._zone is None:
            return moment
        try:
            return moment.replace(tzinfo=datetime.UTC).astimezone(self._zone)
        except OverflowError:
            return moment.replace(tzinfo=datetime.UTC)

    def milliseconds(self, moment: Moment) -> int:
        """What a function says, as milliseconds.

        Raises:
            ExecutionError: no moment, or one of the other kind.
        """
        if isinstance(moment, int) and not isinstance(moment, bool):
            return moment
        if not isinstance(moment, datetime.datetime):
            raise _wrong(f"A timer waits for a datetime or for milliseconds, not {moment!r}.")
        if moment.tzinfo is not None:
            if self._zone is None:
                raise _wrong(f"The time {moment} has a zone, but times here are of TIMESTAMP, without one.")
            moment = moment.astimezone(datetime.UTC).replace(tzinfo=None)
        elif self._zone is not None:
            moment = moment.replace(tzinfo=self._zone).astimezone(datetime.UTC).replace(tzinfo=None)
        return (moment - _EPOCH) // datetime.timedelta(milliseconds=1)


def _wrong(message: str) -> ExecutionError:
    return ExecutionError("process-timer", message)


class CallContext(OnTimerContext):
    """One for all calls of an operator: it says which partition, row or timer is at hand.

    ``slot`` -1: no partition. ``cleared``: state entries to forget when the function has returned.
    """

    def __init__(
        self,
        semantics: Mapping[str, TableSemantics],
        states: tuple[str, ...],
        timers: PartitionTimers | None,
        moments: Moments,
        changelog_mode: ChangelogMode,
    ) -> None:
        self._semantics = semantics
        self._states = states
        self._moments = moments
        self._changelog_mode = changelog_mode
        self._contexts: dict[type, CallTime] = {}
        self.timers = timers
        self.slot = -1
        self.time_ms: int | None = None
        self.watermark_ms = MIN_WATERMARK
        self.table_watermark_ms = MIN_WATERMARK
        self.timer: str | None = None
        self.in_timer = False
        self.cleared: list[str] = []

    def time_context(self, kind: type = datetime.datetime) -> TimeContext:
        """Time and timers, in moments of a kind."""
        found = self._contexts.get(kind)
        if found is None:
            if kind not in (datetime.datetime, int):
                raise _wrong(f"time_context() takes datetime or int (milliseconds), not {kind!r}.")
            found = self._contexts[kind] = CallTime(self, self._moments, kind)
        return found

    def table_semantics_for(self, argument: str) -> TableSemantics:
        """What the table of an argument is."""
        if argument not in self._semantics:
            raise ExecutionError(
                "process-argument",
                f"There is no table argument '{argument}'. There are: {', '.join(self._semantics) or 'none'}.",
            )
        return self._semantics[argument]

    def clear_state(self, name: str) -> None:
        """Forget a state entry afterwards."""
        if name not in self._states:
            raise ExecutionError(
                "process-state",
                f"There is no state entry '{name}'. State entries are: {', '.join(self._states) or 'none'}.",
            )
        self.cleared.append(name)

    def clear_all_state(self) -> None:
        """Forget all state entries afterwards."""
        self.cleared.extend(self._states)

    def clear_all_timers(self) -> None:
        """Forget all timers."""
        if self.timers is not None:
            self.timers.clear_all(self.slot)

    def clear_all(self) -> None:
        """Forget state and timers."""
        self.clear_all_state()
        self.clear_all_timers()

    def get_changelog_mode(self) -> ChangelogMode:
        """What may be emitted."""
        return self._changelog_mode

    def current_timer(self) -> str | None:
        """The name of the timer that fires."""
        if not self.in_timer:
            raise ExecutionError("process-timer", "current_timer() is known in on_timer() only.")
        return self.timer


class CallTime(TimeContext):
    """Times and timers of what is at hand, as datetime or int."""

    def __init__(self, call: CallContext, moments: Moments, kind: type) -> None:
        self._call = call
        self._moments = moments
        self._kind = kind

    def _shown(self, time_ms: int | None) -> Any:
        return self._moments.shown(None if time_ms == MIN_WATERMARK else time_ms, self._kind)

    def time(self) -> Any:
        """Of the row or timer."""
        return self._shown(self._call.time_ms)

    def current_watermark(self) -> Any:
        """Of the subtask."""
        return self._shown(self._call.watermark_ms)

    def table_watermark(self) -> Any:
        """Of the row's table."""
        return None if self._call.in_timer else self._shown(self._call.table_watermark_ms)

    def _timers(self) -> PartitionTimers:
        if self._call.timers is None:
            raise _wrong("Timers need on_timer() beside eval(), and a table with set semantics.")
        return self._call.timers

    def register_on_time(self, name_or_time: str | Moment, time: Moment | None = None) -> None:
        """Wait."""
        timers = self._timers()
        if isinstance(name_or_time, str):
            if time is None:
                raise _wrong(f"The timer '{name_or_time}' needs a time: register_on_time('{name_or_time}', time).")
            timers.register_named(self._call.slot, name_or_time, self._moments.milliseconds(time))
        else:
            timers.register(self._call.slot, self._moments.milliseconds(name_or_time))

    def clear_timer(self, name_or_time: str | Moment) -> None:
        """Forget one."""
        timers = self._timers()
        if isinstance(name_or_time, str):
            timers.clear_named(self._call.slot, name_or_time)
        else:
            timers.clear(self._call.slot, self._moments.milliseconds(name_or_time))

    def clear_all_timers(self) -> None:
        """Forget all."""
        self._timers().clear_all(self._call.slot)
