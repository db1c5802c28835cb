"""A part of a JSON document, as its text: numbers keep all their digits, and formats read it as they read messages."""

from __future__ import annotations

import json
from collections.abc import Sequence
from json.decoder import scanstring  # type: ignore[attr-defined]

from flowsql_connectors.messages.json_arrays import SCAN, blank


def part_of(text: str, path: Sequence[str]) -> str | None:
    """The text of the value that the names of a path lead to; None where there is none, or it is ``null``.

    Raises:
        ValueError: the text is no JSON as far as it was read.
    """
    at = blank(text, 0)
    for name in path:
        found = _member(text, at, name)
        if found is None:
            return None
        at = found
    _, end = SCAN.raw_decode(text, at)
    part = text[at:end]
    return None if part == "null" else part


def _member(text: str, at: int, name: str) -> int | None:
    """Where the value of a member of the object at a place begins."""
    if text[at : at + 1] != "{":
        SCAN.raw_decode(text, at)
        return None
    at = blank(text, at + 1)
    while text[at : at + 1] == '"':
        key, at = scanstring(text, at + 1, True)
        at = blank(text, at)
        if text[at : at + 1] != ":":
            raise json.JSONDecodeError("Expecting ':' delimiter", text, at)
        at = blank(text, at + 1)
        if key == name:
            return at
        _, at = SCAN.raw_decode(text, at)
        at = blank(text, at)
        if text[at : at + 1] != ",":
            break
        at = blank(text, at + 1)
    if text[at : at + 1] != "}":
        raise json.JSONDecodeError("Expecting ',' delimiter", text, at)
    return None
