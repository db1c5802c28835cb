"""The live table and the changelog view, at a real terminal: their screens, and each of Flink's keys."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from tests.cli.shell.conftest import Start
from tests.cli.shell.terminal import TERMINALS, Terminal

MODE = "sql-client.execution.result-mode"
#: 100 rows, of which the key 'c' changes with each.
ROWS = (
    "CREATE VIEW r AS SELECT n, CASE MOD(n, 3) WHEN 0 THEN 'a' WHEN 1 THEN 'b' ELSE 'c' END AS k, "
    "'text ' || CAST(n AS STRING) AS t, n * 1000 AS big, CAST(n AS DOUBLE) / 4 AS d FROM (VALUES "
    + ", ".join(f"({n})" for n in range(1, 101))
    + ") AS v(n);"
)
GROUPED = "SELECT k, COUNT(*) AS c, MAX(n) AS newest FROM r GROUP BY k;"


@pytest.fixture
def made(tmp_path: Path) -> Path:
    (tmp_path / "init.sql").write_text(ROWS)
    return tmp_path


def begin(start: Start, mode: str, query: str, terminal: str = "emulator", **options: str) -> Terminal:
    settings = [word for key, value in options.items() for word in ("-D", f"{key}={value}")]
    shell = start("-i", "init.sql", "-D", f"{MODE}={mode}", *settings, terminal=terminal)
    shell.run(query)
    shell.wait_for("complete")
    return shell


def still(screen: str) -> str:
    """A screen without what another run would show differently."""
    screen = re.sub(r"\d\d:\d\d:\d\d\.\d\d\d", "HH:MM:SS.mmm", screen)
    return re.sub(r"\[\d+ s, .*\] complete", "[PROGRESS] complete", screen)


@pytest.mark.parametrize("terminal", TERMINALS)
def test_the_live_table(start: Start, made: Path, terminal: str, snapshot: SnapshotAssertion) -> None:
    shell = begin(start, "table", GROUPED, terminal)
    assert still(shell.settled()) == snapshot(name="table")
    shell.press("q")
    shell.at_prompt()


@pytest.mark.parametrize("terminal", TERMINALS)
def test_the_changelog(start: Start, made: Path, terminal: str, snapshot: SnapshotAssertion) -> None:
    shell = begin(start, "changelog", GROUPED, terminal)
    assert still(shell.settled()) == snapshot(name="changelog")
    shell.press("Q")
    shell.at_prompt()


def test_pages_and_the_row_on_its_own(start: Start, made: Path, snapshot: SnapshotAssertion) -> None:
    shell = begin(start, "table", "SELECT * FROM r;")
    shell.wait_for("Page: Last of 5")
    shell.wait_for("text 100")
    shell.press("p")
    shell.wait_for("Page: 4 of 5")
    shell.press("p", "p", "N")
    shell.wait_for("Page: 3 of 5")
    shell.press("g")
    shell.wait_for("Goto page (1 to 5)")
    shell.enter("2")
    shell.wait_for("Page: 2 of 5")
    shell.press("Down", "s", "Up")
    shell.press("o")
    shell.wait_for("Row Summary")
    assert shell.settled() == snapshot(name="row")
    shell.press("q")
    shell.wait_for("Page: 2 of 5")
    shell.press("L")
    shell.wait_for("Page: Last of 5")
    shell.press("G")
    shell.wait_for("Goto page (1 to 5)")
    shell.enter("99")
    shell.wait_for("Page: 5 of 5")


def test_columns_scroll_and_texts_are_found(start: Start, made: Path) -> None:
    shell = begin(start, "table", "SELECT * FROM r;")
    shell.wait_for("text 100")
    shell.press("d", "Right", "A")
    shell.wait_for(lambda screen: re.search(r"^ +k +t +big", screen, re.MULTILINE) is not None)
    shell.press("/")
    shell.wait_for("Search for")
    shell.enter("TEXT 31")
    shell.wait_for("Page: 2 of 5")
    shell.press("/")
    shell.wait_for("Search for")
    shell.enter("no such text")
    shell.wait_for("No row has 'no such text'")


def test_the_interval_of_refreshing(start: Start, made: Path) -> None:
    shell = begin(start, "table", GROUPED)
    shell.wait_for("Refresh: 1 s ")
    shell.press("+")
    shell.wait_for("Refresh: 5 s ")
    shell.press("-", "-", "-", "-")
    shell.wait_for("Refresh: Fastest")
    shell.press("+", "+", "+", "+", "+", "+", "+", "+")
    shell.wait_for("Refresh: - ")
    before = re.search(r"Updated: (\S+)", shell.screen())
    assert before is not None
    shell.press("R")
    shell.wait_for(lambda screen: "Updated" in screen and before[1] not in screen)


def test_a_running_query_is_shown_while_it_runs_and_ends_with_the_view(start: Start) -> None:
    shell = start("-D", f"{MODE}=table")
    shell.run("CREATE TABLE g (n BIGINT) WITH ('connector' = 'datagen', 'rows-per-second' = '100');")
    shell.wait_for("succeeded")
    shell.run("SELECT COUNT(*) AS c, MAX(n) - MAX(n) AS zero FROM g;")
    shell.wait_for(lambda screen: _count(screen) is not None)
    first = _count(shell.screen())
    shell.wait_for(lambda screen: _count(screen) not in (None, first))
    shell.press("C-c")
    shell.wait_for("[INFO] Result retrieval cancelled.")


def _count(screen: str) -> str | None:
    found = re.search(r"^ +(\d+) +0$", screen, re.MULTILINE)
    return None if found is None else found[1]


def test_rows_are_forgotten_beyond_the_limit(start: Start, made: Path) -> None:
    shell = begin(start, "table", "SELECT * FROM r;", **{"sql-client.execution.max-table-result.rows": "10"})
    screen = shell.wait_for("Page: Last of 1")
    assert "text 91 " in screen
    assert "text 90 " not in screen


def test_a_batch_query_has_a_table_and_no_changes(start: Start, made: Path) -> None:
    shell = begin(start, "table", GROUPED, **{"execution.runtime-mode": "batch"})
    shell.press("q")
    shell.at_prompt()
    shell.run(f"SET '{MODE}' = 'changelog';")
    shell.wait_for("succeeded")
    shell.run(GROUPED)
    shell.wait_for("Results of batch queries can only be served in table or tableau mode.")


def test_the_failure_of_a_query_is_told_behind_the_view(start: Start) -> None:
    shell = start("-D", f"{MODE}=table")
    shell.run("SELECT 1 / (n - 1) AS x FROM (VALUES (1)) AS v(n);")
    shell.wait_for("[ERROR] Could not execute SQL statement. Reason:")
    shell.at_prompt()


WAITING = (
    "CREATE TABLE w (n INT) WITH ('connector' = 'filesystem', 'path' = '.', 'source.path.regex-pattern' = '.*nosuch', "
    "'format' = 'csv', 'source.monitor-interval' = '1 s');"
)


def test_a_view_without_rows_says_why_when_it_is_left(start: Start) -> None:
    shell = start("-D", f"{MODE}=table", "-D", "sql-client.display.explain-silence=200 ms")
    shell.run(WAITING)
    shell.wait_for("succeeded")
    shell.run("SELECT * FROM w;")
    shell.wait_for(lambda screen: re.search(r"\[[1-9] s, ", screen) is not None)
    shell.press("q")
    shell.wait_for("table 'w' has given no row yet and waits for new files")


def test_a_query_at_the_prompt_says_why_above_its_progress(start: Start) -> None:
    shell = start("-D", "sql-client.display.explain-silence=2500 ms")
    shell.run(WAITING)
    shell.wait_for("succeeded")
    shell.run("SELECT * FROM w;")
    shell.wait_for("table 'w' has given no row yet and waits for new files")
    shell.wait_for(lambda screen: re.search(r"1 s\.\n+\[\d+ s, 0 rows", screen) is not None)


def test_running_jobs_are_shown_behind_the_prompt(start: Start, tmp_path: Path) -> None:
    shell = start(FLOWSQL_RUNTIME_DIR=str(tmp_path / "run"))
    shell.run("CREATE TABLE g (n BIGINT) WITH ('connector' = 'datagen', 'rows-per-second' = '100');")
    shell.wait_for("succeeded")
    shell.run("CREATE TABLE h (n BIGINT) WITH ('connector' = 'blackhole');")
    shell.wait_for(lambda screen: screen.count("succeeded") == 2)
    shell.run("INSERT INTO h SELECT n FROM g;")
    shell.wait_for("Job ID")
    shell.run("\\top")
    shell.wait_for("Running jobs: 1")
    shell.wait_for("database.h")
    shell.press("Enter")
    shell.wait_for("Source: g[1]")
    shell.press("q")
    shell.at_prompt()
    shell.run("\\top nothing")
    shell.wait_for("[ERROR] 'nothing' is not a running job.")
