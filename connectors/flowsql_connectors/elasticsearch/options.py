"""WITH options of ``elasticsearch-7``, ``elasticsearch-8``, ``opensearch`` and ``opensearch-2`` tables: Flink's."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

from flowsql_connectors.formats.registry import format_factory
from flowsql_connectors.messages.backoff import Backoff
from flowsql_connectors.options import (
    SINK_PARALLELISM,
    ConnectorOption,
    OptionSet,
    OptionValues,
    optional,
    parse_boolean,
    parse_choice,
    parse_natural,
)
from flowsql_core.config import parse_duration_ms, parse_memory_bytes
from flowsql_core.errors import BindError
from flowsql_core.graph.specs import TableSpec


def _hosts(text: str) -> tuple[str, ...]:
    found = tuple(host.strip().rstrip("/") for host in text.split(";") if host.strip())
    for host in found:
        parts = urlsplit(host)
        if parts.scheme not in ("http", "https") or not parts.hostname or _port(host) is None:
            raise ValueError(
                f"Could not parse host '{host}' in option 'hosts'. It should follow the format 'http://host_name:port'."
            )
    if not found:
        raise ValueError("expected http://host_name:port, with ';' between several")
    return found


def _port(host: str) -> int | None:
    try:
        return urlsplit(host).port
    except ValueError:
        return None


def _guarantee(text: str) -> str:
    if text.strip().lower().replace("_", "-") == "exactly-once":
        raise ValueError("a bulk request is no transaction; expected 'at-least-once' or 'none'")
    return parse_choice("at-least-once", "none")(text.replace("_", "-"))


def _failures(text: str) -> str:
    if "." in text:
        raise ValueError("classes of Java are not run here; expected fail, ignore or retry-rejected")
    return parse_choice("fail", "ignore", "retry-rejected")(text)


HOSTS: ConnectorOption[tuple[str, ...]] = ConnectorOption(
    "hosts", _hosts, (), "Where the servers are: http://host:port;..."
)
INDEX = ConnectorOption("index", str, "", "The index; parts in braces come from the row: logs-{ts|yyyy-MM-dd}.")
KEY_DELIMITER = ConnectorOption("document-id.key-delimiter", str, "_", "Stands between the columns of a key in an id.")
USER: ConnectorOption[str | None] = ConnectorOption("username", optional(str), None, "Who writes.")
PASSWORD: ConnectorOption[str | None] = ConnectorOption("password", optional(str), None, "The password of 'username'.")
FORMAT = ConnectorOption("format", str, "json", "The format of documents, which must be JSON.")
GUARANTEE = ConnectorOption(
    "sink.delivery-guarantee", _guarantee, "at-least-once", "Whether a checkpoint waits until all documents are there."
)
FLUSH_ON_CHECKPOINT = ConnectorOption(
    "sink.flush-on-checkpoint", parse_boolean, True, "The same, as older versions of Flink's connector say it."
)
FAILURES = ConnectorOption(
    "failure-handler", _failures, "fail", "What a document that is refused does: fail, ignore, or retry-rejected."
)
MAX_ACTIONS = ConnectorOption(
    "sink.bulk-flush.max-actions", parse_natural, 1000, "Most documents of a request; 0: no matter how many."
)
MAX_BYTES = ConnectorOption(
    "sink.bulk-flush.max-size", parse_memory_bytes, 2 * 1024 * 1024, "Most bytes of a request; 0: no matter how many."
)
INTERVAL_MS = ConnectorOption(
    "sink.bulk-flush.interval", parse_duration_ms, 1000, "How long documents wait; 0: until a checkpoint."
)
BACKOFF = ConnectorOption(
    "sink.bulk-flush.backoff.strategy", parse_choice("DISABLED", "NONE", "CONSTANT", "EXPONENTIAL"), "DISABLED",
    "How long to wait before a request that failed for a time is sent again.",
)  # fmt: skip
BACKOFF_RETRIES = ConnectorOption(
    "sink.bulk-flush.backoff.max-retries", parse_natural, 8, "How often it is sent again."
)
BACKOFF_MS = ConnectorOption(
    "sink.bulk-flush.backoff.delay", parse_duration_ms, 50, "The pause before that, or the first of them."
)
PATH_PREFIX: ConnectorOption[str | None] = ConnectorOption(
    "connection.path-prefix", optional(str), None, "What stands before the path of every request: /v1."
)
CONNECT_MS: ConnectorOption[int | None] = ConnectorOption(
    "connection.timeout", optional(parse_duration_ms), None, "How long to wait for a connection; 10 s."
)
REQUEST_MS: ConnectorOption[int | None] = ConnectorOption(
    "connection.request-timeout", optional(parse_duration_ms), None,
    "The same where 'connection.timeout' is not given: no request waits for another one's connection.",
)  # fmt: skip
SOCKET_MS: ConnectorOption[int | None] = ConnectorOption(
    "socket.timeout", optional(parse_duration_ms), None, "How long to wait for an answer; 30 s."
)
INSECURE = ConnectorOption(
    "allow-insecure", parse_boolean, False, "Whether certificates of https hosts are not looked at."
)
SKIP_VERIFY = ConnectorOption("connection.skip-verify-ssl", parse_boolean, False, INSECURE.doc)

_COMMON: Final = (
    KEY_DELIMITER, USER, PASSWORD, FORMAT, GUARANTEE, FLUSH_ON_CHECKPOINT, FAILURES, MAX_ACTIONS, MAX_BYTES,
    INTERVAL_MS, BACKOFF, BACKOFF_RETRIES, BACKOFF_MS, PATH_PREFIX, CONNECT_MS, REQUEST_MS, SOCKET_MS, SINK_PARALLELISM,
)  # fmt: skip


def options_of(table: TableSpec) -> OptionSet:
    """The options of a table, with those of its format."""
    insecure = INSECURE if (table.option("connector") or "").startswith("opensearch") else SKIP_VERIFY
    own = OptionSet((HOSTS, INDEX), (*_COMMON, insecure))
    return own.merged(format_factory(table.option(FORMAT.key) or FORMAT.default).options())


def checked(table: TableSpec) -> OptionValues:
    """The options of a table.

    Raises:
        BindError: one is unknown or unreadable, or they do not fit together.
    """
    values = options_of(table).check(table)
    if not values.get(INDEX).strip():
        raise BindError("invalid-option-value", f"'{INDEX.key}' must not be empty")
    given = {True: "given", False: "missing"}
    if values.has(USER) != bool(values.get(PASSWORD)):
        raise BindError(
            "invalid-option-value",
            f"'{USER.key}' and '{PASSWORD.key}' must be set at the same time. Got: username "
            f"{given[values.has(USER)]} and password {given[bool(values.get(PASSWORD))]}",
        )
    retrying = values.get(BACKOFF) in ("CONSTANT", "EXPONENTIAL")
    for option in (BACKOFF_RETRIES, BACKOFF_MS):
        if values.has(option) and not retrying:
            raise BindError(
                "invalid-option-value",
                f"'{option.key}' has no effect without '{BACKOFF.key}' = 'CONSTANT' or 'EXPONENTIAL'.",
            )
    return values


def backoff_of(values: OptionValues) -> Backoff:
    """How often a request that failed for a time is sent again, and behind which pauses."""
    strategy = values.get(BACKOFF)
    if strategy not in ("CONSTANT", "EXPONENTIAL") and values.get(FAILURES) != "retry-rejected":
        return Backoff(attempts=0)
    delay = values.get(BACKOFF_MS)
    return Backoff(delay, delay << 16 if strategy == "EXPONENTIAL" else delay, values.get(BACKOFF_RETRIES))
