"""The rules of the tree: who may import whom, how long a file may be, what its functions must say."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from .packages import ROOT, sources

IMPORT_ROOTS = (".", "grammar", "planner", "runtime", "connectors")
#: Folders above 25 files, each with its reason.
LARGE = {
    Path("planner/flowsql_planner/bind"),  # its families of statements, queries and expressions are being parted
}
SOURCES_AND_TESTS = ("flowsql", "grammar", "planner", "runtime", "connectors", "tests", "benchmarks", "examples")
TOOLS = Path(sys.executable).parent
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(str(ROOT / folder) for folder in IMPORT_ROOTS)}


def run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=ROOT, env=ENVIRONMENT, capture_output=True, text=True, check=False)


def test_imports_run_downwards() -> None:
    found = run(str(TOOLS / "lint-imports"), "--no-cache")
    assert found.returncode == 0, found.stdout


def test_ruff_is_content() -> None:
    found = run(str(TOOLS / "ruff"), "check", "--no-cache", ".")
    assert found.returncode == 0, found.stdout


def test_files_are_formatted() -> None:
    found = run(str(TOOLS / "ruff"), "format", "--no-cache", "--check", ".")
    assert found.returncode == 0, found.stdout


@pytest.mark.nightly
def test_types_are_strictly_right() -> None:
    found = run(str(TOOLS / "mypy"))
    assert found.returncode == 0, found.stdout


def test_no_file_is_longer_than_600_lines() -> None:
    long = {str(path.relative_to(ROOT)): n for path in sources() if (n := len(path.read_text().splitlines())) > 600}
    assert not long


def test_no_folder_holds_more_than_25_files() -> None:
    """Families of files have folders of their own, sources and tests alike."""
    files = [path for top in SOURCES_AND_TESTS for path in (ROOT / top).rglob("*") if path.is_file()]
    sizes = Counter(path.parent.relative_to(ROOT) for path in files if path.parent.name != "__pycache__")
    assert {str(folder): size for folder, size in sizes.items() if size > 25 and folder not in LARGE} == {}


def test_no_file_is_named_after_nothing() -> None:
    vague = {"utils.py", "util.py", "helpers.py", "common.py", "misc.py"}
    assert not [str(path) for path in sources() if path.name in vague]


def test_package_files_define_nothing() -> None:
    """``__init__.py`` hands names on; ``__getattr__`` and the like of lazy packages are assignments."""
    bad = []
    for path in sources():
        if path.name == "__init__.py":
            body = ast.parse(path.read_text()).body
            bad += [f"{path}:{node.lineno}" for node in body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    assert not bad


@pytest.mark.parametrize(
    "floor", ["flowsql_core", "flowsql_compute", "flowsql_runtime.cluster.local", "flowsql_connectors.registry"]
)
def test_lower_floors_load_alone(floor: str) -> None:
    program = (
        f"import sys, {floor}\n"
        "bad = [n for n in sys.modules if n.split('.')[0] in ('flowsql', 'flowsql_planner', 'flowsql_grammar')]\n"
        "assert not bad, bad"
    )
    found = run(sys.executable, "-c", program)
    assert found.returncode == 0, found.stderr


def test_a_task_loads_no_planner() -> None:
    """What a worker process needs: a job of built-ins runs without planner, grammar or roof (layering rule 3)."""
    planned = (
        "import pickle, sys\n"
        "from flowsql_core.config import Configuration\n"
        "from flowsql_core.span import Source\n"
        "from flowsql_grammar import parse_statement\n"
        "from flowsql_planner.bind.context import BindContext\n"
        "from flowsql_planner.bind.statement import bind_statement\n"
        "from flowsql_planner.catalog.apply import apply_ddl\n"
        "from flowsql_planner.catalog.manager import CatalogManager\n"
        "from flowsql_planner.planner import Planner\n"
        "configuration, catalogs = Configuration(), CatalogManager()\n"
        "def bind(text):\n"
        "    source = Source(text)\n"
        "    return bind_statement(parse_statement(source), BindContext(catalogs, configuration, source))\n"
        "apply_ddl(bind(\"CREATE TABLE s (k INT, n BIGINT) WITH ('connector' = 'blackhole')\"), catalogs)\n"
        "graph = Planner(configuration).plan_inserts("
        "[bind('INSERT INTO s SELECT k, COUNT(*) FROM (VALUES (1), (1)) AS v(k) GROUP BY k')])\n"
        "sys.stdout.buffer.write(pickle.dumps((graph.name, graph.vertices, graph.edges, graph.configuration)))\n"
    )
    made = subprocess.run([sys.executable, "-c", planned], cwd=ROOT, env=ENVIRONMENT, capture_output=True, check=False)
    assert made.returncode == 0, made.stderr.decode()
    worker = (
        "import pickle, sys\n"
        "from flowsql_core.graph.job import JobGraph\n"
        "from flowsql_runtime.cluster.local import run_job\n"
        "graph = JobGraph(*pickle.loads(sys.stdin.buffer.read()))\n"
        "assert run_job(graph).status.name == 'FINISHED'\n"
        "bad = [n for n in sys.modules if n.split('.')[0] in ('flowsql', 'flowsql_planner', 'flowsql_grammar')]\n"
        "assert not bad, bad\n"
    )
    found = subprocess.run(
        [sys.executable, "-c", worker], cwd=ROOT, env=ENVIRONMENT, input=made.stdout, capture_output=True, check=False
    )
    assert found.returncode == 0, found.stderr.decode()
