from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from flowsql.cli.main import main

GROUPED = "SELECT k, COUNT(*) AS cnt FROM (VALUES (1), (1), (2)) AS t(k) GROUP BY k"
QUIET = ("-D", "sql-client.display.print-time-cost=false")
ENDLESS = "CREATE TABLE g (n BIGINT) WITH ('connector' = 'datagen', 'rows-per-second' = '100')"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FLOWSQL_CONF_DIR", raising=False)
    return tmp_path


def test_streaming_query_prints_flinks_tableau(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*QUIET, "-c", GROUPED]) == 0
    assert capsys.readouterr().out == (
        "+----+-------------+----------------------+\n"
        "| op |           k |                  cnt |\n"
        "+----+-------------+----------------------+\n"
        "| +I |           1 |                    1 |\n"
        "| -U |           1 |                    1 |\n"
        "| +U |           1 |                    2 |\n"
        "| +I |           2 |                    1 |\n"
        "+----+-------------+----------------------+\n"
        "Received a total of 4 rows\n"
    )


def test_batch_query_has_no_op_column(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*QUIET, "-D", "execution.runtime-mode=batch", "-c", "SELECT 'a' AS x, CAST(NULL AS INT) AS n"]) == 0
    assert capsys.readouterr().out == (
        "+--------------------------------+-------------+\n"
        "|                              x |           n |\n"
        "+--------------------------------+-------------+\n"
        "|                              a |      <NULL> |\n"
        "+--------------------------------+-------------+\n"
        "1 row in set\n"
    )


def test_empty_answers_say_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*QUIET, "-c", "SELECT k FROM (VALUES (1)) AS t(k) WHERE k > 1"]) == 0
    assert capsys.readouterr().out == "Empty set\n"


def test_messages_of_statements_without_rows(capsys: pytest.CaptureFixture[str]) -> None:
    script = (
        "CREATE TABLE b (k INT) WITH ('connector' = 'blackhole');\n"
        "SET 'pipeline.name' = 'x'; USE default_database; INSERT INTO b SELECT 1;"
    )
    assert main(["-c", script]) == 0
    done = "[INFO] Execute statement succeeded.\n"
    assert capsys.readouterr().out == 3 * done + "[INFO] Complete execution of the SQL update statement.\n"


def test_json_lines(capsys: pytest.CaptureFixture[str]) -> None:
    script = f"SET 'a' = 'b'; SHOW CURRENT DATABASE; {GROUPED};"
    assert main(["--format", "jsonl", "-c", script]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert lines == [
        {"columns": [["current database name", "STRING"]]},
        {"op": "+I", "row": ["default_database"]},
        {"columns": [["k", "INT NOT NULL"], ["cnt", "BIGINT NOT NULL"]]},
        {"op": "+I", "row": [1, 1]},
        {"op": "-U", "row": [1, 1]},
        {"op": "+U", "row": [1, 2]},
        {"op": "+I", "row": [2, 1]},
    ]


def test_print_sinks_join_the_json_lines(capsys: pytest.CaptureFixture[str]) -> None:
    script = "CREATE TABLE p (k INT, s STRING) WITH ('connector' = 'print'); INSERT INTO p SELECT 1, 'a';"
    assert main(["--format", "jsonl", "-c", script]) == 0
    assert [json.loads(line) for line in capsys.readouterr().out.splitlines()] == [
        {"sink": "p", "op": "+I", "row": [1, "a"]}
    ]


def test_csv(capsys: pytest.CaptureFixture[str]) -> None:
    query = "SELECT 'a,\"b' AS `x,y`, CAST(NULL AS STRING) AS n, '' AS e, 1 AS i"
    assert main(["--format", "csv", "-D", "execution.runtime-mode=batch", "-c", query]) == 0
    assert capsys.readouterr().out == '"x,y",n,e,i\n"a,""b",,"",1\n'
    assert main(["--format", "csv", "-c", "SELECT 1 AS i"]) == 0
    assert capsys.readouterr().out == "op,i\n+I,1\n"


def test_a_failing_statement_stops_the_script(capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        main(["--format", "jsonl", "-c", "SELECT 1 AS a; SELECT nosuch FROM (VALUES (1)) AS t(k); SELECT 3 AS c;"]) == 1
    )
    output, errors = capsys.readouterr()
    lines = [json.loads(line) for line in output.splitlines()]
    assert [list(line) for line in lines] == [["columns"], ["op", "row"], ["error"]]
    assert "nosuch" in lines[-1]["error"]
    assert "<command>:1:23" in lines[-1]["error"]
    assert "[ERROR] Could not execute SQL statement. Reason:" in errors
    assert "Traceback" not in errors


def test_what_stands_before_a_syntax_error_runs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--format", "jsonl", "-c", "SELECT 1 AS a;\nSELEC 2;"]) == 1
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert lines[1]["row"] == [1]
    assert "<command>:2:1" in lines[2]["error"]


def test_verbose_shows_the_trace(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["-D", "sql-client.verbose=true", "-c", "SELECT nosuch FROM (VALUES (1)) AS t(k)"]) == 1
    assert "Traceback" in capsys.readouterr().err


def test_files_with_byte_order_mark_and_crlf(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "s.sql").write_bytes(
        b"\xef\xbb\xbf-- a comment\r\nSELECT 'x'\r\nAS v;\r\nSELECT nosuch\r\nFROM (VALUES (1)) AS t(k)"
    )
    assert main(["--format", "jsonl", "-f", "s.sql"]) == 1
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert lines[1]["row"] == ["x"]
    assert "s.sql:4:8" in lines[2]["error"]


def test_standard_input_is_a_script(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"SELECT 1 AS a")))
    assert main(["--format", "csv", "-f", "-"]) == 0
    assert capsys.readouterr().out == "op,a\n+I,1\n"


