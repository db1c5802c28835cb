"""Tables whose files Spark may read by itself: parquet, with types that it reads exactly as FlowSQL does."""

from __future__ import annotations

from typing import Final

from flowsql_connectors.filesystem.options import PATH, PATH_PATTERN
from flowsql_core.graph.spark import ParquetFiles
from flowsql_core.types import logical as t
from flowsql_planner.logical.nodes import Scan

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
#: Options that change which rows there are, or what stands in them.
_OWN_WAY: Final = ("flowsql.", "source.monitor-interval", "scan.")


def parquet_files(scan: Scan) -> ParquetFiles | None:
    """Where the rows of a scan are, if they are nowhere else and all of them count; else None."""
    options = dict(scan.table.options) | dict(scan.hints)
    if (options.get("connector"), options.get("format")) != ("filesystem", "parquet"):
        return None
    if scan.table.partition_keys or scan.metadata or scan.limit is not None or not scan.projection:
        return None
    if any(key.startswith(_OWN_WAY) for key in options) or PATH.key not in options:
        return None
    if not all(isinstance(column.type, _EXACT) for column in scan.schema):
        return None
    names = tuple(scan.table.columns[index].name for index in scan.projection)
    return ParquetFiles(options[PATH.key], options.get(PATH_PATTERN.key), names)
