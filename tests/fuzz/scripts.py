"""Cases as text: what a failing case becomes in ``tests/regressions``, and how that is run again.

Blocks are separated by blank lines; lines that begin with ``#`` are comments:

``file NAME``   the lines below become a file; ``${DIR}`` in SQL stands for its folder
``statement``   a statement; ``statement streaming``, ``statement batch``: of one mode alone
``query``       a query
``run WAY``     a way to run the query (``Variation``) that must answer as the plain one; ``changes``: each change too
``answer``      the rows of the table, sorted, as Python writes them
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from .session import Answer, Session, folded, plain
from .variations import Variation
from .world import Finding


@dataclass
class Script:
    """A case as text."""

    files: dict[str, str] = field(default_factory=dict)
    statements: list[tuple[str, str]] = field(default_factory=list)
    query: str = ""
    ways: list[tuple[str, Variation]] = field(default_factory=list)
    answer: list[str] | None = None


def read(text: str) -> Script:
    """The blocks of a file."""
    script = Script()
    for block in text.split("\n\n"):
        lines = [line for line in block.splitlines() if not line.startswith("#")]
        if not any(lines):
            continue
        head, body = lines[0], "\n".join(lines[1:])
        word, _, rest = head.partition(" ")
        match word:
            case "file":
                script.files[rest] = body + "\n" if body else ""
            case "statement":
                script.statements.append((rest, body))
            case "query":
                script.query = body
            case "run" | "changes":
                script.ways.append((word, Variation.read(rest)))
            case "answer":
                script.answer = lines[1:]
            case _:
                raise ValueError(f"unknown block '{head}'")
    return script


def run(script: Script, folder: Path) -> None:
    """Run a script in all its ways.

    Raises:
        AssertionError: two answers differ.
    """
    for name, text in script.files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    session = Session(folder)
    batch = any(way.batch for _, way in script.ways)
    for mode, statement in script.statements:
        # What batch mode refuses may be in a view.
        if mode != "batch" or batch:
            session.execute(statement, mode or ("" if batch else "streaming"))
    base = session.changes(script.query, Variation())
    table = folded(base)
    if script.answer is not None:
        assert written(table) == script.answer
    for word, way in script.ways:
        found = session.changes(script.query, way)
        assert written(folded(found)) == written(table), str(way)
        if word == "changes":
            assert list(map(plain, found)) == list(map(plain, base)), str(way)


def written(answer: Answer) -> list[str]:
    """The rows of an answer, a line each."""
    return sorted(map(repr, answer.elements()))


def script_of(finding: Finding, answer: Answer | None) -> str:
    """A case as a file of ``tests/regressions``.

    Args:
        finding: the case.
        answer: what DuckDB says, or the plain way, where that is right.
    """
    case = finding.case
    query = case.query()
    blocks = [f"# {finding.fault.kind} (world {finding.seed}, query {finding.number})"]
    blocks += _comments(finding.fault.text)
    for table in case.tables:
        if table.name in query.tables:
            blocks += [f"file {name}\n{text}".rstrip("\n") for name, text in table.files().items()]
            blocks += [f"{f'statement {mode}'.strip()}\n{statement}" for mode, statement in table.definitions()]
    blocks += [f"statement\n{statement}" for statement in query.statements()]
    blocks.append(f"query\n{query.flink()}")
    word = "changes" if finding.fault.kind == "differs: changelog" else "run"
    batch = finding.fault.kind == "differs: batch"
    way = case.variation.in_batch() if batch else case.variation.in_streaming()
    blocks.append(f"{word} {way}")
    if answer is not None:
        blocks.append("\n".join(["answer", *written(answer)]))
    return "\n\n".join(blocks) + "\n"


def _comments(text: str) -> Iterable[str]:
    lines = [f"# {line}" for line in text.splitlines()[-12:]]
    return ["\n".join(lines)] if lines else []
