"""Lookups (FOR SYSTEM_TIME AS OF a processing time) of bounded queries on Spark: answers of the local engine."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from flowsql.table.session.environment import TableEnvironment
from flowsql_core.config import Configuration
from flowsql_core.errors import BindError, NotSupportedYetError
from tests.spark.spark_machine import ON_SPARK, hurry

pytestmark = ON_SPARK

JOIN = "FROM o {kind} JOIN d FOR SYSTEM_TIME AS OF o.p ON "


def session(folder: Path, engine: str) -> TableEnvironment:
    """Orders, of csv and of parquet, with a processing time, and a table with two rows of one key and one of none."""
    hurry()
    values = {"execution.runtime-mode": "batch", "execution.batch.engine": engine}
    made = TableEnvironment.of_configuration(Configuration(values=values))
    for name, format_, columns in (
        ("o", "csv", "id INT, v INT, p AS PROCTIME()"),
        ("d", "csv", "id INT, s STRING"),
        ("op", "parquet", "id INT, v INT, p AS PROCTIME()"),
        ("dp", "parquet", "id INT, s STRING"),
    ):
        null = ", 'csv.null-literal' = 'n'" if format_ == "csv" else ""
        made.execute_sql(
            f"CREATE TABLE {name} ({columns}) "
            f"WITH ('connector' = 'filesystem', 'path' = '{folder / name}', 'format' = '{format_}'{null})"
        )
    made.execute_sql("CREATE VIEW w AS SELECT id, UPPER(s) AS s FROM d WHERE s <> 'uno'")
    return made


@pytest.fixture(scope="module")
def sessions(tmp_path_factory: pytest.TempPathFactory) -> dict[str, TableEnvironment]:
    folder = tmp_path_factory.mktemp("lookups")
    made = {engine: session(folder, engine) for engine in ("local", "spark")}
    local = made["local"]
    local.execute_sql("INSERT INTO o VALUES (1, 10), (2, 20), (3, 30), (CAST(NULL AS INT), 40), (1, 50)").wait()
    local.execute_sql("INSERT INTO d VALUES (1, 'one'), (1, 'uno'), (3, 'three'), (CAST(NULL AS INT), 'none')").wait()
    local.execute_sql("INSERT INTO op SELECT id, v FROM o").wait()
    local.execute_sql("INSERT INTO dp SELECT * FROM d").wait()
    return made


@pytest.mark.parametrize(
    "query",
    [
        "SELECT o.id, v, s " + JOIN.format(kind="LEFT") + "o.id = d.id",
        "SELECT o.id, v, s " + JOIN.format(kind="") + "o.id = d.id AND d.s <> 'uno' AND v < 45",
        "SELECT v, s, p IS NULL " + JOIN.format(kind="LEFT") + "o.id = d.id AND CHAR_LENGTH(s) * 10 > v",
        "SELECT s, SUM(v) " + JOIN.format(kind="") + "d.id = 1 WHERE v > 5 GROUP BY s",
        "SELECT o.v, s FROM (SELECT id + 1 AS id, v, p FROM o WHERE v > 10) AS o "
        "LEFT JOIN w FOR SYSTEM_TIME AS OF o.p AS w ON o.id = w.id",
        "SELECT op.v, dp.s, d.s FROM op JOIN dp FOR SYSTEM_TIME AS OF op.p ON op.id = dp.id "
        "LEFT JOIN d FOR SYSTEM_TIME AS OF op.p ON op.v / 10 = d.id",
    ],
)
def test_lookups_find_what_the_local_engine_finds(sessions: dict[str, TableEnvironment], query: str) -> None:
    found = {engine: rows(made, query) for engine, made in sessions.items()}
    assert found["local"]
    assert found["spark"] == found["local"]


def test_a_lookup_without_an_equality_is_refused_alike(sessions: dict[str, TableEnvironment]) -> None:
    for made in sessions.values():
        with pytest.raises(BindError, match="requires an equality condition on fields of table") as caught:
            made.execute_sql("SELECT v " + JOIN.format(kind="LEFT") + "o.id < d.id")
        assert caught.value.at is not None


def test_asking_once_more_is_left_to_the_local_engine(sessions: dict[str, TableEnvironment]) -> None:
    hint = (
        "/*+ LOOKUP('table' = 'd', 'retry-predicate' = 'lookup_miss', 'retry-strategy' = 'fixed_delay', "
        "'fixed-delay' = '1 ms', 'max-attempts' = '2') */"
    )
    query = f"SELECT {hint} v, s " + JOIN.format(kind="") + "o.id = d.id"
    assert len(rows(sessions["local"], query)) == 5
    with pytest.raises(NotSupportedYetError, match="a lookup that asks for missing rows once more") as caught:
        sessions["spark"].execute_sql(query)
    assert "'execution.batch.engine' = 'local'" in (caught.value.hint or "")


def rows(made: TableEnvironment, query: str) -> Counter[tuple[Any, ...]]:
    with made.execute_sql(query).collect() as found:
        return Counter(tuple(row) for row in found)
