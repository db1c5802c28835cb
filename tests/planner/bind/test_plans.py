"""Runs the ``.test`` files of this folder: SQL to logical plan, schema, answer or error.

A file is a list of blocks apart by blank lines. ``setup`` runs statements. ``plan`` compares the dumped plan with what
stands below ``----``, ``schema`` the columns, ``rows`` the answer of SHOW or DESCRIBE. ``error CODE LINE:COLUMN``
compares code and place, and below ``----`` message and hint. ``FLOWSQL_UPDATE=1`` writes the answers instead.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from flowsql_core.errors import FlowSqlError
from flowsql_core.span import Source
from flowsql_grammar import parse_statement
from flowsql_planner.bind import operations as op
from tests.planner.bind.bind_script import Session, dump, schema_text

_FOLDER = Path(__file__).parent
_FILES = sorted(_FOLDER.glob("*.test"))
_UPDATE = os.environ.get("FLOWSQL_UPDATE") == "1"


@dataclass
class Block:
    comment: str
    head: str
    sql: str
    answer: str

    def text(self) -> str:
        answer = f"\n----\n{self.answer}" if self.answer else ""
        return f"{self.comment}{self.head}\n{self.sql}{answer}"


def _blocks(text: str) -> Iterator[Block]:
    for part in text.strip().split("\n\n"):
        lines = part.split("\n")
        start = next(i for i, line in enumerate(lines) if not line.startswith("#"))
        body, _, answer = "\n".join(lines[start + 1 :]).partition("\n----\n")
        yield Block("".join(line + "\n" for line in lines[:start]), lines[start], body, answer)


def _shown(operation: op.Operation, kind: str) -> str:
    match operation:
        case op.Query(rel) | op.Insert(rel):
            return dump(rel) if kind == "plan" else schema_text(rel.schema)
        case op.CreateTableAs(_, insert):
            return dump(insert.rel)
        case op.Rows(schema, rows):
            lines = [" | ".join(column.name for column in schema)]
            lines += [" | ".join("" if value is None else str(value) for value in row) for row in rows]
            return "\n".join(line.rstrip() for line in "\n".join(lines).rstrip().split("\n"))
    raise AssertionError(operation)


def _answer(session: Session, block: Block) -> tuple[str, str]:
    """Head line and answer that the binder gives."""
    kind = block.head.split()[0]
    source = Source(block.sql)
    try:
        operation = session.bind(source, parse_statement(source))
    except FlowSqlError as error:
        if kind != "error":
            return f"error {error.code}", error.within(source).render()
        line, column = source.position(error.at.start) if error.at is not None else (0, 0)
        hint = f"\nhint: {error.hint}" if error.hint else ""
        return f"error {error.code} {line}:{column}", error.message.replace("\n\n", "\n") + hint
    return ("plan", repr(operation)) if kind == "error" else (block.head, _shown(operation, kind))


@pytest.mark.parametrize("path", _FILES, ids=lambda path: path.stem)
def test_binding(path: Path) -> None:
    session = Session()
    blocks = list(_blocks(path.read_text()))
    wrong = []
    for block in blocks:
        if block.head == "setup":
            list(session.run(block.sql))
            continue
        head, answer = _answer(session, block)
        if _UPDATE:
            block.head, block.answer = head, answer
        elif (head, answer) != (block.head, block.answer):
            wrong.append(f"{block.head}\n{block.sql}\n---- expected\n{block.answer}\n---- got {head}\n{answer}")
    if _UPDATE:
        path.write_text("\n\n".join(block.text() for block in blocks) + "\n")
    assert not wrong, "\n\n".join(wrong)


def test_there_are_files() -> None:
    assert len(_FILES) >= 5
