"""Regular join: both sides in state, each row meets what the other side holds at that moment."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from flowsql_core.batch import ChangelogBatch, LateColumns, WatermarkTrack, columns_of
from flowsql_core.errors import NotSupportedYetError
from flowsql_core.graph.lineage import Lineage
from flowsql_core.graph.specs import JoinKind, JoinSpec
from flowsql_core.types.arrow import to_arrow
from flowsql_runtime.operators.aggregate.group import signs_of
from flowsql_runtime.operators.base import Operator, OperatorContext
from flowsql_runtime.operators.join.side import JoinSide, key_pairs, row_ranges
from flowsql_runtime.state.names import StateNames, kept_for, row_names
from flowsql_runtime.state.stores import RowList, Rows

Int32s = npt.NDArray[np.int32]
Bools = npt.NDArray[np.bool_]
Condition = Callable[[Sequence[Any], int], Bools]


class JoinOperator(Operator[JoinSpec]):
    """Inner equi-join.

    In     two changelogs, hash-partitioned by their keys.
    Out    left columns, then right; a result has the change kind of the row that made it.
    State  per key and side the rows in arrival order; a side with a unique key holds one row per value of it, newer
           rows overwrite. Rows older than a side's ``ttl_ms`` meet nothing and go.
    Late   not judged. NULL keys meet nothing unless ``null_safe``.

    Source: Flink, ``StreamingJoinOperator``.
    """

    number_of_inputs = 2

    def __init__(self, spec: JoinSpec) -> None:
        super().__init__(spec)
        if spec.kind is not JoinKind.INNER:
            raise NotSupportedYetError(f"{spec.kind.value} in streaming mode")
        self._sides = (
            JoinSide(spec.left_keys, spec.left, spec.null_safe),
            JoinSide(spec.right_keys, spec.right, spec.null_safe),
        )
        self._ttl_ms = (spec.left_ttl_ms, spec.right_ttl_ms)

    def open(self, ctx: OperatorContext) -> None:
        """Make the state and compile the condition."""
        spec = self.spec
        left = self._sides[0]
        #: The rows of each side; and the same where rows go, else None.
        self._rows: list[Rows] = []
        self._lists: list[RowList | None] = []
        self._index = ctx.state.key_index([to_arrow(left.schema[key].type) for key in left.keys])
        self._open_side(ctx, "left", 0, spec.left_unique, spec.left_retracts)
        self._open_side(ctx, "right", 1, spec.right_unique, spec.right_retracts)
        self._condition = compiled_condition(self.spec.condition, ctx)
        self._sweep_at = ctx.clock.now_ms() + max(self._ttl_ms)

    def state_names(self, arriving: Sequence[Lineage]) -> StateNames:
        """The rows of both sides."""
        spec = self.spec
        left, right = (one.columns for one in arriving)
        facts = {"time-to-live": ", ".join(map(kept_for, self._ttl_ms))}
        sides = zip(("left", "right"), (left, right), (spec.left_unique, spec.right_unique), strict=True)
        for name, columns, unique in sides:
            facts[f"{name} rows unique by"] = "" if unique is None else ", ".join(sorted(columns[i] for i in unique))
        keys = key_pairs(spec, left, right)
        return StateNames(keys, {"left": row_names("left rows", left), "right": row_names("right rows", right)}, facts)

    def _open_side(
        self, ctx: OperatorContext, name: str, side: int, unique: tuple[int, ...] | None, retracts: bool
    ) -> None:
        types = [to_arrow(column.type) for column in self._sides[side].schema]
        if unique is not None:
            keys = set(self._sides[side].keys)
            # Inside the join key: at most one row a slot.
            unique = () if set(unique) <= keys else tuple(column for column in unique if column not in keys)
        ttl = self._ttl_ms[side] > 0
        if unique is None and not retracts and not ttl:
            self._rows.append(ctx.state.kept_rows(name, self._index, types, ctx.parallelism))
            self._lists.append(None)
            return
        rows = ctx.state.row_list(name, self._index, types, removable=retracts or ttl, unique=unique, stamped=ttl)
        self._rows.append(rows)
        self._lists.append(rows)

    def expect(self, input_index: int, batches: Sequence[ChangelogBatch]) -> None:
        """Keys of rows that come."""
        self._index.expect(*columns_of(batches, self._sides[input_index].keys))

    def process_batch(self, input_index: int, batch: ChangelogBatch) -> None:
        """Probe the other side with all rows, then keep them."""
        track = self.advance_track(input_index, batch.track)
        n = batch.num_rows
        side, others, listed = self._sides[input_index], self._rows[1 - input_index], self._lists[1 - input_index]
        if any(self._ttl_ms):
            self._sweep()
        lost = side.without_match(batch.columns)
        skip = np.zeros(0, np.uint8) if lost is None else lost.view(np.uint8)
        slots, _ = self._index.find_or_insert(self._index.encode(side.key_columns(batch.columns), num_rows=n), skip)
        counts = others.counts(slots)
        # A row that meets many makes a batch of its own: the pairs of a cross join are never there at once.
        for first, last in row_ranges(counts if lost is None else np.where(lost, 0, counts)):
            probes, found = others.rows_of(slots[first:last])
            probes += np.int32(first)
            if listed is not None and self._ttl_ms[1 - input_index]:
                alive = listed.younger(found, self.ctx.clock.now_ms() - self._ttl_ms[1 - input_index])
                probes, found = probes[alive], found[alive]
            part = None if track is None else track.cut(first, last, last == n)
            self._emit(input_index, batch, probes, found, part, first)
        mine = self._lists[input_index]
        if mine is None:
            self._rows[input_index].append(slots, batch.columns)
            return
        signs = signs_of(batch)
        mine.apply(signs, slots, batch.columns, self.ctx.clock.now_ms())
        if batch.kinds is not None:
            self._release(slots[signs < 0])

    def _emit(
        self,
        input_index: int,
        batch: ChangelogBatch,
        probes: Int32s,
        found: Int32s,
        track: WatermarkTrack | None,
        first_row: int,
    ) -> None:
        own = LateColumns.of(batch.columns, probes)
        stored = self._rows[1 - input_index].gather(found)
        columns = LateColumns.beside(own, stored) if input_index == 0 else LateColumns.beside(stored, own)
        if track is not None:
            offsets = np.searchsorted(probes, track.offsets + first_row, side="left").astype(np.int32)
            track = WatermarkTrack(offsets, track.wm_ms)
        kinds = None if batch.kinds is None else batch.kinds[probes]
        for part in ChangelogBatch(columns, len(probes), kinds, None, track).within_offsets():
            met = part
            if self._condition is not None and part.num_rows:
                met = part.filter(self._condition(part.columns, part.num_rows))
            if met.num_rows or met.track is not None:
                self.output.collect(met)

    def _release(self, slots: Int32s) -> None:
        """Forget keys that no side holds rows of."""
        slots = np.unique(slots[slots >= 0])
        if len(slots):
            empty = slots[(self._rows[0].counts(slots) == 0) & (self._rows[1].counts(slots) == 0)]
            self._index.remove(empty)

    def _sweep(self) -> None:
        now = self.ctx.clock.now_ms()
        if now < self._sweep_at:
            return
        self._sweep_at = now + max(1, max(self._ttl_ms) // 2)
        for side, rows in enumerate(self._lists):
            if rows is not None and self._ttl_ms[side]:
                self._release(rows.remove_older(now - self._ttl_ms[side]))


def compiled_condition(condition: Any, ctx: OperatorContext) -> Condition | None:
    """The residual predicate over the joined row, or None."""
    if condition is None:
        return None
    # Loaded where a join has a condition beside its keys.
    from flowsql_compute.eval.compile import compile_condition
    from flowsql_compute.eval.context import EvalContext

    zone = ctx.parameter("table.local-time-zone", "UTC")
    return compile_condition(condition, EvalContext(zone=zone, clock=ctx.clock, rng=ctx.rng))
