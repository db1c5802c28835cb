"""Which partitions of a table a scan need not read: predicates over partition columns, asked of the folders' names.

The planner keeps every predicate above the scan: files are left out, no answer hangs on it (Flink's
``SupportsPartitionPushDown``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa

from flowsql_compute.eval.compile import compile_condition
from flowsql_compute.eval.context import EvalContext
from flowsql_compute.eval.time.machine_zone import machine_zone
from flowsql_connectors.filesystem.files import FoundFile
from flowsql_connectors.formats.text_values import TextDialect, parse_texts
from flowsql_core.config import LOCAL_TIME_ZONE
from flowsql_core.errors import BindError, FlowSqlError
from flowsql_core.expr import Expr, conjunction, input_refs, remap_inputs
from flowsql_core.graph.specs import ScanSpec, TableSpec
from flowsql_core.types.arrow import to_arrow
from flowsql_core.types.logical import CharacterType, LogicalType, TimestampLtzType, TimestampType, TimeType

#: Characters of a date; longer names of folders hold a time, too.
_DATE_SIZE: Final = 10


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


def refuse_moments(table: TableSpec, conditions: Sequence[Expr], find: Callable[[], list[FoundFile]]) -> None:
    """Refuse conditions on folders that are called after moments, as Flink does: it reads no more than their dates.

    Args:
        table: partitioned.
        conditions: over the table's columns.
        find: the table's files.

    Raises:
        BindError: a folder's name holds a time.
    """
    used = {table.columns[index].name for part in conditions for index in input_refs(part)}
    types = {column.name: column.type for column in table.columns}
    moments = [
        place
        for place, key in enumerate(table.partition_keys)
        if key in used and isinstance(types[key], TimestampType | TimestampLtzType)
    ]
    for file in find() if moments else ():
        for place in moments:
            text, key = file.partition[place], table.partition_keys[place]
            if text is not None and len(text) > _DATE_SIZE:
                raise BindError(
                    "partition-condition",
                    f"A condition on partition column '{key}' of type {types[key]} cannot be compared with the folder "
                    f"'{key}={text}'.",
                    hint=f"declare '{key}' as STRING",
                )


def partition_values(texts: Sequence[str | None], type_: LogicalType) -> tuple[pa.Array, Any, str | None]:
    """Names of folders as values of a column; which of them are none (None: all are good), and why the first is not.

    As in Flink folders of TIME and TIMESTAMP_LTZ are written and cannot be read.
    """
    array = pa.array(texts, pa.string())
    match type_:
        case CharacterType():
            return array, None, None
        case TimeType() | TimestampLtzType() if array.null_count < len(array):
            return pa.nulls(len(array), to_arrow(type_)), array.is_valid(), "declare the column as STRING"
        case TimestampType():
            # With a T, as folders are called, or with a blank.
            return parse_texts(array, type_, TextDialect.CSV_ISO)
    return parse_texts(array, type_, TextDialect.CSV)
