"""Joins of bounded inputs: one input is taken whole, then the rows of the other one meet it."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from flowsql_core.batch import ChangelogBatch
from flowsql_core.graph.bounded_specs import BoundedJoinSpec
from flowsql_core.types.arrow import to_arrow
from flowsql_runtime.operators.base import OperatorContext
from flowsql_runtime.operators.bounded.held_rows import DEEPEST, FAN_OUT, DealtRows, HeldRows, together
from flowsql_runtime.operators.bounded.join_pairs import PairingOperator, from_starts, no_rows
from flowsql_runtime.operators.join.side import JoinSide, row_ranges
from flowsql_runtime.state.scratch import scratch_stores
from flowsql_runtime.state.stores import NO_BYTES

Int64s = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


class BoundedJoinOperator(PairingOperator[BoundedJoinSpec]):
    """A join of any kind, with keys or without.

    In     two insert-only inputs, hash-partitioned by their keys (without keys: one subtask).
    Out    left columns then right (of a semi or anti join the left ones), as rows of the probing input meet those of
           the other one, which is complete by then; at last the rows of that one without a partner, where they stay.

    Rows of the probing input that come before the other one has ended wait. What memory cannot hold is dealt out by key
    to files on both sides, and joined part by part.

    Source: Flink, ``HashJoinOperator``; a NestedLoopJoin has the same answers.
    """

    def __init__(self, spec: BoundedJoinSpec) -> None:
        super().__init__(spec)
        self.build = 0 if spec.build_left else 1

    def open(self, ctx: OperatorContext) -> None:
        """No rows yet."""
        super().open(ctx)
        self._held = [HeldRows(ctx.memory, self.share_bytes, lambda: self.space, side.keys) for side in self.sides]
        self._table: _Table | None = None
        self._dealt = False

    def process_batch(self, input_index: int, batch: ChangelogBatch) -> None:
        """Probing rows meet the table once there is one."""
        if not batch.num_rows:
            return
        if input_index != self.build and self._table is not None:
            self._probe(self._table, batch)
            return
        self._held[input_index].add(batch)

    def end_input(self, input_index: int) -> None:
        """The table is complete."""
        if input_index != self.build:
            return
        build, probe = self._held[self.build], self._held[1 - self.build]
        if build.dealt is not None:
            probe.deal()
            return
        self._table = self._table_of(build.drain_kept())
        for batches in probe.parts():
            for batch in batches:
                self._probe(self._table, batch)

    def answer(self) -> None:
        """Parts that were dealt out; then rows of the table that met nothing."""
        if self._table is not None:
            self._rest(self._table)
            return
        build, probe = self._held[self.build].dealt, self._held[1 - self.build].dealt
        if build is not None and probe is not None:
            self._join_parts(build, probe)

    def _join_parts(self, build: DealtRows, probe: DealtRows) -> None:
        for part in range(FAN_OUT):
            size = build.part_bytes[part]
            if size > self.share_bytes and build.level + 1 < DEEPEST:
                self._join_parts(self._finer(build, part, self.build), self._finer(probe, part, 1 - self.build))
                continue
            self.ctx.memory.reserve(size)
            table = self._table_of(build.read(part))
            for batch in probe.read(part):
                self._probe(table, batch)
            self._rest(table)
            self.ctx.memory.release(size)

    def _finer(self, dealt: DealtRows, part: int, side: int) -> DealtRows:
        finer = DealtRows(self.space, self.sides[side].keys, dealt.level + 1)
        for batch in dealt.read(part):
            finer.add(batch)
        return finer

    def _table_of(self, batches: Iterable[ChangelogBatch]) -> _Table:
        side = self.sides[self.build]
        rows = together(list(batches))
        return _Table(side, no_rows(side.schema) if rows is None else rows)

    def _probe(self, table: _Table, batch: ChangelogBatch) -> None:
        starts, counts = table.partners(self.sides[1 - self.build], batch)
        for first, last in row_ranges(counts):
            part = batch if (first, last) == (0, batch.num_rows) else batch.slice(first, last)
            found = table.rows_at(starts[first:last], counts[first:last])
            self.meet(part, counts[first:last], table.rows, found, table.met)

    def _rest(self, table: _Table) -> None:
        """Rows of the table without a partner."""
        if self.stays(self.build):
            self.emit_alone(self.build, table.rows, np.flatnonzero(~table.met))


class _Table:
    """Rows of one side by key. ``met``: rows that have a partner."""

    def __init__(self, side: JoinSide, rows: ChangelogBatch) -> None:
        self.rows = rows
        self.met = np.zeros(rows.num_rows, np.bool_)
        self._index = scratch_stores().key_index([to_arrow(side.schema[key].type) for key in side.keys])
        keys = self._index.encode(side.key_columns(rows.columns), num_rows=rows.num_rows)
        slots, _ = self._index.find_or_insert(keys, _skipped(side, rows))
        self._order = np.argsort(slots, kind="stable")
        lost = int(np.count_nonzero(slots < 0))
        self._counts = np.bincount(slots[slots >= 0], minlength=1).astype(np.int64)
        self._starts = lost + np.cumsum(self._counts) - self._counts

    def partners(self, side: JoinSide, batch: ChangelogBatch) -> tuple[Int64s, Int64s]:
        """Where the partners of each row start, and how many they are; for :meth:`rows_at`."""
        keys = self._index.encode(side.key_columns(batch.columns), num_rows=batch.num_rows)
        slots = self._index.lookup(keys, _skipped(side, batch))
        there = slots >= 0
        return np.where(there, self._starts[slots], 0), np.where(there, self._counts[slots], 0)

    def rows_at(self, starts: Int64s, counts: Int64s) -> Int64s:
        """Rows of all partners, one probing row after the other, in order of arrival."""
        found: Int64s = self._order[from_starts(starts, counts)]
        return found


def _skipped(side: JoinSide, batch: ChangelogBatch) -> npt.NDArray[np.uint8]:
    lost = side.without_match(batch.columns)
    return NO_BYTES if lost is None else lost.view(np.uint8)
