"""Whether the parquet files of a table hold exactly what the table says, so that Spark may read them by itself."""

from __future__ import annotations

import datetime
import importlib
import os
import re
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, Final

import pyarrow as pa

from flowsql_connectors.filesystem.files import FoundFile, find_files, local_path
from flowsql_core.errors import FlowSqlError
from flowsql_core.graph.spark import ParquetFiles
from flowsql_core.types.arrow import to_arrow
from flowsql_core.types.logical import CharacterType, DateType, IntegerType, LogicalType, Schema, without_attribute
from flowsql_runtime.spark.frame_columns import quoted
from flowsql_runtime.spark.sessions.host import SparkHost

#: Spark takes these for patterns, and ``=`` for a partition.
_SPECIAL: Final = frozenset("*?[]{}\\=:")
#: Dates of a file with one of these are days of another calendar, for Spark.
_OTHER_CALENDAR: Final = (b"org.apache.spark.legacyDateTime", b"org.apache.spark.legacyINT96")
#: What Spark takes for NULL in the name of a folder.
_HIVE_NULL: Final = "__HIVE_DEFAULT_PARTITION__"
_NUMBER: Final = re.compile(r"0|-?[1-9][0-9]*")
_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
#: Tables of which Spark knows the files, the one that was read last behind all others.
_kept: OrderedDict[Any, Any] = OrderedDict()
_MOST_KEPT: Final = 64


def readable_by_spark(files: ParquetFiles, columns: Schema) -> tuple[FoundFile, ...] | None:
    """The files to read; None where FlowSQL has to: types differ, or something is wrong and it knows what to say."""
    pattern = None if files.pattern is None else re.compile(files.pattern)
    keys = files.partition_keys
    types = {name: without_attribute(column.type) for name, column in zip(files.names, columns, strict=True)}
    in_files = tuple(name for name in files.names if name not in keys)
    try:
        found = find_files(files.path, keys, files.default_name, pattern)
        found = [replace(file, path=os.path.abspath(file.path)) for file in found]
        root = os.path.abspath(local_path(files.path)) if keys else ""
        if (
            found
            and all(_is_plain(file, root) and _has_folders(file, root, keys) for file in found)
            and all(map(_are_plain_values, zip(*(file.partition for file in found), strict=True), map(types.get, keys)))
            and all(_holds(file, in_files, tuple(types[name] for name in in_files), keys) for file in found)
        ):
            return tuple(found)
    except (FlowSqlError, OSError, pa.ArrowException):
        return None
    return None


def read_files(host: SparkHost, found: tuple[FoundFile, ...], files: ParquetFiles, ddl: str) -> Any:
    """The rows as Spark reads them, with columns c0, c1, ...; ``ddl`` says their types in this order.

    What Spark has found out about files is kept as long as they are the same.
    """
    key = (id(host), found, files, ddl)
    if key in _kept:
        _kept.move_to_end(key)
    else:
        _kept[key] = _frame(host, found, files, ddl)
        while len(_kept) > _MOST_KEPT:
            _kept.popitem(last=False)
    return _kept[key]


def _frame(host: SparkHost, found: Sequence[FoundFile], files: ParquetFiles, ddl: str) -> Any:
    from pyspark.sql.types import StringType, StructField, StructType

    keys = files.partition_keys
    declared = host.schema(", ".join([ddl, *(f"o{place} {text}" for place, (_, text) in enumerate(files.others))]))
    types = dict(
        zip((*files.names, *(name for name, _ in files.others)), (own.dataType for own in declared.fields), strict=True)
    )
    fields = [StructField(name, type_) for name, type_ in types.items() if name not in keys]
    # Texts as they are: of what Spark takes them for hangs what it makes of '01'.
    fields += [StructField(key, StringType()) for key in keys]
    reader = host.session.read.schema(StructType(fields))
    if keys:
        reader = reader.option("basePath", os.path.abspath(local_path(files.path)))
    whole = reader.parquet(*(file.path for file in found))

    def column(name: str) -> Any:
        own = whole[quoted(name)]
        if name not in keys:
            return own
        if any(file.partition[keys.index(name)] is None for file in found):
            functions: Any = importlib.import_module("pyspark.sql.functions")
            own = functions.nullif(own, functions.lit(files.default_name))
        return own.cast(types[name])

    return whole.select(*(column(name).alias(f"c{index}") for index, name in enumerate(files.names)))


def _is_plain(file: FoundFile, root: str) -> bool:
    """``root``: of the folders that hold columns; their names are looked at elsewhere."""
    name = os.path.basename(file.path)
    special = _SPECIAL & frozenset(root + name if root else file.path)
    return not name.startswith(("_", ".")) and file.compression is None and not special


def _has_folders(file: FoundFile, root: str, keys: Sequence[str]) -> bool:
    """Whether there is a folder for each key, in their order, and no other."""
    if not keys:
        return True
    folders = os.path.dirname(os.path.relpath(file.path, root)).split(os.sep)
    return [folder.partition("=")[0] for folder in folders] == list(keys)


def _are_plain_values(texts: Sequence[str | None], type_: LogicalType | None) -> bool:
    """Whether Spark makes of the names of folders what FlowSQL makes of them; no type: nobody asks for the column."""
    values = {text for text in texts if text is not None}
    if values & {"", _HIVE_NULL}:
        return False
    match type_:
        case None | CharacterType():
            return True
        case IntegerType():
            # Numbers with a sign, zeros or blanks in front FlowSQL judges.
            return all(_NUMBER.fullmatch(text) and abs(int(text)) < 1 << (type_.bits - 1) for text in values)
        case DateType():
            return all(map(_is_date, values))
    return False


def _is_date(text: str) -> bool:
    try:
        return bool(_DATE.fullmatch(text) and datetime.date.fromisoformat(text))
    except ValueError:
        return False


@lru_cache(4096)
def _holds(file: FoundFile, names: tuple[str, ...], types: tuple[LogicalType, ...], keys: tuple[str, ...]) -> bool:
    """Whether the footer says the types, and has no column of the folders' names. A file that was changed since has
    another time or another size."""
    import pyarrow.parquet as pq

    with pq.ParquetFile(file.path, memory_map=False) as parquet:
        schema = parquet.schema_arrow
        kept = parquet.metadata.metadata or {}
    if any(key in kept for key in _OTHER_CALENDAR):
        return False
    # Spark finds columns in any case of their letters.
    present = [name.lower() for name in schema.names]
    if any(key.lower() in present for key in keys):
        return False
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
