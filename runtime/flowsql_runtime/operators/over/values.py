"""OVER windows ordered by values: a row that comes or goes changes the results of those behind it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flowsql_compute.eval.columns import values_and_validity
from flowsql_compute.functions.aggregate import Fold, accumulator_columns
from flowsql_core.arrow import compute as pc
from flowsql_core.batch import ChangelogBatch, WatermarkTrack, columns_of
from flowsql_core.column_bytes import joined, narrow, taken
from flowsql_core.element import Watermark
from flowsql_core.errors import NotSupportedYetError
from flowsql_core.expr import AggregateCall
from flowsql_core.graph.lineage import Lineage
from flowsql_core.graph.over_specs import OverAggregateSpec
from flowsql_core.types.arrow import to_arrow
from flowsql_runtime.kernels.accumulate import COPY
from flowsql_runtime.kernels.over import values as kernels
from flowsql_runtime.operators.aggregate.group import signs_of
from flowsql_runtime.operators.aggregate.inputs import Step
from flowsql_runtime.operators.aggregate.result import ResultColumn
from flowsql_runtime.operators.base import Operator, OperatorContext
from flowsql_runtime.operators.over.calls import OverCalls
from flowsql_runtime.operators.over.idle_keys import IdleKeys
from flowsql_runtime.state.flat_rows import flat_columns, flat_types, whole_columns
from flowsql_runtime.state.names import StateNames, TableNames, kept_for
from flowsql_runtime.state.scratch import number_rows, scratch_stores
from flowsql_runtime.state.stores import SortColumn

Int8s = npt.NDArray[np.int8]
Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

#: Events and rows that are told at once, unless one change makes more.
_ROOM: Final = 262_144


class ValuesOverOperator(Operator[OverAggregateSpec]):
    """Answer each row when it comes, and once more those behind it in the order of its partition.

    In     any changelog, hash-partitioned by ``spec.partition``.
    Out    the row with its results, in its own kind of change; ``-U`` and ``+U`` of rows with new results; ``-D`` of
           a row that goes. Rows that sort alike stand in order of arrival.
    State  the rows of each key in their order. A batch costs what its keys hold and what it tells.
    Late   not judged. Rows taken back that nobody knows are ignored. A key idle for ``state_ttl_ms`` starts over.

    Source: Flink, ``NonTimeRowsUnboundedPrecedingFunction`` and ``NonTimeRangeUnboundedPrecedingFunction``.
    """

    def __init__(self, spec: OverAggregateSpec) -> None:
        super().__init__(spec)
        for call in spec.calls:
            if not _is_running(call):
                what = f"{call.function}(...) OVER (... ORDER BY a column that is no time attribute)"
                raise NotSupportedYetError(what, call.span)
        self._calls = OverCalls(spec)
        self._program = self._calls.program(retracts=False)

    def open(self, ctx: OperatorContext) -> None:
        """Make the state."""
        self._types = [to_arrow(column.type) for column in self.spec.input]
        self._index = ctx.state.key_index([self._types[column] for column in self.spec.partition])
        flat = [flat_types(type_) for type_ in self._types]
        order = sum(len(parts) for parts in flat[: self.spec.order_index])
        types = [part for parts in flat for part in parts]
        self._rows = ctx.state.sorted_list("rows", self._index, types, [SortColumn(order)])
        self._idle_keys = None
        if self.spec.state_ttl_ms:
            self._idle_keys = IdleKeys(ctx.state, self._index, self.spec.state_ttl_ms, slack=False)

    def state_names(self, arriving: Sequence[Lineage]) -> StateNames:
        """The rows by key."""
        spec, columns = self.spec, arriving[0].columns
        texts = [
            f"{text} [{part}]" if part else text
            for text, type_ in zip(columns, self._types, strict=True)
            for part in range(len(flat_types(type_)))
        ]
        tables = {"rows": TableNames("rows", {f"r{i}": text for i, text in enumerate(texts)})}
        tables |= {} if self._idle_keys is None else self._idle_keys.names()
        facts = {"order": columns[spec.order_index], "time-to-live": kept_for(spec.state_ttl_ms)}
        return StateNames(tuple(columns[i] for i in spec.partition), tables, facts, retracts=spec.input_retracts)

    def expect(self, input_index: int, batches: Sequence[ChangelogBatch]) -> None:
        """Keys of rows that come."""
        self._index.expect(*columns_of(batches, self.spec.partition))

    def process_batch(self, input_index: int, batch: ChangelogBatch) -> None:
        """Play the changes one after the other."""
        track = self.advance_track(input_index, batch.track)
        n = batch.num_rows
        if not n:
            if track is not None:
                self.output.emit_watermark(Watermark(track.last_ms))
            return
        self._forget_idle()
        own = [batch.columns[index] for index in range(len(self._types))]
        keys = [own[column] for column in self.spec.partition]
        slots, _ = self._index.find_or_insert(self._index.encode(keys, num_rows=n))
        if self._idle_keys is not None:
            self._idle_keys.touch(slots, self.ctx.clock.now_ms())
        touched, numbers = np.unique(slots, return_inverse=True)
        probes, rows = self._rows.rows_of(touched)
        stored = whole_columns(self._types, self._rows.gather(rows))
        pool = [joined(list(pair)) for pair in zip(stored, own, strict=True)]
        flat = [part for column in own for part in flat_columns(column)]
        signs = signs_of(batch)
        _, places = self._rows.apply(signs, slots, flat)
        kinds = np.zeros(n, np.int8) if batch.kinds is None else batch.kinds.astype(np.int8)
        self._play(pool, probes, kinds, numbers.ravel().astype(np.int32), places, track)
        if (signs < 0).any():
            empty = touched[self._rows.counts(touched) == 0]
            self._forget(empty)

    def _play(
        self, pool: list[Any], owners: Int32s, kinds: Int8s, keys: Int32s, places: Int32s, track: WatermarkTrack | None
    ) -> None:
        loaded, n = len(owners), len(keys)
        count = int(keys.max()) + 1
        lengths = np.bincount(owners, minlength=count).astype(np.int32)
        room = np.bincount(keys, weights=kinds % 2 == 0, minlength=count).astype(np.int64)
        starts = np.zeros(count + 1, np.int64)
        np.cumsum(lengths + room, out=starts[1:])
        sequence = np.full(int(starts[-1]), -1, np.int32)
        firsts = np.cumsum(lengths) - lengths
        sequence[starts[owners] + np.arange(loaded) - firsts[owners]] = np.arange(loaded, dtype=np.int32)
        by_row = self.spec.counts_rows
        peers = np.zeros(loaded + n, np.int32) if by_row else number_rows([pool[self.spec.order_index]])[0]
        read = self._calls.with_constants([pool[column] for column in self._calls.columns], loaded + n)
        stores = scratch_stores()
        index = stores.key_index([pa.int64()])
        # Accumulators of each row stand under a slot of its own.
        slots, _ = index.find_or_insert(index.encode([pa.array(np.arange(loaded + n))]))
        self._program.open(stores, index)
        before = np.arange(-1, loaded - 1, dtype=np.int64)
        before[firsts[lengths > 0]] = -1
        self._run(read, slots, np.arange(loaded, dtype=np.int32), before)
        most = max(_ROOM, 2 * int((lengths + room).max()) + 8)
        rows, sources, results = (np.empty(most, np.int32) for _ in range(3))
        changes, copies, folded = np.empty(most, np.int8), np.empty(most, np.int64), np.empty(most, np.int32)
        status = np.zeros(3, np.int64)
        latest = np.empty(loaded + n, np.int32)
        while status[0] < n:
            latest[:] = -1
            kernels.play(
                loaded, kinds, keys, places, int(status[0]), sequence, starts, lengths, peers, by_row, latest, folded,
                copies, status, rows, sources, changes, results,
            )  # fmt: skip
            told = int(status[2])
            answers = self._run(read, slots, folded[: status[1]].copy(), copies[: status[1]].copy())
            done = bool(status[0] == n)
            self._tell(pool, rows[:told], sources[:told], changes[:told], results[:told], answers, track, done)
            track = None if done else track

    def _run(self, read: list[Any], slots: Int32s, rows: Int32s, copies: Int64s) -> list[ResultColumn]:
        """Fold events of rows, each on top of the accumulators of another; results before and after each."""
        columns = [taken(column, rows) for column in read]
        comes = (copies >= -1).astype(np.int8)
        words = np.where(copies >= 0, slots[np.maximum(copies, 0)], np.int64(-1)).astype(np.int64)
        step = Step(COPY, comes, words, first=True)
        return self._program.fold(np.ascontiguousarray(slots[rows]), columns, comes, True, step).results

    def _tell(
        self,
        pool: list[Any],
        rows: Int32s,
        sources: Int32s,
        changes: Int8s,
        results: Int32s,
        answers: list[ResultColumn],
        track: WatermarkTrack | None,
        done: bool,
    ) -> None:
        columns = [answer.to_arrow(2 * results.astype(np.int64) + 1) for answer in answers]
        kept = ~_unchanged(columns, changes)
        if not self.spec.emit_update_before:
            kept &= changes != kernels.UPDATE_BEFORE
        told = np.flatnonzero(kept)
        out = [*(taken(column, rows[told]) for column in pool), *(taken(column, told) for column in columns)]
        kinds = changes[told].view(np.uint8)
        if track is not None and done:
            offsets = np.searchsorted(sources[told], track.offsets, side="left").astype(np.int32)
            track = WatermarkTrack(offsets, track.wm_ms)
        else:
            track = None
        if not len(told):
            if track is not None:
                self.output.emit_watermark(Watermark(track.last_ms))
            return
        made = tuple(narrow(column) for column in out)
        self.collect_within_offsets(ChangelogBatch(made, len(told), kinds if kinds.any() else None, None, track))

    def _forget_idle(self) -> None:
        if self._idle_keys is not None:
            self._forget(self._idle_keys.expired(self.ctx.clock.now_ms()))

    def _forget(self, slots: Int32s) -> None:
        if len(slots):
            self._rows.drop_slots(slots)
            if self._idle_keys is not None:
                self._idle_keys.forget(slots)
            self._index.remove(slots)


def _is_running(call: AggregateCall) -> bool:
    """Whether results follow from accumulators of fixed width, row after row."""
    if call.distinct and call.function not in ("MIN", "MAX"):
        return False
    if call.function in ("ROW_NUMBER", "RANK", "DENSE_RANK", "COUNT"):
        return True
    if call.function == "LAG":
        return False
    return all(column.fold is not Fold.VALUES for column in accumulator_columns(call))


def _unchanged(columns: Sequence[Any], changes: Int8s) -> Bools:
    """Pairs of UPDATE_BEFORE and UPDATE_AFTER with equal results."""
    unchanged = np.zeros(len(changes), np.bool_)
    before = np.flatnonzero(changes == kernels.UPDATE_BEFORE)
    if not len(before):
        return unchanged
    equal = np.ones(len(before), np.bool_)
    for column in columns:
        old, new = taken(column, before), taken(column, before + 1)
        same = pc.or_(pc.fill_null(pc.equal(old, new), False), pc.and_(pc.is_null(old), pc.is_null(new)))
        equal &= values_and_validity(same)[0]
    unchanged[before[equal]] = True
    unchanged[before[equal] + 1] = True
    return unchanged
