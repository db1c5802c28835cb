"""Queries of one line as Flink 2.3.0 answers them: ``queries/*.txt`` holds its answers.

A query stands above its answer: ``error`` where Flink refuses it or fails; else the columns as JSON, then each row of
the table that the changes make, as JSON in the order of the texts. Queries run at parallelism 1: some depend on the
order of their input.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from flowsql.table.session.environment import TableEnvironment
from flowsql_compute.eval.text.render import json_rows
from flowsql_core.errors import FlowSqlError

FILES = sorted((Path(__file__).parent / "queries").glob("*.txt"))


def asked(path: Path) -> list[tuple[str, list[str]]]:
    """Queries and the lines of their answers."""
    found: list[tuple[str, list[str]]] = []
    for line in path.read_text(encoding="utf-8").split("\n"):
        if line.startswith("    "):
            found[-1][1].append(line[4:])
        elif line and not line.startswith("#"):
            found.append((line, []))
    return found


def answer_of(environment: TableEnvironment, query: str) -> list[str]:
    """FlowSQL's answer in the form of the files."""
    try:
        result = environment.execute_sql(query)
        rows: Counter[str] = Counter()
        for batch in result.batches():
            for line in json_rows(batch, result.schema).splitlines():
                change = json.loads(line)
                row = json.dumps(change["row"], ensure_ascii=False)
                rows[row] += 1 if change["op"] in ("+I", "+U") else -1
                assert rows[row] >= 0, f"a row that is not there is taken back: {row}"
    except FlowSqlError:
        return ["error"]
    columns = [[column.name, str(column.type)] for column in result.schema]
    return [json.dumps(columns, ensure_ascii=False), *sorted(rows.elements())]


@pytest.mark.parametrize("path", FILES, ids=[path.stem for path in FILES])
def test_queries_are_answered_as_flink_does(path: Path) -> None:
    environment = TableEnvironment.create()
    environment.get_config().set("table.local-time-zone", "UTC")
    environment.get_config().set("parallelism.default", "1")
    wrong = []
    for query, wanted in asked(path):
        got = answer_of(environment, query)
        if got != wanted:
            wrong.append("\n  ".join([query, "Flink:", *wanted, "FlowSQL:", *got]))
    assert not wrong, "\n".join(wrong)


def test_queries_are_found() -> None:
    assert sum(len(asked(path)) for path in FILES) > 100
