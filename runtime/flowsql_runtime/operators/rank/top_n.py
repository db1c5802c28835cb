"""Top-N: rows of each partition by their place in an order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flowsql_core.batch import ChangelogBatch, LateColumns, WatermarkTrack, columns_of
from flowsql_core.element import Watermark
from flowsql_core.graph.lineage import Lineage
from flowsql_core.graph.rank_specs import RankSpec, RankStrategy
from flowsql_runtime.operators.aggregate.group import signs_of
from flowsql_runtime.operators.base import Operator, OperatorContext
from flowsql_runtime.operators.rank.order import order_text, row_order
from flowsql_runtime.state.arrow_words import value_words
from flowsql_runtime.state.names import StateNames, TableNames, kept_for, row_names
from flowsql_runtime.state.rankings import Places, Ranked, Telling
from flowsql_runtime.state.stores import StoredColumn

Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]

#: Rows that a partition takes, whatever they are, while a column tells its last place. Source: Flink,
#: ``AbstractTopNFunction.DEFAULT_TOPN_SIZE``.
_ROOM: Final = 100


class RankOperator(Operator[RankSpec]):
    """Rows of each partition from one place to another.

    In     any changelog (APPEND_FAST: append-only; UPDATE_FAST: upserts by ``spec.unique`` that never sort a row behind
           where it was), hash-partitioned by ``spec.partition``.
    Out    numbered: -U/+U of each place whose row changes, +I of a new last one, -D of one that is left empty. Without
           numbers: -D of the row that leaves, then +I of the one that comes; the first row alone (not RETRACT) -U/+U.
    State  per partition its rows in sort order, those behind the last place only with RETRACT; the last place where a
           column tells it.
    Late   not judged. Retractions of unknown rows are ignored. A partition idle for ``state_ttl_ms`` starts over.

    Source: Flink, ``AppendOnlyTopNFunction``, ``UpdatableTopNFunction``, ``RetractableTopNFunction``,
    ``FastTop1Function``.
    """

    def open(self, ctx: OperatorContext) -> None:
        """Make the partitions and their rows."""
        spec = self.spec
        retracts = spec.strategy is RankStrategy.RETRACT
        replaces = spec.strategy is RankStrategy.UPDATE_FAST
        only_first = (spec.first, spec.last) == (1, 1) and not retracts
        self._order = row_order(spec.order, spec.input)
        types = self._order.stored_types(spec.input)
        self._index = ctx.state.key_index([types[key] for key in spec.partition])
        unique = spec.unique if replaces and not only_first else None
        self._rows = ctx.state.sorted_list(
            "rows", self._index, types, self._order.columns, unique, keeps_best=not retracts
        )
        self._last = None
        if spec.last is None:
            self._last = ctx.state.column_store("last", self._index, [StoredColumn("last", pa.int64(), False)])
        self._written = ctx.state.slot_times("written", self._index) if spec.state_ttl_ms else None
        self._by_place = spec.numbered or spec.first > 1 or only_first

    def state_names(self, arriving: Sequence[Lineage]) -> StateNames:
        """The rows of each partition."""
        spec, columns = self.spec, arriving[0].columns
        kept = "all" if spec.strategy is RankStrategy.RETRACT else f"{spec.last or columns[spec.last_index or 0]}"
        tables = {"rows": row_names("rows", row_order(spec.order, spec.input).stored_names(columns))}
        if self._last is not None:
            tables["last"] = TableNames("last place", {"v:last": "last place"})
        if self._written is not None:
            tables["written"] = TableNames("when it was written")
        unique = ", ".join(sorted(columns[index] for index in spec.unique))
        facts = {
            "order": order_text(spec.order, columns),
            "rows kept": kept,
            "rows known by": unique,
            "time-to-live": kept_for(spec.state_ttl_ms),
        }
        last = columns[spec.last_index] if spec.last is None and spec.last_index is not None else spec.last
        places = {"places": f"{spec.first} to {last}"}
        return StateNames(tuple(columns[key] for key in spec.partition), tables, facts, made_with=places)

    def expect(self, input_index: int, batches: Sequence[ChangelogBatch]) -> None:
        """Partitions of rows that come."""
        self._index.expect(*columns_of(batches, self.spec.partition))

    def process_batch(self, input_index: int, batch: ChangelogBatch) -> None:
        """Rank the rows, and tell what changes."""
        track = self.advance_track(input_index, batch.track)
        if not batch.num_rows:
            self._only_watermark(track)
            return
        spec = self.spec
        now = self.ctx.clock.now_ms()
        if self._written is not None:
            self._forget(self._written.expired(now - spec.state_ttl_ms))
        keys = [batch.columns[key] for key in spec.partition]
        slots, fresh = self._index.find_or_insert(self._index.encode(keys, num_rows=batch.num_rows))
        places = Places(
            spec.first,
            self._lasts(batch, slots, fresh),
            _ROOM if spec.last is None else spec.last,
            self._by_place,
            Telling.NET if spec.consolidate else Telling.EVERY,
            before=spec.emit_update_before,
        )
        signs = signs_of(batch)
        told = False
        stored = self._order.with_forms(batch.columns)
        for ranked in self._rows.rank(signs, slots, stored, places):
            told = self._emit(ranked, track, batch.num_rows) or told
            # Bytes that nobody looks at grow where they are.
            del ranked
        if not told:
            self._only_watermark(track)
        if self._written is not None:
            self._written.touch(slots, now)
        if self._last is None:
            self._release(slots if spec.last == 0 else slots[signs < 0])

    def _lasts(self, batch: ChangelogBatch, slots: Int32s, fresh: Int32s) -> Int64s:
        """The last place of each row's partition, or of all."""
        spec = self.spec
        if self._last is None or spec.last_index is None:
            return np.array([spec.last or 0], np.int64)
        if len(fresh):
            # A NULL is read as 0, as in Flink.
            lasts = value_words(batch.columns[spec.last_index]).words[0]
            self._last.scatter(slots[fresh], [pa.array(lasts[fresh])])
        return value_words(self._last.gather(slots)[0]).words[0]

    def _emit(self, ranked: Ranked, track: WatermarkTrack | None, num_rows: int) -> bool:
        """Changes with the watermarks of their rows; whether anything went out."""
        count = len(ranked.kinds)
        own = None if track is None else track.cut(ranked.start, ranked.stop, ranked.stop == num_rows)
        if not count:
            if own is None:
                return False
            self.output.emit_watermark(Watermark(own.last_ms))
            return ranked.stop == num_rows or own is not None
        if own is not None:
            ends = np.append(ranked.sums, np.int32(count)) if len(ranked.sums) else None
            offsets = np.full(len(own), count, np.int32) if ends is None else ends[own.offsets].astype(np.int32)
            own = WatermarkTrack(offsets, own.wm_ms)
        columns = self._order.without_forms(ranked.columns)
        if self.spec.numbered:
            columns = LateColumns.beside(columns, (pa.array(ranked.places),))
        kinds = ranked.kinds if ranked.kinds.any() else None
        self.collect_within_offsets(ChangelogBatch(columns, count, kinds, None, own))
        return True

    def _only_watermark(self, track: WatermarkTrack | None) -> None:
        if track is not None:
            self.output.emit_watermark(Watermark(track.last_ms))

    def _release(self, slots: Int32s) -> None:
        """Give back partitions without rows."""
        if len(slots):
            gone = np.unique(slots)
            gone = gone[self._rows.counts(gone) == 0]
            if self._written is not None:
                self._written.drop_slots(gone)
            self._index.remove(gone)

    def _forget(self, slots: Int32s) -> None:
        if len(slots):
            self._rows.drop_slots(slots)
            if self._last is not None:
                self._last.clear(slots)
            self._index.remove(slots)
