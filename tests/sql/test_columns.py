"""What Flink answered to expressions over columns of several rows: ``columns/*.txt``, nothing of which can be folded.

A line ``!from`` gives the rows; below it each expression stands above its answer: ``TYPE = [values]``, the values as
the conformance suite encodes them, in the order of their texts, or ``error``.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from flowsql.table.session.environment import TableEnvironment
from flowsql_compute.eval.text.render import Notation, render_column
from flowsql_core.errors import FlowSqlError

FILES = sorted((Path(__file__).parent / "columns").glob("*.txt"))
#: Expressions of one query.
TOGETHER = 40


@dataclass(frozen=True)
class Asked:
    """One expression over rows, and Flink's answer."""

    rows: str
    expression: str
    answer: str


def read(path: Path) -> Iterator[Asked]:
    rows, expression = "", ""
    for line in path.read_text(encoding="utf-8").split("\n"):
        if line.startswith("!from "):
            rows = line[6:]
        elif line.startswith("    "):
            yield Asked(rows, expression, line.strip())
        elif line and not line.startswith("#"):
            expression = line


def answers(environment: TableEnvironment, rows: str, expressions: list[str]) -> list[str]:
    """``TYPE = [values]`` of each expression, all in one query."""
    items = ", ".join(f"{expression} AS c{place}" for place, expression in enumerate(expressions))
    result = environment.execute_sql(f"SELECT {items} FROM {rows}")
    columns: list[list[Any]] = [[] for _ in expressions]
    for batch in result.batches():
        for column, data, declared in zip(columns, batch.columns, result.schema, strict=True):
            column += [None if text is None else json.loads(text) for text in _texts(data, declared.type)]
    return [f"{declared.type} = {in_order(column)}" for declared, column in zip(result.schema, columns, strict=True)]


def _texts(data: Any, type_: Any) -> list[str | None]:
    made: list[str | None] = render_column(data, type_, Notation.JSON).to_pylist()
    return made


def in_order(values: list[Any]) -> str:
    texts = sorted(json.dumps(value, ensure_ascii=False) for value in values)
    return f"[{', '.join(texts)}]"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_answers_are_flinks(path: Path) -> None:
    environment = TableEnvironment.create()
    environment.get_config().set("parallelism.default", "1").set("table.local-time-zone", "UTC")
    wrong = []
    for rows, group in itertools.groupby(read(path), key=lambda asked: asked.rows):
        cases = list(group)
        valid = [case for case in cases if case.answer != "error"]
        for start in range(0, len(valid), TOGETHER):
            part = valid[start : start + TOGETHER]
            given = answers(environment, rows, [case.expression for case in part])
            wrong += [
                f"{c.expression}: {one}, not {c.answer}" for c, one in zip(part, given, strict=True) if one != c.answer
            ]
        for case in cases:
            if case.answer != "error":
                continue
            try:
                found = answers(environment, rows, [case.expression])
            except FlowSqlError:
                continue
            wrong.append(f"{case.expression}: {found[0]}, not an error")
    assert not wrong, "\n".join(wrong)
