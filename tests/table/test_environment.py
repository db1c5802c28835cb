from __future__ import annotations

import datetime
from decimal import Decimal
from pathlib import Path

import pytest

from flowsql.table import DataTypes, EnvironmentSettings, ResultKind, Row, RowKind, TableEnvironment
from flowsql.table.expressions import col
from flowsql.table.udf import udf
from flowsql_core.errors import BindError, FlowSqlError


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TableEnvironment:
    monkeypatch.chdir(tmp_path)
    made = TableEnvironment.create()
    made.get_config().set_local_timezone("UTC")
    return made


def test_changes_come_in_order_with_their_kinds(environment: TableEnvironment) -> None:
    result = environment.execute_sql("SELECT k, COUNT(*) AS n FROM (VALUES (1), (2), (1)) AS t(k) GROUP BY k")
    with result.collect() as rows:
        changes = [(row.get_row_kind(), *row) for row in rows]
    assert changes == [
        (RowKind.INSERT, 1, 1),
        (RowKind.INSERT, 2, 1),
        (RowKind.UPDATE_BEFORE, 1, 1),
        (RowKind.UPDATE_AFTER, 1, 2),
    ]
    assert result.get_resolved_schema().get_column_names() == ["k", "n"]
    types = result.get_resolved_schema().get_column_data_types()
    assert types == [DataTypes.INT(False), DataTypes.BIGINT(False)]
    assert [str(type_) for type_ in types] == ["INT NOT NULL", "BIGINT NOT NULL"]


def test_values_have_pythons_types(environment: TableEnvironment) -> None:
    query = """SELECT CAST(1.50 AS DECIMAL(5, 2)) AS d, DATE '2020-01-31' AS a, TIME '10:00:00' AS t,
        TIMESTAMP '2020-01-01 00:00:00.123' AS ts, INTERVAL '1' DAY AS i, INTERVAL '14' MONTH AS m,
        ARRAY[1, 2] AS l, MAP['k', 1] AS p, ROW(1, 'z') AS r, x'0f' AS b, CAST(NULL AS INT) AS n, TRUE AS y"""
    with environment.execute_sql(query).collect() as rows:
        (row,) = rows
    assert row.as_dict() == {
        "d": Decimal("1.50"),
        "a": datetime.date(2020, 1, 31),
        "t": datetime.time(10),
        "ts": datetime.datetime(2020, 1, 1, 0, 0, 0, 123000),
        "i": datetime.timedelta(days=1),
        "m": 14,
        "l": [1, 2],
        "p": {"k": 1},
        "r": Row(1, "z"),
        "b": b"\x0f",
        "n": None,
        "y": True,
    }


def test_print_is_pyflinks(environment: TableEnvironment, capsys: pytest.CaptureFixture[str]) -> None:
    environment.execute_sql("CREATE TABLE b (k INT) WITH ('connector' = 'blackhole')").print()
    environment.execute_sql("SHOW TABLES").print()
    environment.execute_sql("INSERT INTO b SELECT 1").print()
    environment.execute_sql("SELECT 1 AS a").print()
    environment.execute_sql("SHOW VIEWS").print()
    assert capsys.readouterr().out == (
        "OK\n"
        "+------------+\n| table name |\n+------------+\n|          b |\n+------------+\n1 row in set\n"
        "-1\n"
        "+----+-------------+\n| op |           a |\n+----+-------------+\n| +I |           1 |\n+----+-------------+\n"
        "1 row in set\n"
        "Empty set\n"
    )


def test_insert_answers_minus_one_under_the_sinks_name(environment: TableEnvironment) -> None:
    environment.execute_sql("CREATE TABLE b (k INT) WITH ('connector' = 'blackhole')")
    result = environment.execute_sql("INSERT INTO b SELECT 1")
    assert [tuple(row) for row in result.collect()] == [(-1,)]
    assert result.get_resolved_schema().get_column_names() == ["default_catalog.default_database.b"]
    client = result.get_job_client()
    assert client is not None
    assert len(client.get_job_id()) == 32
    assert client.get_job_status().value == "FINISHED"


def test_an_endless_query_streams_and_ends_when_its_reader_leaves(environment: TableEnvironment) -> None:
    environment.execute_sql("CREATE TABLE g (n BIGINT) WITH ('connector' = 'datagen', 'rows-per-second' = '1000')")
    result = environment.execute_sql("SELECT n FROM g")
    with result.collect() as rows:
        first = [next(rows) for _ in range(3)]
    assert len(first) == 3
    client = result.get_job_client()
    assert client is not None
    assert client.get_job_status().value == "CANCELED"


