"""WITH options of ``mongodb`` tables, as Flink's connector has them."""

from __future__ import annotations

from typing import Final

from flowsql_connectors.lookup.options import (
    CACHE,
    CACHE_MISSING_KEY,
    EXPIRE_AFTER_ACCESS,
    EXPIRE_AFTER_WRITE,
    MAX_ROWS,
)
from flowsql_connectors.options import (
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
from flowsql_core.config import parse_duration_ms, parse_memory_bytes
from flowsql_core.errors import BindError
from flowsql_core.graph.specs import TableSpec


def _uri(text: str) -> str:
    if not text.startswith(("mongodb://", "mongodb+srv://")):
        raise ValueError("expected mongodb://user:password@host:27017")
    return text


def _guarantee(text: str) -> str:
    if text.strip().lower().replace("_", "-") == "exactly-once":
        raise ValueError("the connector writes again behind a failure; expected 'at-least-once' or 'none'")
    return parse_choice("at-least-once", "none")(text.replace("_", "-"))


URI = ConnectorOption("uri", _uri, "", "The connection string, mongodb://user:password@host:27017.")
DATABASE = ConnectorOption("database", str, "", "The database.")
COLLECTION = ConnectorOption("collection", str, "", "The collection in it.")
FETCH = ConnectorOption("scan.fetch-size", parse_positive, 2048, "Documents of a round trip.")
NO_TIMEOUT = ConnectorOption(
    "scan.cursor.no-timeout", parse_boolean, True, "Whether the server keeps cursors that are idle for 10 minutes."
)
STRATEGY = ConnectorOption(
    "scan.partition.strategy",
    parse_choice("default", "single", "sample", "split-vector", "sharded", "pagination"), "default",
    "How parts are found that are read side by side.",
)  # fmt: skip
PART_BYTES = ConnectorOption("scan.partition.size", parse_memory_bytes, 64 << 20, "Bytes of a part, about.")
SAMPLES = ConnectorOption("scan.partition.samples", parse_positive, 10, "Samples of a part, with 'sample'.")
PART_RECORDS: ConnectorOption[int | None] = ConnectorOption(
    "scan.partition.record-size", optional(parse_positive), None, "Documents of a part, with 'pagination'."
)
LOOKUP_CACHE = ConnectorOption(
    CACHE.key, parse_choice("NONE", "PARTIAL"), "NONE",
    "What lookup joins keep: nothing, or the rows of keys that were asked for.",
)  # fmt: skip
LOOKUP_RETRIES = ConnectorOption(
    "lookup.max-retries", parse_natural, 3, "How often a lookup that failed is tried again."
)
LOOKUP_PAUSE_MS = ConnectorOption("lookup.retry.interval", parse_duration_ms, 1000, "The pause before that.")
FILTERS = ConnectorOption(
    "filter.handling.policy", parse_choice("always", "never"), "always", "Whether MongoDB answers conditions."
)
FLUSH_ROWS = ConnectorOption(
    "sink.buffer-flush.max-rows", parse_natural, 1000, "Rows that are written together at least; 0: no matter how many."
)
FLUSH_MS = ConnectorOption(
    "sink.buffer-flush.interval", parse_duration_ms, 1000, "How long rows wait to be written; 0: until a checkpoint."
)
SINK_RETRIES = ConnectorOption("sink.max-retries", parse_natural, 3, "How often a write that failed is tried again.")
SINK_PAUSE_MS = ConnectorOption("sink.retry.interval", parse_duration_ms, 1000, "The pause before that.")
GUARANTEE = ConnectorOption(
    "sink.delivery-guarantee", _guarantee, "at-least-once", "Whether a checkpoint waits until all rows are there."
)
ORDERED = ConnectorOption("sink.ordered-writes", parse_boolean, True, "Whether writes behind one that failed are left.")
ORDERED_SHORT = ConnectorOption("ordered-writes", parse_boolean, True, "The same, as Flink's manual has it.")
BYPASS = ConnectorOption(
    "sink.bypass-document-validation", parse_boolean, False, "Whether rules of the collection are not looked at."
)

_OPTIONS: Final = OptionSet(
    required=(URI, DATABASE, COLLECTION),
    optional=(
        FETCH, NO_TIMEOUT, STRATEGY, PART_BYTES, SAMPLES, PART_RECORDS,
        LOOKUP_CACHE, EXPIRE_AFTER_ACCESS, EXPIRE_AFTER_WRITE, CACHE_MISSING_KEY, MAX_ROWS, LOOKUP_RETRIES,
        LOOKUP_PAUSE_MS, FILTERS, FLUSH_ROWS, FLUSH_MS, SINK_RETRIES, SINK_PAUSE_MS, GUARANTEE, ORDERED, ORDERED_SHORT,
        BYPASS, SINK_PARALLELISM,
    ),
)  # fmt: skip


def options_of(table: TableSpec) -> OptionSet:
    """All of them, whatever the table."""
    return _OPTIONS


def checked(table: TableSpec) -> OptionValues:
    """The options of a table.

    Raises:
        BindError: one is unknown or unreadable, or has no effect.
    """
    values = _OPTIONS.check(table)
    strategy = values.get(STRATEGY)
    if values.has(SAMPLES) and strategy not in ("sample", "default"):
        raise _without_effect(SAMPLES, strategy)
    if values.has(PART_RECORDS) != (strategy == "pagination"):
        if strategy != "pagination":
            raise _without_effect(PART_RECORDS, strategy)
        raise BindError(
            "missing-option",
            f"'{STRATEGY.key}' = 'pagination' needs '{PART_RECORDS.key}': how many documents a part has.",
        )
    return values


def _without_effect(option: ConnectorOption[int] | ConnectorOption[int | None], strategy: str) -> BindError:
    return BindError("invalid-option-value", f"'{option.key}' has no effect with '{STRATEGY.key}' = '{strategy}'.")
