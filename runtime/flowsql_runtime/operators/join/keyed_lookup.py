"""Lookup joins behind updates: what was found for a row is kept, so that what is taken back is what was told."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from flowsql_core.batch import ChangelogBatch, columns_of
from flowsql_core.column_bytes import joined, taken
from flowsql_core.element import Watermark
from flowsql_core.graph.lineage import Lineage
from flowsql_core.graph.time_join_specs import KeyedLookupJoinSpec
from flowsql_core.row import DELETE
from flowsql_core.types.arrow import to_arrow
from flowsql_runtime.operators.aggregate.group import signs_of
from flowsql_runtime.operators.base import OperatorContext
from flowsql_runtime.operators.join.lookup import LookupJoinOperator, expanded
from flowsql_runtime.operators.join.side import row_ranges
from flowsql_runtime.state.flat_rows import flat_columns, flat_types, whole_columns
from flowsql_runtime.state.names import StateNames, TableNames, kept_for, row_names

Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


class KeyedLookupJoinOperator(LookupJoinOperator):
    """As its base for ``+I`` and ``+U``; what was told of a row is taken back without a lookup.

    In     any changelog, hash-partitioned by ``spec.state_key``.
    Out    as the base; for ``-U`` and ``-D`` a ``-D`` for each row that was told with the key's last ``+I`` or ``+U``,
           with the left columns that arrive. A left join tells a ``-D`` padded with NULLs where nothing was found.
    State  of each key the rows of the table that were found and met the condition. A key that found nothing has none.
    Late   not judged. A key that was not written to for ``state_ttl_ms`` is forgotten: it counts as one that found
           nothing.

    Source: Flink, ``KeyedLookupJoinWrapper``.
    """

    spec: KeyedLookupJoinSpec

    def open(self, ctx: OperatorContext) -> None:
        """Make the lookup, the index and the rows of its keys."""
        super().open(ctx)
        spec = self.spec
        self._found_types = [to_arrow(expr.type) for expr in spec.projections]
        self._index = ctx.state.key_index([to_arrow(spec.left[key].type) for key in spec.state_key])
        flat = [part for type_ in self._found_types for part in flat_types(type_)]
        self._rows = ctx.state.row_list("rows", self._index, flat)
        self._written = ctx.state.slot_times("written", self._index) if spec.state_ttl_ms else None

    def state_names(self, arriving: Sequence[Lineage]) -> StateNames:
        """The rows found for each key."""
        spec, columns = self.spec, arriving[0].columns
        parts = [
            f"{text}.{place}" if place else text
            for text, type_ in zip(spec.kept, self._found_types, strict=True)
            for place in range(len(flat_types(type_)))
        ]
        tables = {"rows": row_names("found rows", parts)}
        if spec.state_ttl_ms:
            tables["written"] = TableNames("when it was written")
        keys = tuple(columns[key] for key in spec.state_key)
        return StateNames(keys, tables, {"time-to-live": kept_for(spec.state_ttl_ms)})

    def expect(self, input_index: int, batches: Sequence[ChangelogBatch]) -> None:
        """Keys of rows that come."""
        self._index.expect(*columns_of(batches, self.spec.state_key))

    def process_batch(self, input_index: int, batch: ChangelogBatch) -> None:
        """Look up what comes, each key once; a row that goes takes what its key found last, in the batch or before."""
        batch = batch.with_track(self.advance_track(input_index, batch.track))
        n = batch.num_rows
        if not n:
            if batch.track is not None:
                self.output.emit_watermark(Watermark(batch.track.last_ms))
            return
        now = self.ctx.clock.now_ms()
        if self._written is not None:
            self._forget(self._written.expired(now - self.spec.state_ttl_ms))
        keys = [batch.columns[key] for key in self.spec.state_key]
        slots, _ = self._index.find_or_insert(self._index.encode(keys, num_rows=n))
        comes = signs_of(batch) > 0
        counts, rows, columns = self._pairs(batch, comes)
        firsts = np.cumsum(counts) - counts
        order = np.argsort(slots, kind="stable")
        heads = np.diff(slots[order], prepend=-1) != 0
        before = np.full(n, -1, np.int64)
        before[order[1:]] = np.where(heads[1:], -1, order[:-1])
        # What goes takes the pairs of the row before it, which has none if it went itself.
        repeated = np.flatnonzero(~comes & (before >= 0))
        told_counts, told_firsts = counts.copy(), firsts.copy()
        told_counts[repeated], told_firsts[repeated] = counts[before[repeated]], firsts[before[repeated]]
        stored = np.flatnonzero(~comes & (before < 0))
        owners, numbers = self._rows.rows_of(slots[stored])
        if len(numbers):
            told_counts[stored] = np.bincount(owners, minlength=len(stored))
            told_firsts[stored] = len(rows) + np.searchsorted(owners, np.arange(len(stored)))
            kept = whole_columns(self._found_types, self._rows.gather(numbers))
            places = len(columns[0]) if columns else 0
            columns_told = [joined(pair) for pair in zip(columns, kept, strict=True)]
            rows_told = np.concatenate((rows, places + np.arange(len(numbers))))
        else:
            columns_told, rows_told = columns, rows
        told = batch if batch.kinds is None else batch.with_kinds(np.where(comes, batch.kinds, np.uint8(DELETE)))
        for first, last in row_ranges(told_counts):
            probes, at = expanded(told_counts[first:last], told_firsts[first:last])
            self._tell(told.slice(first, last), probes, rows_told[at], columns_told)
        last_of_key = order[np.append(np.flatnonzero(heads)[1:], n) - 1]
        self._keep(slots, last_of_key, comes, (counts, firsts, rows), columns, now)

    def _pairs(self, batch: ChangelogBatch, comes: Bools) -> tuple[Int64s, Int64s, list[Any]]:
        """How many rows of the table meet each row that comes, (n,); their places by row; and the columns."""
        came = np.flatnonzero(comes)
        part = batch if len(came) == batch.num_rows else batch.part(came)
        found_counts, found_firsts, columns = self._looked_up(part)
        counts = np.zeros(batch.num_rows, np.int64)
        parts = []
        for first, last in row_ranges(found_counts):
            probes, rows = expanded(found_counts[first:last], found_firsts[first:last])
            probes, rows = self._met(part.slice(first, last).columns, probes, rows, columns)
            counts[came[first:last]] = np.bincount(probes, minlength=last - first)
            parts.append(rows)
        return counts, np.concatenate(parts), columns

    def _keep(
        self,
        slots: Int32s,
        last: Int64s,
        comes: Bools,
        pairs: tuple[Int64s, Int64s, Int64s],
        columns: list[Any],
        now: int,
    ) -> None:
        """What the last row of each key found stands in state; nothing where it went or found nothing."""
        counts, firsts, rows = pairs
        self._rows.drop_slots(slots[last])
        stays = comes[last] & (counts[last] > 0)
        self._leave(slots[last[~stays]])
        kept = last[stays]
        if len(kept):
            owners, at = expanded(counts[kept], firsts[kept])
            found = [taken(column, rows[at]) for column in columns]
            self._rows.append(slots[kept][owners], [part for column in found for part in flat_columns(column)])
            if self._written is not None:
                self._written.touch(slots[kept], now)

    def _forget(self, slots: Int32s) -> None:
        if len(slots):
            self._rows.drop_slots(slots)
            self._leave(slots)

    def _leave(self, slots: Int32s) -> None:
        """Forget keys whose rows are gone."""
        if len(slots):
            if self._written is not None:
                self._written.drop_slots(slots)
            self._index.remove(slots)
