"""Join of rows of the same window and key, when the watermark passes the window's end."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from flowsql_compute.eval.columns import validity
from flowsql_core.batch import ChangelogBatch, LateColumns, WatermarkTrack, watermark_per_row
from flowsql_core.graph.lineage import Lineage
from flowsql_core.graph.specs import JoinKind, WindowJoinSpec
from flowsql_core.record import record
from flowsql_core.types.arrow import to_arrow
from flowsql_runtime.kernels import outer_join as kernels
from flowsql_runtime.metrics.told import Waiting, earliest
from flowsql_runtime.operators.base import Int64s, Operator, OperatorContext
from flowsql_runtime.operators.join.regular import compiled_condition
from flowsql_runtime.operators.join.side import JoinSide, counted_sides, key_pairs, row_ranges
from flowsql_runtime.state.names import StateNames, row_names
from flowsql_runtime.state.stores import RowList
from flowsql_runtime.window.row_time import padded_milliseconds_of
from flowsql_runtime.window.zone import to_epoch_ms

Int32s = npt.NDArray[np.int32]
Bools = npt.NDArray[np.bool_]

LATE = "late"


@record
class _Pairs:
    """Some rows of one side, in the order of their slots, and the pairs that they make.

    ``places`` (n,), ``rows`` (n,): position of the slot of each among those that close, and its number.
    ``probes`` (p,), ``found`` (p,): of each pair the position in ``rows``, and the number of the other side's row.
    """

    places: Int32s
    rows: Int32s
    probes: Int32s
    found: Int32s


@record
class _Results:
    """What closing windows emit: slot, and number of the row of each side, -1 for NULLs; all (n,)."""

    places: Int32s
    sides: tuple[Int32s, Int32s]


class WindowJoinOperator(Operator[WindowJoinSpec]):
    """Window join of any kind.

    In     two append-only inputs with window columns, hash-partitioned by their keys.
    Out    +I rows, left columns then right (of a semi or anti join the left ones), windows in the order of their ends.
    State  rows by (window end, key) and side, until the window closes.
    Late   a row whose window had closed before it came is dropped, counted and sent to side output ``late``.

    Source: Flink, ``WindowJoinOperator``.
    """

    number_of_inputs = 2

    def __init__(self, spec: WindowJoinSpec) -> None:
        super().__init__(spec)
        self._sides = (
            JoinSide(spec.left_keys, spec.left, spec.null_safe),
            JoinSide(spec.right_keys, spec.right, spec.null_safe),
        )
        self._ends = (spec.left_end, spec.right_end)
        #: The side whose rows are gone through one by one, and whether those without a partner stay.
        self._driving = 1 if spec.kind is JoinKind.RIGHT else 0
        self._partial = spec.kind in (JoinKind.SEMI, JoinKind.ANTI)
        self._pads = spec.kind in (JoinKind.LEFT, JoinKind.RIGHT, JoinKind.FULL)
        #: Rows whose key is NULL meet nothing; a side keeps them that emits rows without a partner.
        self._keeps = (False, False) if spec.kind is JoinKind.SEMI else counted_sides(spec.kind)

    def open(self, ctx: OperatorContext) -> None:
        """Make the state and compile the condition."""
        left = self._sides[0]
        types = [to_arrow(left.schema[key].type) for key in left.keys]
        self._index = ctx.state.window_index(types)
        self._rows: list[RowList] = []
        for name, side in zip(("left", "right"), self._sides, strict=True):
            stored = [to_arrow(column.type) for column in side.schema]
            self._rows.append(ctx.state.row_list(name, self._index, stored))
        self._condition = compiled_condition(self.spec.condition, ctx)
        ctx.tell(Waiting, self._earliest_open)

    def _earliest_open(self) -> Waiting | None:
        ends = self._index.namespaces()
        return earliest("window", ends, self._trigger_ms(ends), self.current_watermark, zone=self.spec.zone)

    def state_names(self, arriving: Sequence[Lineage]) -> StateNames:
        """The rows of both sides by window."""
        spec = self.spec
        left, right = (one.columns for one in arriving)
        facts = {"window": f"{left[spec.left_end]} = {right[spec.right_end]}, {spec.zone or 'no zone'}"}
        keys = key_pairs(spec, left, right)
        kept = [name for name, keeps in zip(("left", "right"), self._keeps, strict=True) if keeps]
        return StateNames(
            keys,
            {"left": row_names("left rows", left), "right": row_names("right rows", right)},
            facts,
            made_with={"rows whose key is NULL": f"kept: {', '.join(kept) or 'none'}"},
            answered_with={"join": spec.kind.value},
            predicates_in_state=False,
        )

    def _trigger_ms(self, window_ends: Int64s) -> Int64s:
        return to_epoch_ms(window_ends - 1, self.spec.zone)

    def process_batch(self, input_index: int, batch: ChangelogBatch) -> None:
        """Keep rows of open windows, then join what the batch's watermarks close."""
        before = self.current_watermark
        track = self.advance_track(input_index, batch.track)
        if batch.num_rows:
            self._add(input_index, batch.with_track(None), watermark_per_row(batch.num_rows, track, before))
        if track is not None:
            self._close(track.last_ms, track)

    def _add(self, input_index: int, batch: ChangelogBatch, levels: Int64s) -> None:
        side = self._sides[input_index]
        ends = padded_milliseconds_of(batch.columns[self._ends[input_index]])
        late = self._trigger_ms(ends) <= levels
        if late.any():
            self.ctx.metrics.count("numLateRecordsDropped", int(late.sum()))
            self.output.collect_side(LATE, batch.take(np.flatnonzero(late)))
        lost = None if self._keeps[input_index] else side.without_match(batch.columns)
        skip = late if lost is None else late | lost
        encoded = self._index.encode(side.key_columns(batch.columns), ends)
        slots, _ = self._index.find_or_insert(encoded, skip.view(np.uint8) if skip.any() else np.zeros(0, np.uint8))
        self._rows[input_index].append(slots, batch.columns)

    def on_watermark(self, watermark_ms: int) -> None:
        """A watermark between batches."""
        self._close(watermark_ms, None)

    def _close(self, until: int, track: WatermarkTrack | None) -> None:
        ends = self._index.namespaces()
        due = ends[self._trigger_ms(ends) <= until]
        if len(due):
            window_ends, slots = self._index.up_to(int(due[-1]))
            self._join(self._trigger_ms(window_ends), slots, track)
            for rows in self._rows:
                rows.drop_slots(slots)
            self._index.remove(slots)
        elif track is not None:
            none = np.zeros(0, np.int32)
            self._collect(_Results(none, (none, none)), np.zeros(0, np.int64), track)

    def _join(self, triggers: Int64s, slots: Int32s, track: WatermarkTrack | None) -> None:
        """What the rows of each slot make, in pieces of bounded size; watermarks come after the windows they close."""
        mine, others = self._rows[self._driving], self._rows[1 - self._driving]
        places, rows = mine.rows_of(slots)
        partners = np.where(self._lost(slots), np.int32(-1), slots)
        most = np.where(partners < 0, 0, others.counts(slots))[places]
        unmet = _Unmet(others, slots) if self.spec.kind is JoinKind.FULL else None
        for first, last in row_ranges(most):
            probes, found = others.rows_of(partners[places[first:last]])
            pairs = _Pairs(places[first:last], rows[first:last], probes, found)
            ends = last >= len(rows)
            results = self._passing(pairs) if self._partial else self._paired(pairs)
            if unmet is not None:
                results = unmet.beside(results, len(slots) if ends else int(places[last - 1]))
            self._collect(results, triggers[results.places], track if ends else None)

    def _lost(self, slots: Int32s) -> Bools:
        """Slots whose key is NULL where NULL equals nothing."""
        lost = np.zeros(len(slots), np.bool_)
        if any(self._keeps) and not all(self.spec.null_safe):
            for column, null_safe in zip(self._index.columns_at(slots), self.spec.null_safe, strict=True):
                valid = None if null_safe else validity(column)
                if valid is not None:
                    lost |= ~valid
        return lost

    def _met(self, pairs: _Pairs) -> tuple[Int32s, Int32s]:
        """Probes and rows found of the pairs that fulfil the condition."""
        if self._condition is None or not len(pairs.probes):
            return pairs.probes, pairs.found
        mine = self._rows[self._driving].gather(pairs.rows[pairs.probes])
        theirs = self._rows[1 - self._driving].gather(pairs.found)
        left, right = (mine, theirs) if self._driving == 0 else (theirs, mine)
        joined = ChangelogBatch(LateColumns.beside(left, right), len(pairs.probes))
        met = np.concatenate([self._condition(part.columns, part.num_rows) for part in joined.within_offsets()])
        return pairs.probes[met], pairs.found[met]

    def _passing(self, pairs: _Pairs) -> _Results:
        """Left rows that have a partner, or of an anti join those that have none."""
        met = np.bincount(self._met(pairs)[0], minlength=len(pairs.rows)) > 0
        passing = np.flatnonzero(~met if self.spec.kind is JoinKind.ANTI else met)
        return _Results(pairs.places[passing], (pairs.rows[passing], np.zeros(0, np.int32)))

    def _paired(self, pairs: _Pairs) -> _Results:
        """Pairs, and rows without a partner where they stay."""
        # Of an inner join the condition is asked of what goes out.
        probes, found = self._met(pairs) if self._pads else (pairs.probes, pairs.found)
        n = len(pairs.rows)
        if self._pads:
            causes, own, partner = (np.empty(n + len(probes), np.int32) for _ in range(3))
            count = kernels.changes(
                np.zeros(n, np.uint8), 0, n, np.ascontiguousarray(probes), np.zeros(0, np.int32), True, False,
                causes, own, partner, np.empty(n + len(probes), np.uint8),
            )  # fmt: skip
            probes, partner = own[:count], partner[:count]
            # A place for -1.
            found = np.concatenate((found, np.array([-1], np.int32)))[partner]
        rows = pairs.rows[probes]
        return _Results(pairs.places[probes], (rows, found) if self._driving == 0 else (found, rows))

    def _collect(self, results: _Results, triggers: Int64s, track: WatermarkTrack | None) -> None:
        columns: Sequence[object] = self._gathered(0, results.sides[0])
        if not self._partial:
            columns = LateColumns.beside(columns, self._gathered(1, results.sides[1]))
        if track is not None:
            offsets = np.searchsorted(triggers, track.wm_ms, side="right").astype(np.int32)
            track = WatermarkTrack(offsets, track.wm_ms)
        for part in ChangelogBatch(columns, len(triggers), None, None, track).within_offsets():
            met = part
            if self._condition is not None and part.num_rows and self.spec.kind is JoinKind.INNER:
                met = part.filter(self._condition(part.columns, part.num_rows))
            if met.num_rows or met.track is not None:
                self.output.collect(met)

    def _gathered(self, side: int, rows: Int32s) -> Sequence[object]:
        there = rows >= 0
        if there.all():
            return self._rows[side].gather(rows)
        places = np.where(there, np.cumsum(there, dtype=np.int32) - np.int32(1), np.int32(-1))
        return LateColumns.padded(self._rows[side].gather(rows[there]), places)


class _Unmet:
    """Right rows of a full join that nobody met, behind what their slots make otherwise."""

    def __init__(self, rights: RowList, slots: Int32s) -> None:
        self._places, self._rows = rights.rows_of(slots)
        #: Rows met of the slot that is not done.
        self._met = np.zeros(0, np.int32)
        self._next = 0

    def beside(self, results: _Results, until: int) -> _Results:
        """Results with the right rows that stay alone, of slots before ``until`` that were not asked for before."""
        lefts, rights = results.sides
        met = np.concatenate((self._met, rights))
        self._met = np.concatenate((self._met, rights[results.places >= until]))
        last = int(np.searchsorted(self._places, until, side="left"))
        alone = self._next + np.flatnonzero(np.isin(self._rows[self._next : last], met, invert=True))
        if last > self._next:
            self._met = rights[results.places >= until]
        self._next = last
        if not len(alone):
            return results
        places = np.concatenate((results.places, self._places[alone]))
        order = np.argsort(places, kind="stable")
        lefts = np.concatenate((lefts, np.full(len(alone), -1, np.int32)))[order]
        rights = np.concatenate((rights, self._rows[alone]))[order]
        return _Results(places[order], (lefts, rights))
