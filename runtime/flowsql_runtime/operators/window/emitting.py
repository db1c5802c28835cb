"""Group windows that answer before they end, and again when late rows come."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from flowsql_core.batch import ChangelogBatch, WatermarkTrack, watermark_per_row
from flowsql_core.element import MIN_WATERMARK, Watermark
from flowsql_core.graph.lineage import Lineage
from flowsql_core.graph.specs import WindowProperty
from flowsql_core.graph.window_specs import EmittingWindowSpec
from flowsql_core.types.arrow import to_arrow
from flowsql_runtime.metrics.told import Waiting, earliest
from flowsql_runtime.operators.aggregate.emit import changelog_of
from flowsql_runtime.operators.aggregate.group import signs_of
from flowsql_runtime.operators.aggregate.program import AggregateProgram
from flowsql_runtime.operators.base import Int64s, Operator, OperatorContext, OperatorSnapshot
from flowsql_runtime.state.arrow_words import array_of_words
from flowsql_runtime.state.names import StateNames
from flowsql_runtime.window.row_order import row_order
from flowsql_runtime.window.row_time import milliseconds_of
from flowsql_runtime.window.slices import Slicing
from flowsql_runtime.window.zone import rowtime_ms, to_epoch_ms, to_local_ms

Int32s = npt.NDArray[np.int32]

LATE: Final = "late"


class EmittingWindowOperator(Operator[EmittingWindowSpec]):
    """Aggregate per key and window of TUMBLE or HOP; a result leaves when a row changes it.

    In     any changelog, hash-partitioned by ``spec.grouping``.
    Out    with ``early``: each change of a window's result, as of a group aggregate. Without: the result when the
           watermark passes the window's end, then each change by a late row. A row of several windows changes the
           latest one first.
    State  accumulators by (window end, key), until ``spec.lateness_ms`` behind the window's end.
    Late   a row whose windows are all forgotten is dropped, counted and sent to side output ``late``.

    Source: Flink, ``AggregateWindowOperator`` with ``AfterEndOfWindow`` and its early and late firings.
    """

    def __init__(self, spec: EmittingWindowSpec) -> None:
        super().__init__(spec)
        self._slicing = Slicing.of(spec.window)
        self._program = AggregateProgram(spec.calls, spec.input, spec.input_retracts, clear_at_zero=False)

    def open(self, ctx: OperatorContext) -> None:
        """Make the state."""
        types = [to_arrow(self.spec.input[column].type) for column in self.spec.grouping]
        self._index = ctx.state.window_index(types)
        self._program.open(ctx.state, self._index, "window")
        ctx.tell(Waiting, self._earliest_open)

    def _earliest_open(self) -> Waiting | None:
        ends, window = self._index.namespaces(), self.spec.window
        dues, start = self._trigger_ms(ends), self._slicing.start
        passed = self.ctx.clock.now_ms() if window.processing_time else self.current_watermark
        return earliest("window", ends, dues, passed, start, window.zone, window.processing_time)

    def state_names(self, arriving: Sequence[Lineage]) -> StateNames:
        """Accumulators by window."""
        columns, window = arriving[0].columns, self.spec.window
        shape = [window.kind.value, f"size {window.size_ms} ms", f"step {window.step_ms} ms"]
        shape += ["processing time" if window.processing_time else "event time"]
        shape += [] if window.zone is None else [window.zone]
        shape += [] if window.time_index is None else [columns[window.time_index]]
        facts = {"window": ", ".join(shape), "kept by": "window"}
        keys = tuple(columns[index] for index in self.spec.grouping)
        return StateNames(
            keys,
            self._program.table_names(columns, "window"),
            facts,
            retracts=self._program.retracts,
            made_with={"offset": f"{window.offset_ms} ms", "early and late answers": self._answers()},
        )

    def _answers(self) -> str:
        return "early and late, with each row" if self.spec.early else "late, with each row"

    def initialize_state(self, snapshot: OperatorSnapshot | None) -> None:
        """Windows of the clock are waited for."""
        if self.spec.window.processing_time:
            self._wait_for(self._index.namespaces())

    def _wait_for(self, ends: Int64s) -> None:
        triggers = np.unique(self._trigger_ms(ends))
        self.ctx.timers.register_processing_timers(triggers, np.zeros(len(triggers), np.int64))

    def _trigger_ms(self, ends: Int64s) -> Int64s:
        """When windows end: their last millisecond, on the scale of the watermark or the clock."""
        return to_epoch_ms(ends - 1, self.spec.window.zone)

    # -- rows

    def process_batch(self, input_index: int, batch: ChangelogBatch) -> None:
        """Rows between two watermarks that end or forget a window, then those windows."""
        before = self.current_watermark
        track = self.advance_track(input_index, batch.track)
        batch = batch.with_track(None)
        if self.spec.window.processing_time:
            now = self.ctx.clock.now_ms()
            times = np.full(batch.num_rows, now, np.int64)
            levels = np.full(batch.num_rows, MIN_WATERMARK, np.int64)
        else:
            assert self.spec.window.time_index is not None
            times = milliseconds_of(batch.columns[self.spec.window.time_index])
            levels = watermark_per_row(batch.num_rows, track, before)
        slices = self._slicing.slice_end(to_local_ms(times, self.spec.window.zone))
        rows, ends = self._slicing.windows(slices)
        order = row_order((-ends, rows))
        rows, ends = rows[order], ends[order]
        triggers = self._trigger_ms(ends)
        marks = np.zeros(0, np.int64) if track is None else track.wm_ms
        start = done = 0
        for mark in map(int, np.append(self._reaching(marks, before, triggers), len(marks))):
            stop = batch.num_rows if track is None or mark == len(marks) else int(track.offsets[mark])
            within = None
            if track is not None and mark > done:
                within = WatermarkTrack(track.offsets[done:mark], marks[done:mark])
            first, last = np.searchsorted(rows, (start, stop))
            part = slice(int(first), int(last))
            self._take_in(batch, rows[part], ends[part], triggers[part], levels, (start, stop), within)
            if mark < len(marks):
                self._close(before, int(marks[mark]))
                self.output.emit_watermark(Watermark(int(marks[mark])))
                before = int(marks[mark])
            start, done = stop, mark + 1
        if track is not None:
            self._closed_ms = track.last_ms

    def _reaching(self, marks: Int64s, before: int, triggers: Int64s) -> npt.NDArray[np.int64]:
        """Which watermarks end or forget a window; ``triggers``: of the windows of this batch."""
        if self.spec.window.processing_time or not len(marks):
            return np.zeros(0, np.int64)
        known = np.unique(np.concatenate((triggers, self._trigger_ms(self._index.namespaces()))))
        times = np.union1d(known, known + self.spec.lateness_ms)
        return np.flatnonzero(np.diff(np.searchsorted(times, np.concatenate(([before], marks)), side="right")))

    def _take_in(
        self,
        batch: ChangelogBatch,
        rows: Int64s,
        ends: Int64s,
        triggers: Int64s,
        levels: Int64s,
        part: tuple[int, int],
        track: WatermarkTrack | None,
    ) -> None:
        """Fold rows, each for each of its windows, and answer for the windows that a row changes visibly.

        Args:
            rows: positions in the batch (n,), within ``part``; ``ends``, ``triggers``: of the windows, likewise.
            levels: the watermark before each row of the batch. ``track``: watermarks between the rows.
        """
        open_yet = triggers + self.spec.lateness_ms > levels[rows]
        late = np.zeros(part[1] - part[0], np.bool_)
        late[rows - part[0]] = True
        late[rows[open_yet] - part[0]] = False
        if late.any():
            self.ctx.metrics.count("numLateRecordsDropped", int(late.sum()))
            self.output.collect_side(LATE, batch.take(part[0] + np.flatnonzero(late)))
        rows, ends, triggers = rows[open_yet], ends[open_yet], triggers[open_yet]
        if not len(rows):
            self._pass_time(track)
            return
        given = batch.take(rows)
        keys = [given.columns[column] for column in self.spec.grouping]
        slots, fresh = self._index.find_or_insert(self._index.encode(keys, ends))
        if self.spec.window.processing_time and len(fresh):
            self._wait_for(ends[fresh])
        signs = signs_of(given)
        late_rows: npt.NDArray[np.bool_] = triggers <= levels[rows]
        visible = self._visible(slots, late_rows)
        if not visible.all():
            quiet = np.flatnonzero(~visible)
            part_of = given.take(quiet)
            self._program.fold(slots[quiet], part_of.columns, signs[quiet], every=False)
            self._kept_quiet(slots[quiet], late_rows[quiet])
        if not visible.any():
            self._pass_time(track)
            return
        loud = np.flatnonzero(visible)
        if track is not None:
            track = WatermarkTrack(np.searchsorted(rows[loud], track.offsets).astype(np.int32), track.wm_ms)
        part_of = (given if len(loud) == len(rows) else given.take(loud)).with_track(track)
        self._answer(part_of, slots[loud], ends[loud], triggers[loud], signs[loud])

    def _visible(self, slots: Int32s, late: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        """Which rows answer at once. ``late``: whether each came behind the end of its window."""
        return self.spec.early | late

    def _kept_quiet(self, slots: Int32s, late: npt.NDArray[np.bool_]) -> None:
        """Rows were taken in without an answer."""

    def _pass_time(self, track: WatermarkTrack | None) -> None:
        if track is not None:
            self.output.emit_watermark(Watermark(track.last_ms))

    def _answer(
        self, batch: ChangelogBatch, slots: Int32s, ends: Int64s, triggers: Int64s, signs: npt.NDArray[np.int8]
    ) -> None:
        """Every change of these rows."""
        changes = self._program.fold(slots, batch.columns, signs, every=True)
        keys = [batch.columns[column] for column in self.spec.grouping]
        properties = self._properties(ends, triggers)
        out = changelog_of(
            changes,
            [*keys, *properties],
            batch.track,
            emit_update_before=self.spec.emit_update_before,
            emit_unchanged=False,
            in_order=True,
        )
        if out.num_rows or out.track is not None:
            first, last = len(keys), len(keys) + len(properties)
            columns = (*out.columns[:first], *out.columns[last:], *out.columns[first:last])
            self.collect_within_offsets(out.with_columns(columns))

    def _properties(self, ends: Int64s, triggers: Int64s) -> list[Any]:
        """Columns of the windows' properties."""
        made = []
        schema = self.spec.output[len(self.spec.output) - len(self.spec.properties) :]
        for property_, column in zip(self.spec.properties, schema, strict=True):
            values, known = triggers, None
            match property_:
                case WindowProperty.START:
                    values = self._slicing.start(ends)
                case WindowProperty.END:
                    values = ends
                case WindowProperty.TIME:
                    values = rowtime_ms(ends, self.spec.window.zone)
                case WindowProperty.PROCTIME:
                    known = np.full(len(ends), self.spec.window.processing_time)
            made.append(array_of_words([values], known, to_arrow(column.type)))
        return made

    # -- time

    def on_watermark(self, watermark_ms: int) -> None:
        """A watermark between batches; ends that had been reached before have nothing left to say."""
        if not self.spec.window.processing_time:
            self._close(self._closed_ms, watermark_ms)

    _closed_ms = MIN_WATERMARK

    def restore_watermarks(self, watermarks_ms: tuple[int, ...]) -> None:
        """What had ended before the snapshot does not end again."""
        super().restore_watermarks(watermarks_ms)
        if watermarks_ms:
            self._closed_ms = watermarks_ms[0]

    def on_processing_timers(self, times_ms: Int64s, slots: Int64s) -> None:
        """The clock passed the end of windows."""
        self._close(MIN_WATERMARK, int(times_ms[-1]))

    def _close(self, before: int, until: int) -> None:
        """Windows that end in ``(before, until]`` answer, those that are over are forgotten."""
        self._closed_ms = until
        ends = self._index.namespaces()
        triggers = self._trigger_ms(ends)
        due = ends[triggers <= until]
        if not len(due):
            return
        windows, slots = self._index.up_to(int(due[-1]))
        ended = self._trigger_ms(windows) > before
        self._end(slots[ended], windows[ended])
        self._forget(slots[self._trigger_ms(windows) + self.spec.lateness_ms <= until])

    def _end(self, slots: Int32s, windows: Int64s) -> None:
        """Windows end: those that said nothing answer."""
        if not self.spec.early:
            self._show(slots, windows)

    def _forget(self, slots: Int32s) -> None:
        self._program.forget(slots)
        self._index.remove(slots)

    def _show(self, slots: Int32s, windows: Int64s) -> None:
        """The first answer of windows that have rows."""
        filled = np.flatnonzero(self._program.store.row_counts(slots))
        if not len(filled):
            return
        slots, windows = np.ascontiguousarray(slots[filled]), windows[filled]
        results = self._program.results_at(slots)
        columns = (*self._index.columns_at(slots), *results, *self._properties(windows, self._trigger_ms(windows)))
        self.collect_within_offsets(ChangelogBatch(columns, len(slots)))
