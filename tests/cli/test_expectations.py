"""What a script's user hears of rows that broke an expectation."""

from __future__ import annotations

from pathlib import Path

import pytest

from flowsql.cli.main import main

QUIET = ("-D", "sql-client.display.print-time-cost=false")
TABLE = (
    "CREATE TABLE t (id INT, price DOUBLE, CONSTRAINT positive CHECK (price > 0) ON VIOLATION DROP, "
    "CONSTRAINT small CHECK (id < 3) ON VIOLATION WARN, CONSTRAINT known CHECK (id IS NOT NULL)) "
    "WITH ('connector' = 'blackhole'); "
)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FLOWSQL_CONF_DIR", raising=False)


@pytest.mark.parametrize("mode", ["streaming", "batch"])
def test_rows_that_break_expectations_are_counted(mode: str, capsys: pytest.CaptureFixture[str]) -> None:
    insert = "INSERT INTO t VALUES (1, 1e0), (2, -1e0), (3, 2e0), (4, -2e0), (5, CAST(NULL AS DOUBLE))"
    assert main([*QUIET, "-D", f"execution.runtime-mode={mode}", "-c", TABLE + insert]) == 0
    assert capsys.readouterr().err == (
        "[WARNING] Expectation 'positive' of table 'default_catalog.default_database.t': 2 rows dropped, 3 passed\n"
        "[WARNING] Expectation 'small' of table 'default_catalog.default_database.t': 2 rows warned of, 1 passed\n"
    )


def test_nothing_is_said_where_all_rows_keep_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*QUIET, "-c", TABLE + "INSERT INTO t VALUES (1, 1e0)"]) == 0
    assert capsys.readouterr().err == ""


def test_a_failure_names_expectation_table_and_row(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*QUIET, "-c", TABLE + "INSERT INTO t VALUES (1, 1e0), (CAST(NULL AS INT), 2e0)"]) == 1
    told = capsys.readouterr().err
    assert "Table 'default_catalog.default_database.t' expects 'known' of its rows: CHECK (`id` IS NOT NULL)" in told
    assert "row: number 2 that the source read: id = NULL, price = 2.0" in told


def test_an_upserted_table_never_keeps_the_row_before_one_that_is_left_out(capfd: pytest.CaptureFixture[str]) -> None:
    sql = (
        "CREATE TABLE t (k STRING PRIMARY KEY NOT ENFORCED, s INT, CONSTRAINT small CHECK (s < 10) ON VIOLATION DROP) "
        "WITH ('connector' = 'print'); "
        "INSERT INTO t SELECT k, SUM(v) FROM (VALUES ('a', 4), ('a', 9), ('a', -8), ('b', 1), ('b', 20)) AS v(k, v) "
        "GROUP BY k"
    )
    assert main([*QUIET, "-c", sql]) == 0
    said = capfd.readouterr()
    changes = [line for line in said.out.splitlines() if line.startswith(("+", "-"))]
    assert changes == ["+I[a, 4]", "-D[a, 4]", "+I[a, 5]", "+I[b, 1]", "-D[b, 1]"]
    assert "'small' of table 'default_catalog.default_database.t': 2 rows dropped, 3 passed" in said.err


def test_a_compiled_plan_keeps_them(capsys: pytest.CaptureFixture[str]) -> None:
    insert = "INSERT INTO t VALUES (1, 1e0), (4, -2e0)"
    assert main([*QUIET, "-c", f"{TABLE} COMPILE PLAN 'file://plan.json' FOR {insert}"]) == 0
    capsys.readouterr()
    assert main([*QUIET, "-c", "EXECUTE PLAN 'file://plan.json'"]) == 0
    assert (
        "'positive' of table 'default_catalog.default_database.t': 1 row dropped, 1 passed" in capsys.readouterr().err
    )
