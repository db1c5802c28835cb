"""Files of tests: SQL with the steps of each test between its statements. See ``docs/testing.md``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from flowsql_core.errors import ParseError
from flowsql_core.record import record
from flowsql_core.span import Source, Span
from flowsql_grammar.script import first_statement

SUFFIX: Final = ".test.sql"

#: ``END`` alone ends a statement set.
_STEP: Final = re.compile(r"(?i)(?:TEST|SCRIPT|GIVEN|ADVANCE|EXPECT|END\s+INPUT)\b")
_BLANK: Final = re.compile(r"(?:\s+|--[^\n]*|/\*(?!\+)(?s:.)*?\*/)*")
_NAME: Final = r"(?P<name>(?:`(?:[^`]|``)+`|[\w$]+)(?:\.(?:`(?:[^`]|``)+`|[\w$]+))*)"
_TEXT: Final = r"'(?P<text>(?:[^']|'')*)'"
_ROW: Final = re.compile(r"[ \t]*\|.*")
_PAIR: Final = re.compile(r"'((?:[^']|'')*)'\s*=\s*'((?:[^']|'')*)'")

#: The forms of steps; ``rows``: a table of rows may follow in place of ``;``.
_FORMS: Final = {
    "test": rf"TEST\s+{_TEXT}",
    "script": rf"SCRIPT\s+{_TEXT}(?:\s+WITH\s*\((?P<pairs>.*)\))?",
    "script-project": r"SCRIPT\s+PROJECT",
    "script-nodes": r"SCRIPT\s+NODES?\s+(?P<columns>.+)",
    "given-values": rf"GIVEN\s+{_NAME}\s*(?:\((?P<columns>[^)]*)\)\s*)?(?P<values>VALUES\b.*)",
    "given-file": rf"GIVEN\s+{_NAME}\s+FROM\s+{_TEXT}",
    "given-table": rf"GIVEN\s+{_NAME}\s+FROM\s+TABLE",
    "given-nothing": rf"GIVEN\s+{_NAME}\s+NOTHING",
    "given": rf"GIVEN\s+{_NAME}",
    "advance-watermark": rf"ADVANCE\s+WATERMARK\s+FOR\s+{_NAME}\s+TO\s+(?P<value>.+)",
    "advance-by": r"ADVANCE\s+TIME\s+BY\s+(?P<value>.+)",
    "advance-to": r"ADVANCE\s+TIME\s+TO\s+(?P<value>.+)",
    "end-input": rf"END\s+INPUT(?:\s+OF\s+{_NAME})?",
    "expect-error": rf"EXPECT\s+ERROR\s+{_TEXT}",
    "expect-changes-nothing": rf"EXPECT\s+CHANGES\s+OF\s+{_NAME}\s+NOTHING",
    "expect-changes-file": rf"EXPECT\s+CHANGES\s+OF\s+{_NAME}\s+FROM\s+{_TEXT}",
    "expect-changes": rf"EXPECT\s+CHANGES\s+OF\s+{_NAME}",
    "expect-nothing": rf"EXPECT\s+{_NAME}\s+NOTHING",
    "expect-file": rf"EXPECT\s+{_NAME}\s+FROM\s+{_TEXT}",
    "expect-values": rf"EXPECT\s+{_NAME}\s*(?:\((?P<columns>[^)]*)\)\s*)?(?P<values>VALUES\b.*)",
    "expect": rf"EXPECT\s+{_NAME}",
}
_COMPILED: Final = {kind: re.compile(rf"(?is)\s*{form}\s*") for kind, form in _FORMS.items()}
#: Forms that a table of rows follows.
_WITH_ROWS: Final = frozenset({"given", "expect", "expect-changes"})


@record
class Cells:
    """A table of rows as it stands in the file: names, then a row a line. ``span``: all of it."""

    names: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    span: Span


@record
class Step:
    """One step of a test. ``kind`` is a key of the forms above; what a form has not is empty."""

    kind: str
    span: Span
    name: str = ""
    text: str = ""
    value: str = ""
    columns: tuple[str, ...] = ()
    pairs: tuple[tuple[str, str], ...] = ()
    cells: Cells | None = None


@dataclass
class Case:
    """One test: its name, and its steps and statements (as spans of the text) in their order."""

    name: str
    span: Span
    steps: list[Step | Span] = field(default_factory=list)


@record
class TestFile:
    """A file: what stands in front of the first test belongs to each of them.

    ``folder``: where paths in it begin; absolute.
    """

    __test__ = False

    source: Source
    before: tuple[Step | Span, ...]
    cases: tuple[Case, ...]
    folder: Path


def read_file(path: Path) -> TestFile:
    """The tests of a file.

    Raises:
        ParseError: a step that is none, with its place.
        OSError, UnicodeDecodeError: the file cannot be read.
    """
    text = path.read_bytes().decode("utf-8-sig").replace("\r\n", "\n")
    return parse_tests(Source(text, str(path)))


def parse_tests(source: Source) -> TestFile:
    """The tests of a text; see :func:`read_file`."""
    before: list[Step | Span] = []
    cases: list[Case] = []
    for part in _parts(source):
        if isinstance(part, Step) and part.kind == "test":
            cases.append(Case(part.text, part.span))
        else:
            (cases[-1].steps if cases else before).append(part)
    if not cases:
        raise ParseError(
            "no-test", "There is no test in this file.", Span(0, 0), "TEST 'what it is about'; begins one"
        ).within(source)
    return TestFile(source, tuple(before), tuple(cases), Path(source.name).absolute().parent)


def _parts(source: Source) -> Iterator[Step | Span]:
    """Steps, and spans of SQL statements, in order."""
    text, place = source.text, 0
    while True:
        found = _BLANK.match(text, place)
        place = place if found is None else found.end()
        if place >= len(text):
            return
        if text[place] == ";":
            place += 1
            continue
        if _STEP.match(text, place) is not None:
            step, place = _step(source, place)
            yield step
            continue
        span = first_statement(source, place)
        yield span
        place = span.end


def _step(source: Source, start: int) -> tuple[Step, int]:
    """The step that begins at a place, and where it ends."""
    text = source.text
    line_end = text.find("\n", start)
    line_end = len(text) if line_end < 0 else line_end
    first = text[start:line_end]
    table = _ROW.match(text, line_end + 1) if not first.rstrip().endswith(";") else None
    if table is not None:
        head = first.split("--", 1)[0]
        cells, end = _cells(source, line_end + 1)
    else:
        end = first_statement(source, start).end
        head, cells = text[start:end], None
    for kind, form in _COMPILED.items():
        found = form.fullmatch(head)
        if found is not None and (kind in _WITH_ROWS) == (cells is not None):
            return _made(kind, found, cells, Span(start, end)), end
    word = head.split(None, 1)[0].upper()
    known = "; ".join(_shown(kind) for kind in _FORMS if kind.split("-")[0] == word.lower() or kind == word.lower())
    raise ParseError(
        "bad-step",
        f"This is no step that begins with {word}.",
        Span(start, start + len(head.rstrip())),
        f"e.g. {known}",
    ).within(source)


_SHOWN: Final = {
    "test": "TEST 'name'",
    "script": "SCRIPT 'job.sql' WITH ('day' = '2024-01-01')",
    "script-project": "SCRIPT PROJECT",
    "script-nodes": "SCRIPT NODE t",
    "given": "GIVEN t and below it a table '| a | b |'",
    "given-values": "GIVEN t VALUES (1, 'a')",
    "given-file": "GIVEN t FROM 'rows.csv'",
    "given-nothing": "GIVEN t NOTHING",
    "given-table": "GIVEN t FROM TABLE",
    "advance-by": "ADVANCE TIME BY INTERVAL '1' HOUR",
    "advance-to": "ADVANCE TIME TO TIMESTAMP '2024-01-01 00:00:00'",
    "advance-watermark": "ADVANCE WATERMARK FOR t TO TIMESTAMP '2024-01-01 00:00:00'",
    "end-input": "END INPUT",
    "expect": "EXPECT t and below it a table '| a | b |'",
    "expect-changes": "EXPECT CHANGES OF t and below it a table '| op | a |'",
    "expect-nothing": "EXPECT t NOTHING",
    "expect-error": "EXPECT ERROR 'text'",
}


def _shown(kind: str) -> str:
    return _SHOWN.get(kind, "EXPECT t FROM 'rows.csv'")


def _made(kind: str, found: re.Match[str], cells: Cells | None, span: Span) -> Step:
    groups = found.groupdict()
    value = groups.get("value") or groups.get("values") or ""
    columns = tuple(name.strip().strip("`") for name in (groups.get("columns") or "").split(",") if name.strip())
    pairs = tuple((_plain(key), _plain(text)) for key, text in _PAIR.findall(groups.get("pairs") or ""))
    return Step(
        kind, span, groups.get("name") or "", _plain(groups.get("text") or ""), value.strip(), columns, pairs, cells
    )


def _cells(source: Source, start: int) -> tuple[Cells, int]:
    """The table of rows at a place, and where it ends; lines that only draw a border are left out."""
    text, place = source.text, start
    rows: list[tuple[str, ...]] = []
    while (found := _ROW.match(text, place)) is not None:
        line = found.group().strip()
        if re.fullmatch(r"\|[-+:| ]*", line) is None or not rows:
            row = tuple(_unescaped(cell) for cell in re.split(r"(?<!\\)\|", line)[1:-1])
            if not line.endswith("|") or (rows and len(row) != len(rows[0])):
                span = Span(found.start(), found.end())
                wanted = f"{len(rows[0])} cells, as the names" if rows else "a cell for each column"
                raise ParseError("bad-row", "This row does not fit.", span, f"| ... | with {wanted}").within(source)
            rows.append(row)
        place = min(found.end() + 1, len(text))
        if found.end() >= len(text):
            break
    return Cells(rows[0], tuple(rows[1:]), Span(start, place)), place


def _unescaped(cell: str) -> str:
    return cell.strip().replace("\\|", "|").replace("\\\\", "\\")


def _plain(literal: str) -> str:
    return literal.replace("''", "'")
