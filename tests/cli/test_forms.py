"""``--format markdown`` and ``vertical``, and ``-o``."""

from __future__ import annotations

from pathlib import Path

import pytest

from flowsql.cli.main import main

QUIET = ("-D", "sql-client.display.print-time-cost=false")
BATCH = ("-D", "execution.runtime-mode=batch")
ROWS = "SELECT * FROM (VALUES (1, 'a|b', 1.5e0), (22, CAST(NULL AS STRING), -2e0)) AS t(id, `a name`, x)"


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main([*QUIET, *words]) == 0
    return capsys.readouterr().out


def test_markdown_has_numbers_right_and_escapes_what_ends_a_cell(capsys: pytest.CaptureFixture[str]) -> None:
    assert printed(capsys, *BATCH, "--format", "markdown", "-c", ROWS) == (
        "| id | a name | x |\n|---:|:---|---:|\n| 1 | a\\|b | 1.5 |\n| 22 | <NULL> | -2.0 |\n2 rows in set\n"
    )


def test_markdown_of_a_stream_has_kinds_of_change(capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(capsys, "--format", "markdown", "-c", "SELECT COUNT(*) AS n FROM (VALUES (1), (2)) AS t(k)")
    assert text.splitlines() == [
        "| op | n |", "|:---|---:|", "| +I | 1 |", "| -U | 1 |", "| +U | 2 |", "Received a total of 3 rows",
    ]  # fmt: skip


def test_vertical_shows_whole_texts_a_line_a_column(capsys: pytest.CaptureFixture[str]) -> None:
    query = "SELECT 1 AS id, REPEAT('long ', 8) AS `text`, CAST(NULL AS INT) AS 日本"
    assert printed(capsys, *BATCH, "--format", "vertical", "-c", query) == (
        "-[ RECORD 1 ]\nid   | 1\ntext | long long long long long long long long \n日本 | <NULL>\n1 row in set\n"
    )
    text = printed(
        capsys, "--format", "vertical", "-c", "SELECT k, 'x' || CHR(10) || 'y' AS s FROM (VALUES (1), (2)) t(k)"
    )
    assert text == (
        "-[ RECORD 1 ]\nop | +I\nk  | 1\ns  | x\n   | y\n"
        "-[ RECORD 2 ]\nop | +I\nk  | 2\ns  | x\n   | y\n"
        "Received a total of 2 rows\n"
    )


@pytest.mark.parametrize("form", ["markdown", "vertical"])
def test_other_answers_stay_readable(form: str, capsys: pytest.CaptureFixture[str]) -> None:
    made = "CREATE TABLE t (k INT) WITH ('connector' = 'datagen'); SHOW TABLES; EXPLAIN SELECT k FROM t; SHOW VIEWS"
    text = printed(capsys, "--format", form, "-c", made)
    assert text.startswith("[INFO] Execute statement succeeded.\n")
    assert "1 row in set\n== Abstract Syntax Tree ==" in text
    assert text.endswith("Empty set\n")
    assert ("| table name |" if form == "markdown" else "table name | t") in text


def test_answers_go_to_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert printed(capsys, *BATCH, "--format", "csv", "-o", str(tmp_path / "out.csv"), "-c", ROWS) == ""
    assert (tmp_path / "out.csv").read_text() == "id,a name,x\n1,a|b,1.5\n22,,-2.0\n"
    assert main(["-o", str(tmp_path / "no" / "out.csv"), "-c", ROWS]) == 2
    assert "out.csv" in capsys.readouterr().err