def test_failure_of_a_job_reaches_its_reader(environment: TableEnvironment) -> None:
    result = environment.execute_sql("SELECT CAST(s AS INT) AS n FROM (VALUES ('1'), ('x')) AS t(s)")
    with pytest.raises(FlowSqlError, match="'x'"), result.collect() as rows:
        list(rows)


def test_rows_are_read_once(environment: TableEnvironment) -> None:
    result = environment.execute_sql("SELECT 1")
    list(result.collect())
    with pytest.raises(RuntimeError, match="once"):
        list(result.collect())


def test_result_kinds(environment: TableEnvironment) -> None:
    assert environment.execute_sql("USE default_database").get_result_kind() is ResultKind.SUCCESS
    assert environment.execute_sql("SHOW TABLES").get_result_kind() is ResultKind.SUCCESS_WITH_CONTENT


def test_tables_have_schemas_plans_and_views(environment: TableEnvironment, capsys: pytest.CaptureFixture[str]) -> None:
    table = environment.sql_query("SELECT k, k * 2 AS twice FROM (VALUES (1), (2)) AS t(k)")
    table.print_schema()
    assert capsys.readouterr().out == "(\n  `k` INT NOT NULL,\n  `twice` INT NOT NULL\n)\n"
    assert "== Optimized Physical Plan ==" in table.explain()
    environment.create_temporary_view("v", table)
    assert environment.list_tables() == ["v"]
    assert environment.sql_query("SELECT twice FROM v WHERE k > 1").to_arrow().to_pydict() == {"twice": [4]}


def test_of_an_updating_answer_the_rows_are_left_that_were_not_taken_back(environment: TableEnvironment) -> None:
    query = "SELECT k, COUNT(*) AS n, COLLECT(v) AS vs FROM (VALUES ('a', 1), ('b', 2), ('a', 3)) AS t(k, v) GROUP BY k"
    left = environment.sql_query(query).to_arrow().to_pylist()
    assert sorted((row["k"], row["n"]) for row in left) == [("a", 2), ("b", 1)]


def test_tables_become_pandas_frames() -> None:
    pytest.importorskip("pandas")
    environment = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    frame = environment.sql_query("SELECT * FROM (VALUES (1, 'a'), (2, 'b')) AS t(k, v)").to_pandas()
    assert frame["v"].tolist() == ["a", "b"]


def test_statement_sets_are_one_job(environment: TableEnvironment, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("p", "q"):
        environment.execute_sql(f"CREATE TABLE {name} (k INT) WITH ('connector' = 'print')")
    together = environment.create_statement_set()
    together.add_insert_sql("INSERT INTO p SELECT 1;")
    together.add_insert("q", environment.sql_query("SELECT 2"))
    assert "Sink" in together.explain()
    result = together.execute()
    result.wait()
    assert sorted(capsys.readouterr().out.splitlines()) == ["+I[1]", "+I[2]"]
    assert [tuple(row) for row in result.collect()] == [(-1, -1)]


def test_errors_show_the_statement(environment: TableEnvironment) -> None:
    with pytest.raises(BindError) as caught:
        environment.execute_sql("SELECT nosuch FROM (VALUES (1)) AS t(k)")
    assert "SELECT nosuch FROM" in caught.value.render()
    with pytest.raises(BindError, match="only accepts a single SQL query"):
        environment.sql_query("SHOW TABLES")


def test_importing_flowsql_loads_no_engine() -> None:
    import subprocess
    import sys

    program = (
        "import sys, flowsql, flowsql.table, flowsql.common\n"
        "engine = {'pyarrow', 'numpy', 'flowsql_planner', 'flowsql_grammar'}\n"
        "bad = {n.partition('.')[0] for n in sys.modules} & engine\n"
        "assert not bad, bad\n"
        "assert 'TableEnvironment' in dir(flowsql)\n"
        "from flowsql.table import TableEnvironment\n"
    )
    found = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=False,
        env={"PYTHONPATH": ":".join(sys.path)},
    )
    assert found.returncode == 0, found.stderr


def test_moments_are_those_of_the_session_in_a_data_frame() -> None:
    pytest.importorskip("pandas")
    environment = TableEnvironment.create()
    environment.get_config().set_local_timezone("Asia/Shanghai")
    frame = environment.sql_query("SELECT TO_TIMESTAMP_LTZ(0, 3) AS a").to_pandas()
    assert str(frame["a"][0]) == "1970-01-01 08:00:00+08:00"


def test_functions_in_expressions_are_nobodys() -> None:
    environment = TableEnvironment.create()
    twice = udf(lambda n: n * 2, result_type="BIGINT")
    environment.create_temporary_function("f", twice)
    environment.from_elements([(1,)], ["n"]).select(twice(col("n")))
    assert environment.list_user_defined_functions() == ["f"]
