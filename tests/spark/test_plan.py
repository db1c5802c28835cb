"""Bounded plans as Spark SQL: what is printed, what is refused, and that nobody else loads Spark. Starts no Java."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from flowsql.table.session.environment import TableEnvironment
from flowsql_core.config import Configuration
from flowsql_core.errors import FlowSqlError, NotSupportedYetError
from flowsql_core.graph.spark import SparkJob
from flowsql_core.span import Source
from flowsql_grammar import parse_statement
from flowsql_planner.bind import operations as op
from flowsql_planner.spark.plan import SparkPlanner

pytest.importorskip("sqlglot")

VIEW = """CREATE TEMPORARY VIEW v AS SELECT * FROM
(VALUES (1, 'a', 2.50, CAST(1.5 AS DOUBLE), DATE '2020-01-01'),
(2, 'b', 3.50, CAST(2.5 AS DOUBLE), DATE '2020-01-02')) AS t(i, s, d, f, born)"""
#: Queries that read the row around them need tables: over VALUES they are refused, as in Flink.
TABLE = """CREATE TABLE w (i INT, s STRING, d DECIMAL(3, 2), f DOUBLE, born DATE)
WITH ('connector' = 'datagen', 'number-of-rows' = '2')"""


def plan(query: str) -> SparkJob:
    configuration = Configuration(values={"execution.runtime-mode": "batch", "table.local-time-zone": "UTC"})
    environment = TableEnvironment.of_configuration(configuration)
    environment.execute_sql(VIEW)
    environment.execute_sql(TABLE)
    source = Source(query)
    operation = environment._executor.bind(parse_statement(source), source)
    assert isinstance(operation, op.Query)
    return SparkPlanner(configuration, "/tmp/flowsql-spark-test").plan_query(operation, None)


def printed(query: str) -> str:
    """The one query, on one line."""
    (query_plan,) = plan(query).queries
    return " ".join(query_plan.sql.split())


@pytest.mark.parametrize(
    ("query", "part"),
    [
        ("SELECT SUM(i) AS x FROM v", "CAST(SUM(CAST(t2.c0 AS BIGINT)) AS INT)"),
        ("SELECT AVG(i) AS x FROM v", "CAST(( SUM(CAST(t2.c0 AS BIGINT)) DIV COUNT(t2.c0) ) AS INT)"),
        ("SELECT SUM(d) AS x FROM v", "CAST(SUM(t2.c0) AS DECIMAL(38, 2))"),
        ("SELECT AVG(d) AS x FROM v", "CAST(COUNT(t2.c0) AS DECIMAL(20, 0))"),
        ("SELECT i / i AS x FROM v ORDER BY i", "RAISE_ERROR('/ by zero')"),
        ("SELECT i FROM v ORDER BY i NULLS LAST, s DESC", "ASC NULLS LAST"),
        ("SELECT COUNT(*) FILTER (WHERE i > 1) AS x FROM v", "COUNT(CASE WHEN"),
        ("SELECT i FROM v INTERSECT ALL SELECT i FROM v", "INTERSECT ALL"),
        ("SELECT i FROM v EXCEPT SELECT i FROM v", "EXCEPT"),
        ("SELECT RANK() OVER (PARTITION BY s ORDER BY i DESC) AS x FROM v", "CAST(RANK() OVER (PARTITION BY"),
        ("SELECT SUM(i) OVER (ORDER BY i ROWS 2 PRECEDING) AS x FROM v", "ROWS BETWEEN 2 PRECEDING AND CURRENT ROW"),
        ("SELECT i FROM v WHERE i NOT IN (SELECT i FROM v)", "NOT"),
        ("SELECT i FROM w a WHERE EXISTS (SELECT 1 FROM w b WHERE b.i = a.i)", "EXISTS("),
        ("SELECT COUNT(*) AS n, GROUPING_ID(s, i) AS g FROM v GROUP BY CUBE (i, s)", "GROUPING SETS ("),
        ("SELECT a.i FROM v a FULL JOIN v b ON a.i = b.i", "FULL JOIN"),
        ("SELECT a.i FROM v a, v b", "CROSS JOIN"),
        ("SELECT EXTRACT(MONTH FROM MAX(born)) AS m FROM v", "MONTH("),
    ],
)
def test_types_and_orders_are_written_out(query: str, part: str) -> None:
    assert part in printed(query)


def test_texts_beyond_plain_ascii_travel_as_bytes() -> None:
    text = printed("SELECT COUNT(*) AS n FROM v GROUP BY s HAVING s <> 'it''s \\ ä' AND s <> 'plain'")
    assert "UNHEX('697427732" in text
    assert "'plain'" in text


def test_a_lateral_query_is_a_join() -> None:
    text = printed("SELECT a.i, l.m FROM w a, LATERAL (SELECT MAX(b.f) AS m FROM w b WHERE b.i = a.i) AS l")
    assert "INNER JOIN" in text
    assert "GROUP BY" in text


def test_rows_are_looked_for_as_rows() -> None:
    (text,) = [query.sql for query in plan("SELECT i FROM v WHERE (i, f) IN (SELECT i, f FROM v)").queries]
    assert "EXISTS" in text  # NaN is equal to nothing, and Spark would find it
    assert "IN (" in printed("SELECT i FROM v WHERE (i, i + 1) IN (SELECT i, 2 FROM v)").replace("IN(", "IN (")


def test_equal_inputs_are_handed_over_once() -> None:
    assert len(plan("SELECT a.i FROM v a JOIN v b ON a.i = b.i").inputs) == 1


def test_what_spark_cannot_write_runs_before_it() -> None:
    job = plan("SELECT UPPER(s) AS u, COUNT(*) AS n FROM v GROUP BY UPPER(s)")
    assert "UPPER" not in job.queries[0].sql
    assert job.queries[0].then is None


COUNTED = "(SELECT s, COUNT(*) AS n FROM v GROUP BY s)"


def test_what_spark_cannot_write_is_a_kernel_in_its_query() -> None:
    job = plan(f"SELECT UPPER(s) AS u, n, UPPER(s) || '!' AS v FROM {COUNTED} WHERE n > 0 AND CHAR_LENGTH(TRIM(s)) > 0")
    assert [(kernel.name, kernel.names, kernel.type_text) for kernel in job.kernels] == [
        ("flowsql_kernel_0", ("s",), "STRING"),
        ("flowsql_kernel_1", ("s",), "STRING"),
        ("flowsql_kernel_2", ("s",), "BOOLEAN"),
    ]
    (query,) = job.every_query()
    text = " ".join(query.sql.split())
    assert "SELECT FLOWSQL_KERNEL_0(t3.c0) AS c0, t3.c1 AS c1, FLOWSQL_KERNEL_1(t3.c0) AS c2" in text
    # Kernels see the rows that Spark's own conditions leave.
    assert "> CAST(0 AS BIGINT) ) AND FLOWSQL_KERNEL_2(" in text
    assert query.then is None


def test_equal_kernels_are_one() -> None:
    job = plan(f"SELECT UPPER(s) AS u FROM {COUNTED} UNION ALL SELECT UPPER(s) AS u FROM {COUNTED} WHERE n > 1")
    assert len(job.kernels) == 1


def test_what_is_drawn_anew_runs_behind_spark_once_a_row() -> None:
    job = plan(f"SELECT UUID() AS u, n FROM {COUNTED}")
    assert job.queries[0].then is not None
    assert not job.kernels


def test_what_is_drawn_anew_runs_between_two_queries_once_a_row() -> None:
    job = plan(f"SELECT u, SUM(n) AS n FROM (SELECT UUID() AS u, n FROM {COUNTED}) GROUP BY u")
    table, between = job.inputs
    assert table.source is None
    assert between.source is not None
    assert "COUNT(1)" in between.source.sql
    assert not job.kernels


@pytest.mark.parametrize(
    "query",
    [
        "SELECT a.i FROM v a, v b WHERE a.i = b.i AND UPPER(a.s) = 'A' AND b.i IN (SELECT i FROM v)",
        "SELECT a.i FROM v a JOIN v b ON UPPER(a.s) = UPPER(b.s)",
        "SELECT a.i FROM v a LEFT JOIN v b ON a.i = b.i AND ASCII(a.s) > b.i",
    ],
)
def test_functions_of_one_table_run_where_it_is_read(query: str) -> None:
    job = plan(query)
    assert all(staged.source is None for staged in job.inputs)
    assert "CROSS JOIN" not in job.queries[0].sql
    assert "UPPER" not in job.queries[0].sql


def test_a_filter_of_functions_over_both_tables_stands_above_the_join() -> None:
    job = plan("SELECT a.i FROM v a JOIN v b ON a.i = b.i AND POSITION(a.s IN b.s) > 0 ORDER BY 1")
    assert all(staged.source is None for staged in job.inputs)
    assert [kernel.names for kernel in job.kernels] == [("EXPR$1", "EXPR$10")]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT a.i FROM v a, v b, v c WHERE a.i = c.i AND b.i = c.i",
        "SELECT a.i FROM v a JOIN v b ON a.i < b.i JOIN v c ON b.i = c.i",
        "SELECT x.i FROM (SELECT a.i, b.s FROM v a, v b WHERE a.d = b.d) x, v c WHERE x.i = c.i AND x.s = c.s",
    ],
)
def test_inner_joins_stand_in_one_from(query: str) -> None:
    text = printed(query)
    assert text.count("SELECT") == 1
    assert text.count("INNER JOIN") == 2
    assert "ON" not in text.split()


def test_other_joins_are_inputs_of_inner_ones() -> None:
    text = printed("SELECT a.i FROM v a LEFT JOIN v b ON a.i = b.i JOIN v c ON a.i = c.i JOIN v d ON c.i = d.i")
    assert text.count("LEFT JOIN") == 1
    assert text.count("SELECT") == 1


def test_aggregates_that_spark_lacks_run_where_all_rows_of_a_group_meet() -> None:
    job = plan("SELECT s, STDDEV_POP(f) AS x FROM v GROUP BY s")
    assert [staged.keys for staged in job.inputs if staged.source is not None] == [(0,)]
    job = plan("SELECT STDDEV_POP(f) AS x, COUNT(*) AS n FROM v")
    assert [staged.keys for staged in job.inputs if staged.source is not None] == [()]
    assert "LEFT JOIN" in job.queries[0].sql


@pytest.mark.parametrize(
    ("query", "keys"),
    [
        ("SELECT CUME_DIST() OVER (ORDER BY i) AS x FROM v", ()),
        ("SELECT SUM(i) OVER (PARTITION BY s ORDER BY f RANGE 1 PRECEDING) AS x FROM v", (1,)),
        ("SELECT LAG(NULLIF(i, 1), 1, 0) OVER (PARTITION BY s, f ORDER BY i) AS x FROM v", (1,)),
        (
            "SELECT COUNT(i) OVER (PARTITION BY s ORDER BY NULLIF(i, 1) RANGE BETWEEN 1 FOLLOWING AND 2 FOLLOWING) "
            "AS x FROM v",
            (1,),
        ),
        ("SELECT NTILE(2) OVER (ORDER BY i), CUME_DIST() OVER (PARTITION BY s ORDER BY i) AS x FROM v", ()),
    ],
)
def test_window_functions_that_spark_lacks_run_where_all_rows_of_a_key_meet(query: str, keys: tuple[int, ...]) -> None:
    assert [staged.keys for staged in plan(query).inputs if staged.source is not None] == [keys]


@pytest.mark.parametrize(
    ("query", "construct", "column"),
    [
        ("SELECT STDDEV_POP(i) OVER (PARTITION BY s) AS x FROM v", "the aggregate STDDEV_POP", 8),
        ("SELECT ARRAY_AGG(i) AS x FROM v", "the aggregate ARRAY_AGG", 8),
        (
            "SELECT MAX(i) OVER (w ROWS 1 PRECEDING) AS x FROM v WINDOW w AS (ORDER BY i)",
            "bounds of a frame beside a named",
            23,
        ),
        ("SELECT LAG(i, 2) OVER (ORDER BY i) AS x, MAX(i) OVER (ORDER BY s) AS y FROM v", "LAG with constants", 8),
        ("SELECT f FROM v INTERSECT SELECT f FROM v", "INTERSECT of FLOAT or DOUBLE", 1),
        ("SELECT s, LISTAGG(s) AS x FROM v GROUP BY s", "the aggregate LISTAGG", 11),
        ("SELECT STDDEV_POP(f) AS x FROM v GROUP BY CUBE (i)", "the aggregate STDDEV_POP", 8),
        ("SELECT i FROM w a WHERE (SELECT MAX(UPPER(a.s || b.s)) FROM w b) = 'A'", "UPPER over these types", 37),
        ("SELECT a.i FROM v a LEFT JOIN v b ON POSITION(a.s IN b.s) > 0", "POSITION over these types", 38),
        ("SELECT f FROM v WHERE f <> ANY (SELECT f FROM v)", "ANY or ALL (subquery)", 23),
        ("SELECT f FROM v WHERE f <= ALL (SELECT f FROM v)", "ANY or ALL (subquery)", 23),
        ("SELECT i, (SELECT COUNT(*) FROM w b WHERE b.f = a.f) FROM w a", "a scalar subquery", 11),
    ],
)
def test_the_rest_is_refused_with_its_place(query: str, construct: str, column: int) -> None:
    with pytest.raises(NotSupportedYetError) as caught:
        plan(query)
    assert construct in caught.value.construct
    assert caught.value.at is not None
    assert caught.value.at.start + 1 == column


def on_the_local_engine() -> TableEnvironment:
    values = {"execution.runtime-mode": "batch", "execution.batch.engine": "local"}
    environment = TableEnvironment.of_configuration(Configuration(values=values))
    environment.execute_sql(VIEW)
    return environment


def test_the_local_engine_joins_what_only_grows() -> None:
    query = "SELECT i FROM v WHERE i IN (SELECT i + 1 FROM v)"
    with on_the_local_engine().execute_sql(query).collect() as rows:
        local = sorted(row[0] for row in rows)
    with on_the_local_engine().execute_sql("SELECT i FROM v").collect() as rows:
        every = [row[0] for row in rows]
    assert local == sorted(i for i in every if i is not None and i - 1 in every)


def test_an_unbounded_table_is_no_batch() -> None:
    values = {"execution.runtime-mode": "batch", "execution.batch.engine": "spark"}
    environment = TableEnvironment.of_configuration(Configuration(values=values))
    environment.execute_sql("CREATE TABLE endless (i INT) WITH ('connector' = 'datagen')")
    with pytest.raises(FlowSqlError, match="unbounded table"):
        environment.execute_sql("SELECT COUNT(*) FROM endless")


def test_streaming_loads_no_spark(tmp_path: Path) -> None:
    code = """
import sys
from flowsql.cli.main import main
main(["-c", "SELECT a, COUNT(*) AS n FROM (VALUES (1), (1), (2)) AS t(a) GROUP BY a"])
main(["-c", "SET 'execution.runtime-mode' = 'batch'; SELECT a FROM (VALUES (1), (1), (2)) AS t(a)"])
heavy = {name.partition('.')[0] for name in sys.modules} & {"pyspark", "py4j", "sqlglot"}
print("loaded:", sorted(heavy))
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stdout.endswith("loaded: []\n"), done.stderr
