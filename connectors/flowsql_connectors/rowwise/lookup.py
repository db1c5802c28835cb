"""Lookups in tables of a :class:`RowSource` that finds rows by key."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from flowsql_connectors.lookup.keyed_rows import KeyedRows
from flowsql_connectors.lookup.options import RELOAD_INTERVAL, Reload, cache_of
from flowsql_connectors.lookup.whole_table import reloaded_table
from flowsql_connectors.rowwise.base import RowSource, failure_text
from flowsql_connectors.rowwise.source import RowTableSource
from flowsql_connectors.rowwise.values import batch_of_arrow, batch_of_rows
from flowsql_connectors.spi.lookup import FoundRows, LookupContext, LookupTableSource, PartialCache, TableLookup
from flowsql_core.errors import BindError, ConnectorError, FlowSqlError
from flowsql_core.graph.specs import ScanSpec
from flowsql_core.row import RowKind
from flowsql_core.types.arrow import to_arrow


class RowLookupSource(RowTableSource, LookupTableSource):
    """A table that Python code also finds rows of, or one that is read whole for lookups."""

    @property
    def concurrent(self) -> bool:
        """What the class says."""
        return self.kind.concurrent_lookups

    def partial_cache(self) -> PartialCache | None:
        """``lookup.cache`` = PARTIAL.

        Raises:
            BindError: nothing finds rows by key, and ``lookup.cache`` is not FULL.
        """
        cache = cache_of(self.values)
        if not self.kind.looks_up() and not isinstance(cache, Reload):
            raise BindError(
                "missing-option",
                f"The connector '{self.connector}' has no lookups by key: they take 'lookup.cache' = 'FULL'.",
                hint=f"add it and '{RELOAD_INTERVAL.key}' to the WITH clause of {self.scan.table.name}",
            )
        return cache if isinstance(cache, PartialCache) else None

    def create_lookup(self, context: LookupContext) -> TableLookup:
        """A lookup with an object of the class, or in the rows of all splits.

        Raises:
            BindError: metadata is told of rows that are read, not of those that are looked up.
        """
        cache = cache_of(self.values)
        if isinstance(cache, Reload):
            return reloaded_table(self, self.scan.output, cache, context)
        if self.scan.metadata:
            raise BindError(
                "no-such-metadata",
                f"Metadata column '{self.scan.metadata[0]}' of table '{self.scan.table.name}' is not there in lookups.",
            )
        return _RowLookup(self.connector, self.kind(self.declared), self.scan, context)


class _RowLookup(TableLookup):
    def __init__(self, connector: str, source: RowSource, scan: ScanSpec, context: LookupContext) -> None:
        self._connector = connector
        self._source = source
        self._scan = scan
        self._keys = context.keys
        asked = [scan.output[key] for key in context.keys]
        self._schema = pa.schema([pa.field(column.name, to_arrow(column.type)) for column in asked])

    def find(self, keys: Sequence[Any]) -> FoundRows:
        """The rows that the object gives, found by their keys; those of other keys are left out.

        Raises:
            ConnectorError: the object failed, or gave what are no rows of the table.
        """
        cast = [key.cast(field.type) for key, field in zip(keys, self._schema, strict=True)]
        asked = pa.RecordBatch.from_arrays(cast, schema=self._schema)
        try:
            given = self._source.lookup(asked)
            rows = given if isinstance(given, pa.RecordBatch) else list(given)
        except FlowSqlError:
            raise
        except Exception as error:
            text = f"The connector '{self._connector}' failed while it looked up rows: {failure_text(error)}"
            raise ConnectorError("lookup-failed", text) from error
        columns = self._scan.table.columns
        if isinstance(rows, pa.RecordBatch):
            found = batch_of_arrow(self._connector, columns, rows)
        else:
            found = batch_of_rows(self._connector, columns, rows, [RowKind.INSERT] * len(rows))
        return KeyedRows([found.columns[place] for place in self._scan.projection], self._keys).find(cast)

    def close(self) -> None:
        """Release what the object holds."""
        self._source.close()
