"""Polling: an answer, or all pages of one, now and then."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from typing import Any, ClassVar, Final
from urllib.parse import urljoin

import orjson

from flowsql_connectors.http import options as of
from flowsql_connectors.http.answers import messages_of, text_at
from flowsql_connectors.http.client import Answer, Client, refusal, with_parameters
from flowsql_connectors.messages.feed import Arrived, FeedContext, MessageFeed
from flowsql_connectors.messages.web import shown
from flowsql_connectors.options import OptionValues
from flowsql_core.errors import ExecutionError
from flowsql_core.graph.specs import TableSpec
from flowsql_core.types.logical import STRING, LogicalType, TimestampLtzType

METADATA: Final[Mapping[str, LogicalType]] = {
    "received-at": TimestampLtzType(precision=3, nullable=False),
    "url": STRING.as_nullable(False),
}
_NEXT: Final = re.compile(r'<([^>]*)>[^,]*;\s*rel="?next"?')
#: How long the feed sleeps at most in one call while a poll is not due.
_LONGEST_WAIT_S: Final = 0.1


class PollFeed(MessageFeed):
    """Asks for a page in each call of ``receive``.

    Of pages with cursors a position is ``[cursor of the page, messages of it that are done]``. Pages without may be
    others when they are asked for again, so that polls which were not through are made anew.
    """

    gathers: ClassVar[bool] = False

    def __init__(self, table: TableSpec, values: OptionValues, context: FeedContext) -> None:
        self._client = Client(table, values)
        self._values = values
        self._context = context
        self._url = of.plain_url(table, values)
        self._interval_ms = values.get(of.INTERVAL_MS)
        self._pagination = values.get(of.PAGINATION)
        self._lines = values.get(of.RECORDS) or of.default_records(table)
        self.replays = self._pagination == "cursor"
        body = values.get(of.BODY)
        self._body = None if body is None else body.encode()
        self._due = 0.0
        #: Whether a poll was through.
        self._polled = False
        #: The page to ask for: its number, cursor or address, None: the first one.
        self._page: Any = None
        self._skip = 0
        self._unchanged: dict[str, str] = {}

    def open(self, position: Any) -> None:
        """Connections are made by requests. Behind a failure the page is asked for again."""
        if position is not None:
            self._page, self._skip = position

    def receive(self, wait_s: float) -> Arrived | None:
        """The next page, once it is due.

        Raises:
            ConnectorError: the server cannot be asked, or refuses.
            ExecutionError: the answer is not what the table's options say.
        """
        left = self._due - time.monotonic()
        if left > 0:
            time.sleep(min(left, wait_s, _LONGEST_WAIT_S))
            return None
        url = self._address()
        method = self._values.get(of.METHOD)
        answer = self._client.request(method, url, self._body, self._sent())
        if answer.status == 304 and self._unchanged:
            self._wait()
            return None
        if answer.status in (429, 503) and (pause := answer.headers.get("retry-after", "")).isdigit():
            self._due = time.monotonic() + int(pause)
            return None
        if not 200 <= answer.status < 300:
            raise refusal(method, url, answer)
        return self._page_of(answer, url)

    def _address(self) -> str:
        match self._pagination:
            case "page":
                number = self._values.get(of.PAGE_FIRST) if self._page is None else self._page
                return with_parameters(self._url, [(self._values.get(of.PAGE_PARAMETER), number)])
            case "cursor" if self._page is not None:
                return with_parameters(self._url, [(self._values.get(of.CURSOR_PARAMETER), self._page)])
            case "link" if self._page is not None:
                return str(self._page)
        return self._url

    def _sent(self) -> dict[str, str]:
        sent = dict(self._unchanged)
        if self._body is not None and not self._client.has_header("Content-Type"):
            sent["Content-Type"] = "application/json"
        return sent

    def _page_of(self, answer: Answer, url: str) -> Arrived | None:
        messages = messages_of(answer, self._values.get(of.RESPONSE_PATH), self._lines, url)
        page, skip, self._skip = self._page, self._skip, 0
        self._page, is_last = self._following(answer, messages, url)
        if self._values.get(of.CONDITIONAL):
            told = (("etag", "If-None-Match"), ("last-modified", "If-Modified-Since"))
            self._unchanged = {sent: answer.headers[name] for name, sent in told if name in answer.headers}
        positions: list[Any] | None = None
        if self.replays:
            positions = [[page, number] for number in range(1, len(messages))]
            positions += [[self._page, 0]] * min(1, len(messages))
            positions = positions[skip:]
        taken = messages[skip:]
        now_ms = self._context.clock.now_ms()
        metadata: dict[str, list[Any]] = {"received-at": [now_ms] * len(taken), "url": [shown(url)] * len(taken)}
        if is_last and self._interval_ms is None:
            return Arrived(taken, metadata, positions, ends=True)
        if is_last:
            self._wait()
        return Arrived(taken, metadata, positions) if taken else None

    def _wait(self) -> None:
        """The next poll is due in a while."""
        assert self._interval_ms is not None
        self._polled = True
        self._due = time.monotonic() + self._interval_ms / 1000

    def _following(self, answer: Answer, messages: list[bytes], url: str) -> tuple[Any, bool]:
        """What is asked for behind this page, None: the first one; whether the poll is through."""
        found: Any = None
        match self._pagination:
            case "page" if not _is_empty(messages):
                found = (self._values.get(of.PAGE_FIRST) if self._page is None else self._page) + 1
            case "link":
                link = _NEXT.search(answer.headers.get("link", ""))
                found = None if link is None else urljoin(url, link[1])
            case "cursor":
                text = text_at(answer, self._values.get(of.CURSOR_PATH), url) if answer.body.strip() else None
                found = None if text is None else orjson.loads(text)
                found = None if found in ("", False) else found
        if self._values.get(of.CURSOR_KEPT):
            if found is None:
                path = self._values.get(of.CURSOR_PATH)
                raise ExecutionError(
                    "bad-answer",
                    f"The answer of {shown(url)} has no cursor at '{'.'.join(path)}': '{of.CURSOR_KEPT.key}' needs one "
                    "in each.",
                )
            return found, _is_empty(messages) or found == self._page
        return (None, True) if found is None or found == self._page else (found, False)

    def caught_up(self) -> bool:
        """Behind the first poll."""
        return self._polled

    def place(self, number: int) -> str:
        """Which answer."""
        return f"{shown(self._url)}, message {number + 1}"

    def close(self) -> None:
        """Close the connection."""
        self._client.close()


def _is_empty(messages: list[bytes]) -> bool:
    """Whether a page has no records: no bytes, or an empty list."""
    return all(len(message) < 100 and b"".join(message.split()) == b"[]" for message in messages)
