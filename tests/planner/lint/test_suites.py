"""The linter over the scripts of the suites beside the checkout: no crash, no error that is none, no false alarm."""

from __future__ import annotations

import inspect
import re
from collections import Counter
from pathlib import Path

import pytest

from flowsql.configuration import command_line_configuration
from flowsql.table import TableEnvironment
from flowsql_core.span import Source
from flowsql_planner.lint.model import Finding
from flowsql_planner.lint.rules import state
from flowsql_planner.physical import nodes

SHARED = Path(__file__).resolve().parents[4] / "shared"
CASES, NEXMARK = SHARED / "conformance" / "cases", SHARED / "nexmark"
#: What Flink runs, and is rightly objected to: NOT IN over a column that may be NULL, which one script is about.
WANTED = {"not-in-nullable": 3}


def linted(path: Path, text: str) -> list[Finding]:
    settings = [("execution.runtime-mode", "batch")] if text.startswith("-- batch") else []
    environment = TableEnvironment.of_configuration(command_line_configuration(settings, "tableau", lambda _: None))
    return environment.lint_script(Source(text, path.name))


@pytest.mark.shared
@pytest.mark.skipif(not CASES.is_dir(), reason="the suites are not beside the checkout")
def test_scripts_that_flink_runs_have_few_findings() -> None:
    """Their tables end: nothing is kept for ever."""
    found: Counter[str] = Counter()
    for path in sorted(CASES.rglob("*.sql")):
        expected = path.with_name(path.name.removesuffix(".sql") + ".expected.jsonl")
        if expected.exists() and '"error"' in expected.read_text():
            continue
        text = path.read_text().replace("${DATA}", str(SHARED / "conformance" / "data"))
        found.update(finding.rule for finding in linted(path, text))
    assert found == WANTED


@pytest.mark.shared
@pytest.mark.skipif(not CASES.is_dir(), reason="the suites are not beside the checkout")
def test_queries_of_nexmark_keep_state_over_a_stream() -> None:
    places = {"FORMAT": "'format' = 'json', 'source.monitor-interval' = '1 s'", "SINK": "'connector' = 'print'"}
    quiet = set()
    for path in sorted((NEXMARK / "queries").glob("*.sql")):
        text = (NEXMARK / "ddl.sql").read_text() + path.read_text()
        for place, value in (places | {"DATA": "/nowhere", "OUT": "/nowhere"}).items():
            text = text.replace(f"${{{place}}}", value)
        found = linted(path, text)
        assert {finding.rule for finding in found} <= {"unbounded-state"}, path.name
        if not found:
            quiet.add(path.stem)
    # Projections, filters, windows, a lookup: what they keep, time removes.
    assert quiet == {"q0", "q1", "q2", "q5", "q8", "q10", "q11", "q12", "q13", "q14", "q21", "q22"}


def test_state_that_a_time_to_live_empties_is_known_to_the_rule() -> None:
    """A new operator with such state is looked at, or left out with a reason in the rule's docstring."""
    left_out = {"TemporalJoinNode", "ProcessTableFunctionNode"}
    kept = {
        name
        for name, kind in vars(nodes).items()
        if inspect.isclass(kind) and issubclass(kind, nodes.Physical) and "state_ttl_ms" in _own_source(kind)
    }
    named = set(re.findall(r"\b[A-Z]\w+\b", inspect.getsource(state)))
    # Those that are kinds of others are caught by them.
    bases = {name for name in kept for base in getattr(nodes, name).__mro__[1:] if base.__name__ in named & kept}
    assert kept - named - bases - left_out == set()


def _own_source(kind: type) -> str:
    return "" if inspect.isabstract(kind) else inspect.getsource(kind)
