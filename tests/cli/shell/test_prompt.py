"""The prompt of the shell, typed at a real terminal."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.shell.conftest import Start
from tests.cli.shell.terminal import TERMINALS

ONE = "Received a total of 1 row"
ENDLESS = "CREATE TABLE g (n BIGINT) WITH ('connector' = 'datagen', 'rows-per-second' = '100');"


def count(text: str, times: int) -> object:
    return lambda screen: screen.count(text) == times


@pytest.mark.parametrize("terminal", TERMINALS)
def test_statements_go_over_lines_until_the_semicolon(start: Start, terminal: str) -> None:
    shell = start(terminal=terminal)
    shell.run("SELECT")
    shell.wait_for("        >")
    shell.enter("1 AS x")
    shell.enter(";")
    screen = shell.wait_for(ONE)
    assert "Flow SQL> SELECT\n        > 1 AS x\n        > ;\n+----+" in screen
    assert "| +I |           1 |" in screen


@pytest.mark.parametrize("terminal", TERMINALS)
def test_a_script_is_pasted_and_run_with_one_enter(start: Start, terminal: str) -> None:
    shell = start(terminal=terminal)
    shell.paste("SELECT 'one' AS a;\n-- a comment; of no account\nSELECT 'two'\n  AS b;")
    shell.wait_for("AS b;")
    assert "Received" not in shell.screen()
    shell.press("Enter")
    screen = shell.wait_for(count(ONE, 2))
    assert screen.index("one |") < screen.index("two |")


@pytest.mark.parametrize("terminal", TERMINALS)
def test_ctrl_c_clears_the_line_and_ctrl_d_leaves(start: Start, terminal: str) -> None:
    shell = start(terminal=terminal)
    shell.type("SELECT nonsense")
    shell.wait_for("nonsense")
    shell.press("C-c")
    shell.at_prompt()
    shell.run("SELECT 2;")
    shell.wait_for(ONE)
    shell.at_prompt()
    shell.press("C-d")
    shell.wait_for_end()


@pytest.mark.parametrize("terminal", TERMINALS)
def test_ctrl_c_ends_the_query_and_not_the_shell(start: Start, terminal: str) -> None:
    shell = start(terminal=terminal)
    shell.run(ENDLESS)
    shell.wait_for("succeeded")
    shell.at_prompt()
    shell.run("SELECT n FROM g;")
    shell.wait_for("rows/s")
    shell.press("C-c")
    assert "Query terminated, received a total of " in shell.wait_for("[INFO] Result retrieval cancelled.")
    shell.at_prompt()
    shell.run("SELECT 'still here';")
    shell.wait_for(ONE)
    shell.at_prompt()


def test_history_lasts_and_can_be_searched(start: Start, tmp_path: Path) -> None:
    first = start()
    first.run("SELECT 41 AS answer;")
    first.wait_for(ONE)
    first.at_prompt()
    first.run(" SELECT 'a secret';")
    first.wait_for(count(ONE, 2))
    first.at_prompt()
    first.press("C-d")
    first.wait_for_end()
    assert "secret" not in (tmp_path / ".flowsql-history").read_text()
    assert (tmp_path / ".flowsql-history").stat().st_mode & 0o077 == 0
    second = start()
    second.press("Up")
    second.wait_for("SELECT 41 AS answer;")
    second.press("C-c")
    second.at_prompt()
    second.press("C-r")
    second.type("answ")
    second.wait_for("I-search backward: answ")
    second.press("Enter")
    second.wait_for(lambda screen: "I-search" not in screen)
    second.press("Enter")
    second.wait_for(ONE)
    second.at_prompt()


def test_a_statement_that_failed_comes_back_with_the_cursor_at_the_fault(start: Start) -> None:
    shell = start()
    shell.run("SELECT nosuch, 1 AS b;")
    screen = shell.wait_for("Column 'nosuch' not found in any table")
    assert "  |        ^^^^^^" in screen
    shell.at_prompt()
    shell.press("Up")
    shell.wait_for(count("SELECT nosuch, 1 AS b;", 3))
    # The cursor stands in front of the name: it is rubbed out, and another one typed.
    shell.press("C-d", "C-d", "C-d", "C-d", "C-d", "C-d")
    shell.type("7")
    shell.wait_for("SELECT 7, 1 AS b;")
    shell.press("Enter")
    shell.wait_for(ONE)
    shell.at_prompt()


def test_tab_completes_words_tables_columns_and_options(start: Start) -> None:
    shell = start()
    shell.run("CREATE TABLE orders (order_id INT, price DOUBLE) WITH ('connector' = 'datagen');")
    shell.wait_for("succeeded")
    shell.at_prompt()
    shell.type("SEL")
    shell.press("Tab")
    shell.wait_for("Flow SQL> SELECT")
    shell.type(" * FROM or")
    shell.press("Tab")
    shell.wait_for("SELECT * FROM orders")
    shell.press("C-c")
    shell.at_prompt()
    shell.type("SET 'sql-client.execution.res")
    shell.press("Tab")
    shell.wait_for("SET 'sql-client.execution.result-mode")
    shell.type("' = 'tabl")
    shell.press("Tab", "Tab")
    shell.wait_for("= 'TABLE")


def test_line_numbers_and_vi_keys(start: Start) -> None:
    shell = start("-D", "sql-client.display.show-line-numbers=true", "-D", "sql-client.editing-mode=vi")
    shell.run("SELECT 1;")
    shell.wait_for(ONE)
    shell.at_prompt()
    shell.run("SELECT 2,")
    shell.type("4")
    shell.wait_for("       2> 4")
    # Escape, x: the character under the cursor goes.
    shell.press("Escape")
    shell.type("xi5;")
    shell.wait_for("       2> 5;")
    shell.press("Enter")
    assert "|           2 |           5 |" in shell.wait_for(count(ONE, 2))


def test_commands_need_no_semicolon(start: Start) -> None:
    shell = start()
    shell.run("help")
    screen = shell.wait_for("Backslash commands")
    assert "The following commands are available:" in screen
    shell.run("CLEAR;")
    shell.wait_for(lambda screen: "available" not in screen)
    shell.run("quit")
    shell.wait_for_end()


def test_an_insert_runs_on_and_is_asked_about(start: Start) -> None:
    shell = start()
    shell.run(ENDLESS)
    shell.run("CREATE TABLE void (n BIGINT) WITH ('connector' = 'blackhole');")
    shell.wait_for(count("succeeded", 2))
    shell.at_prompt()
    shell.run("INSERT INTO void SELECT n FROM g;")
    screen = shell.wait_for("Job ID: ")
    assert "[INFO] Submitting SQL update statement to the cluster..." in screen
    shell.run("SELECT 'at once';")
    shell.wait_for(ONE)
    shell.at_prompt()
    shell.run("QUIT;")
    shell.wait_for("QUIT again to leave")
    shell.run("QUIT;")
    shell.wait_for_end()


def test_the_end_of_a_job_is_told_above_the_prompt(start: Start) -> None:
    shell = start()
    shell.run("CREATE TABLE void (n INT) WITH ('connector' = 'blackhole'); INSERT INTO void VALUES (1), (2);")
    shell.wait_for("finished: 2 rows written.")
    shell.at_prompt()
    shell.run("CREATE TABLE broken (n INT) WITH ('connector'='filesystem','format'='csv','path'='/none/x.csv');")
    shell.wait_for(count("succeeded.", 2))
    shell.run("INSERT INTO void SELECT n FROM broken;")
    shell.wait_for("/none/x.csv", 5)


def test_an_insert_that_gives_no_rows_says_why_above_the_prompt(start: Start) -> None:
    shell = start("-D", "sql-client.display.explain-silence=300 ms")
    shell.run(ENDLESS)
    shell.run("CREATE TABLE void (n BIGINT) WITH ('connector' = 'blackhole');")
    shell.wait_for(count("succeeded", 2))
    shell.at_prompt()
    shell.run("INSERT INTO void SELECT n FROM g WHERE MOD(n, 7) = 9;")
    # The name of the job may break the line.
    shell.wait_for(lambda screen: "= 9 is true of none" in " ".join(screen.split()))
    shell.at_prompt()


def test_an_init_file_and_its_failure(start: Start, tmp_path: Path) -> None:
    (tmp_path / "init.sql").write_text("CREATE VIEW v AS SELECT 5 AS five;")
    shell = start("-i", "init.sql")
    shell.run("SELECT * FROM v;")
    shell.wait_for("|           5 |")
    shell.at_prompt()
    shell.press("C-d")
    shell.wait_for_end()
