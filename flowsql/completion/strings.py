"""What fits inside of quotes: keys and values of options, connectors, formats, files."""

from __future__ import annotations

import enum
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from flowsql.completion.candidate import Candidate
from flowsql.completion.cursor import Cursor
from flowsql_core.errors import FlowSqlError

if TYPE_CHECKING:
    from flowsql.table.session.environment import TableEnvironment


def strings_at(environment: TableEnvironment, cursor: Cursor) -> Iterator[Candidate]:
    """Texts that may stand in the string at the cursor."""
    first = cursor.before[0].text.upper() if cursor.before else ""
    previous = cursor.previous()
    if first == "SET":
        if previous == "=":
            yield from _begun(cursor, _values(_text(cursor.previous_text(2))), "value")
        elif previous == "SET":
            yield from _session_options(cursor)
    elif first == "RESET":
        yield from _begun(cursor, (key for key, _ in environment.configuration.items()), "set")
    elif previous in ("FROM", "JOIN", "FILE"):
        yield from _files(cursor)
    elif previous in ("(", ",", "="):
        yield from _table_options(cursor, previous == "=")
    elif previous == "JOB":
        from flowsql.jobs.watch import JOBS

        for info in JOBS.infos():
            if info.ended_ms is None and info.id.startswith(cursor.word):
                yield Candidate(info.id, cursor.start, info.id, info.name)


def _session_options(cursor: Cursor) -> Iterator[Candidate]:
    from flowsql.option_homes import OPTION_HOMES
    from flowsql.options.flink import flink_options

    known = flink_options()
    for key in sorted(OPTION_HOMES):
        if cursor.word in key:
            yield Candidate(key, cursor.start, key, known[key].meaning if key in known else "option of FlowSQL")


def _values(key: str) -> list[str]:
    """The values of an option, where they can be listed."""
    import importlib

    from flowsql.option_homes import OPTION_HOMES
    from flowsql.options.flink import find
    from flowsql_core.config import OPTIONS

    known = find(key)
    if known is not None and known.values:
        return list(known.values)
    if known is not None and known.kind == "boolean":
        return ["true", "false"]
    if key in OPTION_HOMES:
        importlib.import_module(OPTION_HOMES[key])
        default = OPTIONS[key].default
        if isinstance(default, bool):
            return ["true", "false"]
        if isinstance(default, enum.Enum):
            return [str(member.value) for member in type(default)]
    return []


def _table_options(cursor: Cursor, is_value: bool) -> Iterator[Candidate]:
    """Inside of WITH (...): keys that the connector and the format take, and what is known of values."""
    given = _given(cursor)
    if given is None:
        return
    if not is_value:
        yield from _begun(cursor, (key for key in _keys(given) if key not in given), "option")
        return
    match _text(cursor.previous_text(2)):
        case "connector":
            from flowsql_connectors import registry

            yield from _begun(cursor, registry.identifiers(), "connector")
        case "format":
            from flowsql_connectors.formats import registry as formats

            yield from _begun(cursor, formats.identifiers(), "format")
        case "path":
            yield from _files(cursor)


def _given(cursor: Cursor) -> dict[str, str] | None:
    """The options that stand in front of the cursor in its parentheses; None where these are not those of WITH."""
    place = len(cursor.before) - 1
    while place >= 0 and cursor.before[place].text != "(":
        place -= 1
    if place < 1 or cursor.before[place - 1].text.upper() not in ("WITH", "OPTIONS"):
        return None
    texts = [token.text for token in cursor.before[place + 1 :]]
    return {
        _text(key): _text(value)
        for key, equals, value in zip(texts, texts[1:], texts[2:], strict=False)
        if equals == "="
    }


def _keys(given: dict[str, str]) -> list[str]:
    """The keys of the connector and the format that are named."""
    from flowsql_connectors import registry
    from flowsql_core.graph.specs import TableSpec

    identifier = given.get("connector")
    if identifier is None:
        return ["connector"]
    table = TableSpec(("", "", ""), (), tuple(given.items()))
    found: set[str] = set()
    for factory in (registry.source_factory, registry.sink_factory):
        try:
            found.update(factory(identifier).options(table).keys())
        except FlowSqlError:
            continue
    return sorted(found - {"property-version"})


def _files(cursor: Cursor) -> Iterator[Candidate]:
    """Files and folders that begin with what stands there."""
    folder, name = os.path.split(cursor.word)
    try:
        entries = sorted(Path(folder or ".").expanduser().iterdir())
    except OSError:
        return
    for entry in entries:
        if entry.name.startswith(name) and (name or not entry.name.startswith(".")):
            shown = entry.name + ("/" if entry.is_dir() else "")
            yield Candidate(os.path.join(folder, shown), cursor.start, shown, "folder" if entry.is_dir() else "file")


def _begun(cursor: Cursor, texts: Iterable[str], detail: str) -> Iterator[Candidate]:
    lowered = cursor.word.lower()
    for text in texts:
        if text.lower().startswith(lowered):
            yield Candidate(text, cursor.start, text, detail)


def _text(literal: str) -> str:
    """The value of a string literal."""
    return literal[1:-1].replace("''", "'") if literal.startswith("'") else literal
