"""Tables whose files Spark may read by itself: parquet, with types that it reads exactly as FlowSQL does."""

from __future__ import annotations

from typing import Final

from flowsql_connectors import registry
from flowsql_core.graph.spark import ParquetFiles
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


def parquet_files(scan: Scan) -> ParquetFiles | None:
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
    seen = {name.lower() for name in names}
    others = []
    for index, column in enumerate(scan.table.columns):
        if index not in scan.projection and isinstance(column.type, _EXACT) and column.name.lower() not in seen:
            seen.add(column.name.lower())
            others.append((column.name, spark_type(column.type)))
    return ParquetFiles(files.path, files.pattern, names, tuple(others))
