"""Every function of the registry: documented, shown by a row, known to Flink; and what refusals say."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from flowsql_compute.functions.flink_names import FLINK_FUNCTIONS
from flowsql_compute.functions.registry import (
    FunctionDef,
    definitions,
    find_definition,
    function_names,
    is_aggregate,
    resolve_call,
)
from flowsql_compute.functions.signature import parse_signature
from flowsql_core.errors import BindError, NotSupportedYetError
from flowsql_core.expr import Call, Literal, walk
from flowsql_core.types import logical as t


def _scalars() -> ModuleType:
    spec = importlib.util.spec_from_file_location("scalar_rows", Path(__file__).with_name("test_scalars.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


#: What a single expression can not show: the watermark and the processing-time attribute need a stream, and names that
#: are bound by syntax of their own show as other calls.
NO_ROW = frozenset({"CURRENT_WATERMARK", "SOURCE_WATERMARK", "PROCTIME", "FIELD", "+", "-"})


@pytest.mark.parametrize("definition", definitions(), ids=lambda d: d.signature.form())
def test_every_function_is_documented(definition: FunctionDef) -> None:
    assert definition.doc.strip().endswith(".")
    assert definition.signature.required <= (definition.signature.max_args or 99)


def test_every_function_has_a_row() -> None:
    rows = _scalars()
    asked = Path(__file__).parent / "asked"
    files = ["values.test", *(f"../asked/{path.relative_to(asked)}" for path in asked.rglob("*.test"))]
    valued = [
        expression for name in files for expression, answer in rows.blocks(name) if not answer.startswith("error")
    ]
    texts = "\n".join(valued)
    shown = {node.function for expression in valued for node in walk(rows.bind(expression)) if isinstance(node, Call)}
    written = {name for name in function_names() if re.search(rf"\b{re.escape(name)}\b", texts)}
    missing = {d.name for d in definitions()} - shown - written - NO_ROW
    assert not missing


def test_resolved_calls_find_their_declaration_again() -> None:
    rows = _scalars()
    for expression, _ in rows.blocks("values.test"):
        for node in walk(rows.bind(expression)):
            if isinstance(node, Call):
                assert find_definition(node).name == node.function


def test_named_functions_are_flinks() -> None:
    ours = {d.name for d in definitions() if d.name.isidentifier()}
    extra = {"AND", "OR", "NOT", "FIELD", "ITEM", "ARRAY", "MAP", "ROW"}
    assert ours - extra <= FLINK_FUNCTIONS | {"TYPEOF"}


def test_unknown_and_unsupported_differ() -> None:
    one = Literal(1, t.IntType(nullable=False))
    with pytest.raises(BindError, match=r"No match found for function signature UPER\(<NUMERIC>\)") as caught:
        resolve_call("uper", (one,))
    assert caught.value.hint == "did you mean 'UPPER'?"
    with pytest.raises(NotSupportedYetError, match="function VECTOR_SEARCH"):
        resolve_call("VECTOR_SEARCH", (one, one))


def test_names_that_sql_does_not_call() -> None:
    one = Literal(1, t.IntType(nullable=False))
    for name, message in (
        ("STREAMRECORD_TIMESTAMP", "Invalid number of arguments to function 'STREAMRECORD_TIMESTAMP'. Was expecting 1"),
        ("IS_JSON", "No match found for function signature IS_JSON(<NUMERIC>)"),
        ("SUM0", "No match found for function signature SUM0(<NUMERIC>)"),
        ("IS EMPTY", "No match found for function signature IS EMPTY"),
    ):
        with pytest.raises(BindError, match=re.escape(message)):
            resolve_call(name, (one,))


def test_aggregates_are_told_apart() -> None:
    assert is_aggregate("count")
    assert not is_aggregate("upper")


def test_signatures_refuse_unknown_families() -> None:
    with pytest.raises(ValueError, match="unknown type family"):
        parse_signature("F(TEXT) -> INT")


def test_small_columns_do_not_import_numba() -> None:
    code = (
        "import sys, pyarrow as pa\n"
        "from flowsql_compute.eval.compile import compile_projections\n"
        "from flowsql_compute.eval.context import EvalContext\n"
        "from flowsql_core.expr import InputRef\n"
        "from flowsql_compute.functions.registry import resolve_call\n"
        "from flowsql_core.types import logical as t\n"
        "call = resolve_call('REVERSE', (resolve_call('UPPER', (InputRef(0, t.STRING),)),))\n"
        "assert compile_projections([call], EvalContext())([pa.array(['ab'])], 1)[0].to_pylist() == ['BA']\n"
        "assert 'numba' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env={"PYTHONPATH": ":".join(p for p in sys.path if p)})


def test_a_call_imports_the_modules_of_its_name_alone() -> None:
    code = (
        "import sys\n"
        "from flowsql_core.expr import Literal\n"
        "from flowsql_compute.functions.registry import is_aggregate, resolve_call\n"
        "from flowsql_core.types import logical as t\n"
        "one = Literal(1, t.INT)\n"
        "resolve_call('FLOOR', (resolve_call('>', (one, one)).args[0],))\n"
        "assert is_aggregate('COUNT') and not is_aggregate('JSON_VALUE')\n"
        "from flowsql_compute.functions.registry import _MODULES\n"
        "print(*[m for m in _MODULES if f'flowsql_compute.functions.{m}' in sys.modules])\n"
    )
    environment = {"PYTHONPATH": ":".join(p for p in sys.path if p)}
    ran = subprocess.run([sys.executable, "-c", code], check=True, env=environment, capture_output=True, text=True)
    assert ran.stdout.split() == ["logic", "math", "time.temporal"]


def test_overloads_keep_the_order_of_their_modules() -> None:
    code = (
        "import importlib\n"
        "importlib.import_module('flowsql_compute.functions.json.variant')\n"
        "importlib.import_module('flowsql_compute.functions.time.temporal')\n"
        "from flowsql_compute.functions.registry import definitions\n"
        "print(*[d.module for d in definitions() if d.name == 'ITEM'])\n"
        "print(*[d.module for d in definitions() if d.name == 'FLOOR'])\n"
    )
    environment = {"PYTHONPATH": ":".join(p for p in sys.path if p)}
    ran = subprocess.run([sys.executable, "-c", code], check=True, env=environment, capture_output=True, text=True)
    item, floor = ran.stdout.splitlines()
    assert item.split() == sorted(item.split())
    assert floor.split()[0] == "math"
    assert floor.split() == sorted(floor.split())
