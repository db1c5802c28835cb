"""Rows of a table with ORDER BY: they wait for the watermark to reach their time, then leave in order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from flowsql_core.batch import ChangelogBatch, WatermarkTrack
from flowsql_core.column_bytes import taken
from flowsql_core.graph.process_specs import ProcessTable
from flowsql_core.types.arrow import to_arrow
from flowsql_core.types.logical import Schema
from flowsql_runtime.operators.base import OperatorContext
from flowsql_runtime.operators.rank.order import sort_columns
from flowsql_runtime.operators.rank.sort import sorted_rows
from flowsql_runtime.state.flat_rows import flat_columns, flat_types, whole_columns
from flowsql_runtime.state.names import TableNames, row_names
from flowsql_runtime.state.stores import SortColumn
from flowsql_runtime.window.row_time import milliseconds_of

Int64s = npt.NDArray[np.int64]


class OrderedRows:
    """Rows that wait, by time and partition. ``place``: of the table among those of the call."""

    def __init__(self, ctx: OperatorContext, place: int, table: ProcessTable, schema: Schema) -> None:
        self.place = place
        self._table = table
        self._types = [to_arrow(column.type) for column in schema]
        self._name = f"rows of {table.name} that wait"
        self._index = ctx.state.window_index([self._types[index] for index in table.partition or ()])
        stored = [part for type_ in self._types for part in flat_types(type_)]
        self._rows = ctx.state.row_list(self._name, self._index, stored)
        self._keys = sort_columns(table.order, schema)
        self._time = table.order[0][0]

    def table_names(self, columns: Sequence[str]) -> dict[str, TableNames]:
        """What the store means."""
        texts = [
            f"{text} [{part}]" if part else text
            for text, type_ in zip(columns, self._types, strict=True)
            for part in range(len(flat_types(type_)))
        ]
        return {self._name: row_names(self._name, texts)}

    def wait(self, batch: ChangelogBatch, watermarks: Int64s) -> int:
        """Keep rows; those that their watermark had reached already are late, and how many these are."""
        n = batch.num_rows
        times = milliseconds_of(batch.columns[self._time]) if n else np.zeros(0, np.int64)
        late = times <= watermarks
        kept = np.flatnonzero(~late)
        if len(kept):
            columns = [taken(column, kept) for column in batch.columns]
            keys = [columns[index] for index in self._table.partition or ()]
            slots, _ = self._index.find_or_insert(self._index.encode(keys, times[kept], len(kept)))
            self._rows.append(slots, [part for column in columns for part in flat_columns(column)])
        return int(late.sum())

    def due(self, track: WatermarkTrack) -> tuple[list[Any], Int64s]:
        """Rows that watermarks reach, in order: their columns, and which watermark lets each go, rising."""
        _, slots = self._index.up_to(track.last_ms)
        if not len(slots):
            return [], np.zeros(0, np.int64)
        _, rows = self._rows.rows_of(slots)
        columns = whole_columns(self._types, self._rows.gather(rows))
        self._rows.drop_slots(slots)
        self._index.remove(slots)
        order = [SortColumn(place, key.ascending, key.nulls_first) for place, key in enumerate(self._keys)]
        by = sorted_rows([columns[key.index] for key in self._keys], order, len(rows))
        columns = [taken(column, by) for column in columns]
        return columns, np.searchsorted(track.wm_ms, milliseconds_of(columns[self._time])).astype(np.int64)
