"""Options of ``file-sink`` and ``file-source``, as texts of a plan: what a program says of its files."""

from __future__ import annotations

import codecs
from typing import Final

import orjson

from flowsql_connectors.filesystem.options import (
    CHECK_MS,
    FORMAT,
    INACTIVITY_MS,
    MONITOR_INTERVAL,
    PATH,
    ROLLING_SIZE,
    ROLLOVER_MS,
)
from flowsql_connectors.options import (
    ConnectorOption,
    OptionSet,
    optional,
    parse_boolean,
    parse_choice,
    parse_natural,
    parse_positive,
)

#: The row format: texts as lines. All other formats are bulk formats.
LINES: Final = "lines"


def _file_name_part(text: str) -> str:
    if "/" in text or "\0" in text:
        raise ValueError("expected a part of a file name, without '/'")
    return text


def _charset(text: str) -> str:
    try:
        return codecs.lookup(text).name
    except LookupError as error:
        raise ValueError(f"there is no character set '{text}'") from error


CHARSET = ConnectorOption("charset", _charset, "utf-8", "Character set of lines.")
BUCKET_PATTERN: ConnectorOption[str | None] = ConnectorOption(
    "bucket.pattern", optional(str), None, "Java date pattern of the folders; without it there are none."
)
BUCKET_ZONE = ConnectorOption("bucket.zone", str, "default", "Zone whose clock names the folders.")
PART_PREFIX = ConnectorOption("part.prefix", _file_name_part, "part", "Before the number of a file.")
PART_SUFFIX = ConnectorOption("part.suffix", _file_name_part, "", "Behind the number of a file.")
ROLL_ON_CHECKPOINT = ConnectorOption(
    "rolling-policy.on-checkpoint", parse_boolean, False, "Close every file with each checkpoint, and only then."
)
COMPACTION_CHECKPOINTS = ConnectorOption(
    "compaction.checkpoints", parse_natural, 0, "Merge files at every n-th checkpoint; 0: not by checkpoints."
)
COMPACTION_BYTES = ConnectorOption(
    "compaction.size", parse_natural, 0, "Merge files that have so many bytes together; 0: not by size."
)
COMPACTION_THREADS = ConnectorOption("compaction.threads", parse_positive, 1, "Merges at once.")
COMPACTOR = ConnectorOption("compaction.by", parse_choice("concat", "identical"), "concat", "How files are merged.")
DELIMITER = ConnectorOption(
    "compaction.delimiter", bytes.fromhex, b"", "Bytes behind each of the merged files, hexadecimal."
)

STREAM_SINK_OPTIONS: Final = OptionSet(
    required=(PATH, FORMAT),
    optional=(
        CHARSET,
        BUCKET_PATTERN,
        BUCKET_ZONE,
        PART_PREFIX,
        PART_SUFFIX,
        ROLL_ON_CHECKPOINT,
        ROLLING_SIZE,
        ROLLOVER_MS,
        INACTIVITY_MS,
        CHECK_MS,
        COMPACTION_CHECKPOINTS,
        COMPACTION_BYTES,
        COMPACTION_THREADS,
        COMPACTOR,
        DELIMITER,
    ),
)

PATHS: ConnectorOption[tuple[str, ...]] = ConnectorOption(
    "paths", lambda text: tuple(orjson.loads(text)), (), "Files and folders, a list as JSON."
)
SPLITTABLE = ConnectorOption(
    "splittable", parse_boolean, False, "Whether several readers may share a file; else each keeps its order."
)

BATCH_ROWS: ConnectorOption[int | None] = ConnectorOption(
    "batch-rows", optional(parse_positive), None, "Rows of a batch at most."
)

STREAM_SOURCE_OPTIONS: Final = OptionSet(required=(PATHS, FORMAT), optional=(SPLITTABLE, MONITOR_INTERVAL, BATCH_ROWS))
