"""MATCH_RECOGNIZE: rows of each partition in their order, fed to the pattern."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

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
from flowsql_core.record import record
from flowsql_core.types.arrow import to_arrow
from flowsql_core.types.logical import Column
from flowsql_runtime.operators.base import Operator, OperatorContext
from flowsql_runtime.operators.evaluation import eval_context
from flowsql_runtime.operators.match.automaton import FINAL, NOT_STARTED, Automaton, KeyMatches, Run
from flowsql_runtime.operators.match.expressions import MatchExpressions, Place
from flowsql_runtime.operators.rank.sort import sorted_rows
from flowsql_runtime.operators.rank.top_n import sort_columns
from flowsql_runtime.state.flat_rows import flat_columns, flat_types, whole_columns
from flowsql_runtime.state.names import StateNames, TableNames, row_names
from flowsql_runtime.state.stores import SortColumn
from flowsql_runtime.window.row_time import milliseconds_of

Bools = npt.NDArray[np.bool_]
Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]


class _Key:
    """A key while a batch is worked on.

    ``rows``: where its rows are in the table, those of state first. ``steps``: rows that come, (watermark that lets it
    go, row of the table, time). ``alarms``: when time-outs are due, as they were kept in state. ``fire``: the watermark
    that is worked on; ``open``: time has not yet reached it; ``rank``: of the key's rows and time-outs in it.
    """

    def __init__(self, slot: int, matches: KeyMatches) -> None:
        self.slot = slot
        self.matches = matches
        self.rows: list[int] = []
        self.steps: list[tuple[int, int, int]] = []
        self.alarms: set[int] = set()
        self.next = 0
        self.fire = 0
        self.open = False
        self.rank = (0, 0)

    def leave(self, found: list[_Match], run: Run, time_ms: int) -> None:
        """A match is told: keys of one watermark in the order of their timers, as in Flink."""
        found.append(_Match((self.fire, *self.rank, len(found)), Place(run, self.rows, None, time_ms)))


@record
class _Step:
    """A row that a key takes next."""

    key: _Key
    row: int
    time_ms: int
    candidates: list[Run]


@record
class _Asks:
    """Conditions of one step: those over the row alone, and those over earlier rows by step, candidate and variable."""

    number: int
    row: int
    by_row: Mapping[int, Bools]
    answers: Mapping[tuple[int, int, int], bool]

    def holds(self, candidate: int, variable: int) -> bool:
        """The condition of a variable; one that has none takes every row."""
        if variable in self.by_row:
            return bool(self.by_row[variable][self.row])
        return self.answers.get((self.number, candidate, variable), True)


@record
class _Match:
    """A match on its way out: ``order`` sorts matches as they leave."""

    order: tuple[int, int, int, int]
    place: Place


class MatchOperator(Operator[MatchSpec]):
    """Rows of each partition that match a pattern.

    In     append-only batches, hash-partitioned by ``spec.partition``.
    Out    append-only: a row for each match, when the row that completes it is taken in: in row time once the watermark
           has reached that row. A match that an older partial one may rule out waits for that one's end.
    State  rows that wait for the watermark, by time and key; by key the rows of partial and of waiting matches, and
           what these matches are; WITHIN bounds all but the rows that wait.
    Late   a row that the watermark had reached before it came is dropped and counted.

    All keys of a batch go forward together, a row each, so that a condition over earlier rows is asked once a step.

    Source: Flink, ``CepOperator`` and ``NFA``.
    """

    def __init__(self, spec: MatchSpec) -> None:
        super().__init__(spec)
        self._automaton = Automaton(spec.variables)
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
        self._held = ctx.state.row_list("held", self._index, [*flat, pa.int64()])
        counts = [pa.int32()] * len(spec.variables)
        self._runs = ctx.state.row_list("runs", self._index, [pa.int32(), pa.int32(), pa.bool_(), *counts])
        self._alarms = ctx.state.timers("alarms", self._index)
        self._compute = compile_projections(spec.computed, context)
        self._conditions = {
            place: MatchExpressions([variable.path_condition], self._stored, context)
            for place, variable in enumerate(spec.variables)
            if variable.path_condition is not None
        }
        self._measures = MatchExpressions(spec.measures, self._stored, context)

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
        alarm_times, alarm_slots = np.zeros(0, np.int64), np.zeros(0, np.int32)
        if track is not None:
            alarm_times, alarm_slots = self._alarms.due(track.last_ms)
        touched, firsts = np.unique(np.concatenate([slots, alarm_slots]), return_index=True)
        touched = touched[np.argsort(firsts)].astype(np.int32)
        held, table, work = self._load(touched, columns)
        for row, (slot, time, fire) in enumerate(zip(slots.tolist(), times.tolist(), fires.tolist(), strict=True)):
            work[slot].steps.append((fire, held + row, time))
        levels = [] if track is None else track.wm_ms.tolist()
        for time, slot in zip(alarm_times.tolist(), alarm_slots.tolist(), strict=True):
            work[slot].alarms.discard(time)
        found = self._matches(list(work.values()), table, levels) if len(touched) else []
        if len(touched):
            self._save(touched, work, table)
        self._emit(found, table, track, forward)

    def _load(self, touched: Int32s, columns: Sequence[Any]) -> tuple[int, list[Any], dict[int, _Key]]:
        """Rows of state before those that come, and what is known of each key: the number of the former, and both."""
        spec = self.spec
        work = {
            slot: _Key(slot, KeyMatches(self._automaton, spec.skip, spec.skip_variable, spec.within_ms, self._names))
            for slot in touched.tolist()
        }
        positions, rows = self._held.rows_of(touched)
        *flat, times = self._held.gather(rows)
        kept = whole_columns(self._types, flat)
        for row, (position, time) in enumerate(zip(positions.tolist(), times.to_pylist(), strict=True)):
            key = work[int(touched[position])]
            key.rows.append(row)
            key.matches.times.append(time)
        positions, runs = self._runs.rows_of(touched)
        starts, states, complete, *counts = (column.to_pylist() for column in self._runs.gather(runs))
        known: dict[int, tuple[list[Run], list[Run]]] = {}
        for run, position in enumerate(positions.tolist()):
            made = Run(starts[run], states[run], tuple(column[run] for column in counts))
            known.setdefault(int(touched[position]), ([], []))[complete[run]].append(made)
        for slot, (partial, waiting) in known.items():
            work[slot].matches.restore(partial, waiting)
        for key in work.values():
            key.alarms = self._timeouts(key)
        return len(rows), [joined([old, new]) for old, new in zip(kept, columns, strict=True)], work

    def _timeouts(self, key: _Key) -> set[int]:
        if self.spec.within_ms is None or not self.spec.row_time:
            return set()
        return {key.matches.times[run.start] + self.spec.within_ms for run in key.matches.started}

    def _save(self, touched: Int32s, work: dict[int, _Key], table: Sequence[Any]) -> None:
        """Keep the rows of matches that may go on; keys without any go."""
        self._held.drop_slots(touched)
        self._runs.drop_slots(touched)
        rows: list[int] = []
        times: list[int] = []
        owners: list[int] = []
        runs: list[tuple[int, ...]] = []
        run_owners: list[int] = []
        alarms: tuple[list[tuple[int, int]], list[tuple[int, int]]] = ([], [])
        for slot, key in work.items():
            alive = [*key.matches.partial.runs, *key.matches.waiting.runs]
            base = min(len(key.rows), min(run.start for run in alive))
            if base == len(key.rows):
                # Only the run that no row has started is left: a key begins with that.
                alive = []
            rows += key.rows[base:]
            times += key.matches.times[base:]
            owners += [slot] * (len(key.rows) - base)
            runs += [
                (
                    run.start if run.start == NOT_STARTED else run.start - base,
                    run.state,
                    run.state == FINAL,
                    *run.counts,
                )
                for run in alive
            ]
            run_owners += [slot] * len(alive)
            wanted = self._timeouts(key)
            alarms[0].extend((time, slot) for time in sorted(key.alarms - wanted))
            alarms[1].extend((time, slot) for time in sorted(wanted - key.alarms))
        for change, due in zip((self._alarms.delete, self._alarms.register), alarms, strict=True):
            if due:
                change(np.array([time for time, _ in due], np.int64), np.array([slot for _, slot in due], np.int32))
        if rows:
            at = pa.array(rows, pa.int64())
            flat = [part for column in table for part in flat_columns(column.take(at))]
            self._held.append(np.array(owners, np.int32), [*flat, pa.array(times, pa.int64())])
        if runs:
            first, state, complete, *counts = zip(*runs, strict=True)
            columns = [pa.array(first, pa.int32()), pa.array(state, pa.int32()), pa.array(complete, pa.bool_())]
            columns += [pa.array(column, pa.int32()) for column in counts]
            self._runs.append(np.array(run_owners, np.int32), columns)
        gone = np.setdiff1d(touched, np.array(run_owners, np.int32)).astype(np.int32)
        if len(gone):
            self._index.remove(gone)

    def _matches(self, keys: list[_Key], table: Sequence[Any], levels: Sequence[int]) -> list[_Match]:
        """Take the rows of all keys, one of each key at a time."""
        by_row = {
            place: _truths(table[variable.row_condition])
            for place, variable in enumerate(self.spec.variables)
            if variable.row_condition is not None
        }
        found: list[_Match] = []
        while keys:
            steps: list[_Step] = []
            for key in keys:
                step = self._next_row(key, found, levels)
                if step is not None:
                    steps.append(step)
            answers = self._answers(steps, table)
            for number, step in enumerate(steps):
                step.key.rows.append(step.row)
                asks = _Asks(number, step.row, by_row, answers)
                for run in step.key.matches.take(step.time_ms, step.candidates, asks.holds):
                    step.key.leave(found, run, step.time_ms)
            keys = [step.key for step in steps]
        return found

    def _next_row(self, key: _Key, found: list[_Match], levels: Sequence[int]) -> _Step | None:
        """The next row of a key, after time has advanced as far: at the end of watermarks, at alarms, at the row."""
        while True:
            row = key.steps[key.next] if key.next < len(key.steps) else None
            goal = len(levels) if row is None else row[0]
            if key.open and key.fire < goal:
                key.open = False
                self._advance(key, found, levels[key.fire])
                continue
            alarm = min(self._timeouts(key), default=None)
            if alarm is not None and levels and alarm <= levels[-1]:
                fire = int(np.searchsorted(levels, alarm))
                if fire < goal:
                    key.fire, key.rank = fire, (alarm, 2**31)
                    self._advance(key, found, levels[fire])
                    continue
            if row is None:
                return None
            key.next += 1
            if not key.open or key.fire != row[0]:
                key.fire, key.open = row[0], bool(levels)
                key.rank = (row[2] if alarm is None else min(row[2], alarm), row[1])
            self._advance(key, found, row[2])
            return _Step(key, row[1], row[2], key.matches.candidates())

    @staticmethod
    def _advance(key: _Key, found: list[_Match], time_ms: int) -> None:
        for run in key.matches.advance(time_ms):
            key.leave(found, run, time_ms)

    def _answers(self, steps: Sequence[_Step], table: Sequence[Any]) -> dict[tuple[int, int, int], bool]:
        """Conditions over earlier rows: by step, candidate and variable."""
        answers: dict[tuple[int, int, int], bool] = {}
        for variable, condition in self._conditions.items():
            asked = [
                (number, candidate, variable)
                for number, step in enumerate(steps)
                for candidate, run in enumerate(step.candidates)
                if variable in self._automaton.asks[run.state]
            ]
            if asked:
                places = [
                    Place(steps[n].candidates[c], [*steps[n].key.rows, steps[n].row], variable) for n, c, _ in asked
                ]
                answers |= zip(asked, _truths(condition.evaluate(places, table)[0]).tolist(), strict=True)
        return answers

    def _emit(self, found: list[_Match], table: Sequence[Any], track: WatermarkTrack | None, forward: bool) -> None:
        if not found:
            if track is not None and forward:
                self.output.emit_watermark(Watermark(track.last_ms))
            return
        found.sort(key=lambda match: match.order)
        places = [match.place for match in found]
        rows = pa.array([place.rows[place.run.start] for place in places], pa.int64())
        keys = [table[index].take(rows) for index in self.spec.partition]
        columns = tuple(narrow(column) for column in (*keys, *self._measures.evaluate(places, table)))
        out = None
        if track is not None and forward:
            fires = np.array([match.order[0] for match in found])
            offsets = np.searchsorted(fires, np.arange(len(track)), side="right").astype(np.int32)
            out = WatermarkTrack(offsets, track.wm_ms)
        self.collect_within_offsets(ChangelogBatch(columns, len(found), None, None, out))


def _truths(array: Any) -> Bools:
    """Where a condition holds: neither FALSE nor NULL."""
    values, valid = values_and_validity(array)
    return values.astype(np.bool_) if valid is None else values.astype(np.bool_) & valid
