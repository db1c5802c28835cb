"""What Python prints of an error that nobody catches: the program's lines and the report, no frames of FlowSQL."""

from __future__ import annotations

import ast
import gc
import re
import traceback
from pathlib import Path
from typing import Any
from weakref import WeakSet

import pytest

from flowsql.common import public_api
from flowsql.errors import BindError, FlowSqlError, InternalError
from flowsql.table import TableEnvironment
from tests.repo.packages import ROOT


@pytest.fixture(autouse=True)
def no_sessions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sessions of other tests that show all frames may still be alive."""
    monkeypatch.setattr(public_api, "_sessions", WeakSet())


CASES = (Path(__file__).parent / "traces.txt").read_text().split("\n====\n")
_ERRORS = {
    "FlowSqlError",
    "ParseError",
    "BindError",
    "PlanError",
    "NotSupportedYetError",
    "ExecutionError",
    "ConnectorError",
}
#: Modules of ``flowsql`` whose classes no program calls.
_INSIDE = (
    "cli/",
    "jobs/",
    "options/",
    "pipeline/folder.py",
    "pipeline/manifest.py",
    "pipeline/outcome.py",
    "pipeline/place.py",
    "pipeline/project.py",
    "common/refused.py",
    "datastream/bridges/",
    "datastream/plan/",
    "datastream/connectors/hybrid_source.py",
    "table/catalog/resolved_schema.py",
    "table/query/projection.py",
    "table/session/execute.py",
    "table/session/lineage.py",
    "table/session/linting.py",
    "table/session/stream_environment.py",
    "table/window.py",
    "testing/play.py",
    "testing/run.py",
)


def printed(program: str, folder: Path) -> str:
    """What Python writes to standard error when the program fails, from its first own line on."""
    path = folder / "program.py"
    path.write_text(program)
    names: dict[str, Any] = {"__name__": "__main__"}
    try:
        exec(compile(program, str(path), "exec"), names)
    except Exception as error:
        lines = traceback.format_exception(error)
    else:
        raise AssertionError("the program does not fail")
    text = "".join(lines).replace(f"{folder}/", "")
    # This test's own frame, and the marks below lines, which newer Pythons set in another way.
    text = re.sub(r'  File "[^"]*test_traces.py".*\n.*exec\(.*\n(    \^.*\n)?', "", text)
    return re.sub(r"(?m)^    [ ~^]+\n", "", text)


@pytest.mark.parametrize("case", CASES, ids=[case.partition("\n")[0].lstrip("# ") for case in CASES])
def test_a_trace_has_the_lines_of_the_program(case: str, tmp_path: Path) -> None:
    program, _, expected = case.partition("\n----\n")
    assert printed(program.partition("\n")[2] + "\n", tmp_path).strip() == expected.strip()


VERBOSE = """
from flowsql.table import EnvironmentSettings, TableEnvironment

environment = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
environment.execute_sql("SET 'sql-client.verbose' = 'true'")
environment.execute_sql("SELECT 1 + n")
"""


def test_verbose_shows_all_frames(tmp_path: Path) -> None:
    text = printed(VERBOSE, tmp_path)
    assert "/flowsql_planner/bind/" in text
    assert "Column 'n' not found" in text


def test_the_setting_of_a_session_that_is_gone_does_not_count(tmp_path: Path) -> None:
    printed(VERBOSE, tmp_path)
    gc.collect()
    assert "/flowsql_planner/" not in printed(VERBOSE.replace("'true'", "'false'"), tmp_path)


def test_a_fault_of_flowsql_keeps_its_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    environment = TableEnvironment.create()

    def broken(*arguments: object) -> None:
        raise InternalError("no such thing")

    monkeypatch.setattr(environment._executor, "run", broken)
    with pytest.raises(InternalError) as failed:
        environment.execute_sql("SHOW TABLES")
    assert "broken" in [frame.name for frame in traceback.extract_tb(failed.tb)]


def test_the_note_is_written_once() -> None:
    environment = TableEnvironment.create()
    for _ in range(2):
        with pytest.raises(BindError) as failed:
            environment.sql_query("SELECT n").execute()
        assert failed.value.__notes__ == [failed.value.render_details()]


def test_classes_that_programs_call_and_that_raise_leave_frames_out() -> None:
    missing = []
    for path in sorted((ROOT / "flowsql").rglob("*.py")):
        place = str(path.relative_to(ROOT / "flowsql"))
        if place.startswith(_INSIDE):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef) and "public_api" not in map(ast.unparse, node.decorator_list):
                missing += [f"{place}: {node.name}.{name}" for name in _raising(node)]
    assert not missing, "these classes need @public_api"


def _raising(node: ast.ClassDef) -> list[str]:
    """Public methods that name an error of FlowSQL."""
    return [
        method.name
        for method in node.body
        if isinstance(method, ast.FunctionDef)
        and not method.name.startswith("_")
        and _ERRORS & {name.id for name in ast.walk(method) if isinstance(name, ast.Name)}
    ]


def test_errors_are_documented_classes() -> None:
    from flowsql import errors

    page = (ROOT / "docs/errors.md").read_text()
    for name, value in vars(errors).items():
        if isinstance(value, type) and issubclass(value, FlowSqlError):
            assert value.__doc__, name
            assert f"`{name}`" in page