def test_initial_file_defines_and_sets_only(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "init.sql").write_text("CREATE VIEW v AS SELECT 5 AS n; SET 'execution.runtime-mode' = 'batch';")
    assert main(["-i", "init.sql", "--format", "csv", "-c", "SELECT n FROM v"]) == 0
    assert capsys.readouterr().out == "n\n5\n"
    (folder / "init.sql").write_text("SELECT 1;")
    assert main(["-i", "init.sql", "-c", "SELECT 1"]) == 1
    assert "initialization file" in capsys.readouterr().err


def test_quit_ends_the_script_well(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--format", "csv", "-c", "SELECT 1 AS a; QUIT; SELECT nosuch;"]) == 0
    assert capsys.readouterr().out == "op,a\n+I,1\n"


def test_statement_sets_typed_line_by_line_are_one_job(capsys: pytest.CaptureFixture[str]) -> None:
    script = (
        "CREATE TABLE p (k INT) WITH ('connector' = 'print'); CREATE TABLE q (k INT) WITH ('connector' = 'print');"
        "BEGIN STATEMENT SET; INSERT INTO p SELECT 1; INSERT INTO q SELECT 2; END;"
    )
    assert main(["--format", "jsonl", "-c", script]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert sorted((line["sink"], line["row"]) for line in lines) == [("p", [1]), ("q", [2])]


def test_max_rows_ends_an_endless_query(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--format", "csv", "--max-rows", "3", "-c", f"{ENDLESS}; SELECT n FROM g"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 4


def test_timeout_ends_an_endless_query_and_fails_an_insert(capsys: pytest.CaptureFixture[str]) -> None:
    start = time.monotonic()
    assert main(["--format", "csv", "--timeout", "0.5", "-c", f"{ENDLESS}; SELECT n FROM g"]) == 0
    sink = "CREATE TABLE b (n BIGINT) WITH ('connector' = 'blackhole')"
    assert main(["--timeout", "0.5", "-c", f"{ENDLESS}; {sink}; INSERT INTO b SELECT n FROM g"]) == 1
    assert "did not end within 0.5 seconds" in capsys.readouterr().err
    assert time.monotonic() - start < 20


def test_interrupt_cancels_the_job_and_leaves_nothing(folder: Path) -> None:
    script = (
        f"{ENDLESS}; CREATE TABLE f (n BIGINT) WITH ('connector' = 'filesystem', 'path' = 'out', 'format' = 'csv');"
        "INSERT INTO f SELECT n FROM g;"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-m", "flowsql.cli", "-c", script]
    process = subprocess.Popen(
        command, env=environment, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    for _ in range(2):
        assert "succeeded" in process.stdout.readline()
    time.sleep(1.0)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=20)
    assert process.returncode == 130, errors
    assert "Traceback" not in errors
    written = [path for path in (folder / "out").rglob("*") if path.is_file()] if (folder / "out").exists() else []
    assert not written


def test_lines_of_parallel_print_sinks_are_whole(tmp_path: Path) -> None:
    script = tmp_path / "print.sql"
    script.write_text(
        "CREATE TABLE s (a BIGINT, t STRING) WITH ('connector' = 'datagen', 'number-of-rows' = '60000');\n"
        "CREATE TABLE p (a BIGINT, t STRING) WITH ('connector' = 'print');\n"
        "INSERT INTO p SELECT a, t FROM s;\n"
    )
    arguments = ["--format", "jsonl", "-D", "parallelism.default=2", "-f", str(script)]
    done = subprocess.run([sys.executable, "-m", "flowsql.cli", *arguments], capture_output=True, text=True, check=True)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(lines) == 60000


def test_statements_of_a_file_are_printed_before_they_run(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "s.sql").write_text(
        "-- a comment\nSET 'a' = 'b';\n\nSELECT 1\n  AS x\nFROM (VALUES (1)) t(y) WHERE y > 1; SELECT;"
    )
    assert main([*QUIET, "-f", "s.sql"]) == 1
    assert capsys.readouterr().out == (
        "Flow SQL> SET 'a' = 'b';\n"
        "[INFO] Execute statement succeeded.\n"
        "Flow SQL> SELECT 1\n"
        ">   AS x\n"
        "> FROM (VALUES (1)) t(y) WHERE y > 1;\n"
        "Empty set\n"
    )


def test_a_query_that_fails_at_run_time_has_told_its_columns(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--format", "jsonl", "-c", "SELECT 1 / x AS y FROM (VALUES (1), (0)) AS t(x)"]) == 1
    head, error = capsys.readouterr().out.splitlines()
    assert json.loads(head)["columns"][0][0] == "y"
    assert "/ by zero" in json.loads(error)["error"]


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_an_insert_and_nothing_is_visible(folder: Path, number: int, code: int) -> None:
    sql = (
        f"{ENDLESS}; CREATE TABLE f (n BIGINT) WITH ('connector' = 'filesystem', 'path' = '{folder}/out', "
        "'format' = 'csv'); INSERT INTO f SELECT n FROM g"
    )
    process = subprocess.Popen(
        [sys.executable, "-m", "flowsql.cli", "-c", sql], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    for _ in range(2):  # both tables are made: the INSERT begins
        process.stdout.readline()
    time.sleep(1)
    process.send_signal(number)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == code, errors.decode()
    assert not [path for path in folder.rglob("*") if path.is_file()]
