"""Answers to messages: their records, of a body or of a part of it."""

from __future__ import annotations

from typing import Final

from flowsql_connectors.http.client import Answer
from flowsql_connectors.http.json_path import part_of
from flowsql_connectors.messages.web import shown
from flowsql_core.errors import ExecutionError

_LINE_TYPES: Final = ("application/x-ndjson", "application/jsonl", "application/jsonlines", "application/x-jsonlines")


def messages_of(answer: Answer, path: tuple[str, ...], records: str | None, url: str) -> list[bytes]:
    """The messages of an answer.

    Args:
        path: leads to the records in a JSON document.
        records: ``lines``: each is a message; ``body``: all is one; None: as the answer's type says.

    Raises:
        ExecutionError: the body is no JSON.
    """
    if not answer.body.strip():
        return []
    kind = answer.headers.get("content-type", "").partition(";")[0].strip().lower()
    if path:
        text = text_at(answer, path, url)
        return [] if text is None else [text.encode()]
    if records == "lines" or (records is None and kind in _LINE_TYPES):
        return [line.removesuffix(b"\r") for line in answer.body.split(b"\n") if line.strip()]
    return [answer.body]


def text_at(answer: Answer, path: tuple[str, ...], url: str) -> str | None:
    """The JSON text that a path leads to.

    Raises:
        ExecutionError: the body is no JSON.
    """
    try:
        return part_of(answer.body.decode("utf-8-sig"), path)
    except (ValueError, RecursionError) as error:
        raise ExecutionError("bad-answer", f"The answer of {shown(url)} is no JSON: {error}.") from error
