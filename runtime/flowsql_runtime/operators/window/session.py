"""Session windows: aggregates per key and session, and rows with the bounds of their session."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, Final, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flowsql_compute.eval.columns import values_and_validity
from flowsql_core.batch import ChangelogBatch, WatermarkTrack, watermark_per_row
from flowsql_core.element import MIN_WATERMARK
from flowsql_core.graph.lineage import Lineage
from flowsql_core.graph.specs import OperatorSpec, WindowProperty, WindowSpec
from flowsql_core.graph.window_specs import SessionAggregateSpec, SessionTableFunctionSpec
from flowsql_core.types.arrow import to_arrow
from flowsql_core.types.logical import Schema
from flowsql_runtime.metrics.told import Waiting
from flowsql_runtime.operators.aggregate.group import signs_of
from flowsql_runtime.operators.aggregate.program import AggregateProgram
from flowsql_runtime.operators.base import Int64s, Operator, OperatorContext, OperatorSnapshot
from flowsql_runtime.operators.window.session_state import Closed, SessionState, Step
from flowsql_runtime.state.arrow_words import array_of_words
from flowsql_runtime.state.flat_rows import flat_columns, flat_types, whole_columns
from flowsql_runtime.state.names import StateNames, TableNames
from flowsql_runtime.window.row_order import row_order
from flowsql_runtime.window.row_time import milliseconds_of
from flowsql_runtime.window.zone import rowtime_ms, to_local_ms

Bools = npt.NDArray[np.bool_]
Int32s = npt.NDArray[np.int32]
Int8s = npt.NDArray[np.int8]
S = TypeVar("S", bound=OperatorSpec)

LATE: Final = "late"
_ROWS: Final = "rows"


class SessionOperator(Operator[S]):
    """What operators over sessions share: rows find their sessions, sessions close in order.

    ``keys``: columns that sessions are by. ``in_order``: it matters which rows a session had when another took it in.
    """

    keys: tuple[int, ...]
    window: WindowSpec
    in_order: bool
    input: Schema
    output_schema: Schema

    def open(self, ctx: OperatorContext) -> None:
        """Make the state."""
        types = [to_arrow(self.input[column].type) for column in self.keys]
        self._sessions = SessionState(ctx.state, types, self.window.size_ms, self.window.zone)
        self._rows_taken = 0
        self._alarm_ms: int | None = None
        ctx.tell(Waiting, self._earliest_open)

    def _earliest_open(self) -> Waiting | None:
        due = self._sessions.earliest()
        if due is None:
            return None
        end = int(to_local_ms(np.array([due + 1]), self.window.zone)[0])
        return Waiting("session", 1, None, end, due, self.window.zone, self.window.processing_time)

    def window_facts(self, columns: Sequence[str]) -> dict[str, str]:
        """What makes kept sessions good for another query."""
        window = self.window
        shape = [window.kind.value, f"gap {window.size_ms} ms"]
        shape += ["processing time" if window.processing_time else "event time"]
        shape += [] if window.zone is None else [window.zone]
        shape += [] if window.time_index is None else [columns[window.time_index]]
        return {"window": ", ".join(shape)}

    def initialize_state(self, snapshot: OperatorSnapshot | None) -> None:
        """Rows are numbered on; sessions of the clock are waited for."""
        taken = self.ctx.operator_state.union_state(_ROWS)
        if taken:
            self._rows_taken = max(int(rows) for rows in taken)
        self._set_alarm()

    def snapshot_state(self, checkpoint_id: int) -> OperatorSnapshot:
        """How many rows were taken."""
        self.ctx.operator_state.union_state(_ROWS)[:] = [str(self._rows_taken).encode()]
        return super().snapshot_state(checkpoint_id)

    # -- rows

    def process_batch(self, input_index: int, batch: ChangelogBatch) -> None:
        """Put rows into sessions, then close what the batch's watermarks close."""
        before = self.current_watermark
        track = self.advance_track(input_index, batch.track)
        batch = batch.with_track(None)
        if self.window.processing_time:
            if batch.num_rows:
                now = self.ctx.clock.now_ms()
                self._close(now, None)
                times = np.full(batch.num_rows, now, np.int64)
                self._add(batch, times, np.full(batch.num_rows, MIN_WATERMARK, np.int64))
                self._set_alarm()
            if track is not None:
                self.output.collect(self._empty(track))
            return
        if batch.num_rows:
            assert self.window.time_index is not None
            times = milliseconds_of(batch.columns[self.window.time_index])
            self._add(batch, times, watermark_per_row(batch.num_rows, track, before))
        if track is not None:
            self._close(track.last_ms, track)

    def _add(self, batch: ChangelogBatch, times: Int64s, levels: Int64s) -> None:
        keys = [batch.columns[column] for column in self.keys]
        times = to_local_ms(times, self.window.zone)
        step = self._sessions.add(keys, times, levels, self._rows_taken, self.in_order)
        first, self._rows_taken = self._rows_taken, self._rows_taken + batch.num_rows
        of_row = step.walk.of_row
        rows = None
        late = of_row < 0
        if late.any():
            self.ctx.metrics.count("numLateRecordsDropped", int(late.sum()))
            self.output.collect_side(LATE, batch.take(np.flatnonzero(late)))
            rows = np.flatnonzero(~late)
            batch, of_row = batch.take(rows), of_row[rows]
        numbers = first + (np.arange(batch.num_rows) if rows is None else rows)
        if not self.in_order:
            for takers, taken in self._merges_at_once(step):
                self.merge(takers, taken)
            if batch.num_rows:
                self.keep(step.slots[step.roots[of_row]], batch, numbers)
        else:
            self._in_rounds(step, batch, of_row, step.walk.rounds if rows is None else step.walk.rounds[rows], numbers)
        self._sessions.settle(step)

    @staticmethod
    def _merges_at_once(step: Step) -> list[tuple[Int32s, Int32s]]:
        """Slots of sessions and of those that end up in them, in rounds of distinct takers."""
        taken = np.flatnonzero((step.walk.into >= 0) & (step.slots >= 0)).astype(np.int32)
        takers = step.roots[taken]
        rounds = []
        while len(taken):
            _, firsts = np.unique(takers, return_index=True)
            rounds.append((step.slots[takers[firsts]], step.slots[taken[firsts]]))
            rest = np.ones(len(taken), np.bool_)
            rest[firsts] = False
            taken, takers = taken[rest], takers[rest]
        return rounds

    def _in_rounds(self, step: Step, batch: ChangelogBatch, of_row: Int32s, rounds: Int32s, numbers: Int64s) -> None:
        """Rows that came before a merge are kept before it: all of one round together."""
        merges = step.walk.merges
        last = int(merges[:, 2].max(initial=-1)) + 1
        for number in range(last + 1):
            rows = np.flatnonzero(rounds == number) if last else None
            if rows is None:
                self.keep(step.slots[of_row], batch, numbers) if batch.num_rows else None
            elif len(rows):
                self.keep(step.slots[of_row[rows]], batch.take(rows), numbers[rows])
            now = merges[merges[:, 2] == number]
            if len(now):
                self.merge(step.slots[now[:, 0]], step.slots[now[:, 1]])

    @abstractmethod
    def keep(self, slots: Int32s, batch: ChangelogBatch, numbers: Int64s) -> None:
        """Take rows into their sessions. ``numbers``: of the rows among all of the operator."""

    @abstractmethod
    def merge(self, takers: Int32s, taken: Int32s) -> None:
        """Sessions take others in, pairwise; nothing is left by the slots of ``taken``."""

    @abstractmethod
    def answer(self, closed: Closed) -> tuple[ChangelogBatch, Int64s]:
        """Rows of closed sessions, and when the session of each closed; then nothing is left by their slots."""

    # -- closing

    def on_watermark(self, watermark_ms: int) -> None:
        """A watermark between batches."""
        if not self.window.processing_time:
            self._close(watermark_ms, None)

    def on_processing_timers(self, times_ms: Int64s, slots: Int64s) -> None:
        """The clock passed the end of sessions."""
        self._alarm_ms = None
        self._close(max(int(times_ms[-1]), self.ctx.clock.now_ms()), None)
        self._set_alarm()

    def _set_alarm(self) -> None:
        earliest = self._sessions.earliest() if self.window.processing_time else None
        if earliest is not None and (self._alarm_ms is None or earliest < self._alarm_ms):
            self._alarm_ms = earliest
            self.ctx.timers.register_processing_timers(np.array([earliest], np.int64), np.zeros(1, np.int64))

    def _close(self, until: int, track: WatermarkTrack | None) -> None:
        closed = self._sessions.due(until)
        if closed is None or not len(closed.slots):
            if track is not None:
                self.output.collect(self._empty(track))
            return
        batch, triggers = self.answer(closed)
        self._sessions.drop(closed)
        if track is not None:
            offsets = np.searchsorted(triggers, track.wm_ms, side="right").astype(np.int32)
            batch = batch.with_track(WatermarkTrack(offsets, track.wm_ms))
        if batch.num_rows or track is not None:
            self.collect_within_offsets(batch)

    def _empty(self, track: WatermarkTrack) -> ChangelogBatch:
        columns = tuple(pa.nulls(0, to_arrow(column.type)) for column in self.output_schema)
        return ChangelogBatch(columns, 0, None, None, WatermarkTrack(np.zeros(len(track), np.int32), track.wm_ms))


