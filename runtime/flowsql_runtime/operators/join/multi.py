"""Joins of several inputs at once: each row meets what all other inputs hold, and no row between them is kept."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from flowsql_compute.eval.columns import validity
from flowsql_core.batch import ChangelogBatch, WatermarkTrack, columns_of
from flowsql_core.graph.lineage import Lineage
from flowsql_core.graph.multi_join_specs import MultiJoinSpec
from flowsql_core.record import record
from flowsql_core.row import RowKind
from flowsql_core.types.arrow import to_arrow
from flowsql_runtime.kernels import outer_join as kernels
from flowsql_runtime.operators.aggregate.group import signs_of
from flowsql_runtime.operators.base import Operator, OperatorContext
from flowsql_runtime.operators.join.combinations import Combinations, Side, equal_pairs
from flowsql_runtime.operators.join.regular import compiled_condition
from flowsql_runtime.operators.join.side import MOST_PAIRS, row_ranges
from flowsql_runtime.state.names import StateNames, TableNames, kept_for, row_names
from flowsql_runtime.state.stores import NO_BYTES, RowList, Rows

Int8s = npt.NDArray[np.int8]
Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


@record
class Arrival:
    """Rows of one input, with what the walk over the others needs of them.

    Args:
        slots: of the shared key, int32 (n,); -1 where it is NULL.
        signs: int8 (n,).
        kinds: bytes of ``RowKind`` (n,).
    """

    place: int
    batch: ChangelogBatch
    slots: Int32s
    signs: Int8s
    kinds: npt.NDArray[np.uint8]


class MultiJoinOperator(Operator[MultiJoinSpec]):
    """INNER and LEFT joins of several changelogs, from left to right.

    In     changelogs, hash-partitioned by the key that they share.
    Out    the columns of all inputs. A combination has the kind of the row that made it; where a row is the first
           partner of a combination that stood padded, that is taken back before (-D), and where it was the last one
           the padded combination comes behind (+I).
    State  per key and input the rows in arrival order; an input with a unique key holds one row per value of it, newer
           rows overwrite. The rows of a key of one input go ``ttl_ms`` after the last one of them came.
    Late   not judged. A NULL in the shared key meets nothing.

    Source: Flink, ``StreamingMultiJoinOperator``; FLIP-516.
    """

    def __init__(self, spec: MultiJoinSpec) -> None:
        super().__init__(spec)
        self.number_of_inputs = len(spec.inputs)

    def open(self, ctx: OperatorContext) -> None:
        """Make the state and compile the conditions."""
        first = self.spec.inputs[0]
        self._index = ctx.state.key_index([to_arrow(first.schema[key].type) for key in first.keys])
        #: The rows of each input; and the same where rows go, else None.
        self._rows: list[Rows] = []
        self._lists: list[RowList | None] = []
        for place, one in enumerate(self.spec.inputs):
            types = [to_arrow(column.type) for column in one.schema]
            if one.unique is None and not one.retracts and not one.ttl_ms:
                self._rows.append(ctx.state.kept_rows(f"input {place}", self._index, types, ctx.parallelism))
                self._lists.append(None)
                continue
            rows = ctx.state.row_list(
                f"input {place}", self._index, types, removable=one.retracts, unique=self._unique_in_key(place)
            )
            self._rows.append(rows)
            self._lists.append(rows)
        self._times = [
            ctx.state.slot_times(f"input {place} written", self._index) if one.ttl_ms else None
            for place, one in enumerate(self.spec.inputs)
        ]
        self._conditions = [compiled_condition(one.condition, ctx) for one in self.spec.inputs]

    def state_names(self, arriving: Sequence[Lineage]) -> StateNames:
        """The rows of all inputs."""
        columns = [one.columns for one in arriving]
        facts = {"time-to-live": ", ".join(kept_for(one.ttl_ms) for one in self.spec.inputs)}
        tables = {}
        for place, one in enumerate(self.spec.inputs):
            known = "" if one.unique is None else ", ".join(sorted(columns[place][i] for i in one.unique))
            facts[f"rows of input {place} unique by"] = known
            tables[f"input {place}"] = row_names(f"rows of input {place}", columns[place])
            if one.ttl_ms:
                tables[f"input {place} written"] = TableNames(f"when rows of input {place} were written")
        by_input = [[columns[place][key] for key in one.keys] for place, one in enumerate(self.spec.inputs)]
        keys = tuple(" = ".join(same) for same in zip(*by_input, strict=True))
        # Where rows are taken back, the combinations that they made are found by the conditions once more.
        predicates_in_state = any(one.outer or one.retracts for one in self.spec.inputs)
        return StateNames(keys, tables, facts, predicates_in_state=predicates_in_state)

    def expect(self, input_index: int, batches: Sequence[ChangelogBatch]) -> None:
        """Keys of rows that come."""
        self._index.expect(*columns_of(batches, self.spec.inputs[input_index].keys))

    def process_batch(self, input_index: int, batch: ChangelogBatch) -> None:
        """Rows meet those of the other inputs in parts of bounded results; then they are kept."""
        track = self.advance_track(input_index, batch.track)
        n = batch.num_rows
        self._expire()
        keys = [batch.columns[key] for key in self.spec.inputs[input_index].keys]
        lost = _any_null(keys)
        skip = NO_BYTES if lost is None else lost.view(np.uint8)
        slots, _ = self._index.find_or_insert(self._index.encode(keys, num_rows=n), skip)
        kinds = np.zeros(n, np.uint8) if batch.kinds is None else np.ascontiguousarray(batch.kinds)
        arrival = Arrival(input_index, batch, slots, signs_of(batch), kinds)
        for first, last in self._parts(arrival):
            part = None if track is None else track.cut(first, last, last == n)
            self._emit(self._changes_of(arrival, first, last), first, part)
            self._keep(arrival, first, last)
        if batch.kinds is not None:
            self._release(slots[arrival.signs < 0])

    def _parts(self, arrival: Arrival) -> list[tuple[int, int]]:
        """Cut rows by how many combinations they may make, and where rows overwrite others, before a key's next row."""
        # What further equalities leave of a key's rows is not known before: they count as one.
        sizes = np.ones(len(arrival.slots))
        for place, one in enumerate(self.spec.inputs):
            if place != arrival.place and not one.equal:
                sizes *= np.maximum(self._rows[place].counts(arrival.slots), 1)
        parts = list(row_ranges(np.minimum(sizes, MOST_PAIRS).astype(np.int64)))
        if not self._overwrites(arrival.place) or self._unique_in_key(arrival.place) == ():
            return parts
        starts = np.union1d(_repeats(arrival.slots), [first for first, _ in parts])
        ends = [*starts[1:], len(arrival.slots)]
        return [(int(first), int(last)) for first, last in zip(starts, ends, strict=True)]

    def _overwrites(self, place: int) -> bool:
        """Whether rows of a LEFT joined input may replace others without taking them back before."""
        one = self.spec.inputs[place]
        return one.outer and one.unique is not None and one.overwrites

    def _unique_in_key(self, place: int) -> tuple[int, ...] | None:
        """What identifies a row of an input within its key; (): there is one a key."""
        one = self.spec.inputs[place]
        if one.unique is None or set(one.unique) <= set(one.keys):
            return None if one.unique is None else ()
        return tuple(column for column in one.unique if column not in one.keys)

    # Combinations

    def _changes_of(self, arrival: Arrival, first: int, last: int) -> Combinations:
        """All changes that rows ``first .. last`` make, in order."""
        rows = np.arange(first, last, dtype=np.int32)
        if arrival.place == 0:
            found = Combinations(rows, arrival.kinds[rows], (Side(arrival.batch.columns, rows),))
        else:
            rows = rows[arrival.slots[rows] >= 0]
            probes, numbers = self._rows[0].rows_of(arrival.slots[rows])
            start = Side(self._rows[0].gather(numbers), np.arange(len(numbers), dtype=np.int32))
            found = Combinations(rows[probes], arrival.kinds[rows[probes]], (start,))
            for place in range(1, arrival.place):
                found = self._extended(found, place, arrival)
            found = self._with_own(found, arrival)
        for place in range(arrival.place + 1, len(self.spec.inputs)):
            found = self._extended(found, place, arrival)
        return found

    def _extended(self, so_far: Combinations, place: int, arrival: Arrival) -> Combinations:
        """Combinations with the rows that an input holds; of a LEFT join also those that find none, padded."""
        met, causes = self._matches(so_far, place, arrival)
        if not self.spec.inputs[place].outer:
            return met
        alone = np.flatnonzero(np.bincount(causes, minlength=len(so_far)) == 0)
        if not len(alone):
            return met
        places = np.concatenate([causes, alone])
        order = np.argsort(places, kind="stable")
        own = met.sides[-1]
        rows = np.concatenate([own.rows, np.full(len(alone), -1, np.int32)])[order]
        return so_far.take(places[order]).beside(Side(own.columns, rows))

    def _matches(self, so_far: Combinations, place: int, arrival: Arrival) -> tuple[Combinations, Int64s]:
        """Combinations with each row that an input holds for them; and of which combination each came, rising."""
        one, store = self.spec.inputs[place], self._rows[place]
        slots = np.where(so_far.unpadded(one.linked), arrival.slots[so_far.causes], np.int32(-1))
        if not one.equal:
            probes, numbers = store.rows_of(slots)
            lefts, rows = probes.astype(np.int64), np.arange(len(numbers), dtype=np.int32)
        else:
            known = np.flatnonzero(slots >= 0)
            asked, groups = np.unique(slots[known], return_inverse=True)
            probes, numbers = store.rows_of(asked)
            columns, whole = store.gather(numbers), so_far.columns()
            there, found = equal_pairs(
                [whole[before] for before, _ in one.equal],
                known,
                groups.astype(np.int32),
                [columns[own] for _, own in one.equal],
                probes,
            )
            lefts, rows = known[there], found.astype(np.int32)
        met = so_far.take(lefts).beside(Side(store.gather(numbers), rows))
        fulfilled = self._fulfilled(met, place)
        return (met, lefts) if fulfilled is None else (met.take(fulfilled), lefts[fulfilled])

    def _fulfilled(self, found: Combinations, place: int) -> Int64s | None:
        """Which combinations fulfil the condition of their last input beside the shared key; None: all."""
        condition = self._conditions[place]
        if condition is None or not len(found):
            return None
        batch = ChangelogBatch(found.columns(), len(found))
        met = np.concatenate([condition(part.columns, part.num_rows) for part in batch.within_offsets()])
        return None if met.all() else np.flatnonzero(met)

    # The input that rows come from

    def _with_own(self, so_far: Combinations, arrival: Arrival) -> Combinations:
        """Combinations of earlier inputs with the rows that came; of a LEFT join also the padded ones that turn."""
        one = self.spec.inputs[arrival.place]
        met = so_far.unpadded(one.linked)
        own = so_far.beside(Side(arrival.batch.columns, so_far.causes))
        fulfilled = self._fulfilled(own, arrival.place)
        if fulfilled is not None:
            asked = np.zeros(len(own), np.bool_)
            asked[fulfilled] = True
            met &= asked
        if not one.outer:
            return own.take(np.flatnonzero(met))
        before = self._partners_before(so_far, met, arrival)
        goes = arrival.signs[so_far.causes] < 0
        first, last = met & ~goes & (before == 0), met & goes & (before <= 1)
        # Each combination in one to two changes: what stood padded goes first, what is padded from now on comes last.
        places = np.concatenate([np.flatnonzero(first), np.flatnonzero(met), np.flatnonzero(last)])
        order = np.argsort(places, kind="stable")
        padded = np.concatenate(
            [np.ones(first.sum(), np.bool_), np.zeros(met.sum(), np.bool_), np.ones(last.sum(), np.bool_)]
        )
        taken = own.take(places[order])
        padded = padded[order]
        turned = np.where(arrival.signs[taken.causes] < 0, np.uint8(RowKind.INSERT), np.uint8(RowKind.DELETE))
        rows = np.where(padded, np.int32(-1), taken.causes)
        sides = (*taken.sides[:-1], Side(arrival.batch.columns, rows))
        return Combinations(taken.causes, np.where(padded, turned, taken.kinds), sides)

    def _partners_before(self, so_far: Combinations, met: Bools, arrival: Arrival) -> Int64s:
        """How many rows of the input each combination of earlier ones meets when the row comes, int64 (n,).

        ``met``: whether it meets the row itself. Rows of one key see the same combinations in the same order, so that
        the next row of a key finds what the one before it changed.
        """
        causes = so_far.causes
        _, first_seen, of_key = np.unique(arrival.slots[causes], return_index=True, return_inverse=True)
        rank = np.arange(len(causes)) - np.searchsorted(causes, causes, side="left")
        first_cause = causes[first_seen]
        distinct = so_far.take(np.flatnonzero(causes == first_cause[of_key]))
        number = np.searchsorted(distinct.causes, first_cause, side="left")[of_key] + rank
        held = self._held(distinct, arrival)
        order = np.argsort(number, kind="stable")
        starts = np.flatnonzero(np.diff(number[order], prepend=-1))
        change = np.where(met, arrival.signs[causes], 0).astype(np.int64)[order]
        before = np.empty(len(causes), np.int64)
        if self._overwrites(arrival.place):
            # One row a key: what the row before left is all there is.
            sums = np.roll(np.maximum(change, 0), 1)
            sums[starts] = held[number[order[starts]]]
        else:
            sums = np.cumsum(change) - change
            sizes = np.diff(np.append(starts, len(order)))
            sums += held[number[order]] - np.repeat(sums[starts], sizes)
        before[order] = sums
        return before

    def _held(self, distinct: Combinations, arrival: Arrival) -> Int64s:
        """How many rows that the input holds each combination of earlier ones meets."""
        if self._conditions[arrival.place] is None:
            counts = self._rows[arrival.place].counts(arrival.slots[distinct.causes]).astype(np.int64)
            return np.where(distinct.unpadded(self.spec.inputs[arrival.place].linked), counts, 0)
        _, lefts = self._matches(distinct, arrival.place, arrival)
        return np.bincount(lefts, minlength=len(distinct))

    # State

    def _emit(self, found: Combinations, first: int, track: WatermarkTrack | None) -> None:
        moved = None
        if track is not None:
            offsets = np.searchsorted(found.causes, track.offsets + first, side="left").astype(np.int32)
            moved = WatermarkTrack(offsets, track.wm_ms)
        kinds = found.kinds if found.kinds.any() else None
        for part in ChangelogBatch(found.columns(), len(found), kinds, None, moved).within_offsets():
            if part.num_rows or part.track is not None:
                self.output.collect(part)

    def _keep(self, arrival: Arrival, first: int, last: int) -> None:
        columns = arrival.batch.columns
        if last - first < arrival.batch.num_rows:
            columns = [column.slice(first, last - first) for column in columns]
        slots, place = arrival.slots[first:last], arrival.place
        listed, times = self._lists[place], self._times[place]
        if listed is None:
            self._rows[place].append(slots, columns)
        else:
            listed.apply(arrival.signs[first:last], slots, columns)
        if times is not None:
            times.touch(slots, self.ctx.clock.now_ms())

    def _expire(self) -> None:
        now = self.ctx.clock.now_ms()
        for one, listed, times in zip(self.spec.inputs, self._lists, self._times, strict=True):
            if times is not None and listed is not None:
                slots = times.expired(now - one.ttl_ms)
                listed.drop_slots(slots)
                self._release(slots)

    def _release(self, slots: Int32s) -> None:
        """Forget keys that no input holds rows of."""
        slots = np.unique(slots[slots >= 0])
        for rows in self._rows:
            slots = slots[rows.counts(slots) == 0]
        if len(slots):
            for times in self._times:
                if times is not None:
                    times.drop_slots(slots)
            self._index.remove(slots)


def _any_null(columns: Sequence[object]) -> Bools | None:
    found: Bools | None = None
    for column in columns:
        valid = validity(column)
        if valid is not None:
            found = ~valid if found is None else found | ~valid
    return found


def _repeats(slots: Int32s) -> Int64s:
    """Where rows must be cut so that none of the parts has two of one slot."""
    order = np.argsort(slots, kind="stable")
    same = np.flatnonzero((slots[order][1:] == slots[order][:-1]) & (slots[order][1:] >= 0))
    before = np.full(len(slots), -1, np.int64)
    before[order[same + 1]] = order[same]
    found = np.empty(max(1, len(slots)), np.int64)
    return found[: kernels.cuts(before, found)]
