"""Regular joins: both sides in state, each row meets what the other side holds at that moment."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from flowsql_core.batch import ChangelogBatch, LateColumns, WatermarkTrack, columns_of
from flowsql_core.element import Watermark
from flowsql_core.graph.lineage import Lineage
from flowsql_core.graph.specs import JoinSpec
from flowsql_core.record import record
from flowsql_core.types.arrow import to_arrow
from flowsql_runtime.operators.aggregate.group import signs_of
from flowsql_runtime.operators.base import Operator, OperatorContext
from flowsql_runtime.operators.join.bundle import JoinBundle
from flowsql_runtime.operators.join.side import JoinSide, counted_sides, key_pairs, pairs_at_once, row_ranges
from flowsql_runtime.state.names import StateNames, kept_for, row_names
from flowsql_runtime.state.stores import RowList, Rows

Int8s = npt.NDArray[np.int8]
Int32s = npt.NDArray[np.int32]
Bools = npt.NDArray[np.bool_]
Condition = Callable[[Sequence[Any], int], Bools]


@record
class Probe:
    """Rows ``first .. last`` of a batch, and what they found on the other side.

    Args:
        signs: of all rows of the batch, (n,).
        probes: row of the batch of each pair, int32 (p,), rising.
        found: row of the other side's state of each pair, int32 (p,).
        track: the batch's watermarks from ``first`` on, offsets counted from there.
    """

    side: int
    batch: ChangelogBatch
    signs: Int8s
    first: int
    last: int
    probes: Int32s
    found: Int32s
    track: WatermarkTrack | None

    def partners(self, probes: Int32s) -> Int32s:
        """How many of ``probes`` are each of the rows, int32 (last - first,)."""
        return np.bincount(probes - np.int32(self.first), minlength=self.last - self.first).astype(np.int32)

    def track_at(self, causes: Int32s) -> WatermarkTrack | None:
        """The track for changes made by the rows ``causes``, which rise."""
        if self.track is None:
            return None
        offsets = np.searchsorted(causes, self.track.offsets + self.first, side="left").astype(np.int32)
        return WatermarkTrack(offsets, self.track.wm_ms)


class RegularJoin(Operator[JoinSpec], ABC):
    """A join of two changelogs.

    In     two changelogs, hash-partitioned by their keys.
    State  per key and side the rows in arrival order; a side with a unique key holds one row per value of it, newer
           rows overwrite. Rows older than a side's ``ttl_ms`` meet nothing and go. A side whose rows are also emitted
           without a partner counts the partners of each.
    Late   not judged. NULL keys meet nothing unless ``null_safe``.

    With ``spec.mini_batch`` rows wait for the end of their mini-batch, and only what is left of them is joined.
    """

    number_of_inputs = 2

    def __init__(self, spec: JoinSpec) -> None:
        super().__init__(spec)
        self._sides = (
            JoinSide(spec.left_keys, spec.left, spec.null_safe),
            JoinSide(spec.right_keys, spec.right, spec.null_safe),
        )
        self._ttl_ms = (spec.left_ttl_ms, spec.right_ttl_ms)
        self._counted = counted_sides(spec.kind)
        self._pairs_at_once = pairs_at_once(spec.left, spec.right)
        self._bundle = None if spec.mini_batch is None else JoinBundle(spec, spec.mini_batch)

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
        tables = {"left": row_names("left rows", left), "right": row_names("right rows", right)}
        # Pairs that were emitted are taken back by the condition by which they were found, partners are counted by it.
        predicates_in_state = any(self._counted) or spec.left_retracts or spec.right_retracts
        return StateNames(
            keys, tables, facts, made_with={"join": spec.kind.value}, predicates_in_state=predicates_in_state
        )

    def _open_side(
        self, ctx: OperatorContext, name: str, side: int, unique: tuple[int, ...] | None, retracts: bool
    ) -> None:
        types = [to_arrow(column.type) for column in self._sides[side].schema]
        if unique is not None:
            keys = set(self._sides[side].keys)
            # Inside the join key: at most one row a slot.
            unique = () if set(unique) <= keys else tuple(column for column in unique if column not in keys)
        ttl = self._ttl_ms[side] > 0
        counted = self._counted[side]
        if unique is None and not retracts and not ttl:
            self._rows.append(ctx.state.kept_rows(name, self._index, types, ctx.parallelism, counted))
            self._lists.append(None)
            return
        rows = ctx.state.row_list(
            name, self._index, types, removable=retracts or ttl, unique=unique, stamped=ttl, counted=counted
        )
        self._rows.append(rows)
        self._lists.append(rows)

    def expect(self, input_index: int, batches: Sequence[ChangelogBatch]) -> None:
        """Keys of rows that come."""
        self._index.expect(*columns_of(batches, self._sides[input_index].keys))

    def process_batch(self, input_index: int, batch: ChangelogBatch) -> None:
        """Rows meet the other side at once, or at the end of their mini-batch: when it is full or its mark comes."""
        track = self.advance_track(input_index, batch.track)
        if self._bundle is None:
            self._process(input_index, batch.with_track(track))
            return
        if self._bundle.add(input_index, batch.with_track(None)) or track is not None:
            self._flush()
        if track is not None:
            self.output.emit_watermark(Watermark(track.last_ms))

    def _flush(self) -> None:
        if self._bundle is not None:
            for side, batch in self._bundle.take():
                self._process(side, batch)

    def on_watermark(self, watermark_ms: int) -> None:
        """A mark ends the mini-batch."""
        self._flush()

    def prepare_snapshot_pre_barrier(self, checkpoint_id: int) -> None:
        """What waits is not part of a snapshot."""
        self._flush()

    def end_input(self, input_index: int) -> None:
        """The last mini-batch of a side."""
        self._flush()

    def _process(self, input_index: int, batch: ChangelogBatch) -> None:
        """Probe the other side with all rows, then keep them."""
        track = batch.track
        n = batch.num_rows
        side, others, listed = self._sides[input_index], self._rows[1 - input_index], self._lists[1 - input_index]
        if any(self._ttl_ms):
            self._sweep()
        lost = side.without_match(batch.columns)
        skip = np.zeros(0, np.uint8) if lost is None else lost.view(np.uint8)
        slots, _ = self._index.find_or_insert(self._index.encode(side.key_columns(batch.columns), num_rows=n), skip)
        counts = others.counts(slots)
        signs = signs_of(batch)
        partners = np.zeros(n if self._counted[input_index] else 0, np.int32)
        # A row that meets many makes a batch of its own: the pairs of a cross join are never there at once.
        met = counts if lost is None else np.where(lost, 0, counts)
        for first, last in row_ranges(met, self._pairs_at_once):
            probes, found = others.rows_of(slots[first:last])
            probes += np.int32(first)
            if listed is not None and self._ttl_ms[1 - input_index]:
                alive = listed.younger(found, self.ctx.clock.now_ms() - self._ttl_ms[1 - input_index])
                probes, found = probes[alive], found[alive]
            part = None if track is None else track.cut(first, last, last == n)
            probe = Probe(input_index, batch, signs, first, last, probes, found, part)
            probes = self._meet(probe)
            if len(partners):
                partners[first:last] = probe.partners(probes)
        mine = self._lists[input_index]
        if mine is None:
            self._rows[input_index].append(slots, batch.columns, partners if len(partners) else None)
            return
        now = self.ctx.clock.now_ms()
        mine.apply(signs, slots, batch.columns, now, partners if len(partners) else None)
        if batch.kinds is not None:
            self._release(slots[signs < 0])

    @abstractmethod
    def _meet(self, probe: Probe) -> Int32s:
        """Emit what rows make of what they found; returns the probes of pairs that fulfil the condition."""

    def _joined(self, probe: Probe, own: Sequence[Any], stored: Sequence[Any]) -> LateColumns:
        """Columns of the left side, then of the right one."""
        return LateColumns.beside(own, stored) if probe.side == 0 else LateColumns.beside(stored, own)

    def _fulfilling(self, probe: Probe, stored: Sequence[Any]) -> Int32s | None:
        """Pairs that fulfil the condition beside the keys; None: all."""
        if self._condition is None or not len(probe.probes):
            return None
        columns = self._joined(probe, LateColumns.of(probe.batch.columns, probe.probes), stored)
        met: list[Bools] = []
        for part in ChangelogBatch(columns, len(probe.probes)).within_offsets():
            met.append(self._condition(part.columns, part.num_rows))
        every = met[0] if len(met) == 1 else np.concatenate(met)
        return None if every.all() else np.flatnonzero(every).astype(np.int32)

    def _count(self, probe: Probe, found: Int32s, probes: Int32s) -> Int32s:
        """Count partners of the other side's rows up or down; returns how many each had before."""
        changes = probe.signs[probes].astype(np.int32)
        return self._rows[1 - probe.side].associate(found, changes, self.ctx.clock.now_ms())

    def _collect(self, columns: Sequence[Any], rows: int, kinds: Any, track: WatermarkTrack | None) -> None:
        for part in ChangelogBatch(columns, rows, kinds, None, track).within_offsets():
            if part.num_rows or part.track is not None:
                self.output.collect(part)

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


