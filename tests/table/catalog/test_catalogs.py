"""What outlives a session: the file catalog, the catalog store, compiled plans; and statistics of ANALYZE TABLE."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from flowsql.table.catalog import CatalogColumnStatisticsData, ObjectPath
from flowsql.table.session.environment import TableEnvironment
from flowsql_core.catalog import ColumnStatistics
from flowsql_core.config import Configuration
from flowsql_core.errors import FlowSqlError


def session(**options: str) -> TableEnvironment:
    layer = {"table.local-time-zone": "UTC", **{key.replace("_", "-"): value for key, value in options.items()}}
    return TableEnvironment.of_configuration(Configuration().with_layer(layer).with_layer())


def stored_session(folder: Path) -> TableEnvironment:
    configuration = Configuration().with_layer(
        {"table.catalog-store.kind": "file", "table.catalog-store.file.path": str(folder / "store")}
    )
    return TableEnvironment.of_configuration(configuration.with_layer())


def rows(environment: TableEnvironment, statement: str) -> list[tuple[object, ...]]:
    with environment.execute_sql(statement).collect() as found:
        return [tuple(row) for row in found]


def test_objects_of_a_file_catalog_are_there_in_the_next_session(tmp_path: Path) -> None:
    first = stored_session(tmp_path)
    first.execute_sql(f"CREATE CATALOG shop COMMENT 'c' WITH ('type' = 'file', 'path' = '{tmp_path / 'objects'}')")
    for statement in (
        "USE CATALOG shop",
        "CREATE DATABASE sales COMMENT 'orders' WITH ('owner' = 'ann')",
        "CREATE TABLE sales.`a/b..` (id BIGINT NOT NULL, r ROW<x INT, y ARRAY<STRING>>, ts TIMESTAMP(3), "
        "p AS PROCTIME(), d DECIMAL(10, 2) COMMENT 'money', WATERMARK FOR ts AS ts - INTERVAL '1' SECOND, "
        "PRIMARY KEY (id) NOT ENFORCED) DISTRIBUTED BY (id) INTO 3 BUCKETS PARTITIONED BY (d) "
        "WITH ('connector' = 'datagen')",
        "ALTER TABLE sales.`a/b..` ADD PARTITION (d = 1)",
        "CREATE VIEW sales.v AS SELECT id, d FROM sales.`a/b..`",
        "CREATE FUNCTION sales.f AS 'mod.fn' LANGUAGE PYTHON",
    ):
        first.execute_sql(statement)
    shown = [
        "SHOW CREATE TABLE shop.sales.`a/b..`",
        "DESCRIBE shop.sales.`a/b..`",
        "SHOW CREATE VIEW shop.sales.v",
        "SHOW PARTITIONS shop.sales.`a/b..`",
        "DESCRIBE DATABASE EXTENDED shop.sales",
        "SHOW USER FUNCTIONS FROM shop.sales",
        "DESCRIBE CATALOG EXTENDED shop",
    ]
    before = [rows(first, statement) for statement in shown]
    second = stored_session(tmp_path)
    assert rows(second, "SHOW CATALOGS") == [("default_catalog",), ("shop",)]
    assert [rows(second, statement) for statement in shown] == before
    second.execute_sql("ALTER TABLE shop.sales.`a/b..` RENAME TO plain")
    assert rows(first, "SHOW TABLES FROM shop.sales") == [("plain",), ("v",)]
    second.execute_sql("DROP DATABASE shop.sales CASCADE")
    second.execute_sql("DROP CATALOG shop")
    assert rows(stored_session(tmp_path), "SHOW CATALOGS") == [("default_catalog",)]


def test_a_file_catalog_needs_a_folder() -> None:
    with pytest.raises(FlowSqlError, match="Missing required options are: path"):
        session().execute_sql("CREATE CATALOG c WITH ('type' = 'file')")


def test_a_plan_is_compiled_once_and_runs_in_another_session(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("1,a\n2,b\n2,c\n")
    plan = tmp_path / "plan.json"
    one = session()
    one.execute_sql(
        f"CREATE TABLE src (k INT, s STRING) WITH ('connector' = 'filesystem', 'path' = '{tmp_path / 'in.csv'}', "
        "'format' = 'csv')"
    )
    one.execute_sql(
        f"CREATE TABLE dst (k INT, s STRING) WITH ('connector' = 'filesystem', 'path' = '{tmp_path / 'out'}', "
        "'format' = 'csv')"
    )
    statement = f"COMPILE PLAN '{plan}' FOR INSERT INTO dst SELECT k + 1, UPPER(s) FROM src WHERE k > 1"
    one.execute_sql(statement)
    assert json.loads(plan.read_text())["flowsqlPlan"] == 1
    with pytest.raises(FlowSqlError, match="Cannot overwrite the plan file"):
        one.execute_sql(statement)
    one.execute_sql(statement.replace(" FOR ", " IF NOT EXISTS FOR "))
    session().execute_sql(f"EXECUTE PLAN '{plan}'").wait()
    written = "".join(file.read_text() for file in (tmp_path / "out").iterdir() if not file.name.startswith((".", "_")))
    assert sorted(written.split()) == ["3,B", "3,C"]


def test_every_operator_of_an_aggregation_has_a_stored_form(tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    one = session()
    one.execute_sql(
        "CREATE TABLE src (k INT, v DOUBLE, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '1' SECOND) "
        "WITH ('connector' = 'datagen', 'number-of-rows' = '20')"
    )
    one.execute_sql("CREATE TABLE dst (k INT, n BIGINT, m DOUBLE, e TIMESTAMP(3)) WITH ('connector' = 'blackhole')")
    one.execute_sql(
        f"COMPILE AND EXECUTE PLAN '{plan}' FOR INSERT INTO dst SELECT k, COUNT(DISTINCT v), MAX(v) "
        "FILTER (WHERE v > 1), window_end FROM TABLE(TUMBLE(TABLE src, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) "
        "GROUP BY k, window_start, window_end"
    ).wait()
    session().execute_sql(f"EXECUTE PLAN '{plan}'").wait()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("no json", "not JSON"),
        ("{}", "no compiled plan"),
        ('{"flowsqlPlan": 99}', "version 99"),
        ('{"flowsqlPlan": 1, "sinks": [], "job": {"$": "Nonsense"}}', "Nonsense"),
    ],
)
def test_what_is_no_plan_is_refused(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "p.json").write_text(text)
    with pytest.raises(FlowSqlError, match=message):
        session().execute_sql(f"EXECUTE PLAN '{tmp_path / 'p.json'}'")


def test_analyze_table_counts_rows_and_columns(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text('1,a\n2,bb\n2,\n,"ccc"\n')
    one = TableEnvironment.of_configuration(
        Configuration().with_layer({"execution.runtime-mode": "batch"}).with_layer()
    )
    one.execute_sql(
        f"CREATE TABLE src (k INT, s STRING) WITH ('connector' = 'filesystem', 'path' = '{tmp_path / 'in.csv'}', "
        "'format' = 'csv', 'csv.null-literal' = '')"
    )
    one.execute_sql("ANALYZE TABLE src COMPUTE STATISTICS FOR ALL COLUMNS")
    found = one.catalogs.catalog("default_catalog").details("default_database", "src").statistics
    assert found is not None
    assert found.rows == 4
    columns = dict(found.columns)
    assert columns["k"] == ColumnStatistics(1, 2, None, None, 2.0, 1.0)
    assert (columns["s"].nulls, columns["s"].distinct, columns["s"].average_length, columns["s"].longest) == (
        1,
        3,
        2.0,
        3,
    )
    path = ObjectPath("default_database", "src")
    shown = one.get_catalog("default_catalog").get_table_column_statistics(path).get_column_statistics_data()
    assert shown["k"] == CatalogColumnStatisticsData(1, 2, 1.0, 2.0)
    assert (shown["s"].getMaxLength(), shown["s"].getAvgLength()) == (3, 2.0)
    with pytest.raises(FlowSqlError, match="Column: nosuch does not exist"):
        one.execute_sql("ANALYZE TABLE src COMPUTE STATISTICS FOR COLUMNS nosuch")
