"""Lookups: a request a key, some of them at a time, or a request for many keys."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any
from urllib.parse import quote

import pyarrow as pa

from flowsql_connectors.formats.registry import format_factory
from flowsql_connectors.http import options as of
from flowsql_connectors.http.answers import messages_of
from flowsql_connectors.http.client import Client, refusal, with_parameters
from flowsql_connectors.lookup.keyed_rows import KeyedRows
from flowsql_connectors.messages.lookup import LOOKUP_RETRIES, MessageLookup, retryable_pause_s
from flowsql_connectors.messages.source import MessageSource
from flowsql_connectors.messages.web import shown
from flowsql_connectors.options import OptionValues
from flowsql_connectors.spi.lookup import FoundRows, LookupContext
from flowsql_core.errors import BindError, ConnectorError
from flowsql_core.types.logical import Column


class HttpLookup(MessageLookup):
    """Asks for keys. The columns in the address stand there; others are parameters of GET, or the JSON object sent.

    Raises:
        BindError: the address holds a column that is no key of the join.
    """

    def __init__(self, source: MessageSource, values: OptionValues, context: LookupContext) -> None:
        super().__init__(source.format, source.scan, context)
        table = source.scan.table
        self._url = values.get(of.URL)
        self._in_url = of.names_in(self._url)
        for name in self._in_url:
            if name not in self.key_names:
                raise BindError(
                    "invalid-option-value",
                    f"'url' of '{table.name}' holds {{{name}}}, which the join does not give: its keys are "
                    f"{', '.join(self.key_names)}.",
                )
        self._others = [name for name in self.key_names if name not in self._in_url]
        self._batch = self.fewest_keys = values.get(of.BATCH_SIZE)
        if self._batch > 1 and self._in_url:
            raise BindError(
                "invalid-option-value",
                f"'{of.BATCH_SIZE.key}' asks for many keys in one request: the columns in 'url' name one.",
            )
        self._method = values.get(of.LOOKUP_METHOD)
        self._path = values.get(of.RESPONSE_PATH)
        self._lines = of.default_records(table)
        self._ignored = values.get(of.IGNORED_CODES)
        self._retries = values.get(LOOKUP_RETRIES)
        concurrency = values.get(of.CONCURRENCY)
        self._client = Client(table, values, concurrency)
        self._requests = ThreadPoolExecutor(concurrency, "http-lookup")
        self._closed = threading.Event()
        columns = tuple(Column(source.scan.output[key].name, source.scan.output[key].type) for key in context.keys)
        asked = replace(table, columns=columns, partition_keys=(), primary_key=())
        self._objects = format_factory("json").create(OptionValues({}), asked).message_encoder(columns)

    def find(self, keys: Sequence[Any]) -> FoundRows:
        """The rows of each key; of requests for many, found by the keys that they hold."""
        if self._batch == 1:
            return super().find(keys)
        objects = self._encoded(keys)
        parts = [objects[start : start + self._batch] for start in range(0, len(objects), self._batch)]
        messages = [message for answer in self._requests.map(self._answer, parts) for message in answer]
        columns, _ = self.decode(pa.array(messages, pa.binary()), lambda index: shown(self._url))
        places = self.key_places
        asked = [key.cast(columns[place].type) for place, key in zip(places, keys, strict=True)]
        return KeyedRows(columns, places).find(asked)

    def fetch(self, keys: Sequence[Any]) -> Sequence[Sequence[bytes | None]]:
        """A request a key."""
        return list(self._requests.map(self._answer, ([one] for one in self._encoded(keys))))

    def _encoded(self, keys: Sequence[Any]) -> list[bytes]:
        """Keys as JSON objects."""
        encoded: list[bytes] = self._objects.encode(tuple(keys), len(keys[0])).to_pylist()
        return encoded

    def _answer(self, objects: list[bytes]) -> list[bytes]:
        url, body = self._request(objects)
        headers = (
            {} if body is None or self._client.has_header("Content-Type") else {"Content-Type": "application/json"}
        )
        attempt = 0
        while True:
            try:
                answer = self._client.request(self._method, url, body, headers)
                if answer.status in self._ignored:
                    return []
                if not 200 <= answer.status < 300:
                    raise refusal(self._method, url, answer)
                return messages_of(answer, self._path, self._lines, url)
            except ConnectorError as error:
                pause_s = retryable_pause_s(error, attempt, self._retries)
                if pause_s is None or self._closed.wait(pause_s):
                    raise
                attempt += 1

    def _request(self, objects: list[bytes]) -> tuple[str, bytes | None]:
        """Address and body."""
        if self._method == "GET" or self._in_url:
            # Numbers keep their digits.
            given = [json.loads(text, parse_float=str, parse_int=str) for text in objects]
        url = self._url
        for name in self._in_url:
            url = url.replace(f"{{{name}}}", quote(_text(given[0][name]), safe=""))
        if self._method == "GET":
            return with_parameters(url, [(name, _text(one[name])) for one in given for name in self._others]), None
        return url, objects[0] if self._batch == 1 else b"[" + b",".join(objects) + b"]"

    def place(self, keys: Sequence[Any], number: int) -> str:
        """The key that was asked for."""
        asked = ", ".join(f"{name} = {key[number]}" for name, key in zip(self.key_names, keys, strict=True))
        return f"{shown(self._url)}, {asked}"

    def close(self) -> None:
        """Ask no more."""
        self._closed.set()
        self._requests.shutdown(wait=False, cancel_futures=True)
        self._client.close()


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else json.dumps(value)
