"""Runs the ``.test`` files of this folder: SQL to lineage, as text.

A file is a list of blocks apart by blank lines. ``setup`` runs definitions; ``lineage`` compares what the statement's
columns come from with what stands below ``----``, the default catalog and database left out. ``FLOWSQL_UPDATE=1``
writes the answers instead.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from flowsql_core.span import Source
from flowsql_grammar import parse_statement
from flowsql_planner.bind import operations as op
from flowsql_planner.lineage.flow import lineage_of
from flowsql_planner.lineage.text import lineage_text
from tests.planner.bind.bind_script import Session

_FOLDER = Path(__file__).parent
_FILES = sorted(_FOLDER.glob("*.test"))
_UPDATE = os.environ.get("FLOWSQL_UPDATE") == "1"


def shown(operation: op.Operation) -> str:
    match operation:
        case op.Query(rel) | op.Insert(rel) | op.CreateTableAs(insert=op.Insert(rel)):
            found = [lineage_of(rel)]
        case op.StatementSet(inserts):
            found = [lineage_of(insert.rel) for insert in inserts]
        case _:
            raise AssertionError(operation)
    # Blank lines part blocks.
    return lineage_text(found).replace("default_catalog.default_database.", "").replace("\n\n", "\n").rstrip("\n")


@pytest.mark.parametrize("path", _FILES, ids=lambda path: path.stem)
def test_lineage(path: Path) -> None:
    session = Session()
    answers, wrong = [], []
    for block in path.read_text().strip().split("\n\n"):
        head, _, expected = block.partition("\n----\n")
        lines = head.split("\n")
        start = next(place for place, line in enumerate(lines) if not line.startswith("#"))
        kind, sql = lines[start], "\n".join(lines[start + 1 :])
        if kind == "setup":
            list(session.run(sql))
            answers.append(block)
            continue
        assert kind == "lineage"
        source = Source(sql)
        answer = shown(session.bind(source, parse_statement(source)))
        answers.append(f"{head}\n----\n{answer}")
        if answer != expected:
            wrong.append(f"{sql}\n---- expected\n{expected}\n---- got\n{answer}")
    if _UPDATE:
        path.write_text("\n\n".join(answers) + "\n")
    else:
        assert not wrong, "\n\n".join(wrong)


def test_there_are_files() -> None:
    assert _FILES