class SessionAggregateOperator(SessionOperator[SessionAggregateSpec]):
    """One row per key and session, when the watermark (or the clock) passes the session's last millisecond.

    In     any changelog, hash-partitioned by ``spec.grouping``.
    Out    +I rows: grouping columns, results, window properties; sessions in the order in which they close.
    State  by session its bounds and accumulators, or the rows themselves where accumulators do not merge.
    Late   a row that would open a session which has closed is dropped, counted and sent to side output ``late``.
           Sessions of the clock that are open at the end of input are dropped.

    Source: Flink, ``WindowAggOperator`` over ``UnsliceWindowAggProcessor``; ``MergingWindowProcessFunction``.
    """

    def __init__(self, spec: SessionAggregateSpec) -> None:
        super().__init__(spec)
        self.keys, self.window, self.input, self.output_schema = spec.grouping, spec.window, spec.input, spec.output
        self._program = self.make_program()
        self._merges = self._program.mergeable
        self.in_order = not (self._merges and self._program.commutes)
        #: Columns of rows that are kept.
        self._kept = () if self._merges else self._program.columns_read

    def make_program(self) -> AggregateProgram:
        """The calls."""
        spec = self.spec
        return AggregateProgram(spec.calls, spec.input, spec.input_retracts, clear_at_zero=False)

    def open(self, ctx: OperatorContext) -> None:
        """Make the state."""
        super().open(ctx)
        self._program.open(ctx.state, self._sessions.index, "window")
        self._types = [to_arrow(self.input[column].type) for column in self._kept]
        flat = [part for type_ in self._types for part in flat_types(type_)]
        self._rows = None if self._merges else ctx.state.row_list("rows", self._sessions.index, [pa.int8(), *flat])

    def state_names(self, arriving: Sequence[Lineage]) -> StateNames:
        """Bounds of sessions, and accumulators or rows by session."""
        columns = arriving[0].columns
        tables = dict(self._program.table_names(columns, "window")) | SessionState.table_names()
        if not self._merges:
            tables["rows"] = kept_names(columns, self._kept, self.input, ("sign",))
        keys = tuple(columns[index] for index in self.keys)
        return StateNames(keys, tables, self.window_facts(columns), retracts=self._program.retracts)

    def keep(self, slots: Int32s, batch: ChangelogBatch, numbers: Int64s) -> None:
        """Fold rows, or keep them until their session closes."""
        signs = signs_of(batch)
        if self._rows is None:
            self._program.take_in(slots, batch.columns, signs)
            return
        flat = [part for column in self._kept for part in flat_columns(batch.columns[column])]
        self._rows.append(slots, [pa.array(signs), *flat])

    def merge(self, takers: Int32s, taken: Int32s) -> None:
        """Accumulators add up; rows of the session taken in come behind those of the other."""
        if self._rows is None:
            self._program.merge_slots(takers, taken)
            return
        places, rows = self._rows.rows_of(taken)
        columns = list(self._rows.gather(rows))
        self._rows.drop_slots(taken)
        self._rows.append(takers[places], columns)

    def answer(self, closed: Closed) -> tuple[ChangelogBatch, Int64s]:
        """A row of each session that has any."""
        if self._rows is not None:
            places, rows = self._rows.rows_of(closed.slots)
            signs, *flat = self._rows.gather(rows)
            columns: list[Any] = [None] * len(self.input)
            for column, values in zip(self._kept, whole_columns(self._types, flat), strict=True):
                columns[column] = values
            self._program.fold(closed.slots[places], columns, values_and_validity(signs)[0], every=False)
            self._rows.drop_slots(closed.slots)
        shown = np.arange(len(closed.slots))
        if self.spec.input_retracts:
            shown = np.flatnonzero(self._program.store.row_counts(closed.slots))
        slots = np.ascontiguousarray(closed.slots[shown])
        made: list[Any] = [*self._sessions.index.columns_at(slots), *self._program.results_at(slots)]
        times = rowtime_ms(closed.ends, self.window.zone)
        bounds = {WindowProperty.START: closed.starts, WindowProperty.END: closed.ends, WindowProperty.TIME: times}
        for property_ in self.spec.properties:
            values = bounds.get(property_, closed.triggers)[shown]
            known = None
            if property_ is WindowProperty.PROCTIME:
                known = np.full(len(values), self.window.processing_time)
            made.append(array_of_words([values], known, to_arrow(self.spec.output[len(made)].type)))
        self._program.forget(closed.slots)
        return ChangelogBatch(tuple(made), len(shown)), closed.triggers[shown]


