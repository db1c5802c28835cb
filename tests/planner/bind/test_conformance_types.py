"""Binds the scripts of the conformance suite: columns of every query are Flink's, DESCRIBE and SHOW answer the same."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from flowsql_core.errors import FlowSqlError, NotSupportedYetError
from flowsql_core.span import Source
from flowsql_grammar import parse_statement, split_statements
from flowsql_planner.bind import operations as op
from tests.planner.bind.bind_script import Session

pytestmark = pytest.mark.shared

# The suite lies in a folder "shared" beside the checkout.
_CASES = Path(__file__).resolve().parents[4] / "shared" / "conformance" / "cases"
_COLLECTED = re.compile(r"\s*(select|with|values|explain|show|desc|describe|\(\s*select)\b", re.I)
_FILES = sorted(path for path in _CASES.glob("*/*.sql") if not path.name.endswith(".twin.sql"))


def _answers(path: Path) -> list[tuple[list[list[str]], list[list[object]], str | None]]:
    """Columns, rows and error of each collected statement."""
    answers: list[tuple[list[list[str]], list[list[object]], str | None]] = []
    for line in path.read_text().splitlines():
        entry = json.loads(line)
        if "columns" in entry:
            answers.append((entry["columns"], [], None))
        elif "op" in entry:
            answers[-1][1].append(entry["row"])
        else:
            answers.append(([], [], entry["error"]))
    return answers


@pytest.mark.skipif(not _FILES, reason="the conformance suite is not here")
@pytest.mark.parametrize("path", _FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_columns_are_flinks(path: Path) -> None:
    source = Source(path.read_text().replace("${DATA}", "/data"))
    expected = iter(_answers(path.with_suffix("").with_suffix(".expected.jsonl")))
    session = Session()
    if source.text.startswith("-- batch"):
        session.config.set("execution.runtime-mode", "batch")
    fails = "error" in path.with_suffix("").with_suffix(".expected.jsonl").read_text()
    try:
        for span in split_statements(source):
            operation = session.bind(source, parse_statement(source, span))
            if not _COLLECTED.match(source.text[span.start : span.end]):
                continue
            columns, rows, error = next(expected)
            if error is not None:
                return  # what is refused behind the binder
            if isinstance(operation, op.Query | op.Rows):
                assert [[column.name, str(column.type)] for column in operation.schema] == columns
            if isinstance(operation, op.Rows):
                assert [list(row) for row in operation.rows] == rows
    except NotSupportedYetError as error:
        pytest.skip(str(error))
    except FlowSqlError as error:
        if not fails:
            pytest.fail(error.within(source).render())
