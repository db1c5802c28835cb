"""Partitions of a file sink: folder names from columns, rows sorted by folder, when a partition is complete."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import pyarrow as pa

from flowsql_compute.eval.columns import values_and_validity
from flowsql_compute.eval.text.render import Notation, render_column
from flowsql_connectors.filesystem.files import escape_path_name, unescape_path_name
from flowsql_connectors.filesystem.options import (
    COMMIT_DELAY_MS,
    COMMIT_POLICY,
    COMMIT_POLICY_CLASS,
    COMMIT_POLICY_PARAMETERS,
    COMMIT_TRIGGER,
    COMMIT_ZONE,
    DEFAULT_NAME,
    SUCCESS_NAME,
)
from flowsql_connectors.filesystem.partitions.policy import (
    PartitionCommitPolicy,
    PartitionContext,
    SuccessFilePolicy,
    custom_policy,
)
from flowsql_connectors.filesystem.partitions.time_extractor import PartitionTimeExtractor, time_extractor
from flowsql_connectors.formats.text_output import timestamp_texts
from flowsql_connectors.options import OptionValues
from flowsql_connectors.partition_runs import combined, runs_of, taken_apart
from flowsql_core.arrow import compute as pc
from flowsql_core.errors import BindError
from flowsql_core.graph.specs import TableSpec
from flowsql_core.record import record
from flowsql_core.types.logical import CharacterType, LogicalType, TimestampLtzType, TimestampType, TimeType


class Partitioner:
    """Finds the folder of each row."""

    def __init__(self, table: TableSpec, default_name: str) -> None:
        names = [column.name for column in table.columns]
        self._keys = [(names.index(key), key) for key in table.partition_keys]
        self._table = table
        self._default_name = default_name

    @property
    def file_columns(self) -> tuple[int, ...]:
        """Columns that are no partition keys."""
        keys = self._table.partition_keys
        return tuple(index for index, column in enumerate(self._table.columns) if column.name not in keys)

    def group(
        self, columns: Sequence[Any], num_rows: int, now_ms: int
    ) -> tuple[Any | None, list[tuple[str, int, int]]]:
        """Rows by partition: see :class:`Folders`."""
        if not self._keys:
            return None, [("", 0, num_rows)]
        levels = [self._level(columns, index, key) for index, key in self._keys]
        numbers = combined([(codes, len(names)) for codes, names in levels], num_rows)
        # Folders in the order in which they first appear.
        order, runs = runs_of(numbers)
        return order, [(_folder([names for _, names in levels], number), start, stop) for number, start, stop in runs]

    def _level(self, columns: Sequence[Any], index: int, key: str) -> tuple[Any, list[str]]:
        """For each row the number of its folder on one level, and the names of those folders."""
        type_ = self._table.columns[index].type
        column = columns[index]
        texts = _folder_texts(column, type_)
        if column.null_count:
            if not isinstance(type_, CharacterType):
                texts = pc.if_else(pc.is_valid(column), texts, pa.scalar(None, pa.string()))
            texts = pc.fill_null(texts, "")
        encoded = pc.dictionary_encode(texts)
        head = f"{escape_path_name(key)}="
        # Python over the distinct values only: there are few in a batch.
        names = [head + escape_path_name(value.as_py() or self._default_name) for value in encoded.dictionary]
        return values_and_validity(encoded.indices)[0], names


def _folder_texts(column: Any, type_: LogicalType) -> Any:
    """What folders are called after values, as Flink calls them.

    TIMESTAMP and TIMESTAMP_LTZ are ``2024-01-02T03:04:05``, without seconds that are zero; the latter is in UTC and has
    no ``Z``. TIME is its milliseconds.
    """
    match type_:
        case CharacterType():
            return column
        case TimestampType() | TimestampLtzType():
            plain = column.cast(pa.timestamp(column.type.unit))
            return pc.replace_substring_regex(timestamp_texts(plain, "T", grouped=True), "^(.*T..:..):00$", r"\1")
        case TimeType():
            return column.cast(pa.int32()).cast(pa.string())
    return render_column(column, type_, Notation.ROW)


def _folder(levels: Sequence[list[str]], number: int) -> str:
    """The path behind a number that was made of the numbers of the levels."""
    places = taken_apart(number, [len(names) for names in levels])
    return "/".join(names[at] for names, at in zip(levels, places, strict=True))


@record
class CommitPolicy:
    """When a partition is complete and what happens then. ``by_watermark``: partition-time, else process-time."""

    table: TableSpec
    by_watermark: bool
    delay_ms: int
    zone: str
    extractor: PartitionTimeExtractor
    policies: tuple[PartitionCommitPolicy, ...]

    @staticmethod
    def of(values: OptionValues, table: TableSpec, touch: Callable[[str], None]) -> CommitPolicy | None:
        """The policy of a table, which writes success files by ``touch``; None when it has none.

        Raises:
            BindError: a policy or a time extractor that cannot be.
        """
        kind = values.get(COMMIT_POLICY)
        if kind is None:
            return None
        policies = tuple(_policy_of(part.lower(), values, touch) for part in kind.split(","))
        extractor = time_extractor(values)
        if not table.partition_keys:
            return None
        zone = values.get(COMMIT_ZONE)
        try:
            ZoneInfo(zone)
        except (ZoneInfoNotFoundError, ValueError) as error:
            raise BindError("invalid-option-value", f"'{COMMIT_ZONE.key}': no time zone is named '{zone}'.") from error
        return CommitPolicy(
            table=table,
            by_watermark=values.get(COMMIT_TRIGGER) == "partition-time",
            delay_ms=values.get(COMMIT_DELAY_MS),
            zone=zone,
            extractor=extractor,
            policies=policies,
        )

    def is_complete(self, folder: str, first_ms: int, watermark_ms: int, now_ms: int) -> bool:
        """Whether a partition takes no more rows that are on time.

        Args:
            folder: the partition.
            first_ms: processing time of its first row.
            watermark_ms: event time.
            now_ms: processing time.
        """
        if self.by_watermark:
            return watermark_ms > self.partition_ms(folder) + self.delay_ms
        return self.delay_ms == 0 or now_ms > first_ms + self.delay_ms

    def mark(self, root: str, folder: str) -> None:
        """Tell that a partition is complete."""
        values = tuple(_key_value(level)[1] for level in folder.split("/"))
        catalog, database, name = self.table.path
        context = PartitionContext(
            catalog, database, name, self.table.partition_keys, values, os.path.join(root, folder)
        )
        for policy in self.policies:
            policy.commit(context)

    def partition_ms(self, folder: str) -> int:
        """Epoch milliseconds of the time that a partition folder stands for.

        Raises:
            ExecutionError: its values make no time.
        """
        values = dict(_key_value(level) for level in folder.split("/"))
        local = self.extractor.extract(list(values), list(values.values()))
        return int(local.replace(tzinfo=ZoneInfo(self.zone)).timestamp() * 1000)


def _policy_of(kind: str, values: OptionValues, touch: Callable[[str], None]) -> PartitionCommitPolicy:
    match kind:
        case "success-file":
            return SuccessFilePolicy(values.get(SUCCESS_NAME), touch)
        case "custom":
            return custom_policy(values.get(COMMIT_POLICY_CLASS), values.get(COMMIT_POLICY_PARAMETERS))
        case "metastore":
            raise BindError(
                "invalid-option-value",
                "Can not configure a 'metastore' partition commit policy for a file system table. You can only "
                "configure 'metastore' partition commit policy for a hive table.",
            )
    raise BindError(
        "invalid-option-value",
        f"Unsupported policy: {kind}",
        hint=f"'{COMMIT_POLICY.key}' is a list of success-file and custom",
    )


def default_partition_name(values: OptionValues) -> str:
    """``partition.default-name``."""
    return values.get(DEFAULT_NAME)


def _key_value(level: str) -> tuple[str, str]:
    key, _, value = level.partition("=")
    return unescape_path_name(key), unescape_path_name(value)
