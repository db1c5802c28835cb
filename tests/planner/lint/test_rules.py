"""Scripts and what rules find in them: ``cases/<rule>.txt``.

A case is a line ``# what it shows``, the script, ``----``, and a line ``line:column rule: message`` for each finding.
Its tables are those of ``tables.sql``. ``pytest --update`` writes the findings anew.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from flowsql.configuration import command_line_configuration
from flowsql.table import TableEnvironment
from flowsql_core.span import Source
from flowsql_planner.lint.registry import BY_NAME

FOLDER = Path(__file__).parent
FILES = sorted((FOLDER / "cases").glob("*.txt"))
_CASE = re.compile(r"(?ms)^# (?P<title>[^\n]*)\n(?P<script>.*?)^----\n(?P<found>.*?)(?=^# |\Z)")


def findings(script: str) -> list[str]:
    """The findings of a script over the tables, a line each."""
    environment = TableEnvironment.of_configuration(command_line_configuration((), "tableau", print))
    tables = Source((FOLDER / "tables.sql").read_text(), "tables.sql")
    for statement in environment.statements(tables):
        environment.execute(statement, tables)
    lines = []
    for each in environment.lint_sql(script.replace("${FOLDER}", str(FOLDER))):
        line, column = each.position
        name = f"error[{each.rule}]" if each.is_error else each.rule
        lines.append(f"{line}:{column} {name}: {each.message.splitlines()[0]}")
    return lines


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_rules_find_what_the_cases_say(path: Path, pytestconfig: pytest.Config) -> None:
    text = path.read_text()
    answered = []
    for case in _CASE.finditer(text):
        found = "".join(f"{line}\n" for line in findings(case["script"]))
        answered.append(f"# {case['title']}\n{case['script']}----\n{found}\n")
    wanted = "".join(answered).rstrip("\n") + "\n"
    if pytestconfig.getoption("update"):
        path.write_text(wanted)
    assert text == wanted


@pytest.mark.parametrize("name", BY_NAME)
def test_a_rule_fires_in_one_case_and_is_silent_in_another(name: str) -> None:
    cases = list(_CASE.finditer((FOLDER / "cases" / f"{name}.txt").read_text()))
    fires = [f" {name}: " in case["found"] for case in cases]
    assert True in fires
    assert False in fires


def test_every_file_of_cases_is_of_a_rule() -> None:
    assert {path.stem for path in FILES} - {"switches", "failures"} == set(BY_NAME)


@pytest.mark.parametrize("rule", BY_NAME.values(), ids=lambda rule: rule.name)
def test_a_rule_says_all_of_itself(rule) -> None:  # type: ignore[no-untyped-def]
    assert re.fullmatch(r"[a-z]+(-[a-z]+)*", rule.name)
    assert rule.summary.endswith(".")
    assert not rule.reason.endswith(".")
    assert not rule.remedy.endswith(".")
