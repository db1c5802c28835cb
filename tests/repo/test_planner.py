"""The rules of the planner's tree: imports run one way, nodes say what they mean, and no connector has a name there."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from flowsql_connectors import registry
from flowsql_core.record import record
from flowsql_planner.physical.nodes.base import PassesThrough

ROOT = Path(__file__).resolve().parents[2] / "planner"
SOURCES = {".".join(path.relative_to(ROOT).with_suffix("").parts): path for path in sorted(ROOT.rglob("*.py"))}


def imported(path: Path) -> Iterator[str]:
    """Modules of the planner that a module imports, wherever in it: inside of functions and for types too."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            for name in node.names:
                for module in (f"{node.module}.{name.name}", node.module, f"{node.module}.__init__"):
                    if module in SOURCES:
                        yield module
                        break


def test_imports_run_one_way_for_types_too() -> None:
    """Stricter than ``test_imports.py``: no circle of names that only annotations need, either."""
    graph = {module: set(imported(path)) for module, path in SOURCES.items()}
    assert sum(map(len, graph.values())) > 500
    tuple(TopologicalSorter(graph).static_order())


def test_no_connector_is_named() -> None:
    """What connectors can do is asked of their factories (``flowsql_connectors.spi``)."""
    names = {*registry.identifiers(), *registry._INTERNAL, *registry._KNOWN_ELSEWHERE} - {"arrow"}
    assert "filesystem" in names
    bad = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in SOURCES.values()
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in names
    ]
    assert not bad


def test_a_node_that_leaves_a_question_open_is_none() -> None:
    """Type checking says so where it is made; at run time it cannot be made either."""

    @record(kw_only=True)
    class Forgetful(PassesThrough):
        """Says neither what its operator is nor how it is shown."""

    with pytest.raises(TypeError, match=r"attributes, expressions, same_in_batch, spec, window_columns"):
        Forgetful(inputs=(), schema=())  # type: ignore[abstract]
