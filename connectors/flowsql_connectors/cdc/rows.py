"""Rows of chunks and of the log as batches: metadata columns beside the physical ones, several tables in one order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from flowsql_connectors.cdc.log import Bools, CapturedTable, ChunkRows, Int64s, Kinds, LogBatch
from flowsql_core.batch import ChangelogBatch
from flowsql_core.graph.specs import ScanSpec
from flowsql_core.row import INSERT, SHORT_STRINGS
from flowsql_core.types.arrow import to_arrow
from flowsql_core.types.logical import STRING, LogicalType, TimestampLtzType

OP_TS: Final = "op_ts"
ROW_KIND: Final = "row_kind"
#: Metadata columns that every connector has, beside those that :class:`CapturedTable` tells.
METADATA: Final[Mapping[str, LogicalType]] = {
    OP_TS: TimestampLtzType(precision=3, nullable=False),
    ROW_KIND: STRING.as_nullable(False),
}


class CdcRows:
    """Makes batches of one scan.

    Args:
        append_only: each change is an inserted row.
    """

    def __init__(self, scan: ScanSpec, append_only: bool) -> None:
        self._metadata = scan.metadata
        self._types = [to_arrow(column.type) for column in scan.output]
        self._append_only = append_only

    def empty(self) -> ChangelogBatch:
        """No rows."""
        return ChangelogBatch.of(tuple(pa.nulls(0, type_) for type_ in self._types), num_rows=0)

    def of_chunk(self, table: CapturedTable, rows: ChunkRows) -> ChangelogBatch:
        """Inserted rows."""
        kinds = np.full(rows.num_rows, INSERT, np.uint8)
        times_ms = np.zeros(rows.num_rows, np.int64)
        columns = [*rows.columns, *self._beside(table, kinds, times_ms)]
        return ChangelogBatch.of(tuple(columns), num_rows=rows.num_rows)

    def of_log(
        self, tables: Sequence[CapturedTable], batch: LogBatch, new: Sequence[Bools | None]
    ) -> tuple[ChangelogBatch, Int64s]:
        """The rows of a batch that are new, in its order, and which of its lines they are, int64 (n,)."""
        parts: list[list[Any]] = []
        kinds: list[Kinds] = []
        lines: list[Int64s] = []
        for changes, chosen in zip(batch.tables, new, strict=True):
            columns = list(changes.columns)
            of_kind, of_line = changes.kinds, changes.lines
            if chosen is not None:
                mask = pa.array(chosen)
                columns = [column.filter(mask) for column in columns]
                of_kind, of_line = of_kind[chosen], of_line[chosen]
            columns += self._beside(tables[changes.table], of_kind, batch.times_ms[of_line])
            parts.append(columns)
            kinds.append(of_kind)
            lines.append(of_line)
        if not parts:
            return self.empty(), np.zeros(0, np.int64)
        if len(parts) == 1:
            joined, all_kinds, all_lines = parts[0], kinds[0], lines[0]
        else:
            all_lines = np.concatenate(lines)
            order = np.argsort(all_lines, kind="stable")
            places = pa.array(order)
            joined = [pa.concat_arrays(column).take(places) for column in zip(*parts, strict=True)]
            all_kinds, all_lines = np.concatenate(kinds)[order], all_lines[order]
        given = None if self._append_only else all_kinds
        return ChangelogBatch.of(tuple(joined), given, num_rows=len(all_lines)), all_lines

    def _beside(self, table: CapturedTable, kinds: Kinds, times_ms: Int64s) -> list[Any]:
        made: list[Any] = []
        types = self._types[len(self._types) - len(self._metadata) :]
        for key, type_ in zip(self._metadata, types, strict=True):
            if key == OP_TS:
                made.append(pa.array(times_ms).cast(type_))
            elif key == ROW_KIND:
                made.append(pa.array(SHORT_STRINGS, type_).take(pa.array(kinds)))
            else:
                made.append(pa.repeat(pa.scalar(table.metadata[key], type_), len(kinds)))
        return made
