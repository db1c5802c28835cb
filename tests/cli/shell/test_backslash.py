"""Commands with a backslash, typed at a real terminal."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.cli.shell.conftest import Start
from tests.cli.shell.terminal import Terminal

TABLE = "CREATE TABLE orders (id INT, price DOUBLE) WITH ('connector' = 'datagen'); CREATE VIEW v AS SELECT 1 AS x;"


@pytest.fixture
def shell(start: Start) -> Terminal:
    made = start("-D", "execution.runtime-mode=batch", "-D", "sql-client.display.print-time-cost=false")
    made.run(TABLE)
    made.wait_for(lambda screen: screen.count("succeeded") == 2)
    made.at_prompt()
    made.run("CLEAR;")
    made.wait_for(lambda screen: "succeeded" not in screen)
    made.at_prompt()
    return made


@pytest.mark.parametrize(
    ("line", "shown", "hidden"),
    [
        ("\\d", ["orders |", "     v |", "2 rows in set"], []),
        ("\\d orders", ["price | DOUBLE", "2 rows in set"], []),
        ("\\d orders;", ["price | DOUBLE", "2 rows in set"], []),
        ("\\d+ v", ["x |  INT", "CREATE VIEW `default_catalog`.`default_database`.`v`"], []),
        ("\\d+ orders", ["price | DOUBLE", "'connector' = 'datagen'"], []),
        ("\\d+", ["[ERROR] \\d+ takes the name of a table or a view"], []),
        ("\\dt", ["orders", "1 row in set"], [" v |"]),
        ("\\dv", [" v |", "1 row in set"], ["orders"]),
        ("\\df char_l", ["CHAR_LENGTH", "row in set"], ["SUM"]),
        ("\\l", ["default_database"], []),
        ("\\c", ["default_catalog.default_database"], []),
        ("\\c nosuch", ["[ERROR] Could not execute SQL statement", "nosuch"], []),
        ("\\timing", ["Timing is on."], []),
        ("\\timing perhaps", ["[ERROR] \\timing takes 'on', 'off' or nothing, which switches, not 'perhaps'"], []),
        ("\\x on", ["Expanded display is on."], []),
        ("\\format xml", ["[ERROR] there is no format 'xml'; take one of tableau"], []),
        ("\\format csv", ["Format is csv."], []),
        ("\\p", ["CREATE VIEW v AS SELECT 1 AS x;"], []),
        ("\\i nosuch.sql", ["[ERROR] \\i: ", "nosuch.sql"], []),
        ("\\watch soon", ["[ERROR] \\watch takes a number of seconds, not 'soon'"], []),
        ("\\tming", ["[ERROR] There is no command '\\tming'; did you mean '\\timing'?"], []),
        ("\\! echo from the system", ["\nfrom the system"], []),
        ("\\?", ["\\d [NAME]", "\\watch [SECONDS]", "\\e [FILE]"], []),
    ],
)  # fmt: skip
def test_what_a_command_shows(shell: Terminal, line: str, shown: list[str], hidden: list[str]) -> None:
    shell.run(line)
    screen = shell.wait_for(lambda screen: all(text in screen for text in shown))
    assert not [text for text in hidden if text in screen]
    shell.at_prompt()


def test_rows_a_line_a_column_once_and_always(shell: Terminal) -> None:
    shell.run("SELECT 1 AS x, 'b' AS y\\gx")
    shell.wait_for("-[ RECORD 1 ]\nx | 1\ny | b\n1 row in set")
    shell.run("SELECT 2 AS x\\G")
    shell.wait_for("-[ RECORD 1 ]\nx | 2\n1 row in set")
    shell.run("SELECT 3 AS x;")
    shell.wait_for("|           3 |")
    shell.run("\\x")
    shell.run("SELECT 4 AS x;")
    shell.wait_for("x | 4")


def test_a_file_runs_and_answers_go_to_files_and_commands(shell: Terminal, tmp_path: Path) -> None:
    (tmp_path / "some.sql").write_text("SELECT 'from the file' AS a;\nSELECT nosuch;\nSELECT 'never';")
    shell.run("\\i some.sql")
    screen = shell.wait_for("--> some.sql:2:8")
    assert "from the file" in screen
    assert "never" not in screen
    shell.run("\\format csv")
    shell.run("\\o out.csv")
    shell.run("SELECT 'kept' AS a;")
    shell.run("\\o |tr a-z A-Z > upper.txt")
    shell.run("SELECT 'louder' AS a;")
    shell.run("\\o")
    shell.run("SELECT 'here' AS a;")
    shell.wait_for("\nhere")
    assert (tmp_path / "out.csv").read_text() == "a\nkept\n"
    assert (tmp_path / "upper.txt").read_text() == "A\nLOUDER\n"


def test_a_statement_is_repeated_until_ctrl_c(shell: Terminal) -> None:
    shell.run("SELECT 'again' AS a;")
    shell.wait_for("1 row in set")
    shell.run("\\watch 0.2")
    shell.wait_for(lambda screen: screen.count("(every 0.2 s, Ctrl-C ends)") > 2)
    shell.press("C-c")
    shell.wait_for("cancelled")
    shell.run("\\g")
    shell.wait_for(lambda screen: screen.rstrip().endswith("1 row in set\nFlow SQL>"))


def test_the_last_statement_is_edited_in_an_editor(start: Start, tmp_path: Path) -> None:
    editor = tmp_path / "editor.sh"
    editor.write_text("#!/bin/sh\nsed -i 's/1/77/' \"$1\"\n")
    editor.chmod(0o755)
    shell = start(EDITOR=str(editor))
    shell.run("SELECT 1 AS x;")
    shell.wait_for("1 row")
    shell.run("\\e")
    shell.wait_for("SELECT 77 AS x;")
    shell.press("Enter")
    shell.wait_for("|          77 |")
    assert not list(Path(os.environ.get("TMPDIR", "/tmp")).glob("flowsql-shell-*.sql"))


def test_long_listings_go_through_the_pager(start: Start) -> None:
    shell = start(PAGER="head -5; echo paged")
    shell.run("SHOW FUNCTIONS;")
    screen = shell.wait_for("paged")
    assert "function name" in screen
    shell.run("SHOW TABLES;")
    shell.wait_for("Empty set")
