"""Join of rows with the version of a table that was valid at their row time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flowsql_core.batch import ChangelogBatch, WatermarkTrack, columns_of, concat_batches, single_watermark
from flowsql_core.column_bytes import joined, taken
from flowsql_core.element import Watermark
from flowsql_core.graph.lineage import Lineage
from flowsql_core.graph.specs import JoinKind
from flowsql_core.graph.time_join_specs import TemporalJoinSpec
from flowsql_core.types.arrow import to_arrow
from flowsql_runtime.kernels import temporal as kernels
from flowsql_runtime.kernels.interval import NO_TIMER
from flowsql_runtime.operators.base import Operator, OperatorContext, OperatorSnapshot
from flowsql_runtime.operators.join.regular import compiled_condition
from flowsql_runtime.operators.join.side import JoinSide, key_pairs
from flowsql_runtime.operators.join.timed_rows import KeyTimers, TimedRows, row_starts, timed_names
from flowsql_runtime.state.names import StateNames, TableNames, kept_for
from flowsql_runtime.window.row_order import row_order
from flowsql_runtime.window.row_time import milliseconds_of

Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]
Int8s = npt.NDArray[np.int8]

NO_SLOTS: Final = np.zeros(0, np.int32)
_LEFT, _RIGHT = 0, 1
#: Rows that wait for a watermark outside state at most.
_MOST_HELD: Final = 65_536

#: Name of the union state: the number of the next left row.
NEXT: Final = "next"


@dataclass(slots=True)
class _Batch:
    """Rows that came on one side, (n,) each: slots, times, kinds of change and columns."""

    side: int
    columns: Sequence[Any]
    slots: Int32s
    times: Int64s
    kinds: Int8s
    #: The watermark of the batch that each row waits for; their number: none in the batch.
    entries: Int32s


@dataclass(slots=True)
class _Keys:
    """The keys of a batch and those that are due, by number: due ones first, then in order of first sight."""

    #: Slot of each key, (k,).
    slots: Int32s
    #: Key of each row of the batch, (n,).
    of_rows: Int32s
    #: Whether something of the key leaves in the batch, (k,).
    fires: npt.NDArray[np.bool_]
    #: How many of the keys the timers named.
    due: int


@dataclass(slots=True)
class _Joined:
    """Left rows that got their versions, in the order of the output.

    ``lefts``, ``rights``: rows of ``sources``: those read from state, then those of the batch. ``matched``: whether
    there is a version.
    """

    entries: Int32s
    lefts: Int64s
    rights: Int64s
    matched: npt.NDArray[np.bool_]
    kinds: Int8s
    sources: tuple[list[Any], list[Any]]


@dataclass(slots=True)
class _Kept:
    """What of a batch is kept, and what of the state goes: rows of the batch, stored left rows, stored versions."""

    rows: Int64s
    gone_left: Int32s
    gone_versions: Int32s


class TemporalJoinOperator(Operator[TemporalJoinSpec]):
    """Event-time temporal join, inner or left.

    In     any changelog on the left; on the right a changelog of versions, each valid from its row time on. Both are
           hash-partitioned by their keys.
    Out    left columns, then right, with the kind of change of the left row; when the watermark reaches its row time,
           keys in the order of the times that they waited for, rows of a key in order of arrival.
    State  left rows that wait; versions of each key from the one that is valid at the watermark on. A key that nothing
           comes for in ``state_ttl_ms`` is forgotten.
    Late   a left row that is late gets its version with the next watermark, if it is still there.

    Batches without a watermark wait for the one that brings it: most of their rows leave at once then, and are never
    put into state. A barrier, a row of the other side and :data:`_MOST_HELD` rows end that.

    Source: Flink, ``TemporalRowTimeJoinOperator``.
    """

    number_of_inputs = 2

    def __init__(self, spec: TemporalJoinSpec) -> None:
        super().__init__(spec)
        self._sides = (
            JoinSide(spec.left_keys, spec.left, spec.null_safe),
            JoinSide(spec.right_keys, spec.right, spec.null_safe),
        )
        self._time_columns = (spec.left_time, spec.right_time)
        #: Batches of one side that no watermark came behind.
        self._held: list[ChangelogBatch] = []
        self._held_side = _LEFT
        #: Number of each slot's key while a batch is under way, -1 between batches.
        self._marks = np.zeros(0, np.int32)

    def open(self, ctx: OperatorContext) -> None:
        """Make the state and compile the condition."""
        left, right = self._sides
        self._index = ctx.state.key_index([to_arrow(left.schema[key].type) for key in left.keys])
        self._left = TimedRows(ctx, "left", self._index, left.schema, [pa.int8(), pa.int64()])
        self._versions = TimedRows(ctx, "versions", self._index, right.schema, [pa.int8()])
        self._timers = KeyTimers(ctx, "timers", self._index)
        self._written = ctx.state.slot_times("written", self._index) if self.spec.state_ttl_ms else None
        self._condition = compiled_condition(self.spec.condition, ctx)
        self._next = 0

    def initialize_state(self, snapshot: OperatorSnapshot | None) -> None:
        """Numbers of left rows go on behind those of all subtasks."""
        saved = self.ctx.operator_state.union_state(NEXT)
        self._next = max((int.from_bytes(value, "little") for value in saved), default=0)

    def snapshot_state(self, checkpoint_id: int) -> OperatorSnapshot:
        """With the number of the next left row."""
        self.ctx.operator_state.union_state(NEXT)[:] = [self._next.to_bytes(8, "little")]
        return super().snapshot_state(checkpoint_id)

    def state_names(self, arriving: Sequence[Lineage]) -> StateNames:
        """Left rows, versions, and what their keys wait for."""
        spec = self.spec
        left, right = (one.columns for one in arriving)
        tables = {
            "left": timed_names("left rows", spec.left, left, ("kind of change", "number")),
            "versions": timed_names("versions", spec.right, right, ("kind of change",)),
            "timers": TableNames("timers"),
            "timers of key": TableNames("timer of a key", {"v:time": "time"}),
        }
        if spec.state_ttl_ms:
            tables["written"] = TableNames("when it was written")
        facts = {
            "times": f"{left[spec.left_time]}, {right[spec.right_time]}",
            "time-to-live": kept_for(spec.state_ttl_ms),
        }
        return StateNames(key_pairs(spec, left, right), tables, facts)

    def expect(self, input_index: int, batches: Sequence[ChangelogBatch]) -> None:
        """Keys of rows that come."""
        self._index.expect(*columns_of(batches, self._sides[input_index].keys))

    # -- what comes

    def process_batch(self, input_index: int, batch: ChangelogBatch) -> None:
        """Keep what comes; join the left rows that the batch's watermarks reach."""
        track = self.advance_track(input_index, batch.track)
        if self._held and self._held_side != input_index:
            self._flush()
        self._held.append(batch.with_track(track))
        self._held_side = input_index
        # A key lives on from the moment at which its row came.
        whole = track is not None or self._written is not None
        if whole or sum(held.num_rows for held in self._held) >= _MOST_HELD:
            self._flush()

    def on_watermark(self, watermark_ms: int) -> None:
        """A watermark between batches; the base class hands it on."""
        if self._held:
            self._flush(watermark_ms)
            return
        none = np.zeros(0, np.int64)
        columns = [pa.nulls(0, to_arrow(column.type)) for column in self.spec.left]
        nothing = _Batch(_LEFT, columns, NO_SLOTS, none, none.astype(np.int8), NO_SLOTS)
        self._join(nothing, single_watermark(0, watermark_ms), hand_on=False)

    def prepare_snapshot_pre_barrier(self, checkpoint_id: int) -> None:
        """What was held becomes state."""
        self._flush()

    def end_input(self, input_index: int) -> None:
        """What was held becomes state."""
        self._flush()

    def _flush(self, watermark_ms: int | None = None) -> None:
        """Take what was held, with a watermark behind it that somebody else hands on."""
        held, self._held = concat_batches(self._held), []
        for number, batch in enumerate(held):
            own = watermark_ms is None or number + 1 < len(held)
            track = batch.track if own else single_watermark(batch.num_rows, cast(int, watermark_ms))
            self._take(self._held_side, batch, track, hand_on=own)

    def _take(self, side: int, batch: ChangelogBatch, track: WatermarkTrack | None, *, hand_on: bool) -> None:
        keys = self._sides[side].key_columns(batch.columns)
        slots, _ = self._index.find_or_insert(self._index.encode(keys, num_rows=batch.num_rows))
        times = milliseconds_of(batch.columns[self._time_columns[side]])
        kinds = np.zeros(batch.num_rows, np.int8) if batch.kinds is None else batch.kinds.view(np.int8)
        entries = np.zeros(batch.num_rows, np.int32)
        if track is not None:
            rows = np.arange(batch.num_rows, dtype=np.int32)
            kernels.entries_of(np.ascontiguousarray(times), rows, track.offsets, track.wm_ms, entries)
        self._join(_Batch(side, batch.columns, slots, times, kinds, entries), track, hand_on=hand_on)

    def _join(self, batch: _Batch, track: WatermarkTrack | None, *, hand_on: bool) -> None:
        now = self.ctx.clock.now_ms()
        if self._written is not None:
            # Keys of this batch live on from now, unless they expired before.
            self._forget(self._written.expired(now - self.spec.state_ttl_ms), np.unique(batch.slots))
        keys = self._keys_of(batch, track)
        numbers = self._next + np.arange(len(batch.slots), dtype=np.int64)
        if batch.side == _LEFT:
            self._next += len(numbers)
        found: _Joined | None = None
        kept = _Kept(np.arange(len(batch.slots)), NO_SLOTS, NO_SLOTS)
        if track is not None and keys.fires.any():
            found, kept = self._fire(batch, keys, numbers, track)
        self._wait(batch, keys)
        if track is not None and (found is not None or hand_on):
            self._emit(batch, found, track, hand_on)
        stay = kept.rows
        slots, columns, times = batch.slots[stay], _at(batch.columns, stay), batch.times[stay]
        if batch.side == _LEFT:
            self._left.append(slots, columns, times, (batch.kinds[stay], numbers[stay]))
        else:
            self._versions.append(slots, columns, times, [batch.kinds[stay]])
        self._left.rows.remove(kept.gone_left)
        self._versions.rows.remove(kept.gone_versions)
        if self._written is not None:
            self._written.touch(keys.slots, now)
        self._release(keys.slots)

    def _keys_of(self, batch: _Batch, track: WatermarkTrack | None) -> _Keys:
        due = NO_SLOTS if track is None else self._timers.due(track.last_ms)
        slots = np.concatenate((due, batch.slots)).astype(np.int32, copy=False)
        most = int(slots.max(initial=-1)) + 1
        if most > len(self._marks):
            self._marks = np.full(max(most, 2 * len(self._marks)), -1, np.int32)
        distinct, of_slots = np.empty(len(slots), np.int32), np.empty(len(slots), np.int32)
        distinct = distinct[: kernels.number_slots(slots, self._marks, distinct, of_slots)]
        of_rows = of_slots[len(due) :]
        fires = np.zeros(len(distinct), np.bool_)
        fires[: len(due)] = True
        if track is not None:
            fires[of_rows[batch.entries < len(track)]] = True
        return _Keys(distinct, of_rows, fires, len(due))

    def _wait(self, batch: _Batch, keys: _Keys) -> None:
        """Keys of which nothing is due wait for the earliest time."""
        waiting = np.flatnonzero(~keys.fires)
        if not len(waiting):
            return
        earliest = np.full(len(keys.slots), 2**63 - 1, np.int64)
        np.minimum.at(earliest, keys.of_rows, batch.times)
        slots = keys.slots[waiting]
        before = self._timers.of(slots)
        after = np.where(before == NO_TIMER, earliest[waiting], np.minimum(before, earliest[waiting]))
        self._timers.set(slots, before, after)

    def _fire(self, batch: _Batch, keys: _Keys, numbers: Int64s, track: WatermarkTrack) -> tuple[_Joined, _Kept]:
        """What the timers of keys bring about."""
        none = np.zeros(0, np.int64)
        firing = np.flatnonzero(keys.fires)
        soon = keys.slots[firing]
        places = np.full(len(keys.slots), -1, np.int32)
        places[firing] = np.arange(len(firing), dtype=np.int32)
        # Rows of the batch by key, in order of arrival.
        owners = places[keys.of_rows]
        arriving = np.flatnonzero(owners >= 0)
        arriving = arriving[row_order((owners[arriving],))] if len(arriving) else arriving
        owners = owners[arriving]
        starts = row_starts(owners, len(soon))
        mine = (arriving, owners) if batch.side == _LEFT else (none, none)
        theirs = (none, none) if batch.side == _LEFT else (arriving, owners)
        # Left rows, in the order in which they leave.
        positions, stored = self._left.up_to_and_next(soon, track.last_ms)
        left_source = self._left.whole(stored)
        entries = np.empty(len(stored), np.int32)
        kinds, sequence, times = left_source.numbers
        kernels.entries_of(
            np.ascontiguousarray(times), np.full(len(stored), -1, np.int32), track.offsets, track.wm_ms, entries
        )
        lefts = np.concatenate((np.arange(len(stored)), len(stored) + mine[0]))
        left_times = np.concatenate((times, batch.times[mine[0]]))
        left_entries = np.concatenate((entries, batch.entries[mine[0]])).astype(np.int32)
        left_kinds = np.concatenate((kinds, batch.kinds[mine[0]]))
        sequence = np.concatenate((sequence, numbers[mine[0]]))
        at = np.concatenate((positions, mine[1])).astype(np.int32)
        order = row_order((sequence, left_entries, at))
        lefts, left_times, left_entries = lefts[order], left_times[order], left_entries[order]
        left_kinds, sequence, at = left_kinds[order], sequence[order], at[order]
        # Versions, by time.
        holders, versions = self._versions.up_to(soon, np.full(len(soon), track.last_ms, np.int64))
        right_source = self._versions.whole(versions)
        version_kinds, version_times = right_source.numbers
        rights = np.concatenate((np.arange(len(versions)), len(versions) + theirs[0]))
        version_times = np.concatenate((version_times, batch.times[theirs[0]]))
        version_kinds = np.concatenate((version_kinds, batch.kinds[theirs[0]]))
        came = np.concatenate((np.full(len(versions), -1), theirs[0])).astype(np.int32)
        holders = np.concatenate((holders, theirs[1])).astype(np.int32)
        order = row_order((came, version_times, holders))
        rights, version_times, version_kinds = rights[order], version_times[order], version_kinds[order]
        came, holders = came[order], holders[order]
        alive = np.ones(len(rights), np.uint8)
        before = self._timers.of(soon)
        after = before.copy()
        chosen, fires = np.full(len(lefts), -1, np.int32), np.zeros(len(lefts), np.int64)
        arriving_starts = starts if batch.side == _RIGHT else np.zeros(len(soon) + 1, np.int64)
        kernels.join(
            row_starts(at, len(soon)), left_times, left_entries, row_starts(holders, len(soon)), version_times, came,
            alive, arriving_starts, theirs[0].astype(np.int32), batch.times[theirs[0]], track.offsets, track.wm_ms,
            after, chosen, fires,
        )  # fmt: skip
        self._timers.set(soon, before, after, taken=keys.due)
        due = np.flatnonzero(left_entries < len(track))
        due = due[row_order((sequence[due], fires[due], left_entries[due]))] if len(due) else due
        matched = chosen[due] >= 0
        chosen_rights = np.zeros(len(due), np.int64)
        if len(rights):
            picked = np.maximum(chosen[due], 0)
            matched &= (version_kinds[picked] & 1) == 0
            chosen_rights = rights[picked]
        sources = (left_source.columns, right_source.columns)
        found = _Joined(left_entries[due], lefts[due], chosen_rights, matched, left_kinds[due], sources)
        dead = rights[alive == 0]
        here, held = (found.lefts, len(stored)) if batch.side == _LEFT else (dead, len(versions))
        stay = np.ones(len(batch.slots), np.bool_)
        stay[here[here >= held] - held] = False
        gone_left = stored[found.lefts[found.lefts < len(stored)]]
        return found, _Kept(np.flatnonzero(stay), gone_left, versions[dead[dead < len(versions)]])

    # -- what leaves

    def _emit(self, batch: _Batch, found: _Joined | None, track: WatermarkTrack, hand_on: bool) -> None:
        made = None if found is None else self._rows_of(batch, found)
        if made is None:
            if hand_on:
                self.output.emit_watermark(Watermark(track.last_ms))
            return
        rows, entries = made
        if hand_on:
            offsets = np.searchsorted(entries, np.arange(len(track)), side="right").astype(np.int32)
            rows = rows.with_track(WatermarkTrack(offsets, track.wm_ms))
        self.collect_within_offsets(rows)

    def _rows_of(self, batch: _Batch, found: _Joined) -> tuple[ChangelogBatch, Int32s] | None:
        """The joined rows, and the watermark that each leaves with; None without rows."""
        left, right = ([*source] for source in found.sources)
        mine = left if batch.side == _LEFT else right
        for index, stored in enumerate(mine):
            own = batch.columns[index]
            mine[index] = joined([stored, own]) if len(stored) else own
        matched = found.matched.copy()
        if self._condition is not None and matched.any():
            pairs = np.flatnonzero(matched)
            columns = [*_at(left, found.lefts[pairs]), *_at(right, found.rights[pairs])]
            matched[pairs] = self._condition(columns, len(pairs))
        kept = np.arange(len(matched)) if self.spec.kind is JoinKind.LEFT else np.flatnonzero(matched)
        if not len(kept):
            return None
        missing = None if matched[kept].all() else ~matched[kept]
        right = [column if len(column) else pa.nulls(1, column.type) for column in right]
        columns = _at(left, found.lefts[kept])
        columns += [taken(column, found.rights[kept], missing) for column in right]
        kinds = found.kinds[kept].view(np.uint8) if self.spec.left_changes else None
        return ChangelogBatch(tuple(columns), len(kept), kinds), found.entries[kept]

    # -- what is forgotten

    def _forget(self, slots: Int32s, staying: Int32s) -> None:
        """Drop all state of keys; the slots of ``staying`` are still good."""
        if not len(slots):
            return
        self._left.rows.drop_slots(slots)
        self._versions.rows.drop_slots(slots)
        before = self._timers.of(slots)
        self._timers.set(slots, before, np.full(len(slots), NO_TIMER))
        empty = np.setdiff1d(slots, staying).astype(np.int32)
        self._timers.drop(empty)
        self._index.remove(empty)

    def _release(self, slots: Int32s) -> None:
        """Forget keys of which nothing is left."""
        slots = slots[(self._left.rows.counts(slots) == 0) & (self._versions.rows.counts(slots) == 0)]
        empty = slots[self._timers.of(slots) == NO_TIMER]
        if len(empty):
            if self._written is not None:
                self._written.drop_slots(empty)
            self._timers.drop(empty)
            self._index.remove(empty)


def _at(columns: Sequence[Any], rows: npt.NDArray[np.int64]) -> list[Any]:
    return [taken(columns[index], rows) for index in range(len(columns))]
