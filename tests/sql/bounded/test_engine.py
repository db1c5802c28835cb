"""``execution.batch.engine``: where batch mode runs a statement, and why. Nothing here starts Spark."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from flowsql.table.session import batch_mode
from flowsql.table.session.environment import TableEnvironment
from flowsql_core.errors import FlowSqlError, NotSupportedYetError

GROUPED = "SELECT a, SUM(b) FROM (VALUES ('x', 1), ('y', 2), ('x', 3)) AS t (a, b) GROUP BY a"


def session(**options: str) -> TableEnvironment:
    environment = TableEnvironment.create()
    for key, value in {"execution.runtime-mode": "batch", **options}.items():
        environment.get_config().set(key, value)
    return environment


def engine_of(environment: TableEnvironment, query: str) -> str:
    """The last section of EXPLAIN."""
    return environment.explain_sql(query).partition("== Batch Engine ==\n")[2].strip()


def table_of(environment: TableEnvironment, folder: Path, size_bytes: int) -> None:
    (folder / "t.csv").write_text("x,1\n" * (size_bytes // 4), encoding="utf-8")
    environment.execute_sql(
        f"CREATE TABLE t (a STRING, b INT) WITH ('connector' = 'filesystem', 'path' = '{folder}/t.csv', "
        "'format' = 'csv')"
    )


def test_small_inputs_stay_at_home() -> None:
    environment = session()
    assert engine_of(environment, GROUPED).startswith("local: all inputs are known, ")
    rows = sorted(tuple(row) for row in environment.execute_sql(GROUPED).collect())
    assert rows == [("x", 4), ("y", 2)]


def test_inputs_at_the_threshold_go_to_spark(tmp_path: Path) -> None:
    environment = session(**{"execution.batch.local-threshold": "4 kb"})
    table_of(environment, tmp_path, 4096)
    query = "SELECT a, SUM(b) FROM t GROUP BY a"
    assert engine_of(environment, query) == (
        "spark: the inputs have 4 kb, not below 'execution.batch.local-threshold' (4 kb)"
    )
    environment.get_config().set("execution.batch.local-threshold", "5 kb")
    assert engine_of(environment, query) == (
        "local: all inputs are known, 4 kb in all, below 'execution.batch.local-threshold' (5 kb)"
    )


def test_inputs_of_all_tables_count(tmp_path: Path) -> None:
    environment = session(**{"execution.batch.local-threshold": "6 kb"})
    table_of(environment, tmp_path, 4096)
    assert engine_of(environment, "SELECT * FROM t x JOIN t y ON x.a = y.a AND x.b < y.b").startswith("local:")
    (tmp_path / "u.csv").write_text("x,1\n" * 1024, encoding="utf-8")
    environment.execute_sql(
        f"CREATE TABLE u (a STRING, b INT) WITH ('connector' = 'filesystem', 'path' = '{tmp_path}/u.csv', "
        "'format' = 'csv')"
    )
    assert engine_of(environment, "SELECT * FROM t JOIN u ON t.a = u.a").startswith("spark: the inputs have 8 kb")


def test_a_threshold_of_zero_is_always_spark() -> None:
    environment = session(**{"execution.batch.local-threshold": "0"})
    assert engine_of(environment, GROUPED) == "spark: 'execution.batch.local-threshold' is 0"


def test_rows_that_nobody_waits_for_stay_at_home(tmp_path: Path) -> None:
    environment = session(**{"execution.batch.local-threshold": "1 kb"})
    table_of(environment, tmp_path, 4096)
    assert engine_of(environment, "SELECT b + 1 FROM t WHERE a = 'x'") == (
        "local: no operator waits for all rows of its input"
    )


def test_datagen_is_as_large_as_its_rows() -> None:
    environment = session()
    environment.execute_sql("CREATE TABLE g (a BIGINT) WITH ('connector' = 'datagen', 'number-of-rows' = '1000')")
    assert engine_of(environment, "SELECT COUNT(*) FROM g").startswith("local: all inputs are known, 7.8 kb")


def test_an_unbounded_table_is_refused() -> None:
    environment = session(**{"execution.batch.engine": "local"})
    environment.execute_sql("CREATE TABLE g (a BIGINT) WITH ('connector' = 'datagen')")
    with pytest.raises(FlowSqlError, match="Querying an unbounded table"):
        environment.execute_sql("SELECT a FROM g")


def test_without_spark_everything_stays_at_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(batch_mode, "_spark_lacks", lambda *_: "there is no Java")
    environment = session(**{"execution.batch.local-threshold": "1 kb"})
    table_of(environment, tmp_path, 4096)
    query = "SELECT a, SUM(b) AS s FROM t GROUP BY a"
    assert engine_of(environment, query) == "local: Spark cannot run here: there is no Java"
    assert [tuple(row) for row in environment.execute_sql(query).collect()] == [("x", 1024)]


@pytest.mark.parametrize("engine", ["local", "spark"])
def test_the_option_decides(engine: str) -> None:
    environment = session(**{"execution.batch.engine": engine})
    assert engine_of(environment, GROUPED) == f"{engine}: 'execution.batch.engine' says so"


def test_what_spark_refuses_runs_at_home(tmp_path: Path) -> None:
    query = "SELECT x.a, LISTAGG(CAST(y.a AS STRING)) FROM t AS x JOIN t AS y ON x.a = y.a GROUP BY x.a"
    environment = session(**{"execution.batch.local-threshold": "1 kb"})
    table_of(environment, tmp_path, 4096)
    assert engine_of(environment, query).startswith("local: Spark has no exact form of the statement (")
    environment.get_config().set("execution.batch.engine", "spark")
    with pytest.raises(NotSupportedYetError):
        environment.execute_sql(query)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT LISTAGG(CAST(x.a AS STRING)) FROM v AS x JOIN v AS y ON x.a = y.a",
        "SELECT a FROM v WHERE CAST(a AS DOUBLE) >= ALL (SELECT CAST(a AS DOUBLE) FROM v)",
    ],
)
def test_what_spark_lacks_is_refused_there(query: str) -> None:
    environment = session(**{"execution.batch.engine": "spark"})
    environment.execute_sql(
        "CREATE TEMPORARY VIEW v AS SELECT * FROM (VALUES (1, TIMESTAMP '2024-01-01 00:00:00')) AS t (a, ts)"
    )
    with pytest.raises(NotSupportedYetError):
        environment.execute_sql(query)
    environment.get_config().set("execution.batch.engine", "auto")
    assert len(list(environment.execute_sql(query).collect())) == 1


def test_home_loads_nothing_of_spark() -> None:
    program = f"""
import sys
from flowsql.table.session.environment import TableEnvironment
environment = TableEnvironment.create()
environment.get_config().set("execution.runtime-mode", "batch")
assert len(list(environment.execute_sql({GROUPED!r}).collect())) == 2
assert not any(name.partition(".")[0] in ("pyspark", "py4j", "sqlglot") for name in sys.modules)
"""
    subprocess.run([sys.executable, "-c", program], check=True)
