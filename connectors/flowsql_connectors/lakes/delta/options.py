"""WITH options of ``delta`` tables, as Delta's connector for Flink has them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from flowsql_connectors.file_systems.s3 import ACCESS_KEY, ENDPOINT, REGION, S3_SCHEMES, SECRET_KEY
from flowsql_connectors.options import (
    COLUMNS_INFERRED,
    SINK_PARALLELISM,
    ConnectorOption,
    OptionSet,
    OptionValues,
    optional,
    parse_boolean,
    parse_choice,
    parse_natural,
    parse_positive,
)
from flowsql_connectors.watermark_options import WATERMARK_OPTIONS
from flowsql_core.config import parse_memory_bytes
from flowsql_core.errors import BindError
from flowsql_core.graph.specs import TableSpec
from flowsql_core.secrets.placeholders import filled

LATEST: Final = "latest"


def _version(text: str) -> str:
    if text.strip().lower() == LATEST:
        return LATEST
    return str(parse_natural(text))


TABLE_PATH = ConnectorOption("table-path", str, "", "Folder of the table, or its URI: s3://..., abfss://..., gs://...")
MODE = ConnectorOption("mode", parse_choice("batch", "streaming"), "batch", "streaming: read on as commits are added.")
VERSION_AS_OF: ConnectorOption[int | None] = ConnectorOption(
    "versionAsOf", optional(parse_natural), None, "Read this version."
)
TIMESTAMP_AS_OF: ConnectorOption[str | None] = ConnectorOption(
    "timestampAsOf", optional(str), None, "Read what there was then: 2026-01-31, 2026-01-31 12:00:00."
)
STARTING_VERSION: ConnectorOption[str | None] = ConnectorOption(
    "startingVersion", optional(_version), None, "Streaming: changes from this version on, or 'latest': only new ones."
)
STARTING_TIMESTAMP: ConnectorOption[str | None] = ConnectorOption(
    "startingTimestamp", optional(str), None, "Streaming: changes of versions committed then or later."
)
CHECK_INTERVAL_MS = ConnectorOption(
    "updateCheckIntervalMillis", parse_positive, 5000, "Streaming: how often to look for commits, ms."
)
IGNORE_DELETES = ConnectorOption(
    "ignoreDeletes", parse_boolean, False, "Streaming: pass over commits that only delete; else they end the job."
)
IGNORE_CHANGES = ConnectorOption(
    "ignoreChanges", parse_boolean, False,
    "Streaming: of commits that rewrite files read the new files, which may hold rows that were read before.",
)  # fmt: skip
TARGET_BYTES = ConnectorOption(
    "sink.target-file-size", parse_memory_bytes, 128 << 20, "FlowSQL: size at which a data file is closed."
)
COMPRESSION = ConnectorOption(
    "sink.compression", parse_choice("SNAPPY", "ZSTD", "GZIP", "LZ4", "NONE"), "SNAPPY",
    "FlowSQL: codec of new data files.",
)  # fmt: skip
#: Options of deltalake's object store, behind the prefix; and properties of a table that is made.
STORAGE: Final = "storage."
PROPERTY: Final = "delta."

_OPTIONS: Final = OptionSet(
    required=(TABLE_PATH,),
    optional=(
        MODE, VERSION_AS_OF, TIMESTAMP_AS_OF, STARTING_VERSION, STARTING_TIMESTAMP, CHECK_INTERVAL_MS, IGNORE_DELETES,
        IGNORE_CHANGES, TARGET_BYTES, COMPRESSION, SINK_PARALLELISM, COLUMNS_INFERRED, *WATERMARK_OPTIONS,
    ),
)  # fmt: skip
_ENDS: Final = (VERSION_AS_OF, TIMESTAMP_AS_OF)
_FOLLOWS: Final = (STARTING_VERSION, STARTING_TIMESTAMP, CHECK_INTERVAL_MS, IGNORE_DELETES, IGNORE_CHANGES)


def table_options(table: TableSpec) -> OptionSet:
    """The options of a table, and what it hands to the library."""
    given = [key for key, _ in table.options if key.startswith((STORAGE, PROPERTY))]
    return _OPTIONS.merged(OptionSet(optional=tuple(ConnectorOption(key, str, "", "Of deltalake.") for key in given)))


def checked(table: TableSpec) -> OptionValues:
    """The options of a table.

    Raises:
        BindError: one is unknown or unreadable; or some contradict each other.
    """
    values = table_options(table).check(table)
    for pair in (_ENDS, (STARTING_VERSION, STARTING_TIMESTAMP)):
        if all(values.has(option) for option in pair):
            raise BindError("lake-options", f"'{pair[0].key}' and '{pair[1].key}' say the same: give one of them.")
    streaming = values.get(MODE) == "streaming"
    wrong: tuple[ConnectorOption[Any], ...] = _ENDS if streaming else _FOLLOWS
    found = next((option.key for option in wrong if values.has(option)), None)
    if found is not None:
        raise BindError(
            "lake-options",
            f"'{found}' is of reads that {'end' if streaming else 'go on'}, and '{MODE.key}' is '{values.get(MODE)}'.",
        )
    return values


def storage_options(table: TableSpec, configuration: Mapping[str, str]) -> dict[str, str]:
    """What deltalake is told of the storage: the session's ``s3.*``, and above them the table's ``storage.*``."""
    own = {key.removeprefix(STORAGE): text for key, text in table.filled_options().items() if key.startswith(STORAGE)}
    path = table.option(TABLE_PATH.key) or ""
    if path.partition("://")[0] not in S3_SCHEMES:
        return own
    session = {
        "aws_access_key_id": ACCESS_KEY, "aws_secret_access_key": SECRET_KEY, "aws_endpoint_url": ENDPOINT,
        "aws_region": REGION,
    }  # fmt: skip
    found = {name: filled(configuration.get(option.key, "")) for name, option in session.items()}
    found = {name: text for name, text in found.items() if text}
    if found.get("aws_endpoint_url", "").startswith("http://"):
        found["aws_allow_http"] = "true"
    return {**found, **own}
