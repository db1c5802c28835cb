"""INSERT INTO indexes: documents wait a little, and go in bulk requests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

import numpy as np
import orjson
import pyarrow as pa

from flowsql_connectors.elasticsearch.client import connect, told
from flowsql_connectors.elasticsearch.documents import DocumentEncoder, body_of, requests
from flowsql_connectors.elasticsearch.index import index_template
from flowsql_connectors.elasticsearch.options import (
    FAILURES,
    FLUSH_ON_CHECKPOINT,
    GUARANTEE,
    INDEX,
    INTERVAL_MS,
    MAX_ACTIONS,
    MAX_BYTES,
    backoff_of,
    checked,
    options_of,
)
from flowsql_connectors.messages.outlet import MessageOutlet, Outgoing
from flowsql_connectors.messages.sink import Flushing, MessageSinkFactory
from flowsql_connectors.options import OptionSet, OptionValues
from flowsql_connectors.services.changes import last_of_rows
from flowsql_connectors.spi.counters import BYTES_SENT, ROWS_SKIPPED
from flowsql_connectors.spi.sink import WriterContext
from flowsql_core.errors import ConnectorError
from flowsql_core.graph.specs import SinkSpec, TableSpec

#: What a server says that has no room for a document right now.
_REJECTED: Final = 429
_ZONE: Final = "table.local-time-zone"


class ElasticsearchSinkFactory(MessageSinkFactory):
    """Makes sinks that add documents, or with a primary key update and delete them by it."""

    identifier = "elasticsearch-7"
    formats: ClassVar[bool] = False
    upserts: ClassVar[bool] = True

    def options(self, table: TableSpec) -> OptionSet:
        """Flink's, and those of the format."""
        return options_of(table)

    def check(self, sink: SinkSpec, values: OptionValues) -> None:
        """Rows have an index, an id and a form."""
        checked(sink.table)
        _documents(sink.table, values, {})

    def flushing(self, values: OptionValues) -> Flushing:
        """By ``sink.bulk-flush.*``."""
        waits = values.get(GUARANTEE) != "none" and values.get(FLUSH_ON_CHECKPOINT)
        rows, interval_ms, size = values.get(MAX_ACTIONS), values.get(INTERVAL_MS), values.get(MAX_BYTES)
        return Flushing(rows, interval_ms, backoff_of(values), size, waits)

    def outlet(self, sink: SinkSpec, values: OptionValues, context: WriterContext) -> MessageOutlet:
        """A connection of its own."""
        return ElasticsearchOutlet(sink.table, values, context)


def _documents(table: TableSpec, values: OptionValues, configuration: Mapping[str, str]) -> DocumentEncoder:
    index = index_template(table, values.get(INDEX), configuration.get(_ZONE, "UTC"))
    return DocumentEncoder(table, index, values, configuration)


class ElasticsearchOutlet(MessageOutlet):
    """Writes the rows of one subtask."""

    def __init__(self, table: TableSpec, values: OptionValues, context: WriterContext) -> None:
        self._identifier = table.option("connector") or ElasticsearchSinkFactory.identifier
        self._documents = _documents(table, values, context.configuration)
        self._values = values
        self._context = context
        self._client: Any = None
        #: The rows that are being sent, and the requests that are left of them: what arrived is not sent again.
        self._sending: Outgoing | None = None
        self._left: list[Any] = []

    def open(self) -> None:
        """A client, which connects when it is first asked."""
        self._client = connect(self._identifier, self._values)

    def send(self, rows: Outgoing) -> None:
        """Bulk requests one behind another."""
        if self._sending is not rows:
            last = last_of_rows(rows.columns, rows.kinds, self._documents.keys)
            lines = self._documents.lines(last.columns, last.rows, last.gone, self._context.clock.now_ms())
            self._left = list(requests(lines, self._values.get(MAX_ACTIONS), self._values.get(MAX_BYTES)))
            self._sending = rows
        while self._left:
            self._request(self._left[0])
            self._left.pop(0)
        self._sending = None

    def _request(self, lines: Any) -> None:
        body = body_of(lines)
        with told(self._identifier, self._values):
            answer = self._client.transport.perform_request(
                "POST",
                "/_bulk",
                params={"filter_path": "errors,items.*.status,items.*.error,items.*._index,items.*._id"},
                headers={"content-type": "application/x-ndjson"},
                body=body,
            )
        self._context.count(BYTES_SENT, len(body))
        if answer.get("errors"):
            self._failed(lines, [next(iter(item.values())) for item in answer["items"]])

    def _failed(self, lines: Any, items: list[dict[str, Any]]) -> None:
        """Some documents of a request were refused."""
        wrong = np.array([at for at, item in enumerate(items) if "error" in item])
        rejected = np.array([at for at in wrong if items[at]["status"] == _REJECTED], np.int64)
        if len(rejected) == len(wrong) and backoff_of(self._values).attempts:
            self._left[0] = lines.take(pa.array(rejected))
            raise self._refusal(items[wrong[0]], len(wrong), retryable=True)
        if self._values.get(FAILURES) == "ignore":
            self._context.count(ROWS_SKIPPED, len(wrong))
            return
        at = next(at for at in wrong if at not in rejected) if len(rejected) < len(wrong) else wrong[0]
        raise self._refusal(items[at], len(wrong), retryable=False)

    def _refusal(self, item: dict[str, Any], count: int, retryable: bool) -> ConnectorError:
        error = item["error"]
        reason = f"{error.get('type')}: {error.get('reason')}" if isinstance(error, dict) else str(error)
        cause = error.get("caused_by") if isinstance(error, dict) else None
        if cause:
            reason += f" ({cause.get('reason')})"
        document = orjson.dumps(item.get("_id")).decode() if item.get("_id") else "without an id"
        return ConnectorError(
            "document-refused",
            f"Index '{item.get('_index')}' refused {count} document{'s' if count > 1 else ''}, the first is "
            f"{document}: {reason.rstrip('.')}.",
            retryable=retryable,
        )

    def close(self) -> None:
        """End the connection."""
        client, self._client = self._client, None
        if client is not None:
            client.close()
