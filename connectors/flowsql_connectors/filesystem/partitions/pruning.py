"""Which partitions of a table a scan need not read: predicates over partition columns, asked of the folders' names.

The planner keeps every predicate above the scan: files are left out, no answer hangs on it (Flink's
``SupportsPartitionPushDown``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from flowsql_compute.eval.compile import compile_condition
from flowsql_compute.eval.context import EvalContext
from flowsql_compute.eval.time.machine_zone import machine_zone
from flowsql_connectors.filesystem.files import FoundFile
from flowsql_connectors.formats.text_values import TextDialect, parse_texts
from flowsql_core.config import LOCAL_TIME_ZONE
from flowsql_core.errors import FlowSqlError
from flowsql_core.expr import Expr, conjunction, input_refs, remap_inputs
from flowsql_core.graph.specs import ScanSpec
from flowsql_core.types.logical import CharacterType, LogicalType


class PartitionFilter:
    """The filters of a scan that speak of partition columns alone.

    Args:
        scan: of a partitioned table.
        configuration: of the job.
    """

    def __init__(self, scan: ScanSpec, configuration: Mapping[str, str]) -> None:
        keys = scan.table.partition_keys
        names = [column.name for column in scan.table.columns]
        places = {names.index(key): place for place, key in enumerate(keys)}
        own = [part for part in scan.filters if input_refs(part) and all(index in places for index in input_refs(part))]
        self._condition: Expr | None = conjunction(tuple(remap_inputs(part, places.__getitem__) for part in own))
        self._types = [scan.table.columns[names.index(key)].type for key in keys]
        zone = configuration.get(LOCAL_TIME_ZONE.key, LOCAL_TIME_ZONE.default)
        self._zone = machine_zone() if zone == LOCAL_TIME_ZONE.default else zone

    def kept(self, files: list[FoundFile]) -> list[FoundFile]:
        """The files whose partitions may hold rows that the query wants.

        All of them where the names cannot be judged: reading them says what is wrong.
        """
        if self._condition is None or not files:
            return files
        partitions = sorted({file.partition for file in files}, key=repr)
        try:
            parsed = [
                partition_values([partition[place] for partition in partitions], type_)
                for place, type_ in enumerate(self._types)
            ]
            if any(bad is not None for _, bad, _ in parsed):
                return files
            columns = [values for values, _, _ in parsed]
            mask = compile_condition(self._condition, EvalContext(zone=self._zone))(columns, len(partitions))
        except FlowSqlError:
            return files
        wanted = {partition for partition, keep in zip(partitions, mask, strict=True) if keep}
        return [file for file in files if file.partition in wanted]


def partition_values(texts: Sequence[str | None], type_: LogicalType) -> tuple[pa.Array, Any, str | None]:
    """Names of folders as values of a column; which of them are none (None: all are good), and why the first is not."""
    array = pa.array(texts, pa.string())
    return (array, None, None) if isinstance(type_, CharacterType) else parse_texts(array, type_, TextDialect.CSV)
