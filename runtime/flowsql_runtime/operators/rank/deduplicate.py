"""The first or last row of each key by time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flowsql_core.batch import ChangelogBatch, LateColumns, WatermarkTrack, columns_of
from flowsql_core.column_bytes import joined, taken
from flowsql_core.element import Watermark
from flowsql_core.graph.lineage import Lineage
from flowsql_core.graph.rank_specs import DeduplicateSpec
from flowsql_core.row import INSERT, UPDATE_AFTER, UPDATE_BEFORE
from flowsql_core.types.arrow import to_arrow
from flowsql_runtime.kernels import one_row
from flowsql_runtime.metrics.told import Waiting
from flowsql_runtime.operators.aggregate.group import MiniBatchOperator
from flowsql_runtime.operators.base import OperatorContext
from flowsql_runtime.state.arrow_words import value_words
from flowsql_runtime.state.names import StateNames, TableNames, kept_for
from flowsql_runtime.state.stores import ColumnStore, StoredColumn, Timers
from flowsql_runtime.window.row_order import row_order
from flowsql_runtime.window.row_time import milliseconds_of

Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]

#: What a key that keeps its first row for good has: see ``kernels/one_row.py``.
_WAITS, _LEFT = 1, 2


class DeduplicateOperator(MiniBatchOperator):
    """One row of each key.

    In     append-only, hash-partitioned by ``spec.keys``.
    Out    the first row by processing time: +I; by row time, ``insert_only``: +I once the watermark is there. Else
           +I, and -U/+U whenever another row takes its place: an earlier one, or one not earlier (``keep_last``);
           with ``compact`` once a key and mini-batch.
    State  the row time of each key's row, and the row where it may have to be told again; else that it came.
    Late   ``insert_only``: rows before the watermark are dropped and counted. Else not judged. A key starts over
           ``state_ttl_ms`` after its row was last replaced.

    Source: Flink, ``RowTimeDeduplicateFunction``, ``RowTimeDeduplicateKeepFirstRowFunction`` and
    ``ProcTimeDeduplicateKeepLastRowFunction`` with their mini-batch forms.
    """

    spec: DeduplicateSpec

    def open(self, ctx: OperatorContext) -> None:
        """Make the keys and what is kept of their rows."""
        super().open(ctx)
        spec = self.spec
        self._mini_batch = spec.mini_batch
        self._ends_at_marks = spec.compact
        self._net = spec.consolidate or (spec.compact and spec.mini_batch is not None)
        self._waits = spec.insert_only and spec.time_index is not None
        types = [to_arrow(column.type) for column in spec.input]
        self._index = ctx.state.key_index([types[key] for key in spec.keys])
        self._times = self._rows = self._timers = None
        if spec.time_index is not None:
            columns = [StoredColumn("time", pa.int64(), False)]
            if self._waits:
                columns.append(StoredColumn("state", pa.int64(), False))
                self._timers = ctx.state.timers("timers", self._index)
                ctx.tell(Waiting, self._earliest_open)
            self._times = ctx.state.column_store("times", self._index, columns)
        if self._waits or spec.emit_update_before:
            stored = [StoredColumn(f"r{place}", type_) for place, type_ in enumerate(types)]
            self._rows = ctx.state.column_store("rows", self._index, stored)
        self._seen: ColumnStore | None = None
        if self._times is None and self._rows is None:
            # Keys alone stand in no snapshot.
            self._seen = ctx.state.column_store("seen", self._index, [StoredColumn("seen", pa.bool_(), False)])
        self._written = ctx.state.slot_times("written", self._index) if spec.state_ttl_ms else None

    def state_names(self, arriving: Sequence[Lineage]) -> StateNames:
        """The row of each key."""
        spec, columns = self.spec, arriving[0].columns
        tables = {}
        if self._times is not None:
            tables["times"] = TableNames("row time", {"v:time": "row time", "v:state": "whether its row has left"})
        if self._timers is not None:
            tables["timers"] = TableNames("row time that is waited for")
        if self._rows is not None:
            tables["rows"] = TableNames("rows", {f"v:r{place}": text for place, text in enumerate(columns)})
        if self._seen is not None:
            tables["seen"] = TableNames("keys that came", {"v:seen": "whether it came"})
        if self._written is not None:
            tables["written"] = TableNames("when it was written")
        time = "processing time" if spec.time_index is None else columns[spec.time_index]
        facts = {
            "row": f"{'last' if spec.keep_last else 'first'} by {time}",
            "told once": str(spec.insert_only),
            "time-to-live": kept_for(spec.state_ttl_ms),
        }
        return StateNames(tuple(columns[key] for key in spec.keys), tables, facts)

    def expect(self, input_index: int, batches: Sequence[ChangelogBatch]) -> None:
        """Keys of rows that come."""
        self._index.expect(*columns_of(batches, self.spec.keys))

    def process_batch(self, input_index: int, batch: ChangelogBatch) -> None:
        """Rows that wait are judged by the watermarks between them."""
        self._before_ms = self.current_watermark
        super().process_batch(input_index, batch)

    def process_rows(self, batch: ChangelogBatch) -> None:
        """Choose the rows that are kept, and tell what changed."""
        track, n = batch.track, batch.num_rows
        if not n:
            if track is not None:
                self.on_watermark(track.last_ms)
                self.output.emit_watermark(Watermark(track.last_ms))
            return
        now = self.ctx.clock.now_ms()
        if self._written is not None:
            self._forget(self._written.expired(now - self.spec.state_ttl_ms))
        keys = [batch.columns[key] for key in self.spec.keys]
        slots, fresh = self._index.find_or_insert(self._index.encode(keys, num_rows=n))
        if self._waits:
            self._keep_first(batch, slots, fresh)
            return
        known = np.ones(n, np.bool_)
        known[fresh] = False
        nothing = np.zeros(n, np.int64)
        times = stored_times = nothing
        if self._times is not None and self.spec.time_index is not None:
            times = milliseconds_of(batch.columns[self.spec.time_index])
            stored_times = value_words(self._times.gather(slots)[0]).words[0]
        replaced, stays = np.empty(n, np.int32), np.empty(n, np.bool_)
        one_row.replace(
            slots, known, self._times is not None, self.spec.keep_last, self._net, np.ascontiguousarray(times),
            np.ascontiguousarray(stored_times), one_row.table_for(n), replaced, stays,
        )  # fmt: skip
        told = np.flatnonzero(stays if self._net else replaced != one_row.STAYS_OUT).astype(np.int32)
        out = self._changes(batch, slots, told, replaced)
        if self._written is not None:
            self._written.touch(slots[told], now)
        kept = np.flatnonzero(stays)
        if self._times is not None:
            self._times.scatter(slots[kept], [pa.array(times[kept])])
        if self._seen is not None:
            self._seen.scatter(slots[kept], [pa.array(np.ones(len(kept), np.bool_))])
        if self._rows is not None:
            self._rows.scatter(slots[kept], LateColumns.of(batch.columns, kept))
        if out.num_rows:
            self.collect_within_offsets(out)
        elif track is not None:
            self.output.emit_watermark(Watermark(track.last_ms))

    def _changes(self, batch: ChangelogBatch, slots: Int32s, told: Int32s, replaced: Int32s) -> ChangelogBatch:
        """The changes that rows ``told`` make, each after the row that it replaces."""
        before = replaced[told]
        new = before == one_row.NOTHING
        if self._rows is None or new.all():
            kinds = np.where(new, np.uint8(INSERT), np.uint8(UPDATE_AFTER))
            return self._made(batch, LateColumns.of(batch.columns, told), told, kinds)
        # A row that was replaced was told itself, or it stands in state.
        stored = np.flatnonzero(before == one_row.STORED)
        place = np.empty(batch.num_rows, np.int64)
        place[told] = np.arange(len(told))
        old = np.where(before >= 0, place[np.maximum(before, 0)], 0)
        old[stored] = len(told) + np.arange(len(stored))
        own: Sequence[Any] = LateColumns.of(batch.columns, told)
        if len(stored):
            kept = self._rows.gather(slots[told[stored]])
            own = [joined([taken(batch.columns[i], told), rows]) for i, rows in enumerate(kept)]
        rows = np.empty((len(told), 2), np.int64)
        rows[:, 0], rows[:, 1] = old, np.arange(len(told))
        kinds = np.empty((len(told), 2), np.uint8)
        kinds[:, 0], kinds[:, 1] = UPDATE_BEFORE, np.where(new, np.uint8(INSERT), np.uint8(UPDATE_AFTER))
        keep = np.stack([~new, np.ones(len(told), np.bool_)], axis=1)
        causes = np.repeat(told, 2)[keep.reshape(-1)]
        return self._made(batch, LateColumns.of(own, rows[keep]), causes, kinds[keep])

    def _made(
        self, batch: ChangelogBatch, columns: Sequence[Any], causes: Int32s, kinds: npt.NDArray[np.uint8]
    ) -> ChangelogBatch:
        """Changes with their watermarks: where their rows had them, behind all of them for net changes."""
        track = batch.track
        if track is not None:
            offsets = np.searchsorted(causes, track.offsets).astype(np.int32)
            track = WatermarkTrack(np.full_like(offsets, len(causes)) if self._net else offsets, track.wm_ms)
        return ChangelogBatch(columns, len(causes), kinds if kinds.any() else None, None, track)

    # First rows that wait for the watermark

    def _stores(self) -> tuple[ColumnStore, ColumnStore, Timers]:
        assert self._times is not None
        assert self._rows is not None
        assert self._timers is not None
        return self._times, self._rows, self._timers

    def _earliest_open(self) -> Waiting | None:
        due = self._stores()[2].earliest()
        return None if due is None else Waiting("row", 1, None, due, due)

    def _keep_first(self, batch: ChangelogBatch, slots: Int32s, fresh: Int32s) -> None:
        times_store, rows_store, timers = self._stores()
        assert self.spec.time_index is not None
        n = batch.num_rows
        times = milliseconds_of(batch.columns[self.spec.time_index])
        stored_times, states = (value_words(column).words[0] for column in times_store.gather(slots))
        replaced, stays = np.empty(n, np.int32), np.empty(n, np.bool_)
        late = one_row.wait(
            slots, np.ascontiguousarray(times), batch.watermark_per_row(self._before_ms), self._before_ms,
            np.ascontiguousarray(stored_times), states.astype(np.int8), one_row.table_for(n), replaced, stays,
        )  # fmt: skip
        if late:
            self.ctx.metrics.count("numLateRecordsDropped", late)
            self._index.remove(np.setdiff1d(slots[fresh], slots[stays]).astype(np.int32))
        over = np.flatnonzero(replaced == one_row.STORED)
        timers.delete(stored_times[over], slots[over])
        kept = np.flatnonzero(stays)
        mine = slots[kept]
        times_store.scatter(mine, [pa.array(times[kept]), pa.array(np.full(len(kept), _WAITS, np.int64))])
        rows_store.scatter(mine, LateColumns.of(batch.columns, kept))
        timers.register(times[kept], mine)
        if batch.track is not None:
            self._leave(batch.track, mine, kept)

    def _leave(self, track: WatermarkTrack, slots: Int32s, rows: npt.NDArray[Any]) -> None:
        """Rows that watermarks reach. ``slots``: of rows of the batch; only watermarks behind those count for them."""
        _, _, timers = self._stores()
        times, due = timers.due(track.last_ms)
        if not len(due):
            self.output.emit_watermark(Watermark(track.last_ms))
            return
        entries = np.searchsorted(track.wm_ms, times)
        if len(slots):
            order = np.argsort(slots)
            at = np.minimum(np.searchsorted(slots[order], due), len(slots) - 1)
            found = order[at]
            behind = np.searchsorted(track.offsets, rows[found], side="right")
            entries = np.where(slots[found] == due, np.maximum(entries, behind), entries)
        # A time that is the watermark's own waits for the next one.
        soon = entries < len(track)
        timers.register(times[~soon], due[~soon])
        order = row_order((times[soon], entries[soon]))
        entries, due = entries[soon][order], due[soon][order]
        offsets = np.searchsorted(entries, np.arange(len(track)), side="right").astype(np.int32)
        self._emit_first(due, WatermarkTrack(offsets, track.wm_ms))

    def _emit_first(self, slots: Int32s, track: WatermarkTrack | None) -> None:
        stored_times, rows, _ = self._stores()
        if len(slots):
            columns = rows.gather(slots)
            count = len(slots)
            rows.clear(slots)
            stored_times.scatter(
                slots, [pa.array(np.zeros(count, np.int64)), pa.array(np.full(count, _LEFT, np.int64))]
            )
            if self._written is not None:
                self._written.touch(slots, self.ctx.clock.now_ms())
            self.collect_within_offsets(ChangelogBatch(tuple(columns), count, None, None, track))
        elif track is not None:
            self.output.emit_watermark(Watermark(track.last_ms))

    def on_watermark(self, watermark_ms: int) -> None:
        """A watermark between batches."""
        if self._timers is not None:
            _, due = self._timers.due(watermark_ms)
            self._emit_first(due, None)

    def _forget(self, slots: Int32s) -> None:
        if len(slots):
            for store in (self._times, self._rows, self._seen):
                if store is not None:
                    store.clear(slots)
            self._index.remove(slots)
