"""Unbounded aggregation by key: every change of a group, or one net change per key and (mini-)batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from flowsql_core.batch import ChangelogBatch, WatermarkTrack, columns_of
from flowsql_core.element import Watermark
from flowsql_core.graph.lineage import Lineage
from flowsql_core.graph.specs import GroupAggregateSpec, MiniBatch
from flowsql_core.types.arrow import to_arrow
from flowsql_core.types.logical import Schema
from flowsql_runtime.operators.aggregate.changes import Changes
from flowsql_runtime.operators.aggregate.emit import changelog_of
from flowsql_runtime.operators.aggregate.mini_batch_rows import one_batch
from flowsql_runtime.operators.aggregate.ordered_values import list_pieces
from flowsql_runtime.operators.aggregate.program import AggregateProgram
from flowsql_runtime.operators.base import Operator, OperatorContext
from flowsql_runtime.state.backend import StoreFactory
from flowsql_runtime.state.names import StateNames, TableNames, kept_for
from flowsql_runtime.state.stores import AccumulatorStore, KeyIndex

Int8s = npt.NDArray[np.int8]
Int32s = npt.NDArray[np.int32]

#: A mini-batch is cut into work of at most this many rows, whatever its configured size.
_MOST_ROWS = 65_536


def signs_of(batch: ChangelogBatch) -> Int8s:
    """1 for +I and +U, -1 for -U and -D, int8 (n,)."""
    if batch.kinds is None:
        return np.ones(batch.num_rows, np.int8)
    return (1 - 2 * (batch.kinds & 1)).astype(np.int8)


class GroupProgram(Protocol):
    """What groups ask of the calls that aggregate them."""

    @property
    def retracts(self) -> bool:
        """Whether rows may be taken back."""
        ...

    @property
    def store(self) -> AccumulatorStore:
        """Where the rows of groups are counted."""
        ...

    def open(self, states: StoreFactory, index: KeyIndex) -> None:
        """Make the stores beside the slots of ``index``."""
        ...

    def table_names(self, columns: Sequence[str]) -> Mapping[str, TableNames]:
        """What the stores mean."""
        ...

    def forget(self, slots: Int32s) -> None:
        """Clear all that is kept of slots."""
        ...


class KeyedAggregation:
    """Groups of one operator: their index, program, expiry and vacant slots. Shared by one- and two-phase operators."""

    def __init__(
        self, ctx: OperatorContext, program: GroupProgram, grouping: tuple[int, ...], input: Schema, ttl_ms: int
    ) -> None:
        self._clock = ctx.clock
        self._program = program
        self._ttl_ms = ttl_ms
        self.index = ctx.state.key_index([to_arrow(input[column].type) for column in grouping])
        program.open(ctx.state, self.index)
        self._written = ctx.state.slot_times("written", self.index) if ttl_ms else None

    def names(self, columns: Sequence[str], grouping: Sequence[int]) -> StateNames:
        """What is kept. ``columns``: canonical texts of the rows that are aggregated."""
        tables = dict(self._program.table_names(columns))
        if self._written is not None:
            tables["written"] = TableNames("when it was written")
        facts = {"time-to-live": kept_for(self._ttl_ms)}
        keys = tuple(columns[index] for index in grouping)
        return StateNames(keys, tables, facts, retracts=self._program.retracts)

    def slots_of(self, keys: list[Any], num_rows: int) -> Int32s:
        """Slots of a batch's groups; groups that expired start over, others live on from now."""
        now = self._clock.now_ms()
        if self._written is not None:
            self._forget(self._written.expired(now - self._ttl_ms))
        slots, _ = self.index.find_or_insert(self.index.encode(keys, num_rows=num_rows))
        if self._written is not None:
            self._written.touch(slots, now)
        return slots

    def release(self, changes: Changes) -> None:
        """Give back the slots of groups that have no rows left."""
        self.give_back(changes.slots[~changes.exists()])

    def give_back(self, slots: Int32s) -> None:
        """Give back those of slots whose groups have no rows left."""
        gone = np.unique(slots)
        gone = gone[self._program.store.row_counts(gone) == 0]
        if self._written is not None:
            self._written.drop_slots(gone)
        self._forget(gone)

    def _forget(self, slots: Int32s) -> None:
        if len(slots):
            self._program.forget(slots)
            self.index.remove(slots)


