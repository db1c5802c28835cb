"""Every public name of PyFlink's Table API is here, as what it is there: a property, a method, its parameters.

Reads PyFlink's source: of the interpreter that ``$FLINK_PYTHON`` names, or of this one; skips where there is none.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import inspect
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from flowsql.table.expression.functions import FunctionMethod, FunctionProperty


def _pyflink() -> Path | None:
    named = os.environ.get("FLINK_PYTHON")
    if named:
        return next(Path(named).parent.parent.glob("lib/python*/site-packages/pyflink"), None)
    found = importlib.util.find_spec("pyflink")
    return None if found is None or found.origin is None else Path(found.origin).parent


PYFLINK = _pyflink()
pytestmark = pytest.mark.skipif(PYFLINK is None, reason="needs PyFlink: FLINK_PYTHON=/path/to/python")

#: class of PyFlink -> module of both; names that only exist where there is a JVM, or that stand for others.
CLASSES = {
    "Catalog": "table.catalog",
    "CatalogBaseTable": "table.catalog",
    "CatalogDatabase": "table.catalog",
    "CatalogFunction": "table.catalog",
    "CatalogPartition": "table.catalog",
    "CatalogPartitionSpec": "table.catalog",
    "CatalogTableStatistics": "table.catalog",
    "Expression": "table.expression",
    "Table": "table.table",
    "GroupedTable": "table.table",
    "GroupWindowedTable": "table.table",
    "WindowGroupedTable": "table.table",
    "OverWindowedTable": "table.table",
    "TableEnvironment": "table.table_environment",
    "StatementSet": "table.statement_set",
    "TablePipeline": "table.table_pipeline",
    "CompiledPlan": "table.compiled_plan",
    "PlanReference": "table.plan_reference",
    "Schema": "table.schema",
    "TableDescriptor": "table.table_descriptor",
    "FormatDescriptor": "table.table_descriptor",
    "TableResult": "table.table_result",
    "TableSchema": "table.table_schema",
    "TableConfig": "table.table_config",
    "EnvironmentSettings": "table.environment_settings",
    "DataTypes": "table.types",
    "Tumble": "table.window",
    "Slide": "table.window",
    "Session": "table.window",
    "Over": "table.window",
    "ModuleEntry": "table.module",
}
LEFT_OUT = {"create_java_temporary_system_function", "create_java_function", "create_java_temporary_function"}


def public(name: str) -> bool:
    return not name.startswith(("_", "get_j_")) and name not in LEFT_OUT


def definitions(class_name: str) -> Iterator[ast.FunctionDef]:
    assert PYFLINK is not None
    path = PYFLINK / (CLASSES[class_name].replace(".", "/") + ".py")
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.ClassDef) and node.name == class_name:
            yield from (part for part in node.body if isinstance(part, ast.FunctionDef) and public(part.name))


def ours(class_name: str) -> type:
    module = importlib.import_module(f"flowsql.{CLASSES[class_name]}")
    found: type = getattr(module, class_name)
    return found


def decorated(node: ast.FunctionDef, word: str) -> bool:
    return any(isinstance(mark, ast.Name) and mark.id == word for mark in node.decorator_list)


def parameters(node: ast.FunctionDef) -> list[str]:
    names = [arg.arg for arg in node.args.args if arg.arg not in ("self", "cls")]
    return names + ([f"*{node.args.vararg.arg}"] if node.args.vararg is not None else [])


def our_parameters(member: object) -> list[str]:
    if isinstance(member, FunctionMethod):
        signature = member.signature
    else:
        function = member.__func__ if isinstance(member, staticmethod | classmethod) else member
        assert callable(function)
        signature = inspect.signature(function)
    names = []
    for parameter in signature.parameters.values():
        if parameter.name not in ("self", "cls"):
            names.append(f"*{parameter.name}" if parameter.kind is parameter.VAR_POSITIONAL else parameter.name)
    return names


@pytest.mark.parametrize("class_name", CLASSES)
def test_members(class_name: str) -> None:
    wrong = []
    cls = ours(class_name)
    for node in definitions(class_name):
        member = inspect.getattr_static(cls, node.name, None)
        if member is None:
            wrong.append(f"{node.name} is missing")
        elif isinstance(member, property | FunctionProperty) is not decorated(node, "property"):
            wrong.append(f"{node.name} is a property on one side only")
        elif not isinstance(member, property | FunctionProperty) and node.name != "array_distinct":
            wanted, found = parameters(node), our_parameters(member)
            if found[: len(wanted)] != wanted:
                wrong.append(f"{node.name} takes {found}, there {wanted}")
    assert not wrong


def test_functions() -> None:
    assert PYFLINK is not None
    module = importlib.import_module("flowsql.table.expressions")
    wrong = []
    for node in ast.parse((PYFLINK / "table" / "expressions.py").read_text()).body:
        if isinstance(node, ast.FunctionDef) and public(node.name):
            found = getattr(module, node.name, None)
            if found is None:
                wrong.append(f"{node.name} is missing")
            elif our_parameters(found)[: len(parameters(node))] != parameters(node):
                wrong.append(f"{node.name} takes {our_parameters(found)}, there {parameters(node)}")
            elif node.name not in module.__all__:
                wrong.append(f"{node.name} is not in __all__")
    assert not wrong


def test_names_of_the_package() -> None:
    assert PYFLINK is not None
    tree = ast.parse((PYFLINK / "table" / "__init__.py").read_text())
    (names,) = [
        ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id == "__all__"
    ]
    package = importlib.import_module("flowsql.table")
    assert not {name for name in names if not hasattr(package, name)}


#: Modules of PyFlink that programs do not import from: Java's side of functions, and what only PyFlink itself uses.
INTERNAL = {"__init__", "descriptors", "functions", "serializers", "utils"}


def exported(path: Path) -> list[str]:
    """Names of a module's ``__all__``; where it has none its public classes."""
    tree = ast.parse(path.read_text())
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id == "__all__":
            listed: list[str] = ast.literal_eval(node.value)
            return listed
    return [node.name for node in tree.body if isinstance(node, ast.ClassDef) and not node.name.startswith("_")]


def test_names_of_the_modules() -> None:
    assert PYFLINK is not None
    missing = []
    for path in sorted((PYFLINK / "table").glob("*.py")):
        if path.stem not in INTERNAL:
            module = importlib.import_module(f"flowsql.table.{path.stem}")
            missing += [f"{path.stem}.{name}" for name in exported(path) if not hasattr(module, name)]
    assert not missing
