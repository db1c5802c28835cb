"""Tables that Spark reads by itself: its own DataFrames, and parquet of types that it reads as FlowSQL does."""

from __future__ import annotations

from dataclasses import replace
from hashlib import blake2b
from typing import Final

from flowsql_connectors import registry
from flowsql_core.graph.spark import ParquetFiles, SparkReader, SparkView
from flowsql_core.types import logical as t
from flowsql_planner.logical.nodes import Scan
from flowsql_planner.spark.types import spark_type

#: Timestamps are not among them: Flink's hang on the zone of the machine, and Spark cuts them to microseconds.
_EXACT: Final = (
    t.BooleanType
    | t.IntegerType
    | t.ApproximateType
    | t.DecimalType
    | t.CharacterType
    | t.BinaryStringType
    | t.DateType
)


def own_reading(scan: Scan) -> ParquetFiles | SparkView | SparkReader | None:
    """Where Spark finds the rows of a scan; None where FlowSQL reads them."""
    reader = registry.spark_reader(scan.table)
    if reader is not None:
        return replace(reader, names=tuple(scan.table.columns[index].name for index in scan.projection))
    view = registry.spark_view(scan.table)
    if view is not None:
        return SparkView(view, tuple(scan.table.columns[index].name for index in scan.projection))
    return _parquet_files(scan)


def own_view(own: ParquetFiles | SparkView | SparkReader, columns: str) -> str:
    """The name of the view of such rows with some columns: the same in all statements, so that it may stand on."""
    return f"flowsql_own_{blake2b(repr((own, columns)).encode(), digest_size=12).hexdigest()}"


def is_in_spark(scan: Scan) -> bool:
    """Whether Spark always has the rows of a scan: of a DataFrame, of a database. They stand in no known order."""
    return registry.spark_view(scan.table) is not None or registry.spark_reader(scan.table) is not None


def _parquet_files(scan: Scan) -> ParquetFiles | None:
    """Where the rows of a scan are, if they are nowhere else and all of them count; else None."""
    if scan.metadata or scan.limit is not None or not scan.projection:
        return None
    if not all(isinstance(column.type, _EXACT) for column in scan.schema):
        return None
    files = registry.plain_files(scan.table)
    if files is None or files.format != "parquet":
        return None
    names = tuple(scan.table.columns[index].name for index in scan.projection)
    # Spark finds columns in any case of their letters.
    seen = {name.lower() for name in (*names, *files.partition_keys)}
    others = []
    for index, column in enumerate(scan.table.columns):
        if index not in scan.projection and isinstance(column.type, _EXACT) and column.name.lower() not in seen:
            seen.add(column.name.lower())
            others.append((column.name, spark_type(column.type)))
    return ParquetFiles(files.path, files.pattern, names, tuple(others), files.partition_keys, files.default_name)
