"""INSERT INTO Iceberg tables."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any, Final

from pyiceberg import exceptions
from pyiceberg.catalog import Catalog
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema as IcebergSchema
from pyiceberg.table import Table, TableProperties
from pyiceberg.transforms import IdentityTransform

from flowsql_connectors.lakes.columns import matched
from flowsql_connectors.lakes.iceberg.commit import IcebergCommitter
from flowsql_connectors.lakes.iceberg.connection import address_of, said
from flowsql_connectors.lakes.iceberg.options import (
    BRANCH,
    CASE_SENSITIVE,
    CODEC,
    DISTRIBUTION,
    LEVEL,
    OVERWRITE,
    SNAPSHOT_PROPERTY,
    TARGET_BYTES,
    UPSERT,
    WRITE_FORMAT,
    WRITE_PARALLELISM,
    is_property,
)
from flowsql_connectors.lakes.iceberg.types import to_columns, to_iceberg
from flowsql_connectors.lakes.iceberg.writing import IcebergFiles
from flowsql_connectors.lakes.writer import LakeWriter
from flowsql_connectors.options import SINK_PARALLELISM, ConnectorOption, OptionValues
from flowsql_connectors.spi.sink import Committer, SinkWriter, TableSink, WriterContext
from flowsql_core.errors import BindError, NotSupportedYetError
from flowsql_core.graph.specs import SinkSpec
from flowsql_core.row import INSERT_ONLY, ChangelogMode

#: Subtasks of a process make a table one after another.
_MAKING: Final = threading.Lock()

#: Options that take the place of properties of the table.
_IN_PLACE: Final[tuple[tuple[ConnectorOption[Any], str], ...]] = (
    (TARGET_BYTES, TableProperties.WRITE_TARGET_FILE_SIZE_BYTES),
    (CODEC, TableProperties.PARQUET_COMPRESSION),
    (LEVEL, TableProperties.PARQUET_COMPRESSION_LEVEL),
    (WRITE_FORMAT, TableProperties.WRITE_FILE_FORMAT),
)


class IcebergSink(TableSink):
    """Appends to a table, or takes the place of what its partitions hold."""

    def __init__(self, sink: SinkSpec, values: OptionValues, configuration: Mapping[str, str]) -> None:
        self._sink = sink
        self._values = values
        self._address = address_of(sink.table)
        self._batch = configuration.get("execution.runtime-mode", "streaming").lower() == "batch"
        self._overwrite = sink.overwrite or values.get(OVERWRITE)
        if self._overwrite and not self._batch:
            raise BindError(
                "overwrite-in-streaming", "Unbounded data stream doesn't support overwrite operation.",
                hint="SET 'execution.runtime-mode' = 'batch'",
            )  # fmt: skip
        if values.get(UPSERT):
            raise NotSupportedYetError(
                f"'{UPSERT.key}' = 'true': pyiceberg writes no equality deletes, so rows of Iceberg tables are appended"
            )
        if values.get(DISTRIBUTION) == "range":
            raise NotSupportedYetError(f"'{DISTRIBUTION.key}' = 'range'", hint="'hash' and 'none' are there")
        self._check_format(dict(sink.table.filled_options()))

    def _check_format(self, properties: Mapping[str, str]) -> None:
        key = TableProperties.WRITE_FILE_FORMAT
        wanted = self._values.get(WRITE_FORMAT) or properties.get(key, "parquet")
        if wanted.lower() != "parquet":
            shown = WRITE_FORMAT.key if self._values.has(WRITE_FORMAT) else key
            raise NotSupportedYetError(f"'{shown}' = '{wanted}': pyiceberg writes parquet alone")

    def accepts(self, wanted: ChangelogMode) -> ChangelogMode:
        """pyiceberg writes no equality deletes."""
        return INSERT_ONLY

    def parallelism(self) -> int | None:
        """``write-parallelism``, or ``sink.parallelism``."""
        return self._values.get(WRITE_PARALLELISM) or self._values.get(SINK_PARALLELISM)

    def writes_anywhere(self) -> bool:
        """Data files have names of their own."""
        return True

    def shuffles_by_partition(self) -> bool:
        """``distribution-mode`` = hash."""
        return self._values.get(DISTRIBUTION) == "hash" and bool(self._sink.table.partition_keys)

    def create_writer(self, context: WriterContext) -> SinkWriter:
        """A writer with data files of its own. A table that is not there is made, as Flink's connector does."""
        table = self._table()
        columns = self._sink.table.columns
        there = to_columns(table.schema(), self._address.shown)
        found = matched(self._address.shown, columns, there, exact_case=self._values.get(CASE_SENSITIVE))
        places = [found.index(at) if at in found else None for at in range(len(there))]
        for place, column in zip(places, there, strict=True):
            if place is None and not column.type.nullable:
                raise BindError(
                    "lake-column",
                    f"Column '{column.name}' of Iceberg table '{self._address.shown}' takes no NULL, and "
                    f"{self._sink.table.name} does not declare it.",
                )
        properties = dict(table.properties)
        self._check_format(properties)
        for option, key in _IN_PLACE:
            value = self._values.get(option)
            if value is not None:
                properties[key] = str(value)
        files = IcebergFiles(table, self._address.shown, places, properties, context.subtask)
        return LakeWriter(files, context)

    def _table(self) -> Table:
        catalog = self._address.open()
        with said(f"Iceberg table '{self._address.shown}'"), _MAKING:
            try:
                return catalog.load_table(self._address.identifier)
            except (exceptions.NoSuchTableError, exceptions.NoSuchNamespaceError):
                try:
                    self._make(catalog)
                except Exception:
                    # A subtask in another process may have made it meanwhile; catalogs tell that in many ways.
                    if not catalog.table_exists(self._address.identifier):
                        raise
                return catalog.load_table(self._address.identifier)

    def _make(self, catalog: Catalog) -> None:
        declared = self._sink.table
        schema = to_iceberg(declared.columns, {}, declared.primary_key)
        properties = {key: value for key, value in declared.filled_options().items() if is_property(key)}
        spec = partition_spec(schema, declared.partition_keys)
        try:
            catalog.create_namespace_if_not_exists(self._address.namespace)
        except Exception:
            if not catalog.namespace_exists(self._address.namespace):
                raise
        catalog.create_table(self._address.identifier, schema, partition_spec=spec, properties=properties)

    def create_committer(self) -> Committer:
        """The committer of the whole INSERT."""
        properties = {
            key.removeprefix(SNAPSHOT_PROPERTY): value
            for key, value in self._sink.table.filled_options().items()
            if key.startswith(SNAPSHOT_PROPERTY)
        }
        return IcebergCommitter(self._address, self._values.get(BRANCH), properties, self._overwrite, self._batch)


def partition_spec(schema: IcebergSchema, keys: tuple[str, ...]) -> PartitionSpec:
    """PARTITIONED BY columns as they are."""
    fields = [
        PartitionField(schema.find_field(key).field_id, 1000 + at, IdentityTransform(), key)
        for at, key in enumerate(keys)
    ]
    return PartitionSpec(*fields)
