"""Where the keys of a TOML text stand, which ``tomllib`` does not tell."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from typing import Any

from flowsql_core.errors import BindError, FlowSqlError
from flowsql_core.span import Source, Span

#: Keys from the outermost on.
Keys = tuple[str, ...]


def not_toml(source: Source, error: tomllib.TOMLDecodeError) -> FlowSqlError:
    """What the parser has to say, with its place."""
    message = str(error)
    found = re.search(r" \(at (?:line (\d+), column (\d+)|end of document)\)$", message)
    at = len(source.text)
    if found is not None:
        message = message[: found.start()]
        if found[1] is not None:
            lines = source.text.splitlines(keepends=True)
            at = sum(map(len, lines[: int(found[1]) - 1])) + int(found[2]) - 1
    return BindError("bad-project-file", f"This is not TOML: {message}", Span(at, at + 1)).within(source)


def key_places(text: str) -> dict[Keys, Span]:
    """The first place of each table and key of a text that is TOML."""
    found: dict[Keys, Span] = {}
    table: Keys = ()
    for start, piece in _pieces(text):
        form = tomllib.loads(piece)
        if piece.startswith("["):
            table = max(_paths(form), key=len)
            end = start + len(piece.splitlines()[0].rstrip())
            for depth in range(1, len(table) + 1):
                found.setdefault(table[:depth], Span(start, end))
            continue
        for path in _paths(form):
            at = max(piece.find(path[-1]), 0)
            found.setdefault(table + path, Span(start + at, start + at + len(path[-1])))
    return found


def _pieces(text: str) -> Iterator[tuple[int, str]]:
    """Headers of tables, and keys with their values, each with its offset."""
    start = offset = 0
    piece = ""
    for line in text.splitlines(keepends=True):
        if not piece:
            start = offset + len(line) - len(line.lstrip())
        piece += line
        offset += len(line)
        try:
            form = tomllib.loads(piece)
        except tomllib.TOMLDecodeError:
            continue  # its value goes on in the next line
        if form:
            yield start, piece.lstrip()
        piece = ""


def _paths(form: dict[str, Any], before: Keys = ()) -> Iterator[Keys]:
    for key, value in form.items():
        path = (*before, key)
        yield path
        inner = value[0] if isinstance(value, list) and value and isinstance(value[0], dict) else value
        if isinstance(inner, dict):
            yield from _paths(inner, path)
