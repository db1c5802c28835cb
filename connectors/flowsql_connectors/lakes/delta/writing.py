"""Data files of Delta tables, with the statistics that the log keeps of them.

Source: Delta's protocol, "Per-file Statistics".
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Mapping
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa
from deltalake import DeltaTable

from flowsql_connectors.filesystem.files import escape_path_name
from flowsql_connectors.lakes.columns import whole_rows
from flowsql_connectors.lakes.delta.connection import Address, arrow_schema, said
from flowsql_connectors.lakes.delta.partitions import as_text
from flowsql_connectors.lakes.writer import DataFile, DataFiles

#: Columns of which statistics are kept, unless the table says otherwise; and characters of texts.
_INDEXED: Final = 32
_TEXT: Final = 32
_NO_PARTITION: Final = "__HIVE_DEFAULT_PARTITION__"


class DeltaFiles(DataFiles):
    """See the base.

    Args:
        table: as it was when the writer began.
        address: of the table.
        places: for each column of the table the place of the sink's; None: NULL.
        target_bytes: size at which a file is closed.
        compression: codec of parquet.
        subtask: in the names of files.
    """

    def __init__(
        self,
        table: DeltaTable,
        address: Address,
        places: list[int | None],
        target_bytes: int,
        compression: str,
        subtask: int,
    ) -> None:
        self._address = address
        self._places = places
        self._compression = compression
        self._subtask = subtask
        self._schema = arrow_schema(table)
        metadata = table.metadata()
        self._keys = list(metadata.partition_columns)
        self._in_files = [name for name in self._schema.names if name not in self._keys]
        self._indexed = int(metadata.configuration.get("delta.dataSkippingNumIndexedCols", _INDEXED))
        self._files = address.files()
        self.target_bytes = target_bytes

    def prepare(self, columns: tuple[Any, ...], num_rows: int) -> Any:
        """All columns of the table."""
        return whole_rows(f"Delta table '{self._address.uri}'", self._schema, self._places, columns, num_rows)

    def partitions(self, rows: Any) -> list[Any]:
        """The partition columns."""
        return [rows.column(key) for key in self._keys]

    def new_file(self, partition: tuple[Any, ...]) -> DataFile:
        """A file in the folder of its partition."""
        values = {key: as_text(value, key) for key, value in zip(self._keys, partition, strict=True)}
        folder = "/".join(
            f"{escape_path_name(key)}={escape_path_name(value or _NO_PARTITION)}" for key, value in values.items()
        )
        # What would have to be written otherwise in the log than on the disk: readers go by the log's values alone.
        head = f"{folder}/" if folder and folder.isascii() and "%" not in folder and " " not in folder else ""
        suffix = "" if self._compression == "NONE" else f".{self._compression.lower()}"
        path = f"{head}part-{self._subtask:05d}-{uuid.uuid4()}-c000{suffix}.parquet"
        schema = pa.schema([self._schema.field(name) for name in self._in_files])
        return _DeltaFile(self._files, self._address.uri, path, schema, self._compression, values, self._indexed)


class _DeltaFile(DataFile):
    def __init__(
        self,
        files: Any,
        uri: str,
        path: str,
        schema: pa.Schema,
        compression: str,
        partition: Mapping[str, str | None],
        indexed: int,
    ) -> None:
        import pyarrow.parquet as pq

        self._files = files
        self._uri = uri
        self._path = path
        self._schema = schema
        self._partition = partition
        self._indexed = indexed
        self._bytes = 0
        self._told: list[Any] = []
        with said(f"File {path} of Delta table '{uri}'"):
            self._stream = files.open_output_stream(path)
            self._writer = pq.ParquetWriter(
                self._stream, schema, compression=compression, metadata_collector=self._told
            )

    @property
    def size_bytes(self) -> int:
        return self._bytes

    def append(self, rows: Any) -> None:
        with said(f"File {self._path} of Delta table '{self._uri}'"):
            self._writer.write_table(rows.select(self._schema.names), row_group_size=max(1, rows.num_rows))
            self._bytes = self._stream.tell()

    def finish(self) -> Mapping[str, Any]:
        with said(f"File {self._path} of Delta table '{self._uri}'"):
            self._writer.close()
            self._bytes = self._stream.tell()
            self._stream.close()
        return {
            "path": self._path,
            "bytes": self._bytes,
            "partition": dict(self._partition),
            "modified_ms": int(time.time() * 1000),
            "stats": json.dumps(statistics(self._told[0], self._schema, self._indexed)),
        }

    def discard(self) -> None:
        remove(self._files, self._path)


def remove(files: Any, path: str) -> None:
    """Remove a data file that nobody counts on; what cannot be removed is an orphan, which VACUUM removes."""
    try:
        files.delete_file(path)
    except Exception:  # file systems raise what they like
        return


def statistics(metadata: Any, schema: pa.Schema, indexed: int) -> dict[str, Any]:
    """What the log keeps of a file: rows, and of its first columns bounds and NULLs.

    Args:
        metadata: parquet's, of the file.
        schema: of the file.
        indexed: columns; below 0: all.
    """
    wanted = set(schema.names if indexed < 0 else schema.names[:indexed])
    least: dict[str, Any] = {}
    most: dict[str, Any] = {}
    nulls: dict[str, int] = {}
    unknown: set[str] = set()
    for group in range(metadata.num_row_groups):
        row_group = metadata.row_group(group)
        for place in range(row_group.num_columns):
            chunk = row_group.column(place)
            name = chunk.path_in_schema
            found = chunk.statistics if chunk.is_stats_set else None
            if name not in wanted or name in unknown:
                continue
            if found is None or not found.has_null_count:
                unknown.add(name)
                continue
            nulls[name] = nulls.get(name, 0) + found.null_count
            if found.null_count == chunk.num_values:
                continue
            if not found.has_min_max or pa.types.is_floating(schema.field(name).type):
                # Bounds of floating point say nothing of NaN.
                unknown.add(name)
                continue
            least[name] = min(found.min, least.get(name, found.min))
            most[name] = max(found.max, most.get(name, found.max))
    bounds = {name: (_least(least[name]), _most(most[name])) for name in least if name not in unknown}
    return {
        "numRecords": metadata.num_rows,
        "minValues": {name: low for name, (low, _) in bounds.items() if low is not None},
        "maxValues": {name: high for name, (_, high) in bounds.items() if high is not None},
        "nullCount": {name: count for name, count in nulls.items() if name not in unknown},
    }


def _least(value: Any) -> Any:
    return value[:_TEXT] if isinstance(value, str) else _bound(value, timedelta())


def _most(value: Any) -> Any:
    if isinstance(value, str):
        return value if len(value) <= _TEXT else None
    return _bound(value, timedelta(milliseconds=1))


def _bound(value: Any, up: timedelta) -> Any:
    """A bound as JSON has it; moments to the millisecond, upper ones rounded up. None: it is not kept."""
    match value:
        case bool():
            return None
        case int():
            return value
        case Decimal():
            # A JSON number of so many digits is read back as another one.
            return float(value) if Decimal(float(value)) == value else None
        case datetime():
            cut = value.replace(microsecond=value.microsecond // 1000 * 1000)
            text = (cut if cut == value else cut + up).replace(tzinfo=None).isoformat("T", "milliseconds")
            return text if value.tzinfo is None else text + "Z"
        case date():
            return value.isoformat()
    return None
