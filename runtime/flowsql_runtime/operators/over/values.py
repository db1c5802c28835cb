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
from flowsql_core.column_bytes import joined, ranges_within, taken
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
from flowsql_runtime.operators.aggregate.program import AggregateProgram
from flowsql_runtime.operators.aggregate.result import ResultColumn
from flowsql_runtime.operators.base import Operator, OperatorContext
from flowsql_runtime.operators.over.calls import OverCalls
from flowsql_runtime.operators.over.idle_keys import IdleKeys
from flowsql_runtime.operators.over.running_texts import RunningTexts, TextResults
from flowsql_runtime.operators.rank.order import is_formed, sort_key
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
#: Bytes of texts that are written out at once.
_TEXT_BYTES: Final = 1 << 26


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
            order = "ORDER BY a column that is no time attribute"
            if not _is_running(call):
                raise NotSupportedYetError(f"{call.function}(...) OVER (... {order})", call.span)
            # Flink plans it and fails with the first row ("Row arity: 5, but serializer arity: 4").
            if call.function == "LISTAGG" and spec.counts_rows:
                raise NotSupportedYetError(f"{call.function}(...) OVER (... {order} ROWS ...)", call.span)
        self._calls = OverCalls(spec)
        #: Places of calls whose results are texts of all rows up to one; accumulators answer the others.
        self._listing = [place for place, call in enumerate(self._calls.calls) if call.function == "LISTAGG"]
        folded = [call for call in self._calls.calls if call.function != "LISTAGG"]
        self._program = AggregateProgram(folded, self._calls.schema, retracts=False, clear_at_zero=False)

    def open(self, ctx: OperatorContext) -> None:
        """Make the state."""
        self._types = [to_arrow(column.type) for column in self.spec.input]
        self._index = ctx.state.key_index([self._types[column] for column in self.spec.partition])
        flat = [flat_types(type_) for type_ in self._types]
        types = [part for parts in flat for part in parts]
        self._formed = is_formed(self.spec.input[self.spec.order_index].type)
        order = len(types) if self._formed else sum(len(parts) for parts in flat[: self.spec.order_index])
        types += [pa.binary()] if self._formed else []
        sort = SortColumn(order, nulls_first=not self.spec.nulls_last)
        self._rows = ctx.state.sorted_list("rows", self._index, types, [sort])
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
        texts += [f"order of {columns[spec.order_index]}"] if is_formed(spec.input[spec.order_index].type) else []
        tables = {"rows": TableNames("rows", {f"r{i}": text for i, text in enumerate(texts)})}
        tables |= {} if self._idle_keys is None else self._idle_keys.names()
        order = f"{columns[spec.order_index]}{' NULLS LAST' if spec.nulls_last else ''}"
        facts = {"order": order, "time-to-live": kept_for(spec.state_ttl_ms)}
        keys = tuple(columns[i] for i in spec.partition)
        frame = {"frame": "ROWS" if spec.counts_rows else "RANGE"}
        return StateNames(keys, tables, facts, retracts=spec.input_retracts, made_with=frame)

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
        flat += [sort_key(own[self.spec.order_index])] if self._formed else []
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
        texts = [RunningTexts(read[call.args[0].index], self._calls.separator(call)) for call in self._listed()]
        before = np.arange(-1, loaded - 1, dtype=np.int64)
        before[firsts[lengths > 0]] = -1
        self._fold(read, slots, np.arange(loaded, dtype=np.int32), before)
        most = max(_ROOM, 2 * int((lengths + room).max()) + 8)
        rows, sources, results = (np.empty(most, np.int32) for _ in range(3))
        changes, copies, folded = np.empty(most, np.int8), np.empty(most, np.int64), np.empty(most, np.int32)
        status = np.zeros(3, np.int64)
        latest = np.empty(loaded + n, np.int32)
        while status[0] < n:
            latest[:] = -1
            standing = _standing(sequence, starts, lengths) if texts else None
            kernels.play(
                loaded, kinds, keys, places, int(status[0]), sequence, starts, lengths, peers, by_row, latest, folded,
                copies, status, rows, sources, changes, results,
            )  # fmt: skip
            told, events = int(status[2]), int(status[1])
            answers = self._fold(read, slots, folded[:events].copy(), copies[:events].copy())
            for place, running in zip(self._listing, texts, strict=True):
                assert standing is not None
                running.restart(*standing, events)
                answers.insert(place, running.follow(folded[:events], copies[:events]))
            last = track if status[0] == n else None
            self._tell(pool, rows[:told], sources[:told], changes[:told], results[:told], answers, last)

    def _listed(self) -> list[AggregateCall]:
        return [self._calls.calls[place] for place in self._listing]

    def _fold(self, read: list[Any], slots: Int32s, rows: Int32s, copies: Int64s) -> list[ResultColumn]:
        """Fold events of rows, each on top of the accumulators of another; results before and after each."""
        # Texts that only LISTAGG reads need not be repeated for each event.
        folded = self._program.columns_read
        columns = [taken(column, rows) if place in folded else column for place, column in enumerate(read)]
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
    ) -> None:
        """Emit what is told. ``track``: of the batch, behind its last change."""
        at = 2 * results.astype(np.int64) + 1
        kept = ~_unchanged(answers, at, changes)
        if not self.spec.emit_update_before:
            kept &= changes != kernels.UPDATE_BEFORE
        told = np.flatnonzero(kept)
        if not len(told):
            if track is not None:
                self.output.emit_watermark(Watermark(track.last_ms))
            return
        sizes = np.zeros(len(told), np.int64)
        for answer in answers:
            if isinstance(answer, TextResults):
                sizes += answer.row_bytes(at[told])
        for first, last in ranges_within(sizes, _TEXT_BYTES):
            part = told[first:last]
            out = [*(taken(column, rows[part]) for column in pool), *(answer.to_arrow(at[part]) for answer in answers)]
            kinds = changes[part].view(np.uint8)
            own = None
            if track is not None and last == len(told):
                own = WatermarkTrack(np.searchsorted(sources[part], track.offsets).astype(np.int32), track.wm_ms)
            self.collect_within_offsets(
                ChangelogBatch(tuple(out), len(part), kinds if kinds.any() else None, None, own)
            )

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
    """Whether the result of a row follows from that of the row before it."""
    if call.distinct and call.function not in ("MIN", "MAX"):
        return False
    if call.function in ("ROW_NUMBER", "RANK", "DENSE_RANK", "COUNT"):
        return True
    if call.function == "LISTAGG":
        return True
    if call.function == "LAG":
        return False
    return all(column.fold is not Fold.VALUES for column in accumulator_columns(call))


