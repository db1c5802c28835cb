"""Batch mode in FlowSQL's own runtime: answers of Flink 2.3.0 (``asked_in_batch.txt``), however rows are cut."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from flowsql.table.session.environment import TableEnvironment
from flowsql_compute.eval.text.render import json_rows
from flowsql_core.errors import FlowSqlError
from flowsql_runtime.operators import values

ASKED = Path(__file__).parent / "asked_in_batch.txt"
VIEW = """CREATE TEMPORARY VIEW v AS SELECT g, k, x, CAST(moment AS TIMESTAMP(3)) AS ts FROM (VALUES
('a', 1, CAST(NULL AS INT), TIMESTAMP '2024-01-01 00:00:00'), ('a', 2, 5, TIMESTAMP '2024-01-01 00:00:30'),
('a', 2, 7, TIMESTAMP '2024-01-01 00:01:00'), ('a', 3, CAST(NULL AS INT), TIMESTAMP '2024-01-01 00:05:00'),
('b', 1, 9, TIMESTAMP '2024-01-01 00:00:10'), ('b', 1, 4, TIMESTAMP '2024-01-01 00:00:20')) AS t (g, k, x, moment)"""


def asked() -> list[tuple[str, list[str]]]:
    """Queries and the lines of their answers."""
    found: list[tuple[str, list[str]]] = []
    for line in ASKED.read_text(encoding="utf-8").split("\n"):
        if line.startswith("    "):
            found[-1][1].append(line[4:])
        elif line and not line.startswith("#"):
            found.append((line, []))
    return found


def local_session(**options: str) -> TableEnvironment:
    """A session in batch mode that never asks Spark."""
    environment = TableEnvironment.create()
    given = {"execution.runtime-mode": "batch", "execution.batch.engine": "local", "table.local-time-zone": "UTC"}
    for key, value in {**given, "parallelism.default": "1", **options}.items():
        environment.get_config().set(key, value)
    return environment


def answer_of(environment: TableEnvironment, query: str) -> list[str]:
    """The answer in the form of the file; rows are never changed."""
    try:
        result = environment.execute_sql(query)
        rows: Counter[str] = Counter()
        for batch in result.batches():
            for line in json_rows(batch, result.schema).splitlines():
                change = json.loads(line)
                assert change["op"] == "+I"
                rows[json.dumps(change["row"], ensure_ascii=False)] += 1
    except FlowSqlError:
        return ["error"]
    columns = [[column.name, str(column.type)] for column in result.schema]
    return [json.dumps(columns, ensure_ascii=False), *sorted(rows.elements())]


@pytest.mark.parametrize("rows", [1, 4, 65_536])
@pytest.mark.parametrize("exchanges", ["ALL_EXCHANGES_BLOCKING", "ALL_EXCHANGES_PIPELINED"])
def test_queries_are_answered_as_flink_does(monkeypatch: pytest.MonkeyPatch, rows: int, exchanges: str) -> None:
    monkeypatch.setattr(values, "BATCH_ROWS", rows)
    environment = local_session(**{"execution.batch-shuffle-mode": exchanges})
    environment.execute_sql(VIEW)
    wrong = []
    for query, wanted in asked():
        got = answer_of(environment, query)
        if got != wanted:
            wrong.append("\n  ".join([query, "Flink:", *wanted, "FlowSQL:", *got]))
    assert not wrong, "\n".join(wrong)


def test_queries_are_found() -> None:
    assert len(asked()) > 35
