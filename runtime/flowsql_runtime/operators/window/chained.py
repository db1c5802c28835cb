"""HOP over changes that take rows back: windows that close one behind the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flowsql_compute.eval.columns import values_and_validity
from flowsql_core.graph.lineage import Lineage
from flowsql_runtime.operators.aggregate.window import Added, Merged, WindowAggregateOperator
from flowsql_runtime.operators.base import Int64s, OperatorContext
from flowsql_runtime.state.names import StateNames, TableNames
from flowsql_runtime.state.stores import StoredColumn

Int32s = npt.NDArray[np.int32]
Bools = npt.NDArray[np.bool_]

_TIMERS = "timers"
#: No timer: before all time.
_NONE = -(2**63)


def answering(keys: Int32s, windows: Int64s, timers: Bools, filled: Bools, step_ms: int) -> Bools:
    """Which windows close with an answer.

    A window closes where it has a timer of its own, or the window ``step_ms`` before it closed and had rows.

    >>> ends = np.array([10, 20, 30, 40])
    >>> true, filled = np.array([True, False, False, False]), np.array([True, False, True, True])
    >>> answering(np.zeros(4, np.int32), ends, true, filled, 10).tolist()
    [True, True, False, False]
    """
    order = np.lexsort((windows, keys))
    keys, windows, own, full = keys[order], windows[order], timers[order], filled[order]
    linked = np.zeros(len(order), np.bool_)
    linked[1:] = (keys[1:] == keys[:-1]) & (windows[1:] == windows[:-1] + step_ms) & full[:-1]
    # A window that hangs on the one before answers as the first one of the chain does.
    decided = np.maximum.accumulate(np.where(own | ~linked, np.arange(len(order)), 0))
    made = np.empty(len(order), np.bool_)
    made[order] = own[decided]
    return made


class ChainedWindowOperator(WindowAggregateOperator):
    """One row per key and window of HOP whose rows may be taken back.

    In, Out, Late as of :class:`WindowAggregateOperator`. A row sets a timer for the first window of its slice that is
    open; a window that closes with rows sets one for the next, a window without rows does not. So a window answers
    that later slices have rows for, or whose predecessor had.

    State  as there, and ``timers``: the end of a window that closes though its last slice has no rows, at a slot of a
           slice of it; where slices are not shared, the end of each window that closes at its own slot.

    Source: Flink, ``SliceSharedWindowAggProcessor.fireWindow``, ``HoppingSliceAssigner.nextTriggerWindow``.
    """

    def open(self, ctx: OperatorContext) -> None:
        """Make the state."""
        super().open(ctx)
        self._timers = ctx.state.column_store(_TIMERS, self._index, [StoredColumn("due", pa.int64(), False)])

    def state_names(self, arriving: Sequence[Lineage]) -> StateNames:
        """Accumulators and timers."""
        names = super().state_names(arriving)
        timers = TableNames("timers of windows", {"v:due": "end of a window that closes, local ms"})
        return replace(names, tables={**names.tables, _TIMERS: timers})

    def _set(self, slots: Int32s, windows: Int64s) -> None:
        slots, places = np.unique(slots, return_index=True)
        self._timers.scatter(slots, [pa.array(windows[places])])

    def _due(self, slots: Int32s) -> Int64s:
        return values_and_validity(self._timers.gather(np.ascontiguousarray(slots))[0])[0]

    def _added(self, added: Added) -> None:
        if len(added.fresh):
            self._set(added.slots[added.fresh], np.full(len(added.fresh), _NONE))
        if self._expand:
            assert added.firsts is not None
            self._set(added.slots[added.firsts], added.ends[added.firsts])
        elif added.levels is not None:
            self._set_behind(added, added.levels)

    def _set_behind(self, added: Added, levels: Int64s) -> None:
        """Rows whose first windows have closed before they came: timers of the first ones that are open."""
        rows = np.flatnonzero(self._trigger_ms(added.ends) <= levels)
        if not len(rows):
            return
        windows, levels = added.ends[rows], levels[rows]
        closed = self._trigger_ms(windows) <= levels
        while closed.any():
            windows = np.where(closed, windows + self._slicing.step_ms, windows)
            closed = self._trigger_ms(windows) <= levels
        self._set(added.slots[rows], windows)

    def _next(self, slots: Int32s, windows: Int64s) -> tuple[Int32s, Int64s]:
        """Those whose next window is open yet, and its end."""
        assert self._fired_ms is not None
        later = windows + self._slicing.step_ms
        is_open = self._trigger_ms(later) > self._fired_ms
        return slots[is_open], later[is_open]

    def _answering_slots(self, slots: Int32s, windows: Int64s) -> Bools:
        filled = self._program.store.row_counts(slots) != 0
        keys = self._index.numbered(slots)
        chosen = answering(keys, windows, self._due(slots) == windows, filled, self._slicing.step_ms)
        members, later = self._next(slots[chosen & filled], windows[chosen & filled])
        if len(members):
            found = self._index.lookup(self._index.encoded_at(members).with_namespaces(later))
            self._set(found[found >= 0], later[found >= 0])
        return chosen

    def _answering_rows(self, merged: Merged) -> Bools:
        count = len(merged.rows)
        timers = np.zeros(count, np.bool_)
        timers[merged.numbers[(merged.slices == merged.windows) | (self._due(merged.slots) == merged.windows)]] = True
        filled = merged.rows[:, 0] != 0
        # Slices rise: of a window and key the last one stays longest.
        latest = np.zeros(count, np.int64)
        np.maximum.at(latest, merged.numbers, np.arange(len(merged.numbers)))
        slots, windows = merged.slots[latest], merged.windows[latest]
        chosen = answering(self._index.numbered(slots), windows, timers, filled, self._slicing.step_ms)
        self._set(*self._next(slots[chosen & filled], windows[chosen & filled]))
        return chosen

    def _forget(self, slots: Int32s) -> None:
        self._timers.clear(slots)
        super()._forget(slots)
