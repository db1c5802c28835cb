"""MATCH_RECOGNIZE as Flink 2.3.0 answers it: ``match/queries.txt`` holds its answers.

A query over ``match/ticks.csv`` stands above its answer: ``error`` and Flink's message where it refuses, else the
columns as JSON, then each match as JSON in the order of the texts.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from flowsql.table.session.environment import TableEnvironment
from flowsql_compute.eval.text.render import json_rows
from flowsql_core.errors import FlowSqlError

FOLDER = Path(__file__).parent / "match"
TICKS = (
    "CREATE TABLE ticks (symbol STRING, price INT, volume INT, ts TIMESTAMP(3), "
    "WATERMARK FOR ts AS ts - INTERVAL '25' SECOND) "
    f"WITH ('connector' = 'filesystem', 'path' = '{FOLDER / 'ticks.csv'}', 'format' = 'csv')"
)


def asked() -> list[tuple[str, list[str]]]:
    """Queries and the lines of their answers."""
    found: list[tuple[str, list[str]]] = []
    for line in (FOLDER / "queries.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("    "):
            found[-1][1].append(line[4:])
        elif line and not line.startswith("#"):
            found.append((line, []))
    return found


def environment(backend: str = "hashmap", parallelism: int = 1) -> TableEnvironment:
    """A session with the table."""
    made = TableEnvironment.create()
    made.get_config().set("table.local-time-zone", "UTC")
    made.get_config().set("state.backend.type", backend)
    made.get_config().set("parallelism.default", str(parallelism))
    made.execute_sql(TICKS)
    return made


def answer_of(session: TableEnvironment, query: str) -> list[str]:
    """The answer in the form of the file."""
    result = session.execute_sql(query)
    lines = [line for batch in result.batches() for line in json_rows(batch, result.schema).splitlines()]
    rows = [json.dumps(json.loads(line)["row"], ensure_ascii=False) for line in lines]
    columns = [[column.name, str(column.type)] for column in result.schema]
    return [json.dumps(columns, ensure_ascii=False), *sorted(rows)]


@pytest.mark.parametrize(("backend", "parallelism"), [("hashmap", 1), ("rocksdb", 2)])
def test_matches_are_those_of_flink(backend: str, parallelism: int) -> None:
    session = environment(backend, parallelism)
    for query, wanted in asked():
        if not wanted[0].startswith("error"):
            assert answer_of(session, query) == wanted, query


def test_what_flink_refuses_is_refused_in_its_words() -> None:
    session = environment()
    for query, wanted in asked():
        if wanted[0].startswith("error"):
            with pytest.raises(FlowSqlError) as refused:
                answer_of(session, query)
            assert wanted[0].removeprefix("error ") in str(refused.value), query


def test_a_view_holds_a_pattern() -> None:
    query, wanted = next(
        (query, wanted) for query, wanted in asked() if "WITHIN" in query and not wanted[0].startswith("error")
    )
    session = environment()
    session.execute_sql(f"CREATE VIEW found AS {query}")
    assert answer_of(session, "SELECT * FROM found") == wanted


def test_a_view_holds_subsets_anchors_and_the_name_of_the_table() -> None:
    session = environment()
    session.execute_sql(
        "CREATE VIEW found AS SELECT * FROM ticks AS k MATCH_RECOGNIZE (PARTITION BY symbol ORDER BY ts "
        "MEASURES COUNT(U.price) AS n, k.price AS p PATTERN (^ A B $) SUBSET U = (A, B) "
        "DEFINE B AS B.price > A.price) AS m"
    )
    text = answer_of(session, "SHOW CREATE VIEW found")[1]
    assert "PATTERN (^ `A` `B` $)" in text
    assert "SUBSET `U` = (`A`, `B`)" in text
    assert len(answer_of(session, "SELECT * FROM found WHERE n = 0 AND p IS NULL")) > 2


@pytest.mark.parametrize(
    "source",
    ["ticks k", "ticks AS k (a, b, c, d)", "TABLE(TUMBLE(TABLE ticks, DESCRIPTOR(ts), INTERVAL '1' HOUR)) AS k"],
)
def test_a_name_in_front_of_match_recognize_is_a_single_one_behind_as(source: str) -> None:
    with pytest.raises(FlowSqlError, match="parse failed"):
        environment().execute_sql(
            f"SELECT * FROM {source} MATCH_RECOGNIZE (ORDER BY ts MEASURES A.price AS p PATTERN (A) DEFINE A AS TRUE)"
        )


def test_explain_shows_the_pattern() -> None:
    query = (
        "SELECT * FROM ticks MATCH_RECOGNIZE (PARTITION BY symbol ORDER BY ts MEASURES A.price AS p "
        "PATTERN (A B C) DEFINE A AS A.price > 1, B AS B.price > A.price) AS m"
    )
    text = environment().explain_sql(query)
    assert "Match(partitionBy=[symbol], orderBy=[ts ASC], measures=[LAST(A.price, 0) AS p]" in text
    assert "asks Python" not in text
