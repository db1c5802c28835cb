"""Data files of Iceberg tables."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

from pyiceberg.exceptions import NotInstalledError
from pyiceberg.io import FileIO
from pyiceberg.io.fileformat import FileFormatFactory, FileFormatWriter
from pyiceberg.io.pyarrow import schema_to_pyarrow
from pyiceberg.manifest import DataFile as IcebergFile
from pyiceberg.manifest import DataFileContent, FileFormat
from pyiceberg.partitioning import PartitionFieldValue, PartitionKey
from pyiceberg.table import Table, TableProperties
from pyiceberg.typedef import Record
from pyiceberg.utils.properties import property_as_int

from flowsql_connectors.lakes.columns import whole_rows
from flowsql_connectors.lakes.iceberg.connection import said
from flowsql_connectors.lakes.iceberg.files import file_told
from flowsql_connectors.lakes.writer import DataFile, DataFiles
from flowsql_core.arrow import compute as pc
from flowsql_core.errors import ConnectorError


class IcebergFiles(DataFiles):
    """See the base.

    Args:
        table: as it was when the writer began.
        shown: its name, for messages.
        places: for each column of the table the place of the sink's; None: NULL.
        properties: of the table, with those that the options put in their place.
        subtask: in the names of files.
    """

    def __init__(
        self, table: Table, shown: str, places: list[int | None], properties: Mapping[str, str], subtask: int
    ) -> None:
        self._table = table
        self._shown = shown
        self._places = places
        self._properties = dict(properties)
        self._subtask = subtask
        self._run = uuid.uuid4()
        self._count = 0
        self._schema = schema_to_pyarrow(table.schema())
        spec = table.spec()
        self._transforms = []
        for field in spec.fields:
            source = table.schema().find_field(field.source_id)
            name = table.schema().find_column_name(field.source_id)
            try:
                transform = field.transform.pyarrow_transform(source.field_type)
            except (NotInstalledError, ModuleNotFoundError) as error:
                raise ConnectorError(
                    "connector-not-installed",
                    f"Iceberg table '{shown}' is partitioned by {field.transform}({name}), which needs the Python "
                    "module 'pyiceberg_core', which is not installed.",
                    hint="pip install pyiceberg-core",
                ) from error
            assert name is not None
            self._transforms.append((name, transform))
        self.target_bytes = (
            property_as_int(
                self._properties,
                TableProperties.WRITE_TARGET_FILE_SIZE_BYTES,
                TableProperties.WRITE_TARGET_FILE_SIZE_BYTES_DEFAULT,
            )
            or 1
        )

    def prepare(self, columns: tuple[Any, ...], num_rows: int) -> Any:
        """All columns of the table, with its field ids."""
        return whole_rows(f"Iceberg table '{self._shown}'", self._schema, self._places, columns, num_rows)

    def partitions(self, rows: Any) -> list[Any]:
        """The transformed columns."""
        return [transform(_column(rows, name)) for name, transform in self._transforms]

    def new_file(self, partition: tuple[Any, ...]) -> DataFile:
        """A file at the place that the table's location provider says."""
        spec, schema = self._table.spec(), self._table.schema()
        key = None
        if partition:
            values = [
                PartitionFieldValue(field=field, value=value)
                for field, value in zip(spec.fields, partition, strict=True)
            ]
            key = PartitionKey(field_values=values, partition_spec=spec, schema=schema)
        model = FileFormatFactory.get(FileFormat.PARQUET)
        name = f"{self._subtask:05d}-{self._count}-{self._run}.{model.file_extension()}"
        self._count += 1
        with said(f"Iceberg table '{self._shown}'"):
            path = self._table.location_provider().new_data_location(data_file_name=name, partition_key=key)
            output = self._table.io.new_output(path)
            writer = model.create_writer(output, schema, self._properties)
        return _IcebergFile(self._table, self._shown, path, writer, key)


def _column(rows: Any, name: str) -> Any:
    """A column of a batch, or a field of one: names of fields stand behind those of their rows."""
    if name in rows.schema.names:
        return rows.column(name)
    head, *fields = name.split(".")
    array = rows.column(head)
    for field in fields:
        array = pc.struct_field(array, field)
    return array


class _IcebergFile(DataFile):
    def __init__(self, table: Table, shown: str, path: str, writer: FileFormatWriter, key: PartitionKey | None) -> None:
        self._table = table
        self._shown = shown
        self._path = path
        self._writer = writer
        self._key = key
        self._bytes = 0

    @property
    def size_bytes(self) -> int:
        """While it grows, of the rows in memory; as the library rolls files."""
        return self._bytes

    def append(self, rows: Any) -> None:
        with said(f"File {self._path} of Iceberg table '{self._shown}'"):
            self._writer.write(rows)
        self._bytes += rows.nbytes

    def finish(self) -> Mapping[str, Any]:
        table = self._table
        with said(f"File {self._path} of Iceberg table '{self._shown}'"):
            statistics = self._writer.close()
            self._bytes = len(table.io.new_input(self._path))
        file = IcebergFile.from_args(
            content=DataFileContent.DATA,
            file_path=self._path,
            file_format=FileFormat.PARQUET,
            partition=Record() if self._key is None else self._key.partition,
            file_size_in_bytes=self._bytes,
            sort_order_id=None,
            equality_ids=None,
            key_metadata=None,
            **statistics.to_serialized_dict(),
        )
        return file_told(file, table.spec(), table.schema())

    def discard(self) -> None:
        remove(self._table.io, self._path)


def remove(io: FileIO, path: str) -> None:
    """Remove a data file that nobody counts on; what cannot be removed is an orphan, which readers do not see."""
    try:
        io.delete(path)
    except Exception:  # file systems raise what they like
        return
