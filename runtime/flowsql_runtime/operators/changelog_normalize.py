"""Upserts, and changes that come twice, to a complete changelog."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from flowsql_compute.eval.compile import compile_condition
from flowsql_core.batch import ChangelogBatch, WatermarkTrack, columns_of
from flowsql_core.column_bytes import joined, taken
from flowsql_core.element import Watermark
from flowsql_core.graph.lineage import Lineage
from flowsql_core.graph.specs import ChangelogNormalizeSpec
from flowsql_core.row import DELETE, INSERT, UPDATE_AFTER, UPDATE_BEFORE
from flowsql_core.types.arrow import to_arrow
from flowsql_runtime.operators.aggregate.group import MiniBatchOperator, signs_of
from flowsql_runtime.operators.base import OperatorContext
from flowsql_runtime.operators.evaluation import eval_context
from flowsql_runtime.state.flat_rows import flat_columns, flat_types, whole_columns
from flowsql_runtime.state.names import StateNames, TableNames, kept_for, row_names
from flowsql_runtime.state.scratch import number_rows

Bools = npt.NDArray[np.bool_]
Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]


class ChangelogNormalizeOperator(MiniBatchOperator):
    """Keep the last row of each key, and tell how it changes.

    In     ``+I`` and ``+U`` say what the row of a key is, ``-D`` (of which only the key is read) and ``-U`` that there
           is none; hash-partitioned by ``spec.keys``.
    Out    ``+I`` for a key's first row; ``-U``/``+U`` (or ``+U`` alone) for another one, nothing for an equal one;
           ``-D`` with the row that was, when it goes or no longer fulfils the condition. In a mini-batch the last
           change of a key counts.
    State  the row of each key.
    Late   not judged. Deletions of unknown keys are ignored. A key idle for ``state_ttl_ms`` starts over; while state
           expires, equal rows are told, too, so that operators downstream see that the key lives.

    Source: Flink, ``ProcTimeDeduplicateKeepLastRowFunction`` over changelogs.
    """

    # A version that a temporal join looks at is the last one before a watermark.
    _ends_at_marks = True

    def __init__(self, spec: ChangelogNormalizeSpec) -> None:
        super().__init__(spec)
        self._mini_batch = spec.mini_batch

    def open(self, ctx: OperatorContext) -> None:
        """Make the index and the row of each key; compile the condition."""
        super().open(ctx)
        spec = self.spec
        self._types = [to_arrow(column.type) for column in spec.input]
        self._index = ctx.state.key_index([self._types[key] for key in spec.keys])
        flat = [part for type_ in self._types for part in flat_types(type_)]
        # One row a slot.
        self._rows = ctx.state.row_list("rows", self._index, flat, removable=True, unique=())
        self._written = ctx.state.slot_times("written", self._index) if spec.state_ttl_ms else None
        context = eval_context(ctx)
        self._condition = None if spec.condition is None else compile_condition(spec.condition, context)

    def state_names(self, arriving: Sequence[Lineage]) -> StateNames:
        """The row of each key."""
        spec, columns = self.spec, arriving[0].columns
        parts = [part for column, type_ in zip(columns, self._types, strict=True) for part in _parts(column, type_)]
        tables = {"rows": row_names("last rows", parts)}
        if spec.state_ttl_ms:
            tables["written"] = TableNames("when it was written")
        facts = {"time-to-live": kept_for(spec.state_ttl_ms), "rows where": spec.kept}
        return StateNames(tuple(columns[key] for key in spec.keys), tables, facts)

    def expect(self, input_index: int, batches: Sequence[ChangelogBatch]) -> None:
        """Keys of rows that come."""
        self._index.expect(*columns_of(batches, self.spec.keys))

    def process_rows(self, batch: ChangelogBatch) -> None:
        """What a row makes of its key's row follows from the one before it alone, which is in the batch or in state."""
        columns = [batch.columns[index] for index in range(len(self.spec.input))]
        keys = [columns[key] for key in self.spec.keys]
        now = self.ctx.clock.now_ms()
        if self._written is not None:
            self._forget(self._written.expired(now - self.spec.state_ttl_ms))
        slots, _ = self._index.find_or_insert(self._index.encode(keys, num_rows=batch.num_rows))
        stays = signs_of(batch) > 0
        if self._condition is not None:
            stays &= np.asarray(self._condition(batch.columns, batch.num_rows))
        order = np.argsort(slots, kind="stable")
        starts = np.flatnonzero(np.diff(slots[order], prepend=-1))
        last = order[np.append(starts[1:], len(order)) - 1]
        told = np.sort(last) if self._mini_batch is not None else np.arange(batch.num_rows)
        owners, rows = self._rows.rows_of(slots[order[starts]])
        before = np.full(batch.num_rows, -1, np.int64)
        if self._mini_batch is None:
            following = np.ones(len(order), np.bool_)
            following[starts] = False
            behind = np.flatnonzero(following)
            before[order[behind]] = np.where(stays[order[behind - 1]], order[behind - 1], -1)
            before[order[starts[owners]]] = batch.num_rows + np.arange(len(rows))
        else:
            before[last[owners]] = batch.num_rows + np.arange(len(rows))
        if len(rows):
            stored = whole_columns(self._types, self._rows.gather(rows))
            columns = [joined(pair) for pair in zip(columns, stored, strict=True)]
        self._emit(batch, columns, told, stays, before)
        self._keep(columns, slots, last, stays)
        if self._written is not None:
            self._written.touch(slots[last[stays[last]]], now)

    def _emit(self, batch: ChangelogBatch, columns: list[Any], told: Int64s, stays: Bools, before: Int64s) -> None:
        """Changes of the rows ``told``; ``before``: of each row the place of its key's row in ``columns``, or -1."""
        new, old = stays[told], before[told] >= 0
        updates = new & old
        if not self.spec.state_ttl_ms and updates.any():
            updates[updates] = _differ(columns, told[updates], before[told[updates]])
        pairs = updates if self.spec.emit_update_before else np.zeros(len(told), np.bool_)
        counts = ((new & ~old) | updates | (old & ~new)).astype(np.int64) + pairs
        event = np.repeat(np.arange(len(told)), counts)
        first_of_pair = pairs[event] & (np.diff(event, prepend=-1) > 0)
        place = np.where(first_of_pair | ~new[event], before[told[event]], told[event])
        kinds = np.where(old[event], np.where(new[event], UPDATE_AFTER, DELETE), INSERT).astype(np.uint8)
        kinds[first_of_pair] = UPDATE_BEFORE
        track = batch.track
        if track is not None:
            ends = np.zeros(batch.num_rows + 1, np.int64)
            ends[told + 1] = counts
            track = WatermarkTrack(np.cumsum(ends)[track.offsets].astype(np.int32), track.wm_ms)
        if len(event):
            made = tuple(taken(column, place) for column in columns)
            self.collect_within_offsets(ChangelogBatch(made, len(event), kinds if kinds.any() else None, None, track))
        elif track is not None:
            self.output.emit_watermark(Watermark(track.last_ms))

    def _keep(self, columns: list[Any], slots: Int32s, last: Int64s, stays: Bools) -> None:
        """The last row of each key stands in state, or none."""
        kept, gone = last[stays[last]], last[~stays[last]]
        if len(kept):
            parts = [part for column in columns for part in flat_columns(taken(column, kept))]
            self._rows.apply(np.ones(len(kept), np.int8), slots[kept], parts)
        self._forget(slots[gone])

    def _forget(self, slots: Int32s) -> None:
        if len(slots):
            self._rows.drop_slots(slots)
            if self._written is not None:
                self._written.drop_slots(slots)
            self._index.remove(slots)


def _parts(column: str, type_: Any) -> list[str]:
    """What the flat columns of a column mean."""
    return [column, *(f"{column}.{index}" for index in range(1, len(flat_types(type_))))]


def _differ(columns: list[Any], left: Int64s, right: Int64s) -> Bools:
    """Whether rows at two places are not equal."""
    both = np.concatenate([left, right])
    numbers, _ = number_rows([taken(column, both) for column in columns])
    return np.not_equal(numbers[: len(left)], numbers[len(left) :])
