"""Whether the parquet files of a table hold exactly what the table says, so that Spark may read them by itself."""

from __future__ import annotations

import os
import re
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, Final

import pyarrow as pa

from flowsql_connectors.filesystem.files import FoundFile, find_files
from flowsql_core.errors import FlowSqlError
from flowsql_core.graph.spark import ParquetFiles
from flowsql_core.types.arrow import to_arrow
from flowsql_core.types.logical import LogicalType, Schema, without_attribute
from flowsql_runtime.spark.sessions.host import SparkHost

#: Spark takes these for patterns, and ``=`` for a partition.
_SPECIAL: Final = frozenset("*?[]{}\\=:")
#: Dates of a file with one of these are days of another calendar, for Spark.
_OTHER_CALENDAR: Final = (b"org.apache.spark.legacyDateTime", b"org.apache.spark.legacyINT96")
#: Tables of which Spark knows the files, the one that was read last behind all others.
_kept: OrderedDict[Any, Any] = OrderedDict()
_MOST_KEPT: Final = 64


def readable_by_spark(files: ParquetFiles, columns: Schema) -> tuple[FoundFile, ...] | None:
    """The files to read; None where FlowSQL has to: types differ, or something is wrong and it knows what to say."""
    pattern = None if files.pattern is None else re.compile(files.pattern)
    try:
        found = find_files(files.path, pattern=pattern)
        found = [replace(file, path=os.path.abspath(file.path)) for file in found]
        types = tuple(without_attribute(column.type) for column in columns)
        if found and all(_is_plain(file) and _holds(file, files.names, types) for file in found):
            return tuple(found)
    except (FlowSqlError, OSError, pa.ArrowException):
        return None
    return None


def read_files(host: SparkHost, found: tuple[FoundFile, ...], files: ParquetFiles, ddl: str) -> Any:
    """The rows as Spark reads them, with columns c0, c1, ...; ``ddl`` says their types in this order.

    What Spark has found out about files is kept as long as they are the same.
    """
    key = (id(host), found, files.names, files.others, ddl)
    if key in _kept:
        _kept.move_to_end(key)
    else:
        _kept[key] = _frame(host, [file.path for file in found], files, ddl)
        while len(_kept) > _MOST_KEPT:
            _kept.popitem(last=False)
    return _kept[key]


def _frame(host: SparkHost, paths: Sequence[str], files: ParquetFiles, ddl: str) -> Any:
    from pyspark.sql.types import StructField, StructType

    declared = host.schema(", ".join([ddl, *(f"o{place} {text}" for place, (_, text) in enumerate(files.others))]))
    names = (*files.names, *(name for name, _ in files.others))
    fields = [StructField(name, own.dataType) for name, own in zip(names, declared.fields, strict=True)]
    whole = host.session.read.schema(StructType(fields)).parquet(*paths)
    return whole.select(*(whole[_quoted(name)].alias(f"c{index}") for index, name in enumerate(files.names)))


def _quoted(name: str) -> str:
    """A column's name as Spark's functions take it."""
    return "`" + name.replace("`", "``") + "`"


def _is_plain(file: FoundFile) -> bool:
    path = os.path.abspath(file.path)
    hidden = os.path.basename(path).startswith(("_", "."))
    return not hidden and file.compression is None and not _SPECIAL & frozenset(path)


@lru_cache(4096)
def _holds(file: FoundFile, names: tuple[str, ...], types: tuple[LogicalType, ...]) -> bool:
    """Whether the footer says the types. A file that was changed since has another time or another size."""
    import pyarrow.parquet as pq

    with pq.ParquetFile(file.path, memory_map=False) as parquet:
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
