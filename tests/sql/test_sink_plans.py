"""Sinks in plans as Flink 2.3.0 shows them: ``sink_plans.txt`` holds its answers.

Sessions begin with ``# name``. Below an INSERT stand its sink's line of ``EXPLAIN CHANGELOG_MODE`` and the changelog
mode of what feeds it.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from flowsql.table.session.environment import TableEnvironment

from .changelog_connector import install

FILE = Path(__file__).parent / "sink_plans.txt"


def sessions() -> list[tuple[str, list[str]]]:
    found: list[tuple[str, list[str]]] = []
    for line in FILE.read_text(encoding="utf-8").splitlines():
        if line.startswith("# "):
            found.append((line[2:], []))
        else:
            found[-1][1].append(line)
    return found


def physical(environment: TableEnvironment, insert: str) -> list[str]:
    """The sink's line, and the changelog mode of the line below."""
    with environment.execute_sql(f"EXPLAIN CHANGELOG_MODE {insert}").collect() as rows:
        (text,) = next(iter(rows))
    lines = text.splitlines()
    at = lines.index("== Optimized Physical Plan ==")
    mode = lines[at + 2].index("changelogMode=")
    return [lines[at + 1], lines[at + 2][mode : lines[at + 2].index("]", mode) + 1]]


@pytest.mark.parametrize("lines", [pytest.param(lines, id=name) for name, lines in sessions()])
def test_sinks_are_planned_as_by_flink(lines: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch)
    environment = TableEnvironment.create()
    wrong = []
    for at, line in enumerate(lines):
        if line.startswith("INSERT"):
            wanted = [answer.strip() for answer in lines[at + 1 : at + 3]]
            got = physical(environment, line)
            if got != wanted:
                wrong.append("\n  ".join([line, "Flink:", *wanted, "FlowSQL:", *got]))
        elif not line.startswith("    "):
            environment.execute_sql(line.replace("${DATA}", "/nowhere"))
    assert not wrong, "\n".join(wrong)