class InnerJoinOperator(RegularJoin):
    """Inner join.

    Out    left columns, then right; a result has the change kind of the row that made it.

    Source: Flink, ``StreamingJoinOperator``.
    """

    def _meet(self, probe: Probe) -> Int32s:
        own = LateColumns.of(probe.batch.columns, probe.probes)
        columns = self._joined(probe, own, self._rows[1 - probe.side].gather(probe.found))
        kinds = None if probe.batch.kinds is None else probe.batch.kinds[probe.probes]
        joined = ChangelogBatch(columns, len(probe.probes), kinds, None, probe.track_at(probe.probes))
        for part in joined.within_offsets():
            met = part
            if self._condition is not None and part.num_rows:
                met = part.filter(self._condition(part.columns, part.num_rows))
            if met.num_rows or met.track is not None:
                self.output.collect(met)
        return probe.probes


def compiled_condition(condition: Any, ctx: OperatorContext) -> Condition | None:
    """The residual predicate over the joined row, or None."""
    if condition is None:
        return None
    # Loaded where a join has a condition beside its keys.
    from flowsql_compute.eval.compile import compile_condition
    from flowsql_compute.eval.context import EvalContext
    from flowsql_runtime.operators.evaluation import regex_limit_s

    zone = ctx.parameter("table.local-time-zone", "UTC")
    limit_s = regex_limit_s(ctx.parameters)
    return compile_condition(condition, EvalContext(zone=zone, clock=ctx.clock, rng=ctx.rng, regex_limit_s=limit_s))
