"""Group windows whose early or late answers wait: by the clock, again and again from a window's first row on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flowsql_compute.eval.columns import values_and_validity
from flowsql_core.batch import ChangelogBatch
from flowsql_core.column_bytes import joined, taken
from flowsql_core.graph.lineage import Lineage
from flowsql_core.graph.window_specs import EmittingWindowSpec
from flowsql_core.row import DELETE, INSERT, UPDATE_AFTER, UPDATE_BEFORE
from flowsql_core.types.arrow import to_arrow
from flowsql_runtime.operators.aggregate.ordered_values import ValueResults
from flowsql_runtime.operators.base import Int64s, OperatorContext, OperatorSnapshot
from flowsql_runtime.operators.window.emitting import EmittingWindowOperator
from flowsql_runtime.state.flat_rows import flat_columns, flat_types, whole_columns
from flowsql_runtime.state.names import StateNames, TableNames
from flowsql_runtime.state.stores import StoredColumn

Int32s = npt.NDArray[np.int32]
Bools = npt.NDArray[np.bool_]

#: What stands for no alarm: none is set for the start of the epoch.
_NONE: Final = 0


def emitting_operator(spec: EmittingWindowSpec) -> EmittingWindowOperator:
    """The operator of windows that answer more than once."""
    delayed = spec.early_delay_ms > 0 or spec.late_delay_ms > 0
    return (DelayedWindowOperator if delayed else EmittingWindowOperator)(spec)


class DelayedWindowOperator(EmittingWindowOperator):
    """Aggregate per key and window; results leave when the clock reaches the window's alarm, and at the window's end.

    In, Late as of :class:`EmittingWindowOperator`.
    Out    what changed since the window answered last. A phase without a delay answers each row, and so does a window
           that only late rows made. Late rows that wait when the window is forgotten are never told, as in Flink.
    State  accumulators by (window end, key), what was told last, the next alarm, and whether the window has ended.

    Source: Flink, ``EventTimeTriggers.AfterEndOfWindowEarlyAndLate`` over ``ProcessingTimeTriggers.every``.
    """

    def open(self, ctx: OperatorContext) -> None:
        """Make the state."""
        super().open(ctx)
        first = len(self.spec.grouping)
        results = self.spec.output[first : first + len(self.spec.calls)]
        self._types = [to_arrow(column.type) for column in results]
        flat = [part for type_ in self._types for part in flat_types(type_)]
        self._told = ctx.state.row_list("told", self._index, flat)
        phases = [StoredColumn("alarm", pa.int64(), nullable=False), StoredColumn("ended", pa.int64(), nullable=False)]
        self._phases = ctx.state.column_store("phases", self._index, phases)
        self._alarms = ctx.state.timers("alarms", self._index)

    def state_names(self, arriving: Sequence[Lineage]) -> StateNames:
        """Accumulators by window, and what was told."""
        names = super().state_names(arriving)
        assert names is not None
        columns = arriving[0].columns
        texts = []
        for call, type_ in zip(self.spec.calls, self._types, strict=True):
            args = ", ".join(columns[arg.index] for arg in call.args)
            where = "" if call.filter_index is None else f" FILTER {columns[call.filter_index]}"
            text = f"{call.function}({'DISTINCT ' if call.distinct else ''}{args}){where}"
            texts += [f"{text} [{part}]" if part else text for part in range(len(flat_types(type_)))]
        tables = dict(names.tables) | {
            "told": TableNames("results that were told last", {f"r{i}": text for i, text in enumerate(texts)}),
            "phases": TableNames(
                "how far windows are", {"v:alarm": "when the window answers next", "v:ended": "whether it has ended"}
            ),
            "alarms": TableNames("when windows answer next"),
        }
        return replace(names, tables=tables)

    def _answers(self) -> str:
        return f"{'early and late' if self.spec.early else 'late'}, by the clock"

    def initialize_state(self, snapshot: OperatorSnapshot | None) -> None:
        """The clock is asked for the next alarm."""
        super().initialize_state(snapshot)
        self._wake()

    def _wake(self) -> None:
        earliest = self._alarms.earliest()
        if earliest is not None:
            self.ctx.timers.register_processing_timers(np.array([earliest], np.int64), np.zeros(1, np.int64))

    # -- rows

    def _phase(self, slots: Int32s) -> tuple[Int64s, Bools]:
        """The next alarm of slots, and whether their windows have ended."""
        alarms, ended = (values_and_validity(column)[0] for column in self._phases.gather(slots))
        return alarms.copy(), ended != 0

    def _visible(self, slots: Int32s, late: Bools) -> Bools:
        """Rows of phases without a delay, and late ones of windows that never ended because there were none."""
        at_once = self.spec.early and not self.spec.early_delay_ms
        if not late.any():
            return np.full(len(slots), at_once)
        late_at_once: Bools = np.array(not self.spec.late_delay_ms) | ~self._phase(slots)[1]
        return np.where(late, late_at_once, at_once)

    def _kept_quiet(self, slots: Int32s, late: Bools) -> None:
        """Windows without an alarm get one."""
        waits = late if not (self.spec.early and self.spec.early_delay_ms) else np.ones(len(slots), np.bool_)
        slots, first = np.unique(slots[waits], return_index=True)
        late = late[waits][first]
        if not len(slots):
            return
        alarms, ended = self._phase(slots)
        fresh = np.flatnonzero(alarms == _NONE)
        delays = np.where(late[fresh], self.spec.late_delay_ms, self.spec.early_delay_ms)
        alarms[fresh] = self.ctx.clock.now_ms() + delays
        self._set(slots[fresh], alarms[fresh], ended[fresh])
        self._alarms.register(alarms[fresh], slots[fresh])
        self._wake()

    def _set(self, slots: Int32s, alarms: Int64s, ended: Bools) -> None:
        if len(slots):
            self._phases.scatter(slots, [pa.array(alarms), pa.array(ended.astype(np.int64))])

    # -- time

    def on_processing_timers(self, times_ms: Int64s, slots: Int64s) -> None:
        """Windows whose alarm the clock has reached answer, and are looked at again; those of the clock may end."""
        now = max(int(times_ms[-1]), self.ctx.clock.now_ms())
        _, due = self._alarms.due(now)
        if len(due):
            alarms, ended = self._phase(due)
            delays = np.where(ended, self.spec.late_delay_ms, self.spec.early_delay_ms)
            # An alarm that was missed is the last one that is not in the future.
            alarms += ((now - alarms) // delays + 1) * delays
            self._set(due, alarms, ended)
            self._alarms.register(alarms, due)
            self._tell(due)
        if self.spec.window.processing_time:
            super().on_processing_timers(times_ms, slots)
        self._wake()

    def _end(self, slots: Int32s, windows: Int64s) -> None:
        """Windows end: they answer, and wait for late rows. One alarm runs on where both phases wait equally long."""
        if not len(slots):
            return
        alarms, _ = self._phase(slots)
        if self.spec.early and not self.spec.early_delay_ms:
            self._note(slots)
        else:
            self._tell(slots)
        if not self.spec.early or self.spec.early_delay_ms != self.spec.late_delay_ms:
            running = np.flatnonzero(alarms != _NONE)
            self._alarms.delete(alarms[running], slots[running])
            alarms[:] = _NONE
        self._set(slots, alarms, np.ones(len(slots), np.bool_))

    def _forget(self, slots: Int32s) -> None:
        if not len(slots):
            return
        alarms, _ = self._phase(slots)
        running = np.flatnonzero(alarms != _NONE)
        self._alarms.delete(alarms[running], slots[running])
        self._told.drop_slots(slots)
        self._phases.clear(slots)
        super()._forget(slots)

    # -- answers

    def _note(self, slots: Int32s) -> None:
        """What was told row by row is what windows hold."""
        if self.spec.late_delay_ms:
            filled = np.ascontiguousarray(slots[self._program.store.row_counts(slots) != 0])
            self._keep_told(filled, self._program.results_at(filled))

    def _keep_told(self, slots: Int32s, results: Sequence[Any]) -> None:
        if len(slots):
            self._told.append(slots, [part for column in results for part in flat_columns(column)])

    def _tell(self, slots: Int32s) -> None:
        """What changed since windows answered last."""
        ends = self._index.namespaces_at(slots)
        order = np.argsort(ends, kind="stable")
        slots, ends = np.ascontiguousarray(slots[order]), ends[order]
        n = len(slots)
        new = self._program.results_at(slots)
        filled: Bools = self._program.store.row_counts(slots) != 0
        places, rows = self._told.rows_of(slots)
        known = np.zeros(n, np.bool_)
        known[places] = True
        row_at = np.zeros(n, np.int64)
        row_at[places] = np.arange(len(places))
        old = new
        if len(rows):
            kept = whole_columns(self._types, list(self._told.gather(rows)))
            old = [taken(column, row_at) for column in kept]
        differs = known != filled
        both = known & filled
        for before, after in zip(old, new, strict=True):
            differs |= ValueResults(before, after, both).changed() if both.any() else False
        gone = differs & known
        if not self.spec.emit_update_before:
            gone &= ~filled
        came = differs & filled
        # The old row of a window stands before its new one.
        picked = np.flatnonzero(np.stack((gone, came), axis=1).ravel())
        if not len(picked):
            return
        owners, is_new = picked >> 1, (picked & 1).astype(np.bool_)
        kinds = np.where(
            is_new,
            np.where(known[owners], np.uint8(UPDATE_AFTER), np.uint8(INSERT)),
            np.where(filled[owners], np.uint8(UPDATE_BEFORE), np.uint8(DELETE)),
        )
        results = [taken(joined([before, after]), owners + n * is_new) for before, after in zip(old, new, strict=True)]
        keys = [taken(column, owners) for column in self._index.columns_at(slots)]
        properties = self._properties(ends[owners], self._trigger_ms(ends[owners]))
        columns = (*keys, *results, *properties)
        changed = np.flatnonzero(differs)
        self._told.drop_slots(slots[changed[known[changed]]])
        kept_rows = np.flatnonzero(came)
        self._keep_told(slots[kept_rows], [taken(column, kept_rows) for column in new])
        self.collect_within_offsets(ChangelogBatch(columns, len(picked), kinds if kinds.any() else None))
