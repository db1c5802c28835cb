"""What a failing job reports: message, place, expression, row with its values, tables, operator; under 15 lines."""

from __future__ import annotations

from pathlib import Path

import pytest

from flowsql.cli.main import main

FILE = "WITH ('connector' = 'filesystem', 'path' = 'numbers.json', 'format' = 'json')"
TABLES = f"""
CREATE TABLE numbers (k INT, s STRING, t TIMESTAMP(3)) {FILE};
CREATE TABLE typed (k INT, s STRING, n AS CAST(s AS INT)) {FILE};
CREATE TABLE timed (k INT, t TIMESTAMP(3), WATERMARK FOR t AS t) {FILE};
CREATE TABLE target (k INT, n INT NOT NULL) WITH ('connector' = 'blackhole');
"""
SOURCE = "default_catalog.default_database.numbers"
SINK = "default_catalog.default_database.target"

#: name -> (statement, the report)
REPORTS = {
    "cast behind a filter": (
        "INSERT INTO target SELECT k, c\n  FROM (SELECT k, CAST(s AS INT) AS c FROM numbers WHERE k >= 100);",
        f"""For input string: 'x7'. Invalid character found.
 --> job.sql:8:19
  |
8 |   FROM (SELECT k, CAST(s AS INT) AS c FROM numbers WHERE k >= 100);
  |                   ^^^^^^^^^^^^^^
expression: CAST(s AS INTEGER)
row: number 778 that the source read: s = 'x7'
reading table {SOURCE}
writing table {SINK}
in operator Calc(select=[k, CAST(s AS INTEGER) AS c], where=[(k >= 100)])
""",
    ),
    "division": (
        "SELECT 10 / (k - 5) FROM numbers WHERE k > 2;",
        f"""/ by zero
 --> job.sql:7:8
  |
7 | SELECT 10 / (k - 5) FROM numbers WHERE k > 2;
  |        ^^^^^^^^^^^^
expression: (10 / (k - 5))
row: number 6 that the source read: k = 5
reading table {SOURCE}
in operator Calc(select=[(10 / (k - 5)) AS EXPR$0], where=[(k > 2)])
""",
    ),
    "decimal division": (
        "SELECT CAST(k AS DECIMAL(5, 1)) / CAST(k - 3 AS DECIMAL(5, 1)) FROM numbers;",
        f"""Division by zero
 --> job.sql:7:8
  |
7 | SELECT CAST(k AS DECIMAL(5, 1)) / CAST(k - 3 AS DECIMAL(5, 1)) FROM numbers;
  |        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
expression: (CAST(k AS DECIMAL(5, 1)) / CAST((k - 3) AS DECIMAL(5, 1)))
row: number 4 that the source read: k = 3
reading table {SOURCE}
in operator Calc(select=[(CAST(k AS DECIMAL(5, 1)) / CAST((k - 3) AS DECIMAL(5, 1))) AS EXPR$0])
""",
    ),
    "a branch that only some rows take": (
        "SELECT CASE WHEN k > 4 THEN 1 / (k - 9) ELSE k END FROM numbers;",
        f"""/ by zero
 --> job.sql:7:29
  |
7 | SELECT CASE WHEN k > 4 THEN 1 / (k - 9) ELSE k END FROM numbers;
  |                             ^^^^^^^^^^^
expression: (1 / (k - 9))
row: number 10 that the source read: k = 9
reading table {SOURCE}
in operator Calc(select=[CASE((k > 4), (1 / (k - 9)), k) AS EXPR$0])
""",
    ),
    "computed column": (
        "SELECT n\n FROM typed;",
        """For input string: 'x7'. Invalid character found.
 --> job.sql:8:7
  |
8 |  FROM typed;
  |       ^^^^^
expression: CAST(s AS INTEGER)
row: number 778 that the source read: s = 'x7'
reading table default_catalog.default_database.typed
in operator Calc(select=[CAST(s AS INTEGER) AS n])
""",
    ),
    "json": (
        "SELECT JSON_VALUE('{\"a\": ' || s || '}', 'strict $.b' ERROR ON ERROR) FROM numbers;",
        f"""No results for path: $['b']
 --> job.sql:7:8
  |
7 | SELECT JSON_VALUE('{{"a": ' || s || '}}', 'strict $.b' ERROR ON ERROR) FROM numbers;
  |        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
expression: JSON_VALUE((('{{"a": ' || s) || '}}'), 'strict $.b')
row: number 1 that the source read: s = '0'
reading table {SOURCE}
in operator Calc(select=[JSON_VALUE((('{{"a": ' || s) || '}}'), 'strict $.b') AS EXPR$0])
""",
    ),
    "array": (
        "SELECT ELEMENT(SPLIT(s, '7')) FROM numbers WHERE k > 10;",
        f"""Array has more than one element.
 --> job.sql:7:8
  |
7 | SELECT ELEMENT(SPLIT(s, '7')) FROM numbers WHERE k > 10;
  |        ^^^^^^^^^^^^^^^^^^^^^^
expression: ELEMENT(SPLIT(s, '7'))
row: number 18 that the source read: s = '17'
reading table {SOURCE}
in operator Calc(select=[ELEMENT(SPLIT(s, '7')) AS EXPR$0], where=[(k > 10)])
""",
    ),
    "not null sink": (
        "INSERT INTO target SELECT k, NULLIF(k, 42) FROM numbers;",
        f"""Column 'n' is NOT NULL, however, a null value is being written into it. You can set job configuration \
'table.exec.sink.not-null-enforcer'='DROP' to suppress this exception and drop such records silently.
row: number 43 that the source read: k = 42, n = NULL
reading table {SOURCE}
writing table {SINK}
in operator ConstraintEnforcer[NotNullEnforcer(fields=[n])]
""",
    ),
    "null row time": (
        "SELECT * FROM timed;",
        """RowTime field should not be null, please convert it to a non-null long value.
hint: column 't' is the row time; give it a value with COALESCE
row: number 801 that the source read: t = NULL
reading table default_catalog.default_database.timed
in operator WatermarkAssigner(rowtime=[t], watermark=[t])
""",
    ),
    "behind an aggregation": (
        "SELECT 1 / (c - 1000) FROM (SELECT COUNT(*) AS c FROM numbers);",
        f"""/ by zero
 --> job.sql:7:8
  |
7 | SELECT 1 / (c - 1000) FROM (SELECT COUNT(*) AS c FROM numbers);
  |        ^^^^^^^^^^^^^^
expression: (1 / (c - 1000))
row: number 1,999 of its batch: c = 1000
reading table {SOURCE}
in operator Calc(select=[(1 / (c - 1000)) AS EXPR$0])
""",
    ),
}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FLOWSQL_CONF_DIR", raising=False)
    lines = []
    for k in range(1000):
        text = "x7" if k == 777 else str(k)
        moment = "null" if k == 800 else f'"2020-01-01 00:{k // 60:02d}:{k % 60:02d}"'
        lines.append(f'{{"k": {k}, "s": "{text}", "t": {moment}}}\n')
    (tmp_path / "numbers.json").write_text("".join(lines))
    return tmp_path


