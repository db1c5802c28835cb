"""What the command tells of files by name."""

from __future__ import annotations

from pathlib import Path

import pytest

from flowsql.cli.main import main
from flowsql.table import EnvironmentSettings, TableEnvironment

Printed = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FLOWSQL_CONF_DIR", raising=False)
    (tmp_path / "a.csv").write_text("n;s\nNA;x\n1;\n")
    (tmp_path / "it's.jsonl").write_text('{"n": 1}\n')
    return tmp_path


def lines(*statements: str) -> str:
    return ";\n".join(statements)


def test_what_was_inferred_is_told_once_a_file(capsys: Printed, folder: Path) -> None:
    script = lines("SELECT COUNT(*) FROM 'a.csv'", "DESCRIBE 'a.csv'", "SELECT * FROM 'a.csv', 'it''s.jsonl'")
    assert main(["-c", script]) == 0
    assert capsys.readouterr().err.splitlines() == [
        "[INFO] 'a.csv': header, 2 columns, ';' between fields, NA as NULL; DESCRIBE 'a.csv' shows the types",
        "[INFO] 'it''s.jsonl': 1 column; DESCRIBE 'it''s.jsonl' shows the types",
    ]


def test_files_of_a_table_are_told_under_its_name(capsys: Printed, folder: Path) -> None:
    (folder / "b.csv").write_text("n;s\n2;y\n")
    options = "'connector' = 'filesystem', 'path' = '*.csv', 'format' = 'csv'"
    assert main(["-c", lines(f"CREATE TABLE t WITH ({options})", "SELECT COUNT(*) FROM t")]) == 0
    assert capsys.readouterr().err.splitlines() == [
        "[INFO] `t`: 2 files, header, 2 columns, ';' between fields, NA as NULL; DESCRIBE `t` shows the types",
    ]


def test_a_file_that_changed_is_told_again(capsys: Printed, folder: Path) -> None:
    script = lines(
        "CREATE TABLE s (m INT) WITH ('connector' = 'filesystem', 'path' = 'out', 'format' = 'parquet')",
        "INSERT INTO s VALUES 1",
        "SELECT m FROM 'out' /*+ OPTIONS('format' = 'parquet') */",
        "SELECT m FROM 'out' /*+ OPTIONS('format' = 'parquet') */",
        "INSERT INTO s VALUES 2",
        "SELECT m FROM 'out' /*+ OPTIONS('format' = 'parquet') */",
    )
    assert main(["-c", script]) == 0
    assert [line for line in capsys.readouterr().err.splitlines() if "column" in line] == [
        "[INFO] 'out': 1 column; DESCRIBE 'out' shows the types",
        "[INFO] 'out': 2 files, 1 column; DESCRIBE 'out' shows the types",
    ]


def test_an_error_points_at_the_file(capsys: Printed) -> None:
    assert main(["-c", "SELECT *\nFROM 'b.csv'"]) == 1
    assert capsys.readouterr().err == (
        "[ERROR] Could not execute SQL statement. Reason:\n"
        "File b.csv does not exist.\n"
        " --> <command>:2:6\n"
        "  |\n"
        "2 | FROM 'b.csv'\n"
        "  |      ^^^^^^^ did you mean 'a.csv'?\n"
    )


def test_names_of_variables_are_for_programs_alone(capsys: Printed) -> None:
    assert main(["-c", "SELECT * FROM folder"]) == 1
    assert "Object 'folder' not found\n" in capsys.readouterr().err


def test_programs_are_told_nothing(capsys: Printed) -> None:
    environment = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    assert environment.sql_query("SELECT n FROM 'a.csv'").to_arrow().num_rows == 2
    assert capsys.readouterr() == ("", "")


def test_lineage_and_plans_call_files_by_their_names(capsys: Printed) -> None:
    assert main(["--format", "csv", "-c", "EXPLAIN LINEAGE SELECT a.n + 1 AS m FROM 'a.csv' WHERE s <> ''"]) == 0
    assert "(query) <- a.csv\n  m       a.csv.n  TRANSFORMATION\n  (rows)  a.csv.s  FILTER\n" in capsys.readouterr().out
    assert main(["--format", "csv", "-c", "EXPLAIN SELECT n FROM 'a.csv'"]) == 0
    assert "TableSourceScan(table=[[a.csv, project=[n], metadata=[]]], fields=[n])" in capsys.readouterr().out
