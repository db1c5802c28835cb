"""Definitions, SHOW and mistakes as Flink 2.3.0 answers them: ``asked/*.txt`` holds its answers.

A file is a list of sessions, each begun by ``# name``. A statement stands on a line of its own, its answer indented
below: ``ok``; ``error`` and the first line of what Flink says; ``columns`` and ``row`` for each row, as JSON;
``printed`` for each line of a table that prints (the connector ``changelog`` prints what its ``mode`` says); or
``other`` for what FlowSQL answers otherwise on purpose (a Java function that it refuses), which is only run. ``${DIR}``
stands for a new folder, ``${DATA}`` for that of the inputs.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from flowsql.table.session.environment import TableEnvironment
from flowsql.table.table_result import AnswerKind
from flowsql_compute.eval.text.render import json_rows
from flowsql_core.errors import FlowSqlError

from .changelog_connector import install

FOLDER = Path(__file__).parent / "asked"
#: A report has fewer lines than these, but for lists of options.
MOST_LINES = 15


@dataclass
class Asked:
    """One statement and the lines of its answer."""

    statement: str
    answer: list[str] = field(default_factory=list)


def sessions() -> Iterator[tuple[str, list[Asked]]]:
    for file in sorted(FOLDER.glob("*.txt")):
        name, asked = "", list[Asked]()
        for line in file.read_text(encoding="utf-8").splitlines():
            if line.startswith("# "):
                if asked:
                    yield name, asked
                name, asked = f"{file.stem}-{line[2:]}", []
            elif line.startswith("    "):
                asked[-1].answer.append(line[4:])
            elif line:
                asked.append(Asked(line))
        yield name, asked


def answer_of(environment: TableEnvironment, statement: str) -> list[str]:
    """FlowSQL's answer in the form of the files."""
    printed = io.StringIO()
    try:
        with redirect_stdout(printed):
            result = environment.execute_sql(statement)
            result.wait()
        if result.kind in (AnswerKind.DONE, AnswerKind.CHANGE):
            return ["ok", *(f"printed {line}" for line in printed.getvalue().splitlines())]
        lines = ["columns " + json.dumps([[column.name, str(column.type)] for column in result.schema])]
        for batch in result.batches():
            rows = [json.loads(line)["row"] for line in json_rows(batch, result.schema).splitlines()]
            lines += ["row " + json.dumps(row, ensure_ascii=False) for row in rows]
        return lines
    except FlowSqlError as error:
        if len(error.render().splitlines()) >= MOST_LINES and "\n\n" not in error.message:
            return ["a report that is too long", *error.render().splitlines()]
        return [f"error {error.message.splitlines()[0]}"]


@pytest.mark.parametrize("asked", [pytest.param(asked, id=name) for name, asked in sessions()])
def test_statements_are_answered_as_flink_does(
    asked: list[Asked], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(monkeypatch)
    environment = TableEnvironment.create()
    environment.get_config().set("table.local-time-zone", "UTC")
    wrong = []
    for one in asked:
        statement = one.statement.replace("${DIR}", str(tmp_path)).replace("${DATA}", str(FOLDER / "data"))
        got = [line.replace(str(tmp_path), "${DIR}") for line in answer_of(environment, statement)]
        if one.answer != ["other"] and got != one.answer:
            wrong.append("\n  ".join([one.statement, "Flink:", *one.answer, "FlowSQL:", *got]))
    assert not wrong, "\n".join(wrong)


def test_sessions_are_found() -> None:
    assert len(list(sessions())) > 15
