"""Data files as pyiceberg knows them, in forms of JSON: splits and committables hold them.

Values of partitions and bounds are Iceberg's own single-value serialization, as hexadecimal text.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pyiceberg.conversions import from_bytes, to_bytes
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import FileScanTask
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.typedef import Record
from pyiceberg.types import PrimitiveType

_COUNTS: Final = ("column_sizes", "value_counts", "null_value_counts", "nan_value_counts")
_BOUNDS: Final = ("lower_bounds", "upper_bounds")


def file_told(file: DataFile, spec: PartitionSpec, schema: Schema) -> dict[str, Any]:
    """A data file that was written, with its statistics."""
    file.spec_id = spec.spec_id
    told = _told(file, spec, schema)
    for name in _COUNTS:
        told[name] = {str(key): value for key, value in (getattr(file, name) or {}).items()}
    for name in _BOUNDS:
        told[name] = {str(key): value.hex() for key, value in (getattr(file, name) or {}).items()}
    told["split_offsets"] = file.split_offsets
    return told


def file_of(told: Mapping[str, Any], metadata: TableMetadata) -> DataFile:
    """The inverse of :func:`file_told`."""
    given = _given(told, metadata)
    for name in _COUNTS:
        given[name] = {int(key): value for key, value in told[name].items()}
    for name in _BOUNDS:
        given[name] = {int(key): bytes.fromhex(value) for key, value in told[name].items()}
    return _made(told["spec"], **given, split_offsets=told["split_offsets"])


def task_told(task: FileScanTask, metadata: TableMetadata) -> dict[str, Any]:
    """A data file that is to be read, and the delete files that concern it."""
    specs, schema = metadata.specs(), metadata.schema()
    told = _told(task.file, specs[task.file.spec_id], schema)
    deletes = sorted(task.delete_files, key=lambda file: file.file_path)
    told["deletes"] = [_told(file, specs[file.spec_id], schema) for file in deletes]
    return told


def task_of(told: Mapping[str, Any], metadata: TableMetadata) -> FileScanTask:
    """The inverse of :func:`task_told`."""
    return FileScanTask(
        _made(told["spec"], **_given(told, metadata)),
        delete_files={_made(one["spec"], **_given(one, metadata)) for one in told["deletes"]},
    )


def _made(spec_id: int, **fields: Any) -> DataFile:
    file = DataFile.from_args(**fields)
    # It is no field of a manifest's entries, which the library fills in where it reads one.
    file.spec_id = spec_id
    return file


def _told(file: DataFile, spec: PartitionSpec, schema: Schema) -> dict[str, Any]:
    types = _partition_types(spec, schema)
    values = [
        None if file.partition[at] is None else to_bytes(type_, file.partition[at]).hex()
        for at, type_ in enumerate(types)
    ]
    return {
        "path": file.file_path,
        "format": FileFormat(file.file_format).value,
        "content": int(DataFileContent(file.content)),
        "spec": file.spec_id,
        "partition": values,
        "rows": file.record_count,
        "bytes": file.file_size_in_bytes,
    }


def _given(told: Mapping[str, Any], metadata: TableMetadata) -> dict[str, Any]:
    types = _partition_types(metadata.specs()[told["spec"]], metadata.schema())
    values = [
        None if text is None else from_bytes(type_, bytes.fromhex(text))
        for type_, text in zip(types, told["partition"], strict=True)
    ]
    return {
        "content": DataFileContent(told["content"]),
        "file_path": told["path"],
        "file_format": FileFormat(told["format"]),
        "partition": Record(*values),
        "record_count": told["rows"],
        "file_size_in_bytes": told["bytes"],
    }


def _partition_types(spec: PartitionSpec, schema: Schema) -> list[PrimitiveType]:
    return [field.field_type for field in spec.partition_type(schema).fields]  # type: ignore[misc]
