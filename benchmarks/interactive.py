"""Waiting times of people at a prompt: the first prompt, a small query in a warm shell, completion, parsing.

Times are medians in milliseconds; the terminal is that of the tests (``tests/cli/shell/terminal.py``).
"""

from __future__ import annotations

import argparse
import pathlib
import statistics
import sys
import tempfile
import time
from collections.abc import Callable

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from flowsql.completion.complete import complete
from flowsql.table import TableEnvironment
from flowsql_grammar import parse_statement
from flowsql_grammar.tables import PATH, Tables
from tests.cli.shell.terminal import shell

STATEMENT = "SELECT a, b + 1 AS c FROM t WHERE a > 10 AND b IN (1, 2, 3)"


def milliseconds(work: Callable[[], object], times: int) -> float:
    """Return the median time of one call, in milliseconds."""
    taken = []
    for _ in range(times):
        started = time.perf_counter()
        work()
        taken.append(time.perf_counter() - started)
    return statistics.median(taken) * 1000


def first_prompt() -> None:
    """Start a shell and wait for its prompt."""
    with tempfile.TemporaryDirectory() as folder, shell(pathlib.Path(folder)) as terminal:
        terminal.wait_for("Flow SQL>")


def warm_query(times: int) -> float:
    """Return the median time from Enter to the answer of ``SELECT n``, in milliseconds."""
    taken = []
    with tempfile.TemporaryDirectory() as folder, shell(pathlib.Path(folder)) as terminal:
        terminal.wait_for("Flow SQL>")
        for number in range(times + 1):
            terminal.type(f"SELECT {number};")
            terminal.wait_for(f"SELECT {number};")
            started = time.perf_counter()
            terminal.press("Enter")
            terminal.wait_for(lambda screen, wanted=number + 1: screen.count("Received a total") == wanted)
            taken.append(time.perf_counter() - started)
    return statistics.median(taken[1:]) * 1000


def thousand_tables() -> TableEnvironment:
    """Return an environment with 1,000 tables of 20 columns."""
    made = TableEnvironment.create()
    columns = ", ".join(f"column_{n} INT" for n in range(20))
    for n in range(1000):
        made.execute_sql(f"CREATE TABLE table_{n} ({columns}) WITH ('connector' = 'datagen')")
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=5)
    times = parser.parse_args().times
    environment = thousand_tables()
    data = PATH.read_bytes()
    figures = {
        "first prompt": milliseconds(first_prompt, times),
        "SELECT 1 in a warm shell": warm_query(min(times, 4)),
        "completion of a table, 1,000 tables": milliseconds(
            lambda: complete(environment, "SELECT * FROM ta", 16), times
        ),
        "completion of a column, 1,000 tables": milliseconds(
            lambda: complete(environment, "SELECT col FROM table_7 JOIN table_8 ON TRUE", 10), times
        ),
        "loading the tables of the grammar": milliseconds(lambda: Tables(data), times),
        "parsing a small statement": milliseconds(lambda: parse_statement(STATEMENT), 20 * times),
    }
    for name, figure in figures.items():
        print(f"{name:40} {figure:8.1f} ms")


if __name__ == "__main__":
    main()
