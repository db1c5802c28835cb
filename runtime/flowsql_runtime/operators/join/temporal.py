"""Join of rows with the version of a table that was valid at their row time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flowsql_core.batch import ChangelogBatch, LateColumns, WatermarkTrack, columns_of, concat_batches, single_watermark
from flowsql_core.column_bytes import joined, taken
from flowsql_core.element import Watermark
from flowsql_core.graph.lineage import Lineage
from flowsql_core.graph.specs import JoinKind
from flowsql_core.graph.time_join_specs import TemporalJoinSpec
from flowsql_core.types.arrow import to_arrow
from flowsql_runtime.kernels import temporal as kernels
from flowsql_runtime.kernels.interval import NO_TIMER
from flowsql_runtime.metrics.told import Waiting
from flowsql_runtime.operators.base import Operator, OperatorContext, OperatorSnapshot
from flowsql_runtime.operators.join.regular import compiled_condition
from flowsql_runtime.operators.join.side import JoinSide, key_pairs
from flowsql_runtime.operators.join.timed_rows import KeyTimers, TimedRows, row_starts, timed_names
from flowsql_runtime.operators.join.waiting_rows import TakenRows, WaitingRows
from flowsql_runtime.state.names import StateNames, TableNames, kept_for
from flowsql_runtime.window.row_order import row_order
from flowsql_runtime.window.row_time import milliseconds_of

Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]
Int8s = npt.NDArray[np.int8]

NO_SLOTS: Final = np.zeros(0, np.int32)
_LEFT, _RIGHT = 0, 1
#: Versions that wait for a watermark outside state at most.
_MOST_HELD: Final = 65_536

#: Name of the union state: the number of the next left row.
NEXT: Final = "next"


@dataclass(slots=True)
class _Lefts:
    """Left rows that the watermarks of a batch reach, (n,) each: slots, what waited, and the columns of their keys."""

    slots: Int32s
    taken: TakenRows


@dataclass(slots=True)
class _Rights:
    """Versions that came, (n,) each: slots, times, kinds of change and columns."""

    columns: Sequence[Any]
    slots: Int32s
    times: Int64s
    kinds: Int8s
    #: The watermark of the batch that each row waits for; their number: none in the batch.
    entries: Int32s


@dataclass(slots=True)
class _Keys:
    """The keys of what came and those that are due, by number: due ones first, then in order of first sight."""

    #: Slot of each key, (k,).
    slots: Int32s
    #: Key of each left row and of each version that came.
    of_lefts: Int32s
    of_rights: Int32s
    #: Whether something of the key leaves in the batch, (k,).
    fires: npt.NDArray[np.bool_]
    #: How many of the keys the timers named.
    due: int


@dataclass(slots=True)
class _LeavingRows:
    """Left rows of keys that fire, (n,) each; ``rows``: of ``columns``, where those of the state, ``stored``, come
    first. ``keys``: by place among those that fire."""

    columns: Sequence[Any]
    stored: Int32s
    rows: Int64s
    times: Int64s
    entries: Int32s
    kinds: Int8s
    keys: Int32s


@dataclass(slots=True)
class _VersionRows:
    """Versions of keys that fire, (n,) each, as :class:`_LeavingRows`.

    ``came``: row of the batch, -1 for those of the state. ``that_came``: rows of the batch by key, in order of arrival;
    ``keys_that_came``: their keys.
    """

    columns: Sequence[Any]
    stored: Int32s
    rows: Int64s
    times: Int64s
    kinds: Int8s
    came: Int32s
    keys: Int32s
    that_came: Int32s
    keys_that_came: Int32s


@dataclass(slots=True)
class _Joined:
    """Left rows that got their versions, in the order of the output.

    ``lefts``, ``rights``: rows of ``sources``: those read from state, then those that came. ``matched``: whether there
    is a version.
    """

    entries: Int32s
    lefts: Int64s
    rights: Int64s
    matched: npt.NDArray[np.bool_]
    kinds: Int8s
    sources: tuple[Sequence[Any], Sequence[Any]]


@dataclass(slots=True)
class _Kept:
    """Which versions that came are kept, and what of the state goes: stored left rows, stored versions."""

    rights: Int64s
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

    Left rows wait outside state, and only those that a watermark reaches look for their keys. They become state before
    a barrier, where they are too many, and where keys are forgotten by the time at which their rows came. Versions
    without a watermark wait for what comes next: a barrier, a left row or :data:`_MOST_HELD` of them make them state.

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
        #: Left rows outside state.
        self._waiting = WaitingRows(spec.left_time, [pa.nulls(0, to_arrow(column.type)) for column in spec.left])
        none = np.zeros(0, np.int64)
        columns = [pa.nulls(0, to_arrow(column.type)) for column in spec.right]
        self._no_rights = _Rights(columns, NO_SLOTS, none, none.astype(np.int8), NO_SLOTS)
        #: Versions that no watermark came behind.
        self._held: list[ChangelogBatch] = []
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
        ctx.tell(Waiting, self._earliest_open)

    def _earliest_open(self) -> Waiting | None:
        due = self._waiting.earliest_ms
        return None if due is None else Waiting("row", 1, None, due, due)

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
        # Left rows are answered once: only where they are taken back the state has to do with how.
        kind = {"join": spec.kind.value}
        return StateNames(
            key_pairs(spec, left, right),
            tables,
            facts,
            made_with=kind if spec.left_changes else {},
            answered_with={} if spec.left_changes else kind,
            predicates_in_state=spec.left_changes,
        )

    def expect(self, input_index: int, batches: Sequence[ChangelogBatch]) -> None:
        """Keys of rows that come."""
        self._index.expect(*columns_of(batches, self._sides[input_index].keys))

    # -- what comes

    def process_batch(self, input_index: int, batch: ChangelogBatch) -> None:
        """Keep what comes; join the left rows that the batch's watermarks reach."""
        track = self.advance_track(input_index, batch.track)
        if input_index == _LEFT:
            self._keep_versions()
            self._waiting.add(batch, self._next)
            self._next += batch.num_rows
            if track is not None:
                self._join(self._no_rights, track, hand_on=True, came=batch.num_rows > 0)
        else:
            self._held.append(batch.with_track(track))
            # A key lives on from the moment at which its row came.
            whole = track is not None or self._written is not None
            if whole or sum(held.num_rows for held in self._held) >= _MOST_HELD:
                self._keep_versions()
        if self._written is not None or self._waiting.full:
            self._keep_waiting()

    def on_watermark(self, watermark_ms: int) -> None:
        """A watermark between batches; the base class hands it on."""
        self._keep_versions()
        self._join(self._no_rights, single_watermark(0, watermark_ms), hand_on=False)

    def prepare_snapshot_pre_barrier(self, checkpoint_id: int) -> None:
        """What waits becomes state."""
        self._keep_versions()
        self._keep_waiting()

    def _keep_versions(self) -> None:
        """Versions that wait become state; watermarks that came with them are handed on."""
        held, self._held = concat_batches(self._held), []
        for batch in held:
            slots = self._slots_of(self._sides[_RIGHT].key_columns(batch.columns), batch.num_rows)
            times = np.ascontiguousarray(milliseconds_of(batch.columns[self.spec.right_time]))
            kinds = np.zeros(batch.num_rows, np.int8) if batch.kinds is None else batch.kinds.view(np.int8)
            entries = np.zeros(batch.num_rows, np.int32)
            if batch.track is not None:
                rows = np.arange(batch.num_rows, dtype=np.int32)
                kernels.entries_of(times, rows, batch.track.offsets, batch.track.wm_ms, entries)
            self._join(_Rights(batch.columns, slots, times, kinds, entries), batch.track, hand_on=True)

    def _keep_waiting(self) -> None:
        """Left rows that wait become state."""
        for rows in self._waiting.all():
            columns = _at(rows.columns, rows.rows)
            slots = self._slots_of(self._sides[_LEFT].key_columns(columns), len(rows.rows))
            keys = self._keys_of(slots, NO_SLOTS, None, None)
            self._expire(slots)
            self._wait(keys, keys.of_lefts, rows.times)
            self._left.append(slots, columns, rows.times, (rows.kinds, rows.numbers))
            if self._written is not None:
                self._written.touch(keys.slots, self.ctx.clock.now_ms())

    def _slots_of(self, keys: Sequence[Any], num_rows: int) -> Int32s:
        slots, _ = self._index.find_or_insert(self._index.encode(keys, num_rows=num_rows))
        return slots

    def _reached(self, track: WatermarkTrack, came: bool) -> _Lefts:
        """The left rows that watermarks reach; ``came`` as in :meth:`_join`."""
        rows = self._waiting.reached(track, came)
        if not len(rows.rows):
            return _Lefts(NO_SLOTS, rows)
        keys = [taken(rows.columns[key], rows.rows) for key in self.spec.left_keys]
        return _Lefts(self._slots_of(keys, len(rows.rows)), rows)

    def _join(self, rights: _Rights, track: WatermarkTrack | None, *, hand_on: bool, came: bool = False) -> None:
        """Versions come, and watermarks with them.

        Args:
            hand_on: whether the watermarks leave from here.
            came: whether the left rows that came last are those of the batch of the watermarks.
        """
        lefts = None if track is None else self._reached(track, came)
        left_slots = NO_SLOTS if lefts is None else lefts.slots
        self._expire(left_slots, rights.slots)
        keys = self._keys_of(left_slots, rights.slots, rights.entries, track)
        found: _Joined | None = None
        kept = _Kept(np.arange(len(rights.slots)), NO_SLOTS, NO_SLOTS)
        if track is not None and lefts is not None and keys.fires.any():
            found, kept = self._fire(lefts, rights, keys, track)
        self._wait(keys, keys.of_rights, rights.times)
        if track is not None and (found is not None or hand_on):
            self._emit(found, track, hand_on)
        stay = kept.rights
        if len(stay):
            columns = _at(rights.columns, stay)
            self._versions.append(rights.slots[stay], columns, rights.times[stay], [rights.kinds[stay]])
        self._left.rows.remove(kept.gone_left)
        self._versions.rows.remove(kept.gone_versions)
        if self._written is not None:
            self._written.touch(keys.slots, self.ctx.clock.now_ms())
        self._release(keys.slots)

    def _keys_of(
        self, left_slots: Int32s, right_slots: Int32s, right_entries: Int32s | None, track: WatermarkTrack | None
    ) -> _Keys:
        """The keys of left rows that leave with ``track`` and of versions that came with it."""
        due = NO_SLOTS if track is None else self._timers.due(track.last_ms)
        slots = np.concatenate((due, left_slots, right_slots)).astype(np.int32, copy=False)
        most = int(slots.max(initial=-1)) + 1
        if most > len(self._marks):
            self._marks = np.full(max(most, 2 * len(self._marks)), -1, np.int32)
        distinct, of_slots = np.empty(len(slots), np.int32), np.empty(len(slots), np.int32)
        distinct = distinct[: kernels.number_slots(slots, self._marks, distinct, of_slots)]
        of_lefts, of_rights = of_slots[len(due) : len(due) + len(left_slots)], of_slots[len(due) + len(left_slots) :]
        fires = np.zeros(len(distinct), np.bool_)
        fires[: len(due)] = True
        if track is not None:
            fires[of_lefts] = True
            if right_entries is not None:
                fires[of_rights[right_entries < len(track)]] = True
        return _Keys(distinct, of_lefts, of_rights, fires, len(due))

    def _wait(self, keys: _Keys, of_rows: Int32s, times: Int64s) -> None:
        """Keys of which nothing is due wait for the earliest time of rows."""
        waiting = np.flatnonzero(~keys.fires)
        if not len(waiting):
            return
        earliest = np.full(len(keys.slots), 2**63 - 1, np.int64)
        np.minimum.at(earliest, of_rows, times)
        slots = keys.slots[waiting]
        before = self._timers.of(slots)
        after = np.where(before == NO_TIMER, earliest[waiting], np.minimum(before, earliest[waiting]))
        self._timers.set(slots, before, after)

    def _fire(self, lefts: _Lefts, rights: _Rights, keys: _Keys, track: WatermarkTrack) -> tuple[_Joined, _Kept]:
        """What the timers of keys bring about."""
        firing = np.flatnonzero(keys.fires)
        soon = keys.slots[firing]
        places = np.full(len(keys.slots), -1, np.int32)
        places[firing] = np.arange(len(firing), dtype=np.int32)
        left = self._leaving(lefts.taken, places[keys.of_lefts], soon, track)
        right = self._versions_of(rights, places[keys.of_rights], soon, track)
        alive = np.ones(len(right.rows), np.uint8)
        before = self._timers.of(soon)
        after = before.copy()
        by_key = row_order((left.entries, left.keys))
        versions_by_key, fires_by_key = np.full(len(by_key), -1, np.int32), np.zeros(len(by_key), np.int64)
        kernels.join(
            row_starts(left.keys[by_key], len(soon)), left.times[by_key], left.entries[by_key],
            row_starts(right.keys, len(soon)), right.times, right.came, alive,
            row_starts(right.keys_that_came, len(soon)), right.that_came, rights.times[right.that_came], track.offsets,
            track.wm_ms, after, versions_by_key, fires_by_key,
        )  # fmt: skip
        self._timers.set(soon, before, after, taken=keys.due)
        chosen, fires = np.empty_like(versions_by_key), np.empty_like(fires_by_key)
        chosen[by_key], fires[by_key] = versions_by_key, fires_by_key
        due = np.flatnonzero(left.entries < len(track))
        due = due[row_order((fires[due], left.entries[due]))] if len(due) else due
        matched = chosen[due] >= 0
        chosen_rights = np.zeros(len(due), np.int64)
        if len(right.rows):
            picked = np.maximum(chosen[due], 0)
            matched &= (right.kinds[picked] & 1) == 0
            chosen_rights = right.rows[picked]
        sources = (left.columns, right.columns)
        found = _Joined(left.entries[due], left.rows[due], chosen_rights, matched, left.kinds[due], sources)
        dead, held = right.rows[alive == 0], len(right.stored)
        stay = np.ones(len(rights.slots), np.bool_)
        stay[dead[dead >= held] - held] = False
        gone_left = left.stored[found.lefts[found.lefts < len(left.stored)]]
        return found, _Kept(np.flatnonzero(stay), gone_left, right.stored[dead[dead < held]])

    def _leaving(self, came: TakenRows, keys: Int32s, soon: Int32s, track: WatermarkTrack) -> _LeavingRows:
        """Left rows of the keys ``soon``, in order of arrival: those of the state and those that waited beside it.

        ``keys``: places in ``soon`` of what waited beside it. Of each key the first row of the state that the
        watermarks do not reach is there, too.
        """
        positions, stored = self._left.up_to_and_next(soon, track.last_ms)
        if not len(stored):
            return _LeavingRows(came.columns, stored, came.rows, came.times, came.entries, came.kinds, keys)
        source = self._left.whole(stored)
        kinds, numbers, times = source.numbers
        entries = np.empty(len(stored), np.int32)
        anywhere = np.full(len(stored), -1, np.int32)
        kernels.entries_of(np.ascontiguousarray(times), anywhere, track.offsets, track.wm_ms, entries)
        # Rows of the state come by key.
        order = np.argsort(np.concatenate((numbers, came.numbers)), kind="stable")
        return _LeavingRows(
            _behind(source.columns, came.columns),
            stored,
            np.concatenate((np.arange(len(stored)), len(stored) + came.rows))[order],
            np.concatenate((times, came.times))[order],
            np.concatenate((entries, came.entries))[order],
            np.concatenate((kinds, came.kinds))[order],
            np.concatenate((positions, keys))[order],
        )

    def _versions_of(self, rights: _Rights, keys: Int32s, soon: Int32s, track: WatermarkTrack) -> _VersionRows:
        """Versions of the keys ``soon``, by key and time; ``keys``: places in ``soon`` of those that came, or -1."""
        # In order of arrival.
        that_came = np.flatnonzero(keys >= 0)
        that_came = that_came[row_order((keys[that_came],))] if len(that_came) else that_came
        keys = keys[that_came]
        positions, stored = self._versions.up_to(soon, np.full(len(soon), track.last_ms, np.int64))
        source = self._versions.whole(stored)
        kinds, times = source.numbers
        came = np.full(len(stored), -1, np.int32)
        rows = np.arange(len(stored))
        columns, holders = source.columns, positions
        if len(that_came):
            rows = np.concatenate((rows, len(stored) + that_came))
            times = np.concatenate((times, rights.times[that_came]))
            kinds = np.concatenate((kinds, rights.kinds[that_came]))
            came = np.concatenate((came, that_came)).astype(np.int32)
            holders = np.concatenate((positions, keys))
            order = row_order((came, times, holders))
            rows, times, kinds, came, holders = rows[order], times[order], kinds[order], came[order], holders[order]
            columns = _behind(source.columns, rights.columns)
        return _VersionRows(columns, stored, rows, times, kinds, came, holders, that_came.astype(np.int32), keys)

    # -- what leaves

    def _emit(self, found: _Joined | None, track: WatermarkTrack, hand_on: bool) -> None:
        made = None if found is None else self._rows_of(found)
        if made is None:
            if hand_on:
                self.output.emit_watermark(Watermark(track.last_ms))
            return
        rows, entries = made
        if hand_on:
            offsets = np.searchsorted(entries, np.arange(len(track)), side="right").astype(np.int32)
            rows = rows.with_track(WatermarkTrack(offsets, track.wm_ms))
        self.collect_within_offsets(rows)

    def _rows_of(self, found: _Joined) -> tuple[ChangelogBatch, Int32s] | None:
        """The joined rows, and the watermark that each leaves with; None without rows."""
        left, right = found.sources
        matched = found.matched.copy()
        if self._condition is not None and matched.any():
            pairs = np.flatnonzero(matched)
            both = [*_at(left, found.lefts[pairs]), *_at(right, found.rights[pairs])]
            matched[pairs] = self._condition(both, len(pairs))
        kept = np.arange(len(matched)) if self.spec.kind is JoinKind.LEFT else np.flatnonzero(matched)
        if not len(kept):
            return None
        rights, matched = found.rights[kept], matched[kept]
        if matched.all():
            beside = LateColumns.of(right, rights)
        else:
            beside = LateColumns.padded(right, np.where(matched, rights, -1))
        columns = LateColumns.beside(LateColumns.of(left, found.lefts[kept]), beside)
        kinds = found.kinds[kept].view(np.uint8) if self.spec.left_changes else None
        return ChangelogBatch(columns, len(kept), kinds), found.entries[kept]

    # -- what is forgotten

    def _expire(self, *staying: Int32s) -> None:
        """Drop all state of keys whose time is over; the slots of ``staying`` are still good, and live on from now."""
        if self._written is None:
            return
        slots = self._written.expired(self.ctx.clock.now_ms() - self.spec.state_ttl_ms)
        if not len(slots):
            return
        self._left.rows.drop_slots(slots)
        self._versions.rows.drop_slots(slots)
        before = self._timers.of(slots)
        self._timers.set(slots, before, np.full(len(slots), NO_TIMER))
        empty = np.setdiff1d(slots, np.concatenate(staying)).astype(np.int32)
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


def _behind(stored: Sequence[Any], came: Sequence[Any]) -> list[Any]:
    """Columns of rows read from state, then of those that came."""
    return [
        came[index] if not len(one) else one if not len(came[index]) else joined([one, came[index]])
        for index, one in enumerate(stored)
    ]


def _at(columns: Sequence[Any], rows: npt.NDArray[np.int64]) -> list[Any]:
    return [taken(columns[index], rows) for index in range(len(columns))]