class SessionTableFunctionOperator(SessionOperator[SessionTableFunctionSpec]):
    """Append window_start, window_end and window_time to the rows of a session when it closes.

    In     any changelog, hash-partitioned by ``spec.partition``.
    Out    the rows with their kinds; sessions in the order in which they close, rows in the order in which they came.
    State  the rows of open sessions.
    Late   as of :class:`SessionAggregateOperator`.

    Source: Flink, ``UnalignedWindowTableFunctionOperator``.
    """

    #: What stands before the columns of a row: its number and its kind.
    _BEFORE: Final = (pa.int64(), pa.int8())

    def __init__(self, spec: SessionTableFunctionSpec) -> None:
        super().__init__(spec)
        self.keys, self.window, self.input, self.output_schema = spec.partition, spec.window, spec.input, spec.output
        self.in_order = False

    def open(self, ctx: OperatorContext) -> None:
        """Make the state."""
        super().open(ctx)
        self._types = [to_arrow(column.type) for column in self.input]
        flat = [part for type_ in self._types for part in flat_types(type_)]
        self._rows = ctx.state.row_list("rows", self._sessions.index, [*self._BEFORE, *flat])

    def state_names(self, arriving: Sequence[Lineage]) -> StateNames:
        """Bounds of sessions, and their rows."""
        columns = arriving[0].columns
        rows = kept_names(columns, range(len(self.input)), self.input, ("number", "kind"))
        keys = tuple(columns[index] for index in self.keys)
        return StateNames(keys, {"rows": rows} | SessionState.table_names(), self.window_facts(columns))

    def keep(self, slots: Int32s, batch: ChangelogBatch, numbers: Int64s) -> None:
        """Keep rows."""
        kinds = np.zeros(batch.num_rows, np.int8) if batch.kinds is None else batch.kinds.astype(np.int8)
        flat = [part for column in batch.columns for part in flat_columns(column)]
        self._rows.append(slots, [pa.array(numbers), pa.array(kinds), *flat])

    def merge(self, takers: Int32s, taken: Int32s) -> None:
        """Rows move."""
        places, rows = self._rows.rows_of(taken)
        columns = list(self._rows.gather(rows))
        self._rows.drop_slots(taken)
        self._rows.append(takers[places], columns)

    def answer(self, closed: Closed) -> tuple[ChangelogBatch, Int64s]:
        """All rows, by session and number."""
        places, rows = self._rows.rows_of(closed.slots)
        numbers = values_and_validity(self._rows.gather(rows)[0])[0]
        order = row_order((numbers, places))
        places = places[order]
        _, kinds, *flat = self._rows.gather(rows[order])
        made = whole_columns(self._types, flat)
        for values in (closed.starts, closed.ends, rowtime_ms(closed.ends, self.window.zone)):
            made.append(array_of_words([values[places]], None, to_arrow(self.output_schema[len(made)].type)))
        self._rows.drop_slots(closed.slots)
        found = values_and_validity(kinds)[0].astype(np.uint8)
        batch = ChangelogBatch(tuple(made), len(places), found if found.any() else None)
        return batch, closed.triggers[places]


def kept_names(columns: Sequence[str], kept: Sequence[int], input: Schema, before: Sequence[str]) -> TableNames:
    """A table that keeps flat columns of the input behind some of its own."""
    texts = list(before)
    for index in kept:
        parts = len(flat_types(to_arrow(input[index].type)))
        texts += [columns[index] if parts == 1 else f"{columns[index]} part {part}" for part in range(parts)]
    return TableNames("rows of sessions", {f"r{place}": text for place, text in enumerate(texts)})
