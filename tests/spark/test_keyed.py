"""Operators with state that Spark lacks: FlowSQL's, in tasks that get all rows of a key. The local engine's answers."""

from __future__ import annotations

from pathlib import Path

import pytest

from flowsql.table.session.environment import TableEnvironment
from flowsql_core.config import Configuration
from flowsql_core.errors import FlowSqlError, NotSupportedYetError
from tests.spark.spark_machine import ON_SPARK, hurry

pytestmark = ON_SPARK

JOINED = "(SELECT t.* FROM t JOIN (VALUES ('a'), ('b'), ('c')) AS n(k) ON t.k = n.k)"
QUERIES = {
    "pattern": """SELECT * FROM t MATCH_RECOGNIZE (
        PARTITION BY k ORDER BY ts
        MEASURES FIRST(DOWN.v) AS v, LAST(UP.ts) AS ended, COUNT(DOWN.v) AS n, CLASSIFIER() AS c
        AFTER MATCH SKIP PAST LAST ROW
        PATTERN (DOWN+ UP) DEFINE DOWN AS LAST(DOWN.v, 1) IS NULL OR DOWN.v < LAST(DOWN.v, 1), UP AS UP.v > LAST(DOWN.v)
    ) AS m ORDER BY k, ended""".replace(", CLASSIFIER() AS c", ""),
    "pattern over a join": f"""SELECT k, COUNT(*) AS n FROM {JOINED} MATCH_RECOGNIZE (
        PARTITION BY k ORDER BY ts MEASURES B.v AS v ONE ROW PER MATCH PATTERN (A B) DEFINE B AS B.v > A.v
    ) AS m GROUP BY k ORDER BY k""",
    "pattern without keys": """SELECT v FROM t MATCH_RECOGNIZE (
        ORDER BY ts, id MEASURES A.id AS v PATTERN (A B{2}) DEFINE A AS A.v > 90, B AS B.v > 10
    ) AS m ORDER BY v""",
    "tumble": """SELECT k, TUMBLE_START(ts, INTERVAL '1' MINUTE) AS s, COUNT(*) AS n, SUM(v) AS v, MAX(id) AS m
        FROM t GROUP BY k, TUMBLE(ts, INTERVAL '1' MINUTE) ORDER BY k, s""",
    "hop": """SELECT HOP_END(ts, INTERVAL '30' SECOND, INTERVAL '1' MINUTE) AS e, COUNT(DISTINCT k) AS n, AVG(v) AS v
        FROM t GROUP BY HOP(ts, INTERVAL '30' SECOND, INTERVAL '1' MINUTE) ORDER BY e""",
    "tumble over a join": f"""SELECT TUMBLE_ROWTIME(ts, INTERVAL '2' MINUTE) AS r, COUNT(*) AS n FROM {JOINED}
        GROUP BY TUMBLE(ts, INTERVAL '2' MINUTE) HAVING COUNT(*) > 3 ORDER BY r""",
    "deviations": "SELECT k, STDDEV_POP(f) AS a, VAR_POP(f) AS b, PERCENTILE(v, 0.5) AS p FROM t GROUP BY k ORDER BY k",
    "deviation of all": "SELECT STDDEV_POP(f) AS a, COUNT(*) AS n FROM t",
    "deviation of nothing": "SELECT STDDEV_POP(f) AS a, COUNT(*) AS n FROM t WHERE id < 0",
    "lists": """SELECT k, LISTAGG(CAST(id AS STRING), '|') AS l, ARRAY_AGG(v) AS a, FIRST_VALUE(id) AS f,
        LAST_VALUE(id) AS e, JSON_ARRAYAGG(v) AS j FROM t WHERE id < 40 GROUP BY k ORDER BY k""",
    "lists of all": "SELECT LISTAGG(k) AS l, COUNT(*) AS n FROM t",
    "lists in windows": """SELECT TUMBLE_END(ts, INTERVAL '1' MINUTE) AS e, LISTAGG(k) AS l FROM t
        GROUP BY TUMBLE(ts, INTERVAL '1' MINUTE) ORDER BY e""",
    "shares": "SELECT id, CUME_DIST() OVER (PARTITION BY k ORDER BY v, id) AS c FROM t ORDER BY id",
    "shares over a join": f"SELECT id, CUME_DIST() OVER (PARTITION BY k ORDER BY v, id) AS c FROM {JOINED} ORDER BY id",
    "several windows": """SELECT id, STDDEV_POP(f) OVER (PARTITION BY k ORDER BY id) AS a,
        COUNT(*) OVER (PARTITION BY k, v ORDER BY id) AS n FROM t ORDER BY id""",
    "lists over": "SELECT id, LISTAGG(k) OVER (PARTITION BY v ORDER BY id) AS l FROM t ORDER BY id",
    "ranges of time": """SELECT id, COUNT(*) OVER (PARTITION BY k ORDER BY ts RANGE BETWEEN INTERVAL '10' SECOND
        PRECEDING AND CURRENT ROW) AS n FROM t ORDER BY id""",
}


