"""Posting rows, many in a request or one."""

from __future__ import annotations

import uuid
from typing import Any

from flowsql_connectors.http import options as of
from flowsql_connectors.http.client import Client
from flowsql_connectors.messages.outlet import MessageOutlet, Outgoing
from flowsql_connectors.options import OptionValues
from flowsql_core.graph.specs import TableSpec


class PostOutlet(MessageOutlet):
    """Sends requests; one that is sent again has the header of its first time."""

    def __init__(self, table: TableSpec, values: OptionValues) -> None:
        self._client = Client(table, values)
        self._url = of.plain_url(table, values)
        self._method = values.get(of.INSERT_METHOD)
        self._single = values.get(of.REQUEST_MODE) == "single"
        self._size = 1 if self._single else values.get(of.BATCH_MAX)
        self._header = values.get(of.IDEMPOTENCY)
        name = table.option("format") or ""
        self._json = name in of.JSON_FORMATS
        self._headers: dict[str, str] = {}
        if not self._client.has_header("Content-Type"):
            kind = "application/json" if self._json else "text/csv" if name == "csv" else "application/octet-stream"
            self._headers["Content-Type"] = kind
        #: Rows that are being sent, the requests of them that were taken, and the name of the next.
        self._rows: Outgoing | None = None
        self._taken = 0
        self._name = ""

    def open(self) -> None:
        """Connections are made by requests."""

    def send(self, rows: Outgoing) -> None:
        """Request by request; those that were taken are not sent again.

        Raises:
            ConnectorError: the server cannot be asked, or refuses.
        """
        if rows is not self._rows:
            self._rows, self._taken, self._name = rows, 0, ""
        assert rows.values is not None
        messages = [value for value in rows.values.to_pylist() if value is not None]
        for start in range(self._taken, len(messages), self._size):
            self._name = self._name or str(uuid.uuid4())
            body = self._body(messages[start : start + self._size])
            headers = {**self._headers, self._header: self._name} if self._header else self._headers
            self._client.checked(self._method, self._url, body, headers)
            self._taken, self._name = start + self._size, ""
        self._rows = None

    def _body(self, messages: list[Any]) -> bytes:
        if self._single:
            return bytes(messages[0])
        if self._json:
            return b"[" + b",".join(messages) + b"]"
        return b"".join(message + b"\n" for message in messages)

    def close(self) -> None:
        """Close the connection."""
        self._client.close()
