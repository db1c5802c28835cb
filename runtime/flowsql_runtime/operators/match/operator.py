"""MATCH_RECOGNIZE: rows of each partition in their order, fed to the pattern."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flowsql_compute.eval.columns import values_and_validity
from flowsql_compute.eval.compile import compile_projections
from flowsql_core.batch import ChangelogBatch, WatermarkTrack, watermark_per_row
from flowsql_core.column_bytes import joined, narrow, taken
from flowsql_core.element import Watermark
from flowsql_core.graph.lineage import Lineage
from flowsql_core.graph.match_specs import MatchSpec
from flowsql_core.types.arrow import to_arrow
from flowsql_core.types.logical import Column
from flowsql_runtime.kernels.match import (
    COUNTS,
    FINAL,
    MATCH_FIRE,
    MATCH_KEY,
    MATCH_RANK,
    MATCH_ROW,
    MATCH_RUN,
    MATCH_TIME,
    NOT_STARTED,
    START,
    STATE,
)
from flowsql_runtime.metrics.told import Waiting, earliest
from flowsql_runtime.operators.base import Operator, OperatorContext
from flowsql_runtime.operators.evaluation import eval_context
from flowsql_runtime.operators.match.expressions import MatchExpressions, Places
from flowsql_runtime.operators.match.walker import KeyRows, Runs, Walker
from flowsql_runtime.operators.rank.order import sort_columns
from flowsql_runtime.operators.rank.sort import sorted_rows
from flowsql_runtime.state.flat_rows import flat_columns, flat_types, whole_columns
from flowsql_runtime.state.names import StateNames, TableNames, row_names
from flowsql_runtime.state.stores import SortColumn
from flowsql_runtime.window.row_time import milliseconds_of

Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]

#: No moment at which a match takes too long.
_NEVER: Final = np.iinfo(np.int64).max


class MatchOperator(Operator[MatchSpec]):
    """Rows of each partition that match a pattern.

    In     append-only batches, hash-partitioned by ``spec.partition``.
    Out    append-only: a row for each match, when the row that completes it is taken in: in row time once the watermark
           has reached that row. A match that an older partial one may rule out waits for that one's end.
    State  rows that wait for the watermark, by time and key; by key the rows of partial and of waiting matches, and
           what these matches are; WITHIN bounds all but the rows that wait.
    Late   a row that the watermark had reached before it came is dropped and counted.

    Source: Flink, ``CepOperator`` and ``NFA``.
    """

    def __init__(self, spec: MatchSpec) -> None:
        super().__init__(spec)
        self._names = [variable.name for variable in spec.variables]
        made = (Column(f"$c{place}", expr.type) for place, expr in enumerate(spec.computed))
        self._stored = (*spec.input, *made)
        self._types = [to_arrow(column.type) for column in self._stored]

    def open(self, ctx: OperatorContext) -> None:
        """Make the state, compile expressions."""
        spec, context = self.spec, eval_context(ctx)
        flat = [part for type_ in self._types for part in flat_types(type_)]
        keys = [self._types[index] for index in spec.partition]
        self._waiting_index = ctx.state.window_index(keys)
        self._waiting = ctx.state.row_list("waiting", self._waiting_index, flat)
        self._index = ctx.state.key_index(keys)
        self._held = ctx.state.row_fifo("held", self._index, [*flat, pa.int64()])
        counts = [pa.int32()] * len(spec.variables)
        self._runs = ctx.state.row_list("runs", self._index, [pa.int32(), pa.int32(), pa.bool_(), *counts])
        self._alarms = ctx.state.timers("alarms", self._index)
        if spec.row_time:
            ctx.tell(Waiting, self._earliest_open)
        self._compute = compile_projections(spec.computed, context)
        self._walker = Walker(spec, self._stored, context, lambda n: ctx.metrics.count("numConditionsAskedInPython", n))
        self._measures = MatchExpressions(spec.measures, self._stored, context)

    def _earliest_open(self) -> Waiting | None:
        times = self._waiting_index.namespaces()
        return earliest("row", times, times, self.current_watermark)

    def state_names(self, arriving: Sequence[Lineage]) -> StateNames:
        """Rows and runs by key; the pattern must be the same."""
        spec, columns = self.spec, arriving[0].columns
        texts = [
            f"{text} [{part}]" if part else text
            for text, column in zip((*columns, *map(str, spec.computed)), self._stored, strict=True)
            for part in range(len(flat_types(to_arrow(column.type))))
        ]
        runs = ("start", "state", "complete", *(f"rows of {name}" for name in self._names))
        tables = {
            "waiting": row_names("rows that wait", texts),
            "held": row_names("rows of matches", [*texts, "time"]),
            "runs": row_names("matches", runs),
            "alarms": TableNames("when matches take too long"),
        }
        pattern = "; ".join(str(variable) for variable in spec.variables)
        after = f"{spec.skip.value} {spec.skip_variable}, within {spec.within_ms}"
        order = ", ".join(columns[index] for index, *_ in spec.order)
        facts = {"pattern": pattern, "after a match": after, "order": order}
        return StateNames(tuple(columns[index] for index in spec.partition), tables, facts)

    # Rows come

    def process_batch(self, input_index: int, batch: ChangelogBatch) -> None:
        """Rows wait for the watermark; in processing time they are taken at once."""
        before = self.current_watermark
        track = self.advance_track(input_index, batch.track)
        n = batch.num_rows
        time_index = self.spec.order[0][0]
        if not self.spec.row_time:
            times = np.full(n, self.ctx.clock.now_ms(), np.int64)
            self._go(self._stored_columns(batch), times, np.zeros(n, np.int64), None)
            if track is not None:
                self.output.emit_watermark(Watermark(track.last_ms))
            return
        times = milliseconds_of(batch.columns[time_index]) if n else np.zeros(0, np.int64)
        late = times <= watermark_per_row(n, track, before)
        if late.any():
            self.ctx.metrics.count("numLateRecordsDropped", int(late.sum()))
            kept = np.flatnonzero(~late)
            batch, times = batch.with_track(None).take(kept), times[kept]
        columns = self._stored_columns(batch)
        if track is None:
            self._wait(columns, times)
            return
        due = times <= track.last_ms
        own, rest = np.flatnonzero(due), np.flatnonzero(~due)
        self._fire([taken(column, own) for column in columns], times[own], track)
        self._wait([taken(column, rest) for column in columns], times[rest])

    def on_watermark(self, watermark_ms: int) -> None:
        """A watermark between batches; it goes on by itself."""
        if self.spec.row_time:
            nothing = [pa.nulls(0, type_) for type_ in self._types]
            track = WatermarkTrack(np.zeros(1, np.int32), np.array([watermark_ms]))
            self._fire(nothing, np.zeros(0, np.int64), track, forward=False)

    def _stored_columns(self, batch: ChangelogBatch) -> list[Any]:
        columns = [batch.columns[index] for index in range(len(self.spec.input))]
        return [*columns, *self._compute(columns, batch.num_rows)]

    def _wait(self, columns: Sequence[Any], times: Int64s) -> None:
        if len(times):
            keys = [columns[index] for index in self.spec.partition]
            slots, _ = self._waiting_index.find_or_insert(self._waiting_index.encode(keys, times, len(times)))
            self._waiting.append(slots, [part for column in columns for part in flat_columns(column)])

    # Rows are taken

    def _fire(self, columns: list[Any], times: Int64s, track: WatermarkTrack, forward: bool = True) -> None:
        """Rows that watermarks reach, with those that wait for them, by time and the other columns of the order."""
        stored_times, slots = self._waiting_index.up_to(track.last_ms)
        if len(slots):
            positions, rows = self._waiting.rows_of(slots)
            waited = whole_columns(self._types, self._waiting.gather(rows))
            columns = [joined([old, new]) for old, new in zip(waited, columns, strict=True)]
            times = np.concatenate([stored_times[positions], times])
            self._waiting.drop_slots(slots)
            self._waiting_index.remove(slots)
        if len(self.spec.order) > 1 and len(times):
            keys = sort_columns(self.spec.order[1:], self.spec.input)
            order = [SortColumn(place + 1, key.ascending, key.nulls_first) for place, key in enumerate(keys)]
            by = sorted_rows([pa.array(times), *(columns[k.index] for k in keys)], [SortColumn(0), *order], len(times))
        else:
            by = np.argsort(times, kind="stable").astype(np.int32)
        columns, times = [column.take(pa.array(by)) for column in columns], times[by]
        self._go(columns, times, np.searchsorted(track.wm_ms, times), track, forward)

    def _go(
        self, columns: list[Any], times: Int64s, fires: Int64s, track: WatermarkTrack | None, forward: bool = True
    ) -> None:
        """Feed rows to the pattern, and emit.

        Args:
            columns: of the rows that are taken, in their order.
            times: milliseconds, (n,).
            fires: which watermark of the track lets a row go, (n,).
        """
        n = len(times)
        keys = [columns[index] for index in self.spec.partition]
        slots, _ = self._index.find_or_insert(self._index.encode(keys, num_rows=n))
        alarms = np.zeros(0, np.int32)
        if track is not None:
            alarms = self._alarms.due(track.last_ms)[1]
        touched, firsts, owners = np.unique(np.concatenate([slots, alarms]), return_index=True, return_inverse=True)
        if not len(touched):
            if track is not None and forward:
                self.output.emit_watermark(Watermark(track.last_ms))
            return
        # Keys in the order in which they come.
        order = np.argsort(firsts)
        touched = touched[order].astype(np.int32)
        places = np.empty(len(order), np.int64)
        places[order] = np.arange(len(order))
        rows = self._rows(touched, places[owners[:n]], columns, times, fires)
        runs = self._runs_of(touched)
        before = self._time_outs(rows, runs)
        walked = self._walker.walk(rows, runs, np.zeros(0, np.int64) if track is None else track.wm_ms)
        self._save(touched, rows, walked.left, before)
        self._emit(walked.matches, rows, track, forward)

    def _rows(self, touched: Int32s, owners: Int64s, columns: Sequence[Any], times: Int64s, fires: Int64s) -> KeyRows:
        """Rows of state before those that come."""
        positions, kept = self._held.rows_of(touched)
        *flat, held_times = self._held.gather(kept)
        whole = whole_columns(self._types, flat)
        owners = np.concatenate([positions, owners])
        order = np.argsort(owners, kind="stable")
        steps = np.zeros((3, len(order)), np.int64)
        steps[0] = np.concatenate([values_and_validity(held_times)[0], times])[order]
        steps[1] = np.concatenate([np.zeros(len(kept), np.int64), fires])[order]
        steps[2] = order
        ends = np.cumsum(np.bincount(owners, minlength=len(touched)))
        bounds = np.stack([np.concatenate([[0], ends[:-1]]), ends], axis=1)
        taken_before = np.bincount(positions, minlength=len(touched))
        table = [joined([old, new]) for old, new in zip(whole, columns, strict=True)]
        return KeyRows(bounds, taken_before, order, table, steps)

    def _runs_of(self, touched: Int32s) -> Runs:
        """Runs of state; a key that is new begins with the one that no row has started."""
        owners, kept = self._runs.rows_of(touched)
        starts, states, _, *counts = (values_and_validity(column)[0] for column in self._runs.gather(kept))
        runs = np.stack([starts, states, *counts], axis=1).astype(np.int32, copy=False)
        new = np.flatnonzero(np.bincount(owners, minlength=len(touched)) == 0)
        if not len(new):
            return Runs(owners, np.ascontiguousarray(runs))
        fresh = np.zeros((len(new), runs.shape[1]), np.int32)
        fresh[:, START], fresh[:, STATE] = NOT_STARTED, self._walker.start
        owners = np.concatenate([owners, new.astype(np.int32)])
        order = np.argsort(owners, kind="stable")
        return Runs(owners[order], np.concatenate([runs, fresh])[order])

    def _time_outs(self, rows: KeyRows, runs: Runs) -> Int64s:
        """When the oldest partial match of each key takes too long, (k,); ``_NEVER`` where there is none."""
        found = np.full(len(rows.taken), _NEVER, np.int64)
        if self.spec.within_ms is not None and self.spec.row_time:
            partial = (runs.runs[:, STATE] != FINAL) & (runs.runs[:, START] != NOT_STARTED)
            oldest = runs.starts_of(rows)[partial]
            np.minimum.at(found, runs.owners[partial], rows.steps[0, oldest] + self.spec.within_ms)
        return found

    def _save(self, touched: Int32s, rows: KeyRows, left: Runs, before: Int64s) -> None:
        """Keep the rows of matches that may go on; keys without any go."""
        sizes = rows.bounds[:, 1] - rows.bounds[:, 0]
        after = self._time_outs(rows, left)
        # Every key has a run: the one that no row has started.
        first_runs = np.searchsorted(left.owners, np.arange(len(touched)))
        bases = np.minimum(sizes, np.minimum.reduceat(left.runs[:, START], first_runs).astype(np.int64))
        self._held.drop_first(touched, np.minimum(bases, rows.taken).astype(np.int32))
        within = np.arange(len(rows.rows)) - np.repeat(rows.bounds[:, 0], sizes)
        new = np.flatnonzero(within >= np.repeat(np.maximum(bases, rows.taken), sizes))
        owners = np.repeat(np.arange(len(touched)), sizes)[new]
        if len(new):
            at = pa.array(rows.rows[new])
            flat = [part for column in rows.table for part in flat_columns(column.take(at))]
            self._held.append(touched[owners], [*flat, pa.array(rows.steps[0, new])])
        self._runs.drop_slots(touched)
        alive = (bases < sizes)[left.owners]
        runs, owners = left.runs[alive], left.owners[alive]
        if len(runs):
            started = runs[:, START] != NOT_STARTED
            runs[started, START] -= bases[owners[started]].astype(np.int32)
            numbers = [pa.array(np.ascontiguousarray(column)) for column in runs.T]
            complete = pa.array(runs[:, STATE] == FINAL)
            self._runs.append(touched[owners], [*numbers[:COUNTS], complete, *numbers[COUNTS:]])
        changed = before != after
        for change, times in ((self._alarms.delete, before), (self._alarms.register, after)):
            due = np.flatnonzero(changed & (times != _NEVER))
            if len(due):
                change(times[due], touched[due])
        gone = touched[bases == sizes]
        if len(gone):
            self._index.remove(gone)

    def _emit(self, matches: Int64s, rows: KeyRows, track: WatermarkTrack | None, forward: bool) -> None:
        if not len(matches):
            if track is not None and forward:
                self.output.emit_watermark(Watermark(track.last_ms))
            return
        # Keys of one watermark leave in the order of their timers, as in Flink.
        order = np.lexsort([matches[:, column] for column in (MATCH_ROW, MATCH_RANK, MATCH_FIRE)])
        matches = matches[order]
        starts = rows.bounds[matches[:, MATCH_KEY], 0] + matches[:, MATCH_RUN + START]
        places = Places(
            rows.rows, starts, matches[:, MATCH_RUN + COUNTS :].astype(np.int32), None, matches[:, MATCH_TIME]
        )
        at = pa.array(rows.rows[starts])
        keys = [rows.table[index].take(at) for index in self.spec.partition]
        columns = tuple(narrow(column) for column in (*keys, *self._measures.evaluate(places, rows.table)))
        out = None
        if track is not None and forward:
            offsets = np.searchsorted(matches[:, MATCH_FIRE], np.arange(len(track)), side="right").astype(np.int32)
            out = WatermarkTrack(offsets, track.wm_ms)
        self.collect_within_offsets(ChangelogBatch(columns, len(matches), None, None, out))
