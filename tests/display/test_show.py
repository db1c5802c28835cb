"""``show()`` at a terminal: the table as it stands, once."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

import pyarrow as pa
import pytest

from flowsql.display.show import QueryView
from flowsql.errors import ExecutionError
from flowsql.table import EnvironmentSettings, TableEnvironment

COUNTS = """
    SELECT k, SUM(v) AS total
    FROM (VALUES ('a', 1), ('b', 2), ('a', 3), ('c', CAST(NULL AS INT))) AS t (k, v)
    GROUP BY k"""
ENDLESS = """
    CREATE TABLE clicks (n INT) WITH (
        'connector' = 'datagen', 'rows-per-second' = '50', 'fields.n.min' = '5', 'fields.n.max' = '5')"""


@pytest.fixture(params=["streaming", "batch"])
def environment(request: pytest.FixtureRequest) -> TableEnvironment:
    mode = EnvironmentSettings.in_batch_mode if request.param == "batch" else EnvironmentSettings.in_streaming_mode
    made = TableEnvironment.create(mode())
    made.get_config().set("execution.batch.engine", "local")
    return made


def test_the_rows_that_are_left(environment: TableEnvironment, capsys: pytest.CaptureFixture[str]) -> None:
    environment.sql_query(COUNTS).show()
    assert capsys.readouterr().out == (
        "+---+--------+\n"
        "| k |  total |\n"
        "+---+--------+\n"
        "| a |      4 |\n"
        "| b |      2 |\n"
        "| c | <NULL> |\n"
        "+---+--------+\n"
        "3 rows\n"
    )


def test_some_of_the_rows_that_are_left(environment: TableEnvironment, capsys: pytest.CaptureFixture[str]) -> None:
    environment.sql_query(COUNTS).show(2)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 7
    final = environment.get_config().get("execution.runtime-mode", "streaming").lower() == "batch"
    assert lines[-1] == ("the first 2 rows; there are more" if final else "the first 2 rows of 3")


def test_no_rows(environment: TableEnvironment, capsys: pytest.CaptureFixture[str]) -> None:
    environment.sql_query("SELECT * FROM (VALUES 1) AS t (n) WHERE n > 1").show()
    assert capsys.readouterr().out == "Empty set\n"


def test_other_answers_print_as_they_do(environment: TableEnvironment, capsys: pytest.CaptureFixture[str]) -> None:
    environment.execute_sql("CREATE TEMPORARY VIEW v AS SELECT 1 AS x").show()
    environment.execute_sql("SHOW VIEWS").show()
    printed = capsys.readouterr().out
    assert printed.startswith("OK\n")
    assert "1 row in set" in printed


def test_a_number_of_rows_that_is_none(environment: TableEnvironment) -> None:
    with pytest.raises(ValueError, match=r"^show\(\) takes a number of rows above zero, got 0$"):
        environment.sql_query("SELECT 1").show(0)


def test_what_makes_the_query_fail(environment: TableEnvironment) -> None:
    with pytest.raises(ExecutionError, match="For input string: 'x'"):
        environment.sql_query("SELECT CAST(s AS INT) FROM (VALUES 'x') AS t (s)").show()


def test_final_rows_that_never_end_are_read_no_further_than_they_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    environment = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    environment.execute_sql(ENDLESS)
    result = environment.execute_sql("SELECT * FROM clicks")
    result.show(2)
    assert capsys.readouterr().out == "+---+\n| n |\n+---+\n| 5 |\n| 5 |\n+---+\nthe first 2 rows; there are more\n"
    client = result.get_job_client()
    assert client is not None
    assert client.get_job_status().value == "CANCELED"


def test_the_timeout_ends_an_updating_query(capsys: pytest.CaptureFixture[str]) -> None:
    environment = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    environment.execute_sql(ENDLESS)
    environment.sql_query("SELECT n, COUNT(*) > 3 AS many FROM clicks GROUP BY n").show(timeout=1)
    assert capsys.readouterr().out.endswith("| 5 | TRUE |\n+---+------+\n1 row, stopped after 1 s\n")


def test_an_interrupt_ends_the_query_and_shows_how_far_it_came() -> None:
    program = (
        "from flowsql.table import EnvironmentSettings, TableEnvironment\n"
        "environment = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())\n"
        f'environment.execute_sql("""{ENDLESS}""")\n'
        "table = environment.sql_query('SELECT n, COUNT(*) > 3 AS many FROM clicks GROUP BY n')\n"
        "print('begins', flush=True)\n"
        "table.show()\n"
        "print('goes on')\n"
    )
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "begins\n"
    time.sleep(2)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert out.endswith("+---+------+\n1 row, stopped\ngoes on\n")


def test_an_end_is_told_also_when_the_reader_ends_behind_it(environment: TableEnvironment) -> None:
    view = QueryView(environment.sql_query(COUNTS).execute(), 20)
    view.view.read()
    assert view.line("stopped") == "3 rows, stopped"
    assert view.line() == "3 rows"


def test_whoever_reads_arrow_streams_reads_tables() -> None:
    environment = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    table = environment.sql_query("SELECT * FROM (VALUES (1, 'x'), (2, 'y')) AS t (n, s)")
    assert pa.table(table).to_pylist() == [{"n": 1, "s": "x"}, {"n": 2, "s": "y"}]
