"""Join of rows of the same window and key, when the watermark passes the window's end."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from flowsql_core.batch import ChangelogBatch, WatermarkTrack, watermark_per_row
from flowsql_core.errors import NotSupportedYetError
from flowsql_core.graph.lineage import Lineage
from flowsql_core.graph.specs import JoinKind, WindowJoinSpec
from flowsql_core.types.arrow import to_arrow
from flowsql_runtime.operators.base import Int64s, Operator, OperatorContext
from flowsql_runtime.operators.join.regular import compiled_condition
from flowsql_runtime.operators.join.side import MOST_PAIRS, JoinSide, key_pairs
from flowsql_runtime.state.names import StateNames, row_names
from flowsql_runtime.state.stores import RowList
from flowsql_runtime.window.row_time import milliseconds_of
from flowsql_runtime.window.zone import to_epoch_ms

Int32s = npt.NDArray[np.int32]

LATE = "late"


class WindowJoinOperator(Operator[WindowJoinSpec]):
    """Inner window join.

    In     two append-only inputs with window columns, hash-partitioned by their keys.
    Out    +I rows, left columns then right, windows in the order of their ends.
    State  rows by (window end, key) and side, until the window closes.
    Late   a row whose window had closed before it came is dropped, counted and sent to side output ``late``.

    Source: Flink, ``WindowJoinOperator``.
    """

    number_of_inputs = 2

    def __init__(self, spec: WindowJoinSpec) -> None:
        super().__init__(spec)
        if spec.kind is not JoinKind.INNER:
            raise NotSupportedYetError(f"{spec.kind.value} of windows")
        self._sides = (
            JoinSide(spec.left_keys, spec.left, spec.null_safe),
            JoinSide(spec.right_keys, spec.right, spec.null_safe),
        )
        self._ends = (spec.left_end, spec.right_end)

    def open(self, ctx: OperatorContext) -> None:
        """Make the state and compile the condition."""
        left = self._sides[0]
        types = [to_arrow(left.schema[key].type) for key in left.keys]
        self._index = ctx.state.window_index(types)
        self._rows: list[RowList] = []
        for name, side in zip(("left", "right"), self._sides, strict=True):
            stored = [to_arrow(column.type) for column in side.schema]
            self._rows.append(ctx.state.row_list(name, self._index, stored))
        self._condition = compiled_condition(self.spec.condition, ctx)

    def state_names(self, arriving: Sequence[Lineage]) -> StateNames:
        """The rows of both sides by window."""
        spec = self.spec
        left, right = (one.columns for one in arriving)
        facts = {"window": f"{left[spec.left_end]} = {right[spec.right_end]}, {spec.zone or 'no zone'}"}
        keys = key_pairs(spec, left, right)
        return StateNames(keys, {"left": row_names("left rows", left), "right": row_names("right rows", right)}, facts)

    def _trigger_ms(self, window_ends: Int64s) -> Int64s:
        return to_epoch_ms(window_ends - 1, self.spec.zone)

    def process_batch(self, input_index: int, batch: ChangelogBatch) -> None:
        """Keep rows of open windows, then join what the batch's watermarks close."""
        before = self.current_watermark
        track = self.advance_track(input_index, batch.track)
        if batch.num_rows:
            self._add(input_index, batch.with_track(None), watermark_per_row(batch.num_rows, track, before))
        if track is not None:
            self._close(track.last_ms, track)

    def _add(self, input_index: int, batch: ChangelogBatch, levels: Int64s) -> None:
        side = self._sides[input_index]
        ends = milliseconds_of(batch.columns[self._ends[input_index]])
        late = self._trigger_ms(ends) <= levels
        if late.any():
            self.ctx.metrics.count("numLateRecordsDropped", int(late.sum()))
            self.output.collect_side(LATE, batch.take(np.flatnonzero(late)))
        lost = side.without_match(batch.columns)
        skip = late if lost is None else late | lost
        encoded = self._index.encode(side.key_columns(batch.columns), ends)
        slots, _ = self._index.find_or_insert(encoded, skip.view(np.uint8) if skip.any() else np.zeros(0, np.uint8))
        self._rows[input_index].append(slots, batch.columns)

    def on_watermark(self, watermark_ms: int) -> None:
        """A watermark between batches."""
        self._close(watermark_ms, None)

    def _close(self, until: int, track: WatermarkTrack | None) -> None:
        ends = self._index.namespaces()
        due = ends[self._trigger_ms(ends) <= until]
        if len(due):
            window_ends, slots = self._index.up_to(int(due[-1]))
            self._join(self._trigger_ms(window_ends), slots, track)
            for rows in self._rows:
                rows.drop_slots(slots)
            self._index.remove(slots)
        elif track is not None:
            self._collect(np.zeros(0, np.int32), np.zeros(0, np.int32), np.zeros(0, np.int64), track)

    def _join(self, triggers: Int64s, slots: Int32s, track: WatermarkTrack | None) -> None:
        """All pairs of each slot, in pieces of bounded size; watermarks come after the windows that they close."""
        left, right = self._rows
        places, lefts = left.rows_of(slots)
        counts = right.counts(slots)[places] if len(places) else np.zeros(0, np.int64)
        total = np.cumsum(counts)
        start = 0
        while start < len(lefts):
            base = int(total[start - 1]) if start else 0
            stop = max(start + 1, int(np.searchsorted(total, base + MOST_PAIRS, side="right")))
            pairs, rights = right.rows_of(slots[places[start:stop]])
            last = stop >= len(lefts)
            own = pairs + start
            self._collect(lefts[own], rights, triggers[places[own]], track if last else None)
            start = stop
        if not len(lefts) and track is not None:
            self._collect(np.zeros(0, np.int32), np.zeros(0, np.int32), np.zeros(0, np.int64), track)

    def _collect(self, lefts: Int32s, rights: Int32s, triggers: Int64s, track: WatermarkTrack | None) -> None:
        columns = [*self._rows[0].gather(lefts), *self._rows[1].gather(rights)]
        if track is not None:
            offsets = np.searchsorted(triggers, track.wm_ms, side="right").astype(np.int32)
            track = WatermarkTrack(offsets, track.wm_ms)
        for part in ChangelogBatch(tuple(columns), len(triggers), None, None, track).within_offsets():
            met = part
            if self._condition is not None and part.num_rows:
                met = part.filter(self._condition(part.columns, part.num_rows))
            if met.num_rows or met.track is not None:
                self.output.collect(met)