def environment(folder: Path, engine: str) -> TableEnvironment:
    values = {"execution.runtime-mode": "batch", "execution.batch.engine": engine, "table.local-time-zone": "UTC"}
    made = TableEnvironment.of_configuration(Configuration(values=values))
    made.execute_sql(
        "CREATE TABLE t (id BIGINT, k STRING, v INT, f DOUBLE, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH ("
        f"'connector' = 'filesystem', 'path' = '{folder}/t.csv', 'format' = 'csv')"
    )
    return made


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("keyed")
    lines = []
    for n in range(400):
        moment = f"2020-01-01 00:{n // 40:02}:{n * 3 // 2 % 60:02}.{n % 10}"
        lines.append(f"{n},{'abcd'[n * 7 % 4]},{n * 37 % 101},{n % 8 / 8},{moment}")
    (made / "t.csv").write_text("\n".join(lines) + "\n")
    return made


def rows(session: TableEnvironment, sql: str) -> list[tuple[object, ...]]:
    with session.execute_sql(sql).collect() as found:
        return [tuple(row) for row in found]


VALUES = """(VALUES (1, '{"a": 1}', 3), (2, '[1, 2]', 5), (2, CAST(NULL AS STRING), 3)) AS v(i, s, n)"""
#: Types whose values Spark only carries.
CARRIED = {
    "variant": f"SELECT x.i, JSON_STRING(p), p FROM (SELECT i, PARSE_JSON(s) AS p FROM {VALUES}) AS x "
    f"JOIN {VALUES} ON x.i = v.i ORDER BY 1, 2",
    "bitmap": f"SELECT i, BITMAP_CARDINALITY(b) AS c, b FROM (SELECT i, BITMAP_BUILD_AGG(n) AS b FROM {VALUES} "
    "GROUP BY i) ORDER BY i",
    "multiset": f"SELECT i, COLLECT(n) AS m, CARDINALITY(COLLECT(n)) AS c FROM {VALUES} GROUP BY i ORDER BY i",
}


@pytest.mark.parametrize("name", CARRIED)
def test_what_spark_has_no_type_for_is_carried(folder: Path, name: str) -> None:
    hurry()
    assert rows(environment(folder, "spark"), CARRIED[name]) == rows(environment(folder, "local"), CARRIED[name])


@pytest.mark.parametrize(
    "query",
    [
        f"SELECT i, b FROM (SELECT i, BITMAP_BUILD_AGG(n) AS b FROM {VALUES} GROUP BY i) ORDER BY b",
        f"SELECT COLLECT(n) AS m FROM {VALUES} GROUP BY i UNION SELECT COLLECT(n) AS m FROM {VALUES} GROUP BY i",
    ],
)
def test_what_spark_only_carries_it_does_not_compare(folder: Path, query: str) -> None:
    with pytest.raises(FlowSqlError):
        environment(folder, "spark").execute_sql(query)


@pytest.mark.parametrize("name", QUERIES)
def test_answers_are_those_of_the_local_engine(folder: Path, name: str) -> None:
    hurry()
    spark = environment(folder, "spark")
    found = rows(spark, QUERIES[name])
    assert found == rows(environment(folder, "local"), QUERIES[name])
    assert found


def test_what_hangs_on_the_order_of_rows_is_refused(folder: Path) -> None:
    for query in (
        f"SELECT LISTAGG(k) FROM {JOINED} GROUP BY TUMBLE(ts, INTERVAL '1' MINUTE)",
        f"SELECT LISTAGG(k) FROM {JOINED}",
        f"SELECT STDDEV_POP(f) OVER (PARTITION BY k) FROM {JOINED}",
    ):
        with pytest.raises(NotSupportedYetError):
            environment(folder, "spark").execute_sql(query)


def test_explain_shows_the_operator_and_the_query_below_it(folder: Path) -> None:
    text = environment(folder, "spark").explain_sql(QUERIES["pattern over a join"])
    readers = text.partition("== FlowSQL Readers ==")[2].partition("== Spark SQL ==")
    assert "LogicalMatch" in readers[0]
    assert "-- for flowsql_input_" in readers[2]
