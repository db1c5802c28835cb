"""Scans of Delta tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from deltalake import DeltaTable

from flowsql_connectors.file_systems.remote import RemoteFile
from flowsql_connectors.formats.format import DecodeContext, FileView, Range
from flowsql_connectors.formats.parquet import ParquetDecoder, ParquetFormat, open_parquet
from flowsql_connectors.lakes.columns import matched
from flowsql_connectors.lakes.delta.connection import address_of, arrow_schema
from flowsql_connectors.lakes.delta.filters import predicate
from flowsql_connectors.lakes.delta.history import DeltaHistory
from flowsql_connectors.lakes.delta.options import CHECK_INTERVAL_MS, MODE
from flowsql_connectors.lakes.delta.partitions import as_column
from flowsql_connectors.lakes.delta.types import to_columns
from flowsql_connectors.lakes.source import LakeSource
from flowsql_connectors.lakes.splits import LakeHistory
from flowsql_connectors.options import OptionValues
from flowsql_core.expr import input_refs, remap_inputs
from flowsql_core.graph.specs import ScanSpec
from flowsql_core.types.logical import Column, Schema

_BATCH_ROWS: Final = 65_536
#: Stored timestamps are UTC's, whatever the machine's zone.
_PARQUET: Final = ParquetFormat(
    utc_timezone=True, compression="SNAPPY", int64_timestamps=True, timestamp_unit="micros", block_bytes=128 << 20
)


class DeltaSource(LakeSource):
    """A scan of the files of a version, or of what one version after another adds."""

    def __init__(self, scan: ScanSpec, values: OptionValues, configuration: Mapping[str, str]) -> None:
        super().__init__(scan, values.get(CHECK_INTERVAL_MS) if values.get(MODE) == "streaming" else None)
        self._values = values
        self._configuration = configuration
        self._address = address_of(scan.table, configuration)
        self._files: Any = None
        self._there: Schema = ()
        self._partition_keys: tuple[str, ...] = ()

    def history(self) -> LakeHistory:
        """Versions."""
        return self._history()

    def _history(self) -> DeltaHistory:
        return DeltaHistory(self._address, self._values, self._predicate, self._configuration)

    def input_bytes(self) -> int | None:
        """As the log says."""
        return sum(part.size_bytes for part in self._history().files()) if self.bounded else None

    def _predicate(self, table: DeltaTable) -> str | None:
        there = to_columns(arrow_schema(table), self._address.uri)
        places = matched(self._address.uri, self.scan.table.columns, there)
        # A column that is read as another type may compare otherwise: it is not judged.
        same = [
            column if column.type.as_nullable() == there[place].type.as_nullable() else None
            for column, place in zip(self.scan.table.columns, places, strict=True)
        ]
        return predicate(self.scan.filters, same, [there[place].name for place in places])

    def read_file(self, told: Mapping[str, Any]) -> Iterator[tuple[Sequence[Any], int]]:
        """The rows of a data file, row group by row group, with the values of its partition."""
        if self._files is None:
            self._files = self._address.files()
            table = self._address.load()
            self._there = to_columns(arrow_schema(table), self._address.uri)
            self._partition_keys = tuple(table.metadata().partition_columns)
        declared = self.scan.table.columns
        places = matched(self._address.uri, declared, self._there)
        named = [Column(self._there[place].name, column.type) for column, place in zip(declared, places, strict=True)]
        in_files = [at for at, column in enumerate(named) if column.name not in self._partition_keys]
        decoder = ParquetDecoder(_PARQUET, self._context(named, in_files))
        path = told["path"]
        file = FileView(
            f"{self._address.uri}/{path}",
            told["bytes"],
            remote=RemoteFile(self._files, path, f"{self._address.uri}/{path}"),
        )
        with open_parquet(file) as parquet:
            groups = Range(0, parquet.num_row_groups)
        wanted = [named[index] for index in self.scan.projection]
        for decoded in decoder.read(file, groups):
            arrays = iter(decoded.arrays)
            made = [
                as_column(told["partition"].get(column.name), column, decoded.num_rows)
                if column.name in self._partition_keys
                else next(arrays)
                for column in wanted
            ]
            yield made, decoded.num_rows

    def _context(self, named: Sequence[Column], in_files: Sequence[int]) -> DecodeContext:
        position = {index: at for at, index in enumerate(in_files)}
        filters = tuple(
            remap_inputs(part, position.__getitem__)
            for part in self.scan.filters
            if all(index in position for index in input_refs(part))
        )
        return DecodeContext(
            tuple(named[index] for index in in_files),
            tuple(position[index] for index in self.scan.projection if index in position),
            _BATCH_ROWS,
            self._configuration,
            filters=filters,
        )
