"""The seam between operators and state (docs/adr/013-stores.md): operators never see an array of a store."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from pathlib import Path

import flowsql_runtime
from flowsql_runtime.state import stores

ROOT = Path(flowsql_runtime.__file__).parent

#: What may be said about state outside ``state/``: protocols, the row-wise API with its checks, Arrow values as words.
OPEN = {
    "stores",
    "backend",
    "native",
    "rankings",
    "read_native",
    "measured",
    "scratch",
    "api",
    "api_ttl",
    "declared_type",
    "object_store",
    "arrow_words",
    "flat_rows",
    "names",
}
#: Make the backend that the configuration names, or one to look at an operator's layout.
MAKERS = {"cluster/deploy.py", "testing/harness.py", "checkpoint/layout.py"}
#: Kernels that work on arrays of a batch alone.
FREE_KERNELS = {
    "accumulate",
    "bounded",
    "conflicts",
    "interval",
    "list_versions",
    "match",
    "one_row",
    "outer_join",
    "over",
    "rows",
    "split",
    "temporal",
    "time_order",
}


def _imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def _named(path: Path, package: str) -> set[str]:
    prefix = f"flowsql_runtime.{package}."
    return {name.removeprefix(prefix).split(".")[0] for name in _imports(path) if name.startswith(prefix)}


def test_no_module_outside_state_names_a_store_class() -> None:
    wrong = {}
    for path in ROOT.rglob("*.py"):
        where = path.relative_to(ROOT).as_posix()
        if not where.startswith("state/") and where not in MAKERS:
            named = _named(path, "state") - OPEN
            if named:
                wrong[where] = sorted(named)
    assert wrong == {}


def test_kernels_of_stores_are_called_by_stores() -> None:
    wrong = {}
    for path in (ROOT / "operators").rglob("*.py"):
        named = _named(path, "kernels") - FREE_KERNELS
        if named:
            wrong[path.relative_to(ROOT).as_posix()] = sorted(named)
    assert wrong == {}


def test_the_protocols_show_methods_and_no_data() -> None:
    for name, kind in inspect.getmembers(stores, inspect.isclass):
        if getattr(kind, "_is_protocol", False) and kind.__module__ == stores.__name__:
            assert not inspect.get_annotations(kind), f"{name} shows an attribute"


def test_the_protocols_name_no_class_of_a_backend() -> None:
    for module in ("stores", "backend"):
        named = _named(ROOT / "state" / f"{module}.py", "state")
        assert named <= {"stores", "native", "rankings"}, module
