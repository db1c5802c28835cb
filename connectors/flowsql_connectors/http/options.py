"""Options of ``http`` tables: of requests, of scans, of lookups, of sinks."""

from __future__ import annotations

import re
from typing import Any, Final

from flowsql_connectors.messages.lookup import LOOKUP_OPTIONS
from flowsql_connectors.messages.sink import SINK_OPTIONS
from flowsql_connectors.messages.source import SOURCE_OPTIONS
from flowsql_connectors.messages.web import LOGIN_OPTIONS, check_login
from flowsql_connectors.options import (
    ConnectorOption,
    OptionSet,
    OptionValues,
    optional,
    parse_boolean,
    parse_choice,
    parse_natural,
    parse_positive,
)
from flowsql_core.config import parse_duration_ms
from flowsql_core.errors import BindError
from flowsql_core.graph.specs import TableSpec

_NAME: Final = re.compile(r"\{([^{}]+)\}")


def _url(text: str) -> str:
    if not text.startswith(("http://", "https://")):
        raise ValueError("expected an address that begins with http:// or https://")
    return text


def _codes(text: str) -> frozenset[int]:
    return frozenset(int(part) for part in text.split(",") if part.strip())


URL = ConnectorOption("url", _url, "", "Where to ask or send to; of lookups {column} stands for the column's value.")
CONNECT_MS = ConnectorOption(
    "connection.timeout", parse_duration_ms, 10_000, "How long to wait until the server takes the connection."
)
REQUEST_MS = ConnectorOption("request.timeout", parse_duration_ms, 30_000, "How long to wait for an answer.")
PROXY: ConnectorOption[str | None] = ConnectorOption(
    "proxy", optional(_url), None, "The proxy that requests go through, http://user:password@host:port."
)
RESPONSE_PATH: ConnectorOption[tuple[str, ...]] = ConnectorOption(
    "response-path",
    lambda text: tuple(part for part in text.split(".") if part),
    (),
    "Names, with '.' between them, that lead to the records in a JSON answer: data.items.",
)

INTERVAL_MS: ConnectorOption[int | None] = ConnectorOption(
    "scan.interval", optional(parse_duration_ms), None, "How long to wait between polls; without it there is one."
)
METHOD = ConnectorOption("scan.method", parse_choice("GET", "POST"), "GET", "How to ask.")
BODY: ConnectorOption[str | None] = ConnectorOption("scan.body", optional(str), None, "What POST sends.")
RECORDS: ConnectorOption[str | None] = ConnectorOption(
    "scan.records",
    optional(parse_choice("body", "lines")),
    None,
    "Whether an answer is one message or each of its lines; by default lines of csv and of newline-delimited JSON.",
)
CONDITIONAL = ConnectorOption(
    "scan.skip-unchanged",
    parse_boolean,
    False,
    "Polls send the ETag and date of the last answer; what the server says is unchanged gives no rows.",
)
PAGINATION = ConnectorOption(
    "scan.pagination",
    parse_choice("none", "page", "cursor", "link"),
    "none",
    "How to ask for more: by the number of the page, by what the answer holds, or by its Link header.",
)
PAGE_PARAMETER = ConnectorOption("scan.page.parameter", str, "page", "The parameter of the page's number.")
PAGE_FIRST = ConnectorOption("scan.page.first", parse_natural, 1, "The number of the first page.")
CURSOR_PATH: ConnectorOption[tuple[str, ...]] = ConnectorOption(
    "scan.cursor.path", RESPONSE_PATH.parse, (), "Names that lead to the next page's cursor in an answer."
)
CURSOR_PARAMETER = ConnectorOption("scan.cursor.parameter", str, "cursor", "The parameter that the cursor is sent as.")
CURSOR_KEPT = ConnectorOption(
    "scan.cursor.continue",
    parse_boolean,
    False,
    "The next poll goes on behind the last cursor, for servers that give what is new; else it begins anew.",
)

LOOKUP_METHOD = ConnectorOption(
    "lookup-method", parse_choice("GET", "POST", "PUT"), "GET", "How lookups ask: keys are parameters, or JSON."
)
BATCH_SIZE = ConnectorOption(
    "lookup.batch-size", parse_positive, 1, "Keys of a request; the answer's records then hold their keys."
)
CONCURRENCY = ConnectorOption("lookup.concurrency", parse_positive, 8, "Requests of a subtask at a time.")
IGNORED_CODES: ConnectorOption[frozenset[int]] = ConnectorOption(
    "lookup.ignored-response-codes", _codes, frozenset({404}), "Answers that mean: there is no row of the key."
)

