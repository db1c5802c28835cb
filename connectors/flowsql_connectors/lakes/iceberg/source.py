"""Scans of Iceberg tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pyiceberg.expressions import BooleanExpression
from pyiceberg.schema import Schema as IcebergSchema
from pyiceberg.table import Table

from flowsql_connectors.lakes.columns import as_declared, matched
from flowsql_connectors.lakes.iceberg.connection import address_of, said
from flowsql_connectors.lakes.iceberg.files import task_of
from flowsql_connectors.lakes.iceberg.filters import row_filter
from flowsql_connectors.lakes.iceberg.history import IcebergHistory
from flowsql_connectors.lakes.iceberg.library import record_batches
from flowsql_connectors.lakes.iceberg.options import CASE_SENSITIVE, LIMIT, MONITOR_INTERVAL_MS, STREAMING
from flowsql_connectors.lakes.iceberg.types import to_columns
from flowsql_connectors.lakes.source import LakeSource
from flowsql_connectors.lakes.splits import LakeHistory
from flowsql_connectors.options import OptionValues
from flowsql_core.graph.specs import ScanSpec


class IcebergSource(LakeSource):
    """A scan of the files of a snapshot, or of what one snapshot after another appends."""

    def __init__(self, scan: ScanSpec, values: OptionValues) -> None:
        limit = values.get(LIMIT)
        interval_ms = values.get(MONITOR_INTERVAL_MS) if values.get(STREAMING) else None
        super().__init__(scan, interval_ms, limit if limit >= 0 else None)
        self._values = values
        self._address = address_of(scan.table)
        self._table: Table | None = None

    def history(self) -> LakeHistory:
        """Snapshots."""
        return IcebergHistory(self._address, self._values, self._row_filter)

    def input_bytes(self) -> int | None:
        """As the snapshot's summary says."""
        return self._summed("total-files-size")

    def input_rows(self) -> int | None:
        """As the snapshot's summary says; rows that delete files name are still counted."""
        return self._summed("total-records")

    def _summed(self, key: str) -> int | None:
        if not self.bounded:
            return None
        table = self._address.load()
        snapshot = IcebergHistory(self._address, self._values, self._row_filter).snapshot(table)
        if snapshot is None:
            return 0
        told = None if snapshot.summary is None else snapshot.summary.get(key)
        return None if told is None else int(told)

    def _row_filter(self, table: Table) -> BooleanExpression:
        declared = self.scan.table.columns
        schema = table.schema()
        names = [schema.fields[place].name for place in self._places(schema)]
        there = to_columns(schema, self._address.shown)
        # A column that is read as another type may compare otherwise: it is not judged.
        same = tuple(
            column if column.type.as_nullable() == there[place].type.as_nullable() else None
            for column, place in zip(declared, self._places(schema), strict=True)
        )
        return row_filter(self.scan.filters, same, names)

    def _places(self, schema: IcebergSchema) -> list[int]:
        return matched(
            self._address.shown,
            self.scan.table.columns,
            to_columns(schema, self._address.shown),
            exact_case=self._values.get(CASE_SENSITIVE),
        )

    def read_file(self, told: Mapping[str, Any]) -> Iterator[tuple[Sequence[Any], int]]:
        """The rows that are left of a data file."""
        table = self._table
        if table is None or told["spec"] not in table.specs():
            table = self._table = self._address.load()
        schema = table.schema()
        places = self._places(schema)
        wanted = [schema.fields[places[index]].name for index in self.scan.projection]
        # Rows are counted by a column, where no column is wanted.
        selected = schema.select(*(wanted or [schema.fields[0].name]))
        with said(f"File {told['path']} of Iceberg table '{self._address.shown}'"):
            for batch in record_batches(table, selected, self._row_filter(table), task_of(told, table.metadata)):
                yield as_declared([batch.column(name) for name in wanted], self.scan.output), batch.num_rows
