"""Options of the ``filesystem`` connector."""

from __future__ import annotations

import re
from typing import Final

from flowsql_connectors.bad_row_options import DEAD_LETTER_PATH, DEAD_LETTER_TABLE, ON_ERROR
from flowsql_connectors.filesystem.files import DEFAULT_PARTITION_NAME
from flowsql_connectors.lookup.options import LOOKUP_OPTIONS
from flowsql_connectors.options import (
    COLUMNS_INFERRED,
    SCAN_PARALLELISM,
    SINK_PARALLELISM,
    ConnectorOption,
    OptionSet,
    optional,
    parse_boolean,
    parse_choice,
)
from flowsql_connectors.watermark_options import WATERMARK_OPTIONS
from flowsql_core.config import parse_duration_ms, parse_memory_bytes


def _pattern(text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except re.error as error:
        raise ValueError(f"expected a regular expression: {error}") from error


def _interval_ms(text: str) -> int:
    interval_ms = parse_duration_ms(text)
    if interval_ms <= 0:
        raise ValueError("The interval must be greater than 0.")
    return interval_ms


PATH = ConnectorOption("path", str, "", "File, folder or glob to read; folder to write.")
FORMAT = ConnectorOption("format", str, "", "Format of the files: csv, json, parquet, raw, debezium-json, ...")
DEFAULT_NAME = ConnectorOption(
    "partition.default-name", str, DEFAULT_PARTITION_NAME, "Folder name of a NULL or empty partition value."
)
MONITOR_INTERVAL: ConnectorOption[int | None] = ConnectorOption(
    "source.monitor-interval",
    optional(_interval_ms),
    None,
    "Look for new files in this interval, for ever; without it those are read that are there when the job starts.",
)
PATH_PATTERN: ConnectorOption[re.Pattern[str] | None] = ConnectorOption(
    "source.path.regex-pattern", optional(_pattern), None, "Read only files whose absolute path matches."
)
REPORT_STATISTICS = ConnectorOption(
    "source.report-statistics", parse_choice("ALL", "NONE"), "ALL", "Statistics for the planner; only ALL."
)
ROLLING_SIZE = ConnectorOption(
    "sink.rolling-policy.file-size", parse_memory_bytes, 128 * 1024 * 1024, "Size at which a part file is closed."
)
ROLLOVER_MS = ConnectorOption(
    "sink.rolling-policy.rollover-interval", parse_duration_ms, 30 * 60_000, "Age at which a part file is closed."
)
INACTIVITY_MS = ConnectorOption(
    "sink.rolling-policy.inactivity-interval", parse_duration_ms, 30 * 60_000, "Idle time after which it is closed."
)
CHECK_MS = ConnectorOption(
    "sink.rolling-policy.check-interval", parse_duration_ms, 60_000, "How often ages are looked at."
)
SHUFFLE = ConnectorOption(
    "sink.shuffle-by-partition.enable", parse_boolean, False, "Send rows of a partition to one writer."
)
COMMIT_TRIGGER = ConnectorOption(
    "sink.partition-commit.trigger",
    parse_choice("process-time", "partition-time"),
    "process-time",
    "What makes a partition complete: the clock, or the watermark against the partition's own time.",
)
COMMIT_DELAY_MS = ConnectorOption(
    "sink.partition-commit.delay", parse_duration_ms, 0, "Wait so long after the partition's time."
)
COMMIT_ZONE = ConnectorOption(
    "sink.partition-commit.watermark-time-zone", str, "UTC", "Time zone of partition times against a LTZ watermark."
)
COMMIT_POLICY: ConnectorOption[str | None] = ConnectorOption(
    "sink.partition-commit.policy.kind",
    optional(str),
    None,
    "What a complete partition causes: success-file, custom, or both.",
)
COMMIT_POLICY_CLASS: ConnectorOption[str | None] = ConnectorOption(
    "sink.partition-commit.policy.class",
    optional(str),
    None,
    "Of the policy 'custom': a Python class as module.Class, derived from PartitionCommitPolicy.",
)
COMMIT_POLICY_PARAMETERS: ConnectorOption[tuple[str, ...]] = ConnectorOption(
    "sink.partition-commit.policy.class.parameters",
    lambda text: tuple(text.split(";")),
    (),
    "Texts that the class is made with, separated by semicolons.",
)
SUCCESS_NAME = ConnectorOption(
    "sink.partition-commit.success-file.name", str, "_SUCCESS", "Name of the file that marks a complete partition."
)
EXTRACTOR_KIND = ConnectorOption(
    "partition.time-extractor.kind", str, "default", "What tells a partition's time: default (a pattern) or custom."
)
EXTRACTOR_CLASS: ConnectorOption[str | None] = ConnectorOption(
    "partition.time-extractor.class",
    optional(str),
    None,
    "Of the kind 'custom': a Python class as module.Class, derived from PartitionTimeExtractor.",
)
TIMESTAMP_PATTERN: ConnectorOption[str | None] = ConnectorOption(
    "partition.time-extractor.timestamp-pattern", optional(str), None, "Partition columns as a time: '$dt $hour:00:00'."
)
TIMESTAMP_FORMATTER: ConnectorOption[str | None] = ConnectorOption(
    "partition.time-extractor.timestamp-formatter", optional(str), None, "Form of that time; by default SQL's."
)
AUTO_COMPACTION = ConnectorOption(
    "auto-compaction", parse_boolean, False, "Streaming: merge the files of a checkpoint before they become visible."
)
COMPACTION_SIZE: ConnectorOption[int | None] = ConnectorOption(
    "compaction.file-size",
    optional(parse_memory_bytes),
    None,
    "Size up to which files are merged; by default the rolling size.",
)

FILESYSTEM_OPTIONS: Final = OptionSet(
    required=(PATH, FORMAT),
    optional=(
        DEFAULT_NAME,
        MONITOR_INTERVAL,
        PATH_PATTERN,
        REPORT_STATISTICS,
        COLUMNS_INFERRED,
        ON_ERROR,
        DEAD_LETTER_PATH,
        DEAD_LETTER_TABLE,
        SCAN_PARALLELISM,
        SINK_PARALLELISM,
        ROLLING_SIZE,
        ROLLOVER_MS,
        INACTIVITY_MS,
        CHECK_MS,
        SHUFFLE,
        COMMIT_TRIGGER,
        COMMIT_DELAY_MS,
        COMMIT_ZONE,
        COMMIT_POLICY,
        COMMIT_POLICY_CLASS,
        COMMIT_POLICY_PARAMETERS,
        SUCCESS_NAME,
        EXTRACTOR_KIND,
        EXTRACTOR_CLASS,
        TIMESTAMP_PATTERN,
        TIMESTAMP_FORMATTER,
        AUTO_COMPACTION,
        COMPACTION_SIZE,
        *LOOKUP_OPTIONS,
        *WATERMARK_OPTIONS,
    ),
)
