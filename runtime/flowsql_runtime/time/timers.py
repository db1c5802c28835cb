"""Timers of one operator in two time domains, kept as columns: register, delete and fire in arrays.

A timer is (time, slot), set-like: registering it twice fires it once. A slot is what the operator's key index hands
out. Kept as a log of sorted runs: what was said last about a (time, slot) counts, runs of similar size are merged. So
a registration costs an amortised logarithm and firing reads only prefixes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flowsql_compute.eval.columns import values_and_validity
from flowsql_core.errors import InternalError
from flowsql_core.record import record

Int64s = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

EVENT_TABLE = "__event_timers"
PROCESSING_TABLE = "__processing_timers"
TIMER_TABLES = (EVENT_TABLE, PROCESSING_TABLE)
_TIME = "__time_ms"
_KEY_GROUP = "__key_group"


@dataclass(frozen=True, eq=False)
class DueTimers:
    """Timers that fired: int64 (n,) each, by time, equal times by slot."""

    times_ms: Int64s
    slots: Int64s


@record
class SlotCodec:
    """How slots are named in a snapshot, where slot numbers mean nothing.

    ``encode``: slots (n,) to Arrow columns by name, ``__key_group`` (int32) among them.
    ``decode``: those columns (an Arrow table) to slots (n,) of this subtask, inserting keys where needed.
    """

    encode: Callable[[Int64s], Mapping[str, Any]]
    decode: Callable[[Any], Int64s]


@dataclass(frozen=True, eq=False)
class _Run:
    """Sorted by (time, slot), each pair once; ``live`` False where the pair was deleted."""

    times: Int64s
    slots: Int64s
    live: Bools


class _TimerLog:
    """Timers of one domain. ``next_ms``: no timer is due before it; None without timers."""

    __slots__ = ("_runs", "next_ms")

    def __init__(self) -> None:
        self._runs: list[_Run] = []
        self.next_ms: int | None = None

    def _changed(self) -> None:
        self.next_ms = min((int(run.times[0]) for run in self._runs), default=None)

    def write(self, times: Int64s, slots: Int64s, live: bool) -> None:
        if not len(times):
            return
        times = np.asarray(times, dtype=np.int64)
        slots = np.asarray(slots, dtype=np.int64)
        self._runs.append(_last_wins(times, slots, np.full(len(times), live)))
        while len(self._runs) > 1 and len(self._runs[-2].times) <= 2 * len(self._runs[-1].times):
            newer = self._runs.pop()
            older = self._runs.pop()
            merged = _merged([older, newer])
            if not self._runs:
                merged = _only_live(merged)  # nothing older that a deletion could still hide
            if len(merged.times):
                self._runs.append(merged)
        self._changed()

    def pop(self, until_ms: int) -> DueTimers | None:
        """Take all timers with time <= ``until_ms``."""
        due: list[_Run] = []
        kept: list[_Run] = []
        for run in self._runs:
            count = int(np.searchsorted(run.times, until_ms, side="right"))
            if count:
                due.append(_Run(run.times[:count], run.slots[:count], run.live[:count]))
            if count < len(run.times):
                kept.append(_Run(run.times[count:], run.slots[count:], run.live[count:]) if count else run)
        if not due:
            return None
        self._runs = kept
        self._changed()
        fired = _only_live(due[0] if len(due) == 1 else _merged(due))
        return DueTimers(fired.times, fired.slots) if len(fired.times) else None

    def all(self) -> DueTimers:
        """All timers, none taken."""
        if not self._runs:
            return DueTimers(np.zeros(0, np.int64), np.zeros(0, np.int64))
        merged = _only_live(_merged(self._runs))
        self._runs = [merged] if len(merged.times) else []
        self._changed()
        return DueTimers(merged.times, merged.slots)


def _merged(runs: list[_Run]) -> _Run:
    return _last_wins(
        np.concatenate([run.times for run in runs]),
        np.concatenate([run.slots for run in runs]),
        np.concatenate([run.live for run in runs]),
    )


def _last_wins(times: Int64s, slots: Int64s, live: Bools) -> _Run:
    """Sort; of equal pairs the one said last stays (the sort is stable, so it is the last of its group)."""
    order = np.lexsort((slots, times))
    times, slots, live = times[order], slots[order], live[order]
    last = np.ones(len(times), dtype=np.bool_)
    last[:-1] = (times[1:] != times[:-1]) | (slots[1:] != slots[:-1])
    return _Run(times, slots, live) if last.all() else _Run(times[last], slots[last], live[last])


def _only_live(run: _Run) -> _Run:
    return run if run.live.all() else _Run(run.times[run.live], run.slots[run.live], run.live[run.live])


class TimerService:
    """Timers of one operator in one subtask. Task thread only."""

    def __init__(self) -> None:
        self._event = _TimerLog()
        self._processing = _TimerLog()
        self._codec: SlotCodec | None = None
        self._restored: dict[str, Any] = {}

    def bind_slots(self, codec: SlotCodec) -> None:
        """In ``open``, once the key index exists: makes timers part of snapshots and takes over restored ones."""
        self._codec = codec
        for name, log in ((EVENT_TABLE, self._event), (PROCESSING_TABLE, self._processing)):
            table = self._restored.pop(name, None)
            if table is not None and table.num_rows:
                times = table.column(_TIME).combine_chunks()
                log.write(values_and_validity(times)[0], codec.decode(table.drop_columns([_TIME])), live=True)

    def register_event_timers(self, times_ms: Int64s, slots: Int64s) -> None:
        """Fire when the watermark reaches each time; int64 (n,) each; duplicates count once."""
        self._event.write(times_ms, slots, live=True)

    def delete_event_timers(self, times_ms: Int64s, slots: Int64s) -> None:
        """Forget timers; unknown ones are ignored."""
        self._event.write(times_ms, slots, live=False)

    def register_processing_timers(self, times_ms: Int64s, slots: Int64s) -> None:
        """Fire when the clock reaches each time."""
        self._processing.write(times_ms, slots, live=True)

    def delete_processing_timers(self, times_ms: Int64s, slots: Int64s) -> None:
        """Forget timers; unknown ones are ignored."""
        self._processing.write(times_ms, slots, live=False)

    def pop_event_timers(self, watermark_ms: int) -> DueTimers | None:
        """Take the event timers with time <= ``watermark_ms``."""
        return self._event.pop(watermark_ms)

    def pop_processing_timers(self, now_ms: int) -> DueTimers | None:
        """Take the processing timers with time <= ``now_ms``."""
        return self._processing.pop(now_ms)

    def event_times(self) -> Int64s:
        """Distinct pending event times, rising: what ``batch.segments_at`` cuts at."""
        return np.unique(self._event.all().times_ms)

    @property
    def next_event_ms(self) -> int | None:
        """No event timer is due before this; None without timers."""
        return self._event.next_ms

    @property
    def next_processing_ms(self) -> int | None:
        """No processing timer is due before this; None without timers."""
        return self._processing.next_ms

    def snapshot(self) -> dict[str, Any]:
        """Arrow tables by state name, ``__key_group`` first; empty without a slot codec and timers."""
        tables: dict[str, Any] = {}
        for name, log in ((EVENT_TABLE, self._event), (PROCESSING_TABLE, self._processing)):
            pending = log.all()
            if self._codec is None:
                # Operators without keys (idleness, mini-batch marks) set their timers anew when they open.
                if len(pending.times_ms) and name == EVENT_TABLE:
                    raise InternalError("event timers without a slot codec cannot be part of a snapshot")
                continue
            columns = dict(self._codec.encode(pending.slots))
            groups = columns.pop(_KEY_GROUP)
            tables[name] = pa.table({_KEY_GROUP: groups, _TIME: pa.array(pending.times_ms), **columns})
        return tables

    def restore(self, keyed: Mapping[str, Any], key_groups: range) -> None:
        """Keep the timers of ``key_groups`` for :meth:`bind_slots`."""
        for name in TIMER_TABLES:
            if name in keyed:
                groups = values_and_validity(keyed[name].column(_KEY_GROUP).combine_chunks())[0]
                mine = (groups >= key_groups.start) & (groups < key_groups.stop)
                self._restored[name] = keyed[name].take(pa.array(np.flatnonzero(mine)))