def _standing(sequence: Int32s, starts: Int64s, lengths: Int32s) -> tuple[Int32s, Int64s]:
    """The rows of all keys in their order, and the one before each, -1 for the first of a key."""
    firsts = np.cumsum(lengths) - lengths
    places = np.repeat(starts[:-1] - firsts, lengths) + np.arange(int(lengths.sum()))
    rows = sequence[places]
    befores = np.empty(len(rows), np.int64)
    befores[1:] = rows[:-1]
    befores[firsts[lengths > 0]] = -1
    return rows, befores


def _unchanged(answers: Sequence[ResultColumn], at: Int64s, changes: Int8s) -> Bools:
    """Pairs of UPDATE_BEFORE and UPDATE_AFTER with equal results. ``at``: the row of ``answers`` of each change."""
    unchanged = np.zeros(len(changes), np.bool_)
    before = np.flatnonzero(changes == kernels.UPDATE_BEFORE)
    if not len(before):
        return unchanged
    equal = np.ones(len(before), np.bool_)
    for answer in answers:
        if isinstance(answer, TextResults):
            equal &= answer.equal(at[before], at[before + 1])
            continue
        old, new = answer.to_arrow(at[before]), answer.to_arrow(at[before + 1])
        same = pc.or_(pc.fill_null(pc.equal(old, new), False), pc.and_(pc.is_null(old), pc.is_null(new)))
        equal &= values_and_validity(same)[0]
    unchanged[before[equal]] = True
    unchanged[before[equal] + 1] = True
    return unchanged