@pytest.mark.parametrize("name", REPORTS)
def test_a_failing_job_names_everything_that_took_part(
    name: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    statement, report = REPORTS[name]
    (folder / "job.sql").write_text(TABLES + "\n" + statement)
    assert main(["-f", "job.sql"]) == 1
    assert capsys.readouterr().err == "[ERROR] Could not execute SQL statement. Reason:\n" + report
    assert report.count("\n") < 15


def test_rows_of_parallel_sources_name_their_subtask(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "more").mkdir()
    for part in ("a", "b"):
        (folder / "more" / f"{part}.csv").write_text("1\n2\n" if part == "a" else "1\n0\n")
    ddl = "CREATE TABLE m (k INT) WITH ('connector' = 'filesystem', 'path' = 'more', 'format' = 'csv')"
    assert main(["-D", "parallelism.default=2", "-c", f"{ddl}; SELECT 5 / k FROM m"]) == 1
    assert "of the source read: k = 0\n" in capsys.readouterr().err


def test_the_trace_is_for_those_who_ask(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    query = "SELECT 1 / k FROM (VALUES 1, 0) AS t(k)"
    assert main(["-c", query]) == 1
    assert "Traceback" not in capsys.readouterr().err
    assert main(["-D", "sql-client.verbose=true", "-c", query]) == 1
    assert "Traceback" in capsys.readouterr().err


def test_long_expressions_and_values_are_cut(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    digits = "9" * 400
    query = f"SELECT CAST(s || '{digits}' AS INT) FROM (VALUES '{digits}', 'y') AS t(s)"
    assert main(["-c", query]) == 1
    report = capsys.readouterr().err.splitlines()
    named = {line.partition(" ")[0]: line for line in report}
    assert named["row:"].endswith("9...")
    assert len(named["row:"]) < 150
    assert len(named["expression:"]) < 260
    assert len(named["in"]) < 260