INSERT_METHOD = ConnectorOption("insert-method", parse_choice("POST", "PUT"), "POST", "How rows are sent.")
REQUEST_MODE = ConnectorOption(
    "sink.request-mode", parse_choice("batch", "single"), "batch", "Whether a request holds many rows, or one."
)
BATCH_MAX = ConnectorOption("sink.batch.max-size", parse_positive, 500, "Rows of a request.")
IDEMPOTENCY = ConnectorOption(
    "sink.idempotency-header",
    str,
    "Idempotency-Key",
    "The header by which a server knows a request that is sent again; empty: none.",
)

HTTP_OPTIONS: Final = (
    OptionSet(
        required=(URL,),
        optional=(
            *LOGIN_OPTIONS, PROXY, CONNECT_MS, REQUEST_MS, RESPONSE_PATH,
            INTERVAL_MS, METHOD, BODY, RECORDS, CONDITIONAL, PAGINATION, PAGE_PARAMETER, PAGE_FIRST,
            CURSOR_PATH, CURSOR_PARAMETER, CURSOR_KEPT,
            LOOKUP_METHOD, BATCH_SIZE, CONCURRENCY, IGNORED_CODES, *LOOKUP_OPTIONS,
            INSERT_METHOD, REQUEST_MODE, BATCH_MAX, IDEMPOTENCY,
        ),
    )
    .merged(SOURCE_OPTIONS)
    .merged(SINK_OPTIONS)
)  # fmt: skip

#: Options that stand for nothing without others: which, and what they need.
_NEEDS: Final[tuple[tuple[ConnectorOption[Any], ConnectorOption[Any], tuple[object, ...], str], ...]] = (
    (PAGE_PARAMETER, PAGINATION, ("page",), "'scan.pagination' = 'page'"),
    (PAGE_FIRST, PAGINATION, ("page",), "'scan.pagination' = 'page'"),
    (CURSOR_PATH, PAGINATION, ("cursor",), "'scan.pagination' = 'cursor'"),
    (CURSOR_PARAMETER, PAGINATION, ("cursor",), "'scan.pagination' = 'cursor'"),
    (CURSOR_KEPT, PAGINATION, ("cursor",), "'scan.pagination' = 'cursor'"),
    (BODY, METHOD, ("POST",), "'scan.method' = 'POST'"),
    (BATCH_MAX, REQUEST_MODE, ("batch",), "'sink.request-mode' = 'batch'"),
)


def check(table: TableSpec, values: OptionValues) -> None:
    """Refuse options that do not fit together.

    Raises:
        BindError: with what would be right.
    """
    for option, other, wanted, text in _NEEDS:
        if values.has(option) and values.get(other) not in wanted:
            raise BindError("invalid-option-value", f"'{option.key}' has no meaning without {text}.")
    if values.get(PAGINATION) == "cursor" and not values.get(CURSOR_PATH):
        raise BindError(
            "missing-option",
            f"'{PAGINATION.key}' = 'cursor' needs '{CURSOR_PATH.key}'.",
            hint=f"'{CURSOR_PATH.key}': {CURSOR_PATH.doc}",
        )
    for option in (CURSOR_KEPT, CONDITIONAL):
        if values.get(option) and not values.has(INTERVAL_MS):
            raise BindError("invalid-option-value", f"'{option.key}' has no meaning without '{INTERVAL_MS.key}'.")
    if values.get(CONDITIONAL) and values.get(PAGINATION) != "none":
        raise BindError(
            "invalid-option-value", f"'{CONDITIONAL.key}' is of polls of one answer: leave '{PAGINATION.key}' out."
        )
    check_login(values)


def default_records(table: TableSpec) -> str | None:
    """What an answer of a table's format is made of; None: the answer's type says it."""
    return "lines" if table.option("format") == "csv" else None


def names_in(url: str) -> tuple[str, ...]:
    """The columns that an address names in braces."""
    return tuple(_NAME.findall(url))


def plain_url(table: TableSpec, values: OptionValues) -> str:
    """The address of scans and sinks.

    Raises:
        BindError: it has columns in it.
    """
    url = values.get(URL)
    columns = {column.name for column in table.columns}
    named = [name for name in names_in(url) if name in columns]
    if named:
        raise BindError(
            "invalid-option-value",
            f"'url' of '{table.name}' holds {{{named[0]}}}: such a table can only be looked up "
            "(JOIN ... FOR SYSTEM_TIME AS OF ...).",
        )
    return url


#: The only format whose values stand in JSON documents, with those that are changes of it.
JSON_FORMATS: Final = ("json", "debezium-json", "canal-json", "maxwell-json", "ogg-json")


def check_json(table: TableSpec, values: OptionValues) -> None:
    """Paths lead through JSON.

    Raises:
        BindError: the format is another one.
    """
    for option in (RESPONSE_PATH, CURSOR_PATH):
        if values.has(option) and table.option("format") not in JSON_FORMATS:
            raise BindError("invalid-option-value", f"'{option.key}' leads through JSON: the table's format is none.")
