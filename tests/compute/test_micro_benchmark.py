"""``benchmarks/micro/functions.py`` walks the whole registry: every signature has a call, on columns of many values."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pyarrow as pa
import pytest

from flowsql_compute.eval.compile import compile_projections
from flowsql_compute.eval.context import EvalContext
from flowsql_compute.functions.registry import FunctionDef, Nulls, definitions, find_definition
from flowsql_core.expr import Call, InputRef, walk

ROWS = 300


def _module() -> ModuleType:
    path = Path(__file__).resolve().parents[2] / "benchmarks" / "micro" / "functions.py"
    spec = importlib.util.spec_from_file_location("micro_functions", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["micro_functions"] = module
    spec.loader.exec_module(module)
    return module


benchmark = _module()
DATA = benchmark.Data(ROWS, ROWS)
TIMED = [definition for definition in definitions() if definition.name not in benchmark.NOT_ALONE]


@pytest.mark.parametrize("definition", TIMED, ids=benchmark.shown)
def test_each_signature_is_called(definition: FunctionDef) -> None:
    call = benchmark.call_of(definition, DATA)
    made = compile_projections([call], EvalContext())(DATA.arrays, ROWS)[0]
    assert len(made) == ROWS
    called = {node.function for node in walk(call) if hasattr(node, "function")}
    # Some are made of other calls.
    if definition.name in called:
        assert made.null_count < ROWS
    columns = [node for node in walk(call) if isinstance(node, InputRef)]
    assert columns or not definition.signature.params or definition.name in ("RAND", "RAND_INTEGER")


@pytest.mark.parametrize("definition", TIMED, ids=benchmark.shown)
def test_nulls_are_as_declared(definition: FunctionDef) -> None:
    call = benchmark.call_of(definition, DATA)
    places = {node.index for node in walk(call) if isinstance(node, InputRef) and node.type.nullable}
    arrays = [pa.nulls(ROWS, array.type) if place in places else array for place, array in enumerate(DATA.arrays)]
    made = compile_projections([call], EvalContext())(arrays, ROWS)[0]
    if not call.type.nullable:
        assert made.null_count == 0
    if not isinstance(call, Call) or find_definition(call) is not definition:
        return
    match definition.nulls:
        # CONCAT_WS leaves NULL parts out; the separator here is none.
        case Nulls.PROPAGATE if places and definition.name != "CONCAT_WS":
            assert made.null_count == ROWS
            assert call.type.nullable
        case Nulls.NULLABLE:
            assert call.type.nullable
        case Nulls.NOT_NULL:
            assert not call.type.nullable
        case _:
            pass


@pytest.mark.parametrize("name", sorted(benchmark.TEXTS))
def test_texts_differ_from_row_to_row(name: str) -> None:
    rows = range(0, benchmark.ROWS, 97)
    assert len({benchmark.TEXTS[name](row) for row in rows}) > len(rows) // 4
