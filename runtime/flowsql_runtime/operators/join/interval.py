"""Join of rows whose times lie close to each other: rows are kept as long as partners may come."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flowsql_core.batch import ChangelogBatch, LateColumns, WatermarkTrack, columns_of, watermark_per_row
from flowsql_core.column_bytes import joined, taken
from flowsql_core.element import MAX_WATERMARK, MIN_WATERMARK, Watermark
from flowsql_core.graph.lineage import Lineage
from flowsql_core.graph.specs import JoinKind
from flowsql_core.graph.time_join_specs import IntervalJoinSpec
from flowsql_core.types.arrow import to_arrow
from flowsql_runtime.kernels import interval as kernels
from flowsql_runtime.metrics.registry import LATE_DROPPED
from flowsql_runtime.operators.base import Operator, OperatorContext, OperatorSnapshot
from flowsql_runtime.operators.join.regular import compiled_condition
from flowsql_runtime.operators.join.side import MOST_PAIRS, JoinSide, key_pairs, row_ranges
from flowsql_runtime.operators.join.timed_rows import KeyTimers, TimedRows, grouped, row_starts, timed_names
from flowsql_runtime.state.names import StateNames, TableNames
from flowsql_runtime.window.row_order import row_order
from flowsql_runtime.window.row_time import milliseconds_of

Bools = npt.NDArray[np.bool_]
Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]

NO_ROWS = np.zeros(0, np.int32)
NO_TIMES = np.zeros(0, np.int64)

#: Name of the union state: up to what time each subtask has cleaned the caches.
CLEANED = "cleaned"


@dataclass(slots=True)
class _Moments:
    """What time does during a batch: ``offsets``/``levels`` (m,) the watermarks (or the clock) before rows; what timers
    fire by. ``before`` (n,): the level that each row meets. ``track``: what is handed on."""

    offsets: Int32s
    levels: Int64s
    before: Int64s
    track: WatermarkTrack | None

    @property
    def last(self) -> int | None:
        """The level behind the batch; None where it brings none."""
        return int(self.levels[-1]) if len(self.levels) else None


@dataclass(slots=True)
class _Gone:
    """Rows of a cache that expire during a batch.

    ``rows``: stored rows, or rows of the batch. ``limits``: the last row of the batch that still meets each.
    ``places``, ``fires``: where each leaves, as :meth:`_Events.add` takes it.
    """

    rows: Int32s
    limits: Int64s
    places: Int64s
    fires: Int64s


class _Events:
    """Rows of the output, by the moment at which they leave: each a row of the own side, of the other, or of both."""

    def __init__(self, moments: _Moments) -> None:
        self._offsets = moments.offsets
        self._width = len(moments.levels) + 2
        self._parts: list[tuple[Int64s, Int64s, Int64s, Int32s, Int32s, Int32s]] = []

    def at_rows(self, rows: npt.NDArray[Any]) -> Int64s:
        """The moment of rows of the batch."""
        return (2 * rows.astype(np.int64) + 1) * self._width

    def at_entries(self, entries: npt.NDArray[Any]) -> Int64s:
        """The moment of watermarks."""
        places: Int64s = 2 * self._offsets[entries].astype(np.int64) * self._width + entries + 1
        return places

    def add(
        self,
        places: Int64s,
        ranks: int | Int64s,
        own: Int32s | None = None,
        kept: Int32s | None = None,
        other: Int32s | None = None,
    ) -> None:
        """Rows that leave: ``own`` rows of the batch, ``kept`` stored ones of its side, ``other`` stored ones."""
        n = len(places)
        if n:
            none = np.full(n, -1, np.int32)
            mine, stored, theirs = (none if one is None else one for one in (own, kept, other))
            everywhere = np.broadcast_to(np.asarray(ranks, np.int64), (n,))
            self._parts.append((places, everywhere, np.arange(n), mine, stored, theirs))

    def ordered(self) -> tuple[Int64s, Int32s, Int32s, Int32s]:
        """Moments, then rows as in :meth:`add`."""
        if not self._parts:
            return NO_TIMES, NO_ROWS, NO_ROWS, NO_ROWS
        if len(self._parts) == 1 and bool((np.diff(self._parts[0][0]) >= 0).all()):
            places, ranks, _, own, kept, other = self._parts[0]
            if not np.diff(ranks).any():
                return places, own, kept, other
        places, ranks, numbers, own, kept, other = (np.concatenate(part) for part in zip(*self._parts, strict=True))
        order = row_order((numbers, ranks, places))
        return places[order], own[order], kept[order], other[order]

    def track(self, moments: _Moments, places: Int64s, delay_ms: int) -> WatermarkTrack | None:
        """The track of the output."""
        track = moments.track
        if track is None:
            return None
        if track.wm_ms is moments.levels:
            ends = self.at_entries(np.arange(len(track)))
        else:
            ends = 2 * track.offsets.astype(np.int64) * self._width + self._width - 1
        offsets = np.searchsorted(places, ends, side="right").astype(np.int32)
        return WatermarkTrack(offsets, delayed(track.wm_ms, delay_ms))


def delayed(levels: Int64s, delay_ms: int) -> Int64s:
    """Watermarks held back; the end of time stays."""
    return np.where(levels == MAX_WATERMARK, levels, np.maximum(levels, MIN_WATERMARK + 1 + delay_ms) - delay_ms)


class IntervalJoinOperator(Operator[IntervalJoinSpec]):
    """Inner and outer interval join.

    In     two append-only inputs, hash-partitioned by their keys.
    Out    +I rows, left columns then right: pairs with the row that makes them, in the order of the partners' times;
           rows without a partner beside NULLs when their interval is over.
    State  rows by key, side and time until their interval is over, and a timer a key and side.
    Late   a row whose interval is over is not kept, but meets what is still there; without a partner there it is
           counted as dropped. The watermark is held back by the longer part of the interval, so that no result is late.

    A join in processing time does the same by the clock; rows that wait at the end of the input are dropped.

    Source: Flink, ``TimeIntervalJoin``.
    """

    number_of_inputs = 2

    def __init__(self, spec: IntervalJoinSpec) -> None:
        super().__init__(spec)
        self._sides = (
            JoinSide(spec.left_keys, spec.left, spec.null_safe),
            JoinSide(spec.right_keys, spec.right, spec.null_safe),
        )
        self._time_columns = (spec.left_time, spec.right_time)
        #: How long rows of each side are kept behind their time.
        self._kept_ms = (-spec.lower_ms, spec.upper_ms)
        self._outer = (spec.kind in (JoinKind.LEFT, JoinKind.FULL), spec.kind in (JoinKind.RIGHT, JoinKind.FULL))
        #: Whether any two times are close enough.
        self._possible = spec.lower_ms <= spec.upper_ms
        self._delay_ms = max(self._kept_ms) if spec.row_time and self._possible else 0

    def open(self, ctx: OperatorContext) -> None:
        """Make the state and compile the condition."""
        left = self._sides[0]
        self._index = ctx.state.key_index([to_arrow(left.schema[key].type) for key in left.keys])
        self._rows, self._timers = [], []
        for name, side, counted in zip(("left", "right"), self._sides, self._outer, strict=True):
            self._rows.append(TimedRows(ctx, name, self._index, side.schema, counted=counted))
            self._timers.append(KeyTimers(ctx, f"{name} timers", self._index))
        self._condition = compiled_condition(self.spec.condition, ctx)
        #: Up to what time the cache of each side was cleaned last, whatever the key.
        self._cleaned = [0, 0]
        self._now = 0

    def initialize_state(self, snapshot: OperatorSnapshot | None) -> None:
        """Timers go on."""
        saved = [np.frombuffer(value, np.int64) for value in self.ctx.operator_state.union_state(CLEANED)]
        if saved:
            self._cleaned = np.min(saved, axis=0).tolist()
        if not self.spec.row_time:
            self._arm()

    def snapshot_state(self, checkpoint_id: int) -> OperatorSnapshot:
        """With what was cleaned last."""
        self.ctx.operator_state.union_state(CLEANED)[:] = [np.array(self._cleaned, np.int64).tobytes()]
        return super().snapshot_state(checkpoint_id)

    def state_names(self, arriving: Sequence[Lineage]) -> StateNames:
        """The rows of both sides, and what their keys wait for."""
        spec = self.spec
        sides = [one.columns for one in arriving]
        tables = {}
        for name, side, columns in zip(("left", "right"), self._sides, sides, strict=True):
            tables[name] = timed_names(f"{name} rows", side.schema, columns)
            tables[f"{name} timers"] = TableNames(f"timers of {name} rows")
            tables[f"{name} timers of key"] = TableNames(f"timer of a key's {name} rows", {"v:time": "time"})
        left, right = sides
        by = "row time" if spec.row_time else "processing time"
        times = f"{left[spec.left_time]}, {right[spec.right_time]}" if spec.row_time else ""
        facts = {"time": by, "times": times}
        for name, outer in zip(("left", "right"), self._outer, strict=True):
            facts[f"{name} rows"] = "also without a partner" if outer else ""
        # A row that is emitted without a partner had none within these bounds.
        padded = any(self._outer)
        bounds = {"bounds": f"{spec.lower_ms} ms to {spec.upper_ms} ms"}
        kept = {
            f"{name} rows: milliseconds after their time": kept_ms
            for name, kept_ms in zip(("left", "right"), self._kept_ms, strict=True)
        }
        return StateNames(
            key_pairs(spec, left, right),
            tables,
            facts,
            made_with={"join": spec.kind.value} | (bounds if padded else {}),
            answered_with={} if padded else bounds,
            reaches={} if padded else kept,
            predicates_in_state=padded,
        )

    def expect(self, input_index: int, batches: Sequence[ChangelogBatch]) -> None:
        """Keys of rows that come."""
        self._index.expect(*columns_of(batches, self._sides[input_index].keys))

    # -- what comes

    def process_batch(self, input_index: int, batch: ChangelogBatch) -> None:
        """Rows meet what the other side keeps, and are kept; what the batch's watermarks end leaves."""
        side = self._sides[input_index]
        slots = self._slots(input_index, batch)
        others = self._rows[1 - input_index].rows
        if batch.num_rows > 1 and int(others.counts(slots).sum()) > MOST_PAIRS:
            lowers, uppers = self._span(input_index, self._times(input_index, batch))
            lost = side.without_match(batch.columns)
            probes = slots if lost is None else np.where(lost, np.int32(-1), slots)
            counts = others.count_between(probes, [pa.array(lowers)], [pa.array(uppers)])
            if int(counts.sum()) > MOST_PAIRS:
                # Pairs that do not fit into memory together: parts of the batch are batches of their own.
                for first, last in row_ranges(counts):
                    part = batch.slice(first, last)
                    self._process(input_index, part, self._slots(input_index, part))
                return
        self._process(input_index, batch, slots)

    def process_watermark(self, input_index: int, watermark: Watermark) -> None:
        """Merge; when the minimum rises, what is over leaves."""
        track = WatermarkTrack(np.zeros(1, np.int32), np.array([watermark.timestamp_ms]))
        risen = self.advance_track(input_index, track)
        if risen is not None:
            self._pass(risen)

    def _raise_combined(self, combined: int) -> None:
        if combined > self._watermark:
            self._watermark = combined
            self._pass(WatermarkTrack(np.zeros(1, np.int32), np.array([combined])))

    def on_processing_timers(self, times_ms: Int64s, slots: Int64s) -> None:
        """The clock ended intervals."""
        self._pass(None)

    def _pass(self, track: WatermarkTrack | None) -> None:
        """Time alone."""
        columns = tuple(pa.nulls(0, to_arrow(column.type)) for column in self._sides[0].schema)
        moments = self._moments(0, track, self._watermark)
        self._join(0, ChangelogBatch(columns, 0), NO_ROWS, moments)

    def _slots(self, input_index: int, batch: ChangelogBatch) -> Int32s:
        keys = self._sides[input_index].key_columns(batch.columns)
        return self._index.find_or_insert(self._index.encode(keys, num_rows=batch.num_rows))[0]

    def _times(self, input_index: int, batch: ChangelogBatch) -> Int64s:
        if self.spec.row_time:
            return milliseconds_of(batch.columns[self._time_columns[input_index]])
        self._now = max(self._now, self.ctx.clock.now_ms())
        return np.full(batch.num_rows, self._now, np.int64)

    def _span(self, side: int, times: Int64s) -> tuple[Int64s, Int64s]:
        """Between which times the partners of rows lie."""
        return times - self._kept_ms[1 - side], times + self._kept_ms[side]

    def _process(self, input_index: int, batch: ChangelogBatch, slots: Int32s) -> None:
        before = self.current_watermark
        track = self.advance_track(input_index, batch.track)
        self._join(input_index, batch, slots, self._moments(batch.num_rows, track, before))

    def _moments(self, n: int, track: WatermarkTrack | None, before: int) -> _Moments:
        if self.spec.row_time:
            offsets, levels = (NO_ROWS, NO_TIMES) if track is None else (track.offsets, track.wm_ms)
            return _Moments(offsets, levels, watermark_per_row(n, track, before), track)
        self._now = max(self._now, self.ctx.clock.now_ms())
        levels = np.array([self._now], np.int64)
        return _Moments(np.zeros(1, np.int32), levels, np.full(n, self._now, np.int64), track)

    # -- the join

    def _join(self, side: int, batch: ChangelogBatch, slots: Int32s, moments: _Moments) -> None:
        other = 1 - side
        times = self._times(side, batch)
        lowers, uppers = self._span(side, times)
        events = _Events(moments)
        touched = [slots]
        gone, admitted = self._expire_other(side, slots, uppers, moments, events, touched)
        probes, found = self._pairs(side, batch, slots, admitted, lowers, uppers, gone)
        events.add(events.at_rows(probes), 0, own=probes, other=found)
        if self._outer[other]:
            self._pad_other(other, found, gone, events)
        met = np.zeros(batch.num_rows, np.bool_)
        met[probes] = True
        cached = np.maximum(moments.before, 0) < uppers
        if not self._possible:
            cached[:] = False
        if self.spec.row_time and not self._outer[side]:
            late = ~cached & ~met & (times <= moments.before)
            if late.any():
                self.ctx.metrics.count(LATE_DROPPED, int(late.sum()))
        kept, stay = self._expire_own(side, slots, times, cached, met, moments, events, touched)
        if self._outer[side]:
            alone = np.flatnonzero(~cached & ~met).astype(np.int32)
            events.add(events.at_rows(alone), 2, own=alone)
        self._emit(side, batch, events, moments)
        counted = met[stay].astype(np.int32) if self._outer[side] else None
        self._rows[side].append(slots[stay], LateColumns.of(batch.columns, stay), times[stay], (), counted)
        self._rows[side].rows.remove(kept)
        self._rows[other].rows.remove(gone.rows)
        self._release(np.unique(np.concatenate(touched)))
        if not self.spec.row_time:
            self._arm()

    def _expire_other(
        self, side: int, slots: Int32s, uppers: Int64s, moments: _Moments, events: _Events, touched: list[Int32s]
    ) -> tuple[_Gone, Bools]:
        """Rows of the other side that expire by timers, or because a row of the batch looks at their key's cache; and
        which rows of the batch look at it at all."""
        other = 1 - side
        rows, timers, kept_ms = self._rows[other], self._timers[other], self._kept_ms[other]
        fired = np.zeros(len(moments.levels), np.uint8)
        n = len(slots)
        found, limits, places, fires = [], [], [], []
        due = NO_ROWS if moments.last is None else np.sort(timers.due(moments.last))
        if moments.last is not None and len(due):
            touched.append(due)
            positions, listed = rows.up_to_and_next(due, _expired(moments.last, kept_ms))
            arrivals = np.full(len(listed), -1, np.int32)
            entries, fire = self._fire(
                timers, due, positions, rows.times(listed), arrivals, np.zeros(len(due) + 1, np.int64), NO_ROWS,
                NO_TIMES, moments, kept_ms, fired,
            )  # fmt: skip
            over = np.flatnonzero(entries >= 0)
            found.append(listed[over])
            limits.append(moments.offsets[entries[over]].astype(np.int64) - 1)
            places.append(events.at_entries(entries[over]))
            fires.append(fire[over])
        admitted, expirations = np.empty(n, np.uint8), np.empty(n, np.int64)
        self._cleaned[other] = kernels.admit(
            moments.before, uppers, moments.offsets, moments.levels, fired, kept_ms, self._cleaned[other], admitted,
            expirations,
        )  # fmt: skip
        looks: Bools = admitted.view(np.bool_)
        if not self._possible:
            looks = np.zeros(n, np.bool_)
        members = np.unique(slots[looks])
        if len(members):
            starts, order = grouped(np.where(looks, slots, np.int32(-1)), members)
            # What a key's rows clean grows from row to row.
            bounds = expirations[order[starts[1:] - 1]]
            positions, listed = rows.up_to(members, bounds)
            if len(listed):
                cleaners = np.empty(len(listed), np.int32)
                kernels.clean(
                    row_starts(positions, len(members)), rows.times(listed), starts, order.astype(np.int32),
                    expirations[order], cleaners,
                )  # fmt: skip
                over = np.flatnonzero(cleaners >= 0)
                found.append(listed[over])
                limits.append(cleaners[over].astype(np.int64))
                places.append(events.at_rows(cleaners[over]))
                fires.append(np.ones(len(over), np.int64))
        if not found:
            return _Gone(NO_ROWS, NO_TIMES, NO_TIMES, NO_TIMES), looks
        gone = np.concatenate(found)
        # A row may be met by a timer and by a row of the batch: the first of them takes it.
        order = row_order((np.concatenate(places), gone))
        first = np.ones(len(order), np.bool_)
        first[1:] = gone[order][1:] != gone[order][:-1]
        kept = order[first]
        times = (np.concatenate(limits)[kept], np.concatenate(places)[kept], np.concatenate(fires)[kept])
        return _Gone(gone[kept], *times), looks

    def _fire(
        self,
        timers: KeyTimers,
        members: Int32s,
        positions: Int32s,
        times: Int64s,
        arrivals: Int32s,
        arriving_starts: Int64s,
        arriving_rows: Int32s,
        arriving_times: Int64s,
        moments: _Moments,
        kept_ms: int,
        fired: npt.NDArray[np.uint8],
    ) -> tuple[Int32s, Int64s]:
        """Let the timers of slots fire; returns where each listed row leaves and the timer that took it."""
        before = timers.of(members)
        after = before.copy()
        entries, fires = np.empty(len(times), np.int32), np.zeros(len(times), np.int64)
        kernels.expire(
            row_starts(positions, len(members)), np.ascontiguousarray(times), arrivals, arriving_starts, arriving_rows,
            arriving_times, moments.offsets, moments.levels, kept_ms, self.spec.idle_ms, after, entries, fires, fired,
        )  # fmt: skip
        timers.set(members, before, after)
        return entries, fires

    def _pairs(
        self,
        side: int,
        batch: ChangelogBatch,
        slots: Int32s,
        admitted: Bools,
        lowers: Int64s,
        uppers: Int64s,
        gone: _Gone,
    ) -> tuple[Int32s, Int32s]:
        """Pairs (row of the batch, stored row of the other side), by row and time."""
        lost = self._sides[side].without_match(batch.columns)
        looking = admitted if lost is None else admitted & ~lost
        rows = self._rows[1 - side]
        probes, found = rows.between(np.where(looking, slots, np.int32(-1)), lowers, uppers)
        if len(gone.rows) and len(found):
            at = np.minimum(np.searchsorted(gone.rows, found), len(gone.rows) - 1)
            alive = (gone.rows[at] != found) | (probes <= gone.limits[at])
            probes, found = probes[alive], found[alive]
        if self._condition is not None and len(found):
            own = LateColumns.of(batch.columns, probes)
            stored = rows.gather(found)
            columns = LateColumns.beside(own, stored) if side == 0 else LateColumns.beside(stored, own)
            met = self._condition(columns, len(probes))
            probes, found = probes[met], found[met]
        return probes, found

    def _pad_other(self, other: int, found: Int32s, gone: _Gone, events: _Events) -> None:
        """Note what met a partner; of what expires, rows that never did leave beside NULLs."""
        rows = self._rows[other].rows
        partners = np.unique(found)
        fresh = partners[rows.associations(partners) == 0]
        rows.associate(fresh, np.ones(len(fresh), np.int32))
        alone = np.flatnonzero(rows.associations(gone.rows) == 0)
        events.add(gone.places[alone], gone.fires[alone], other=gone.rows[alone])

    def _expire_own(
        self,
        side: int,
        slots: Int32s,
        times: Int64s,
        cached: Bools,
        met: Bools,
        moments: _Moments,
        events: _Events,
        touched: list[Int32s],
    ) -> tuple[Int32s, npt.NDArray[np.int64]]:
        """Stored rows of the own side that expire, and which rows of the batch are kept behind it."""
        timers, kept_ms = self._timers[side], self._kept_ms[side]
        last = moments.last
        stay = np.flatnonzero(cached)
        waits = times + (kept_ms + self.spec.idle_ms + 1)
        due = NO_ROWS if last is None else np.sort(timers.due(last))
        touched.append(due)
        soon = due if last is None else np.union1d(due, slots[cached & (waits <= last)]).astype(np.int32)
        kept = NO_ROWS
        if len(soon) and last is not None:
            kept, gone = self._fire_own(side, slots, times, cached, met, soon, moments, events)
            stay = np.setdiff1d(stay, gone, assume_unique=True)
        # Elsewhere the first row of a key sets its timer, where there is none.
        others, first = np.unique(slots[cached], return_index=True)
        plain = ~np.isin(others, soon, assume_unique=True)
        members = others[plain]
        if len(members):
            before = timers.of(members)
            wanted = waits[cached][first[plain]]
            timers.set(members, before, np.where(before == kernels.NO_TIMER, wanted, before))
        return kept, stay

    def _fire_own(
        self,
        side: int,
        slots: Int32s,
        times: Int64s,
        cached: Bools,
        met: Bools,
        soon: Int32s,
        moments: _Moments,
        events: _Events,
    ) -> tuple[Int32s, npt.NDArray[np.int64]]:
        """Stored rows and rows of the batch that expire under keys whose timers may fire."""
        rows, timers, kept_ms = self._rows[side], self._timers[side], self._kept_ms[side]
        assert moments.last is not None
        positions, listed = rows.up_to_and_next(soon, _expired(moments.last, kept_ms))
        starts, arriving = grouped(np.where(cached, slots, np.int32(-1)), soon)
        owners = np.repeat(np.arange(len(soon), dtype=np.int32), np.diff(starts))
        everything = np.concatenate((positions, owners))
        clock = np.concatenate((rows.times(listed), times[arriving]))
        arrivals = np.concatenate((np.full(len(listed), -1, np.int32), arriving.astype(np.int32)))
        order = row_order((arrivals, clock, everything))
        fired = np.zeros(len(moments.levels), np.uint8)
        entries, fires = self._fire(
            timers, soon, everything[order], clock[order], arrivals[order], starts, arriving.astype(np.int32),
            times[arriving], moments, kept_ms, fired,
        )  # fmt: skip
        if fired.any():
            level = int(moments.levels[np.flatnonzero(fired)[-1]])
            self._cleaned[side] = _expired(level, kept_ms)
        over = np.flatnonzero(entries >= 0)
        places, fires = events.at_entries(entries[over]), fires[over]
        stored = order[over] < len(listed)
        kept = listed[order[over][stored]]
        gone = arrivals[order[over][~stored]].astype(np.int64)
        if self._outer[side]:
            alone = rows.rows.associations(kept) == 0
            events.add(places[stored][alone], fires[stored][alone], kept=kept[alone])
            alone = ~met[gone]
            events.add(places[~stored][alone], fires[~stored][alone], own=gone[alone].astype(np.int32))
        return kept, gone

    # -- what leaves

    def _emit(self, side: int, batch: ChangelogBatch, events: _Events, moments: _Moments) -> None:
        places, own, kept, other = events.ordered()
        track = events.track(moments, places, self._delay_ms)
        if not len(places):
            if track is not None:
                self.output.emit_watermark(Watermark(track.last_ms))
            return
        mine = self._own_columns(side, batch, own, kept)
        found = np.flatnonzero(other >= 0)
        theirs: Sequence[Any] = self._rows[1 - side].gather(other[found])
        if len(found) < len(other):
            at = np.cumsum(other >= 0) - 1
            theirs = [taken(column, np.maximum(at, 0), other < 0) for column in _some(theirs)]
        columns = LateColumns.beside(mine, theirs) if side == 0 else LateColumns.beside(theirs, mine)
        for part in ChangelogBatch(columns, len(places), None, None, track).within_offsets():
            self.output.collect(part)

    def _own_columns(self, side: int, batch: ChangelogBatch, own: Int32s, kept: Int32s) -> Sequence[Any]:
        if not len(own) or int(own.min()) >= 0:
            return LateColumns.of(batch.columns, own)
        stored = np.flatnonzero(kept >= 0)
        columns = self._rows[side].gather(kept[stored])
        at = np.where(own >= 0, own, 0).astype(np.int64)
        at[stored] = batch.num_rows + np.arange(len(stored))
        missing = (own < 0) & (kept < 0)
        whole = [joined([batch.columns[index], column]) for index, column in enumerate(columns)]
        return [taken(column, at, missing) for column in _some(whole)]

    def _release(self, slots: Int32s) -> None:
        """Forget keys of which nothing is left."""
        slots = slots[slots >= 0]
        empty = slots[(self._rows[0].rows.counts(slots) == 0) & (self._rows[1].rows.counts(slots) == 0)]
        for timers in self._timers:
            empty = empty[timers.of(empty) == kernels.NO_TIMER]
        if len(empty):
            for timers in self._timers:
                timers.drop(empty)
            self._index.remove(empty)

    def _arm(self) -> None:
        """Have the clock wake the operator for the next timer."""
        times = [time for timers in self._timers if (time := timers.earliest()) is not None]
        if times:
            self.ctx.timers.register_processing_timers(np.array([min(times)], np.int64), np.zeros(1, np.int64))


def _expired(level: int, kept_ms: int) -> int:
    return level if level == MAX_WATERMARK else max(level, 0) - kept_ms - 1


def _some(columns: Sequence[Any]) -> list[Any]:
    """Columns with at least one row to point at, where all rows of the output are NULL."""
    return [column if len(column) else pa.nulls(1, column.type) for column in columns]