class MiniBatchOperator(Operator[Any]):
    """Collects rows of a mini-batch and hands them on as one batch; without mini-batch each batch at once."""

    _mini_batch: MiniBatch | None = None
    #: Whether a mini-batch ends at its size and at each watermark to the row: where versions of a row may be looked at.
    _ends_at_marks = False
    _waiting: list[ChangelogBatch]
    _waiting_rows = 0

    def open(self, ctx: OperatorContext) -> None:
        """Nothing waits."""
        self._waiting = []

    def process_batch(self, input_index: int, batch: ChangelogBatch) -> None:
        """Wait until the mini-batch is full or a watermark (its mark) comes."""
        if self._mini_batch is None:
            self.process_rows(batch.with_track(self.advance_track(input_index, batch.track)))
            return
        full = min(self._mini_batch.size_rows, _MOST_ROWS) if self._mini_batch.size_rows > 0 else _MOST_ROWS
        track = self.advance_track(input_index, batch.track)
        if self._ends_at_marks:
            self._cut(batch.with_track(None), track, full)
            return
        self._waiting.append(batch.with_track(track))
        self._waiting_rows += batch.num_rows
        if self._waiting_rows >= full or track is not None:
            self._flush()

    def _cut(self, batch: ChangelogBatch, track: WatermarkTrack | None, full: int) -> None:
        """End the mini-batch before each watermark."""
        start = 0
        for mark in range(0 if track is None else len(track)):
            assert track is not None
            offset = int(track.offsets[mark])
            self._fill(batch.slice(start, offset), full)
            self._flush()
            self.output.emit_watermark(Watermark(int(track.wm_ms[mark])))
            start = offset
        self._fill(batch.slice(start, batch.num_rows), full)

    def _fill(self, batch: ChangelogBatch, full: int) -> None:
        """Add rows to mini-batches of exactly ``full`` rows."""
        start = 0
        while start < batch.num_rows:
            stop = min(start + full - self._waiting_rows, batch.num_rows)
            self._waiting.append(batch.slice(start, stop))
            self._waiting_rows += stop - start
            if self._waiting_rows >= full:
                self._flush()
            start = stop

    def _flush(self) -> None:
        if self._waiting:
            batches, self._waiting, self._waiting_rows = self._waiting, [], 0
            for batch in one_batch(batches):
                self.process_rows(batch)

    def process_rows(self, batch: ChangelogBatch) -> None:
        """Rows with the operator's own watermark track."""
        raise NotImplementedError

    def process_watermark(self, input_index: int, watermark: Watermark) -> None:
        """A watermark ends the mini-batch."""
        self._flush()
        super().process_watermark(input_index, watermark)

    def prepare_snapshot_pre_barrier(self, checkpoint_id: int) -> None:
        """What waits is not part of a snapshot."""
        self._flush()

    def end_input(self, input_index: int) -> None:
        """The last mini-batch."""
        self._flush()


class GroupAggregateOperator(MiniBatchOperator):
    """Aggregate per key, for ever.

    In     any changelog, hash-partitioned by ``spec.grouping`` (no grouping: one subtask).
    Out    +I for a new group; -U/+U (or +U alone) when a result changed; -D when the last row is taken back.
    State  per key one accumulator row; values of DISTINCT, of retracted MIN/MAX and of ordered calls beside it.
    Late   not judged. Retractions of unknown groups are ignored. A group idle for ``state_ttl_ms`` starts over.

    Source: Flink, ``GroupAggFunction`` and ``MiniBatchGroupAggFunction``.
    """

    def __init__(self, spec: GroupAggregateSpec) -> None:
        super().__init__(spec)
        self._mini_batch = spec.mini_batch
        self._every = spec.mini_batch is None and not spec.consolidate
        self._program = AggregateProgram(spec.calls, spec.input, spec.input_retracts)

    def open(self, ctx: OperatorContext) -> None:
        """Make the groups."""
        super().open(ctx)
        self._groups = KeyedAggregation(ctx, self._program, self.spec.grouping, self.spec.input, self.spec.state_ttl_ms)

    def state_names(self, arriving: Sequence[Lineage]) -> StateNames:
        """Accumulators by group."""
        return self._groups.names(arriving[0].columns, self.spec.grouping)

    def expect(self, input_index: int, batches: Sequence[ChangelogBatch]) -> None:
        """Groups of rows that come."""
        self._groups.index.expect(*columns_of(batches, self.spec.grouping))

    def process_rows(self, batch: ChangelogBatch) -> None:
        """Fold and emit."""
        if not batch.num_rows:
            if batch.track is not None:
                self.output.emit_watermark(Watermark(batch.track.last_ms))
            return
        keys = [batch.columns[column] for column in self.spec.grouping]
        slots = self._groups.slots_of(keys, batch.num_rows)
        signs = signs_of(batch)
        if self.spec.input_retracts and batch.kinds is not None:
            signs = self._program.known_signs(slots, signs)
        gone = []
        for first, last in list_pieces(self._program.ordered, slots) if self._every else ((0, batch.num_rows),):
            part = batch.slice(first, last)
            changes = self._program.fold(slots[first:last], part.columns, signs[first:last], self._every)
            self._emit(changes, part)
            gone.append(changes.slots[~changes.exists()])
        if self.spec.input_retracts:
            self._groups.give_back(np.concatenate(gone))

    def _emit(self, changes: Changes, batch: ChangelogBatch) -> None:
        out = changelog_of(
            changes,
            [batch.columns[column] for column in self.spec.grouping],
            batch.track,
            emit_update_before=self.spec.emit_update_before,
            emit_unchanged=self._every and self.spec.state_ttl_ms > 0,
            in_order=self._every,
        )
        if out.num_rows or out.track is not None:
            self.collect_within_offsets(out)
