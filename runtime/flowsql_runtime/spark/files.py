"""Whether the parquet files of a table hold exactly what the table says, so that Spark may read them by itself."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa

from flowsql_connectors.filesystem.files import FoundFile, find_files
from flowsql_core.errors import FlowSqlError
from flowsql_core.graph.spark import ParquetFiles
from flowsql_core.types.arrow import to_arrow
from flowsql_core.types.logical import LogicalType, Schema, without_attribute

#: Spark takes these for patterns, and ``=`` for a partition.
_SPECIAL: Final = frozenset("*?[]{}\\=:")
#: Dates of a file with one of these are days of another calendar, for Spark.
_OTHER_CALENDAR: Final = (b"org.apache.spark.legacyDateTime", b"org.apache.spark.legacyINT96")


def readable_by_spark(files: ParquetFiles, columns: Schema) -> list[str] | None:
    """The paths to read; None where FlowSQL has to: types differ, or something is wrong and it knows what to say."""
    pattern = None if files.pattern is None else re.compile(files.pattern)
    try:
        found = find_files(files.path, pattern=pattern)
        types = [without_attribute(column.type) for column in columns]
        if found and all(_is_plain(file) and _holds(file.path, files.names, types) for file in found):
            return [os.path.abspath(file.path) for file in found]
    except (FlowSqlError, OSError, pa.ArrowException):
        return None
    return None


def read_files(session: Any, paths: Sequence[str], files: ParquetFiles, ddl: str) -> Any:
    """The rows as Spark reads them, with columns c0, c1, ...; ``ddl`` says their types in this order."""
    from pyspark.sql.types import StructField, StructType

    declared = StructType.fromDDL(
        ", ".join([ddl, *(f"o{place} {text}" for place, (_, text) in enumerate(files.others))])
    )
    assert isinstance(declared, StructType)
    names = (*files.names, *(name for name, _ in files.others))
    fields = [StructField(name, own.dataType) for name, own in zip(names, declared.fields, strict=True)]
    whole = session.read.schema(StructType(fields)).parquet(*paths)
    return whole.select(*(whole[_quoted(name)].alias(f"c{index}") for index, name in enumerate(files.names)))


def _quoted(name: str) -> str:
    """A column's name as Spark's functions take it."""
    return "`" + name.replace("`", "``") + "`"


def _is_plain(file: FoundFile) -> bool:
    path = os.path.abspath(file.path)
    hidden = os.path.basename(path).startswith(("_", "."))
    return not hidden and file.compression is None and not _SPECIAL & frozenset(path)


def _holds(path: str, names: Sequence[str], types: Sequence[LogicalType]) -> bool:
    import pyarrow.parquet as pq

    with pq.ParquetFile(path, memory_map=False) as parquet:
        schema = parquet.schema_arrow
        kept = parquet.metadata.metadata or {}
    if any(key in kept for key in _OTHER_CALENDAR):
        return False
    # Spark finds columns in any case of their letters.
    present = [name.lower() for name in schema.names]
    for name, type_ in zip(names, types, strict=True):
        if present.count(name.lower()) != 1 or name not in schema.names:
            return False
        if _written(schema.field(name).type) != to_arrow(type_):
            return False
    return True


def _written(type_: pa.DataType) -> pa.DataType:
    """The type of a column as the file holds it: how its writer kept texts in memory says nothing of the values."""
    if pa.types.is_dictionary(type_):
        return _written(type_.value_type)
    if pa.types.is_string_view(type_) or pa.types.is_large_string(type_):
        return pa.string()
    if pa.types.is_binary_view(type_) or pa.types.is_large_binary(type_):
        return pa.binary()
    return type_
