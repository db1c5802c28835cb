"""Aggregation per key and window of TUMBLE, HOP, CUMULATE, by event time or by the clock."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flowsql_compute.eval.columns import values_and_validity
from flowsql_core.batch import ChangelogBatch, WatermarkTrack, watermark_per_row
from flowsql_core.column_bytes import taken
from flowsql_core.graph.lineage import Lineage
from flowsql_core.graph.specs import WindowAggregateSpec, WindowKind, WindowProperty
from flowsql_core.record import record
from flowsql_core.types.arrow import to_arrow
from flowsql_runtime.kernels import rows as row_kernels
from flowsql_runtime.metrics.told import Waiting, earliest
from flowsql_runtime.operators.aggregate.group import signs_of
from flowsql_runtime.operators.aggregate.program import AggregateProgram
from flowsql_runtime.operators.base import Int64s, Operator, OperatorContext, OperatorSnapshot
from flowsql_runtime.state.arrow_words import array_of_words
from flowsql_runtime.state.names import StateNames, TableNames
from flowsql_runtime.state.stores import StoredColumn
from flowsql_runtime.window.row_time import milliseconds_of
from flowsql_runtime.window.slices import Slicing
from flowsql_runtime.window.zone import rowtime_ms, to_epoch_ms, to_local_ms

Int32s = npt.NDArray[np.int32]

Bools = npt.NDArray[np.bool_]

LATE = "late"
_FIRED = "fired"


@record
class Added:
    """Rows that were folded into slots: their keys, slices or windows, slots, and which slots are new.

    ``levels``: the watermark above each. ``firsts``: where rows stand once per open window, the first of each.
    """

    keys: list[Any]
    ends: Int64s
    slots: Int32s
    fresh: Int32s
    levels: Int64s | None
    firsts: Bools | None


@record
class Merged:
    """Slots of closing windows, rising by window and slice: their slices, windows, and the number of window and key.

    ``rows``: merged accumulators by that number.
    """

    slots: Int32s
    slices: Int64s
    windows: Int64s
    numbers: Int32s
    rows: Int64s


class WindowAggregateOperator(Operator[WindowAggregateSpec]):
    """One row per key and window, when the watermark (or the clock) passes the window's last millisecond.

    In     any changelog, hash-partitioned by ``spec.grouping``.
    Out    +I rows: grouping columns, results, window properties; windows in the order in which they close.
    State  accumulators by (slice end, key); slices are shared by the windows of HOP and CUMULATE where every call
           merges, else a row is kept per window.
    Late   a row whose last window had closed before it came is dropped, counted and sent to side output ``late``.
           Windows of the clock that are open at the end of input are dropped.

    Source: Flink, ``SlicingWindowOperator``.
    """

    #: Whether HOP merges the newest slice of a window first.
    _newest_first = True

    def __init__(self, spec: WindowAggregateSpec) -> None:
        super().__init__(spec)
        self._slicing = Slicing.of(spec.window)
        self._attached = spec.window.end_index is not None
        self._program = self.make_program()
        several = not self._slicing.slices_are_windows and not self._attached
        self._per_window = not several or not self._program.shares_slices
        self._expand = several and not self._program.shares_slices

    def make_program(self) -> AggregateProgram:
        """The calls."""
        spec = self.spec
        return AggregateProgram(spec.calls, spec.input, spec.input_retracts, clear_at_zero=False)

    def open(self, ctx: OperatorContext) -> None:
        """Make the state."""
        types = [to_arrow(self.spec.input[column].type) for column in self.spec.grouping]
        self._index = ctx.state.window_index(types)
        self._program.open(ctx.state, self._index, "window")
        #: Where sessions start, which their ends do not tell.
        self._starts = None
        if self.spec.window.kind is WindowKind.SESSION:
            self._starts = ctx.state.column_store("starts", self._index, [StoredColumn("start", pa.int64(), False)])
        self._fired_ms: int | None = None
        #: By number of a key, -1 between two firings: what merging slices counts with.
        self._scratch: Int32s = np.zeros(0, np.int32)
        ctx.tell(Waiting, self._earliest_open)

    def _earliest_open(self) -> Waiting | None:
        window = self.spec.window
        _, ends = self._windows_of(self._index.namespaces())
        passed = self.current_watermark if self._fired_ms is None else self._fired_ms
        start = None if window.kind is WindowKind.SESSION else self._slicing.start
        return earliest("window", ends, self._trigger_ms(ends), passed, start, window.zone, window.processing_time)

    def state_names(self, arriving: Sequence[Lineage]) -> StateNames:
        """Accumulators by slice or window."""
        columns, window = arriving[0].columns, self.spec.window
        at = window.time_index if window.end_index is None else window.end_index
        shape = [window.kind.value, f"size {window.size_ms} ms", f"step {window.step_ms} ms"]
        shape += [f"offset {window.offset_ms} ms", "processing time" if window.processing_time else "event time"]
        shape += [] if window.zone is None else [window.zone]
        shape += [] if at is None else [columns[at]]
        facts = {"window": ", ".join(shape), "kept by": "window" if self._per_window else "slice"}
        keys = tuple(columns[index] for index in self.spec.grouping)
        tables = self._program.table_names(columns, "window")
        if self._starts is not None:
            tables["starts"] = TableNames("starts of sessions", {"v:start": "start of the session, local ms"})
        return StateNames(keys, tables, facts, retracts=self._program.retracts)

    def initialize_state(self, snapshot: OperatorSnapshot | None) -> None:
        """Slices that wait are in the keyed state; so are the windows of the clock, whose timers are set anew."""
        fired = self.ctx.operator_state.union_state(_FIRED)
        if fired:
            # All subtasks fire by one clock, so what the latest has fired, all have.
            self._fired_ms = max(int(at) for at in fired)
        if self.spec.window.processing_time:
            self._register_clock(self._index.namespaces())

    def snapshot_state(self, checkpoint_id: int) -> OperatorSnapshot:
        """Windows of the clock: remember which have fired; the watermark says it for the others."""
        if self.spec.window.processing_time and self._fired_ms is not None:
            self.ctx.operator_state.union_state(_FIRED)[:] = [str(self._fired_ms).encode()]
        return super().snapshot_state(checkpoint_id)

    # -- time

    def _trigger_ms(self, window_ends: Int64s) -> Int64s:
        """When each window closes: its last millisecond, on the watermark's (or the clock's) scale."""
        return to_epoch_ms(window_ends - 1, self.spec.window.zone)

    def _register_clock(self, slice_ends: Int64s) -> None:
        _, windows = self._windows_of(slice_ends)
        triggers = np.unique(self._trigger_ms(windows))
        self.ctx.timers.register_processing_timers(triggers, np.zeros(len(triggers), np.int64))

    def _windows_of(self, slice_ends: Int64s) -> tuple[npt.NDArray[np.int64], Int64s]:
        if self._per_window:
            return np.arange(len(slice_ends)), slice_ends
        return self._slicing.windows(slice_ends)

    def _slice_ends(self, batch: ChangelogBatch) -> Int64s:
        window = self.spec.window
        if window.end_index is not None:
            return milliseconds_of(batch.columns[window.end_index])
        if window.processing_time:
            times = np.full(batch.num_rows, self.ctx.clock.now_ms(), np.int64)
        else:
            assert window.time_index is not None
            times = milliseconds_of(batch.columns[window.time_index])
        return self._slicing.slice_end(to_local_ms(times, window.zone))

    # -- rows

    def process_batch(self, input_index: int, batch: ChangelogBatch) -> None:
        """Fold rows into their slices, then emit what the batch's watermarks close."""
        before = self.current_watermark
        track = self.advance_track(input_index, batch.track)
        batch = batch.with_track(track)
        if self.spec.window.processing_time:
            if batch.num_rows:
                self._add(batch, self._slice_ends(batch), None)
            if track is not None:
                self.output.collect(self._empty(track))
            return
        ends = self._slice_ends(batch)
        if track is not None and self._must_cut(ends, batch, before):
            self._process_cut(batch, ends, before)
            return
        if batch.num_rows:
            self._add(batch, ends, watermark_per_row(batch.num_rows, track, before))
        if track is not None:
            self._fire(before, track.last_ms, track)

    def _must_cut(self, ends: Int64s, batch: ChangelogBatch, before: int) -> bool:
        """Whether a row comes after a watermark of this batch that closed a window of its slice, yet is not late."""
        if self._slicing.slices_are_windows or self._attached:
            return False
        levels = watermark_per_row(batch.num_rows, batch.track, before)
        first = self._trigger_ms(self._slicing.first_window_end(ends))
        return bool(((first <= levels) & (levels > before)).any())

    def _process_cut(self, batch: ChangelogBatch, ends: Int64s, before: int) -> None:
        track = batch.track
        assert track is not None
        start = 0
        for offset, level in zip([*track.offsets, np.int32(batch.num_rows)], [*track.wm_ms, None], strict=True):
            stop = int(offset)
            if stop > start:
                part = batch.slice(start, stop).with_track(None)
                self._add(part, ends[start:stop], np.full(stop - start, before, np.int64))
                start = stop
            if level is not None:
                self._fire(before, int(level), WatermarkTrack(np.zeros(1, np.int32), np.array([level])))
                before = int(level)

    def _add(self, batch: ChangelogBatch, ends: Int64s, levels: Int64s | None) -> None:
        firsts: Bools | None = None
        if self._expand:
            rows, windows = self._slicing.windows(ends)
            if levels is not None:
                open_yet = self._trigger_ms(windows) > levels[rows]
                late = np.zeros(len(ends), np.bool_)
                late[rows] = True
                late[rows[open_yet]] = False
                self._drop_late(batch, late)
                rows, windows = rows[open_yet], windows[open_yet]
            firsts = np.ones(len(rows), np.bool_)
            firsts[1:] = rows[1:] != rows[:-1]
            batch, ends = batch.with_track(None).take(rows), windows
        elif self._slicing.has_gaps:
            batch, ends = self._in_windows(batch, ends, levels)
        elif levels is not None and len(levels):
            last = ends if self._per_window else self._slicing.last_window_end(ends)
            # Most batches have no late row: one comparison of extremes tells.
            if int(levels.max()) >= int(self._trigger_ms(np.array([last.min()]))[0]):
                late = self._trigger_ms(last) <= levels
                if late.any():
                    self._drop_late(batch, late)
                    rows = np.flatnonzero(~late)
                    batch, ends, levels = batch.with_track(None).take(rows), ends[rows], levels[rows]
        if not batch.num_rows:
            return
        keys = [batch.columns[column] for column in self.spec.grouping]
        slots, fresh = self._index.find_or_insert(self._index.encode(keys, ends))
        self._program.fold(slots, batch.columns, signs_of(batch), every=False)
        if self._starts is not None:
            assert self.spec.window.start_index is not None
            self._starts.scatter(slots, [pa.array(milliseconds_of(batch.columns[self.spec.window.start_index]))])
        self._added(Added(keys, ends, slots, fresh, levels, firsts))
        if len(fresh) and self.spec.window.processing_time:
            self._register_clock(np.unique(ends[fresh]))

    def _added(self, added: Added) -> None:
        """Rows were folded into their slots."""

    def _in_windows(self, batch: ChangelogBatch, ends: Int64s, levels: Int64s | None) -> tuple[ChangelogBatch, Int64s]:
        """Rows that are in a window, and not late."""
        last = self._slicing.last_window_end(ends)
        within = last >= ends
        if levels is not None:
            late = within & (self._trigger_ms(last) <= levels)
            self._drop_late(batch, late)
            within &= ~late
        rows = np.flatnonzero(within)
        return batch.with_track(None).take(rows), ends[rows]

    def _drop_late(self, batch: ChangelogBatch, late: npt.NDArray[np.bool_]) -> None:
        count = int(late.sum())
        if count:
            self.ctx.metrics.count("numLateRecordsDropped", count)
            self.output.collect_side(LATE, batch.with_track(None).take(np.flatnonzero(late)))

    # -- closing windows

    def on_watermark(self, watermark_ms: int) -> None:
        """A watermark between batches."""
        if not self.spec.window.processing_time:
            self._fire(self._fired_before(watermark_ms), watermark_ms, None)

    def _fired_before(self, watermark_ms: int) -> int:
        # The base class has already raised the current watermark; what was fired is remembered here.
        return self._fired_ms if self._fired_ms is not None else min(self._restored_ms, watermark_ms)

    _restored_ms = -(2**63)

    def restore_watermarks(self, watermarks_ms: tuple[int, ...]) -> None:
        """What was fired before the snapshot is not fired again."""
        super().restore_watermarks(watermarks_ms)
        if watermarks_ms:
            self._restored_ms = watermarks_ms[0]

    def on_processing_timers(self, times_ms: Int64s, slots: Int64s) -> None:
        """The clock passed the end of windows."""
        now = int(times_ms[-1])
        self._fire(self._fired_before(now), now, None)

    def _fire(self, before: int, until: int, track: WatermarkTrack | None) -> None:
        """Emit the windows that close in ``(before, until]`` and forget slices that no window needs."""
        self._fired_ms = until
        earliest = self._index.earliest()
        batch = None
        if earliest is not None and int(self._trigger_ms(self._first_end(earliest))[0]) <= until:
            batch = self._closed(before, until)
        if batch is None or not batch.num_rows:
            if track is not None:
                self.output.collect(self._empty(track))
            return
        if track is not None:
            triggers = self._triggers
            offsets = np.searchsorted(triggers, track.wm_ms, side="right").astype(np.int32)
            batch = batch.with_track(WatermarkTrack(offsets, track.wm_ms))
        self.collect_within_offsets(batch)

    def _first_end(self, slice_end: int) -> Int64s:
        ends = np.array([slice_end], np.int64)
        return ends if self._per_window else self._slicing.first_window_end(ends)

    def _closed(self, before: int, until: int) -> ChangelogBatch | None:
        ends = self._index.namespaces()
        if self._per_window:
            due = ends[self._trigger_ms(ends) <= until]
            if not len(due):
                return None
            windows, slots = self._index.up_to(int(due[-1]))
            answering = self._answering_slots(slots, windows)
            columns = self._emit(slots[answering], windows[answering])
            self._forget(slots)
            return columns
        positions, windows = self._slicing.windows(ends)
        triggers = self._trigger_ms(windows)
        closing = (triggers > before) & (triggers <= until)
        batch = self._merge_slices(ends[positions[closing]], windows[closing]) if closing.any() else None
        over = ends[self._trigger_ms(self._slicing.last_window_end(ends)) <= until]
        if len(over):
            _, slots = self._index.up_to(int(over[-1]))
            self._forget(slots)
        return batch

    def _answering_slots(self, slots: Int32s, windows: Int64s) -> Bools | slice:
        """Which closing windows answer; each has a slot."""
        return slice(None)

    def _answering_rows(self, merged: Merged) -> Bools | slice:
        """Which closing windows answer."""
        return slice(None)

    def _merge_slices(self, slice_ends: Int64s, windows: Int64s) -> ChangelogBatch:
        """Merge the slices of each window; pairs (slice end, window end) say which."""
        ends, slots = self._index.up_to(int(slice_ends.max()))
        order = np.argsort(slice_ends, kind="stable")
        slice_ends, windows = slice_ends[order], windows[order]
        lo = np.searchsorted(ends, slice_ends, side="left")
        counts = np.searchsorted(ends, slice_ends, side="right") - lo
        starts = np.cumsum(counts) - counts
        at = np.arange(int(counts.sum())) - np.repeat(starts - lo, counts)
        # Members stand by window: positions number the keys of one window after the other.
        order = np.argsort(np.repeat(windows, counts), kind="stable")
        members, owners = slots[at][order], np.repeat(windows, counts)[order]
        numbers = np.empty(len(members), np.int32)
        firsts = np.empty(len(members), np.int32)
        keys = self._index.numbered(members)
        if len(self._scratch) < self._index.most_numbers():
            self._scratch = np.full(2 * self._index.most_numbers(), -1, np.int32)
        count = row_kernels.positions(keys, owners, self._scratch, numbers, firsts)
        rows = self._merged(numbers, count, members)
        answering = self._answering_rows(Merged(members, ends[at][order], owners, numbers, rows))
        members, owners = members[firsts[:count]], owners[firsts[:count]]
        members, owners, rows = members[answering], owners[answering], rows[answering]
        batch = self._rows_out(members, owners, rows)
        if self._slicing.kind is WindowKind.CUMULATE:
            self._collapse(members, owners, rows)
        return batch

    def _merged(self, numbers: Int32s, count: int, members: Int32s) -> npt.NDArray[np.int64]:
        """Accumulators of windows; those of HOP merge their newest slice first, as in Flink."""
        if self._slicing.kind is WindowKind.HOP and self._newest_first:
            numbers, members = np.ascontiguousarray(numbers[::-1]), np.ascontiguousarray(members[::-1])
        return self._program.merged_rows(numbers, count, members)

    def _collapse(self, members: Int32s, windows: Int64s, rows: npt.NDArray[np.int64]) -> None:
        """CUMULATE: what is merged up to a window stands for its slices from now on, so that no slice is read twice."""
        periods = self._slicing.period_end(windows)
        known, places = np.unique(periods, return_inverse=True)
        latest = np.full(len(known), -(2**63), np.int64)
        np.maximum.at(latest, places, windows)
        kept = np.flatnonzero((windows == latest[places]) & (windows < periods))
        keys = self._index.encoded_at(members[kept]).with_namespaces(windows[kept])
        ends, slots = self._index.up_to(int(latest.max()))
        at = np.minimum(np.searchsorted(known, self._slicing.period_end(ends)), len(known) - 1)
        gone = (known[at] == self._slicing.period_end(ends)) & (ends <= latest[at])
        self._forget(slots[gone])
        moved, _ = self._index.find_or_insert(keys)
        self._program.store.put_words(moved, rows[kept])

    def _emit(self, slots: Int32s, windows: Int64s) -> ChangelogBatch:
        """Rows of windows that have one slot a key."""
        if self.spec.input_retracts:
            filled = self._program.store.row_counts(slots) != 0
            slots, windows = slots[filled], windows[filled]
        return self._with_windows(slots, windows, self._program.results_at(np.ascontiguousarray(slots)))

    def _rows_out(self, members: Int32s, windows: Int64s, rows: npt.NDArray[np.int64]) -> ChangelogBatch:
        """Rows of windows from merged accumulators; ``members``: a slot with the key of each."""
        results = self._program.results_of(rows)
        if self.spec.input_retracts:
            filled = np.flatnonzero(rows[:, 0])
            members, windows, results = members[filled], windows[filled], [taken(one, filled) for one in results]
        return self._with_windows(members, windows, results)

    def _with_windows(self, slots: Int32s, windows: Int64s, results: list[Any]) -> ChangelogBatch:
        columns: list[Any] = [*self._index.columns_at(np.ascontiguousarray(slots)), *results]
        self._triggers = self._trigger_ms(windows)
        first = len(columns)
        for place, property_ in enumerate(self.spec.properties):
            known: npt.NDArray[np.bool_] | None = None
            match property_:
                case WindowProperty.START:
                    values = self._start_ms(slots, windows)
                case WindowProperty.END:
                    values = windows
                case WindowProperty.TIME:
                    values = rowtime_ms(windows, self.spec.window.zone)
                case WindowProperty.PROCTIME:
                    values = self._triggers
                    known = np.full(len(values), self.spec.window.processing_time)
            type_ = to_arrow(self.spec.output[first + place].type)
            columns.append(array_of_words([values], known, type_))
        return ChangelogBatch(tuple(columns), len(slots))

    def _start_ms(self, slots: Int32s, windows: Int64s) -> Int64s:
        if self._starts is None:
            return self._slicing.start(windows)
        return values_and_validity(self._starts.gather(np.ascontiguousarray(slots))[0])[0]

    def _forget(self, slots: Int32s) -> None:
        self._program.forget(slots)
        if self._starts is not None:
            self._starts.clear(slots)
        self._index.remove(slots)

    def _empty(self, track: WatermarkTrack) -> ChangelogBatch:
        columns = tuple(pa.nulls(0, to_arrow(column.type)) for column in self.spec.output)
        return ChangelogBatch(columns, 0, None, None, WatermarkTrack(np.zeros(len(track), np.int32), track.wm_ms))
