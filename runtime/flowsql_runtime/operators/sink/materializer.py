"""Sinks whose key is not the query's: of all rows with one key of the sink, the last one counts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from flowsql_core.batch import ChangelogBatch, WatermarkTrack, columns_of
from flowsql_core.column_bytes import joined, taken
from flowsql_core.element import Watermark
from flowsql_core.graph.lineage import Lineage
from flowsql_core.graph.specs import SinkMaterializerSpec
from flowsql_core.types.arrow import to_arrow
from flowsql_runtime.operators.aggregate.group import signs_of
from flowsql_runtime.operators.base import Operator, OperatorContext
from flowsql_runtime.state.names import StateNames, TableNames, kept_for, row_names

Int32s = npt.NDArray[np.int32]


class SinkMaterializerOperator(Operator[SinkMaterializerSpec]):
    """Keep the rows of each key of the sink; tell it of the last one.

    In     any changelog, split by the sink's key. A row of the query is known by its upsert key, else by all columns.
    Out    ``+I`` for a key's first row, ``+U`` for one that is the last now: a new row, or the one before when the last
           was taken back. ``-D`` with a key's last row. Nothing where a row in the middle goes.
    State  the rows of each key in order of arrival; a row of the query that comes again stands where it stood.
    Late   not judged. Rows taken back that nobody knows are ignored. A key idle for ``state_ttl_ms`` starts over.
    """

    def open(self, ctx: OperatorContext) -> None:
        """Make the index and the rows of its keys."""
        spec = self.spec
        types = [to_arrow(column.type) for column in spec.input]
        self._index = ctx.state.key_index([types[key] for key in spec.keys])
        unique = None
        if spec.upsert_key is not None:
            unique = tuple(column for column in spec.upsert_key if column not in spec.keys)
        self._rows = ctx.state.row_list("rows", self._index, types, removable=True, unique=unique)
        self._written = ctx.state.slot_times("written", self._index) if spec.state_ttl_ms else None

    def state_names(self, arriving: Sequence[Lineage]) -> StateNames:
        """The rows of each key."""
        spec, columns = self.spec, arriving[0].columns
        tables = {"rows": row_names("rows", columns)}
        if spec.state_ttl_ms:
            tables["written"] = TableNames("when it was written")
        unique = "all columns" if spec.upsert_key is None else ", ".join(sorted(columns[i] for i in spec.upsert_key))
        facts = {"time-to-live": kept_for(spec.state_ttl_ms), "rows known by": unique}
        return StateNames(tuple(columns[key] for key in spec.keys), tables, facts)

    def expect(self, input_index: int, batches: Sequence[ChangelogBatch]) -> None:
        """Keys of rows that come."""
        self._index.expect(*columns_of(batches, self.spec.keys))

    def process_batch(self, input_index: int, batch: ChangelogBatch) -> None:
        """Put all rows into state, and tell what became the last row of a key, change by change."""
        track = self.advance_track(input_index, batch.track)
        columns = [batch.columns[index] for index in range(len(self.spec.input))]
        keys = [columns[key] for key in self.spec.keys]
        now = self.ctx.clock.now_ms()
        if self._written is not None:
            self._forget(self._written.expired(now - self.spec.state_ttl_ms))
        slots, _ = self._index.find_or_insert(self._index.encode(keys, num_rows=batch.num_rows))
        signs = signs_of(batch)
        kinds, shown = self._rows.apply_latest(signs, slots, columns)
        self._emit(batch, columns, kinds, shown, track)
        if self._written is not None:
            self._written.touch(slots, now)
        if batch.kinds is not None:
            # A key whose only row was unknown is empty, too.
            gone = np.unique(slots[signs < 0])
            gone = gone[self._rows.counts(gone) == 0]
            if self._written is not None:
                self._written.drop_slots(gone)
            self._index.remove(gone)

    def _emit(
        self,
        batch: ChangelogBatch,
        columns: list[Any],
        kinds: npt.NDArray[np.int8],
        shown: Int32s,
        track: WatermarkTrack | None,
    ) -> None:
        told = np.flatnonzero(kinds >= 0)
        if track is not None:
            track = WatermarkTrack(np.searchsorted(told, track.offsets, side="left").astype(np.int32), track.wm_ms)
        if not len(told):
            if track is not None:
                self.output.emit_watermark(Watermark(track.last_ms))
            return
        again = np.flatnonzero(shown >= 0)
        places = told
        if len(again):
            # Rows that are the last again stand behind those of the batch.
            stored = self._rows.gather(shown[again])
            columns = [joined(pair) for pair in zip(columns, stored, strict=True)]
            position = np.arange(batch.num_rows)
            position[again] = batch.num_rows + np.arange(len(again))
            places = position[told]
        self.collect_within_offsets(
            ChangelogBatch(
                tuple(taken(column, places) for column in columns),
                len(told),
                kinds[told].view(np.uint8),
                None,
                track,
            )
        )

    def _forget(self, slots: Int32s) -> None:
        if len(slots):
            self._rows.drop_slots(slots)
            self._index.remove(slots)
