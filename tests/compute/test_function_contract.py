"""What every function of the registry owes: documentation, a signature, NULLs as declared, a Spark form or a reason."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pyarrow as pa
import pytest

from flowsql_compute.eval.compile import compile_projections
from flowsql_compute.eval.context import EvalContext
from flowsql_compute.functions.registry import FunctionDef, Nulls, definitions, find_definition, resolve_call
from flowsql_compute.functions.signature import FAMILIES, parse_signature
from flowsql_compute.functions.spark_form import NoSparkForm, arguments_of, spark_text
from flowsql_core.errors import FlowSqlError
from flowsql_core.expr import Call, InputRef, walk
from flowsql_core.types import logical as t
from flowsql_core.types.arrow import to_arrow

ROOT = Path(__file__).resolve().parents[2]

#: One type that each family takes.
_TYPES: dict[str, t.LogicalType] = {
    "ANY": t.INT, "T": t.INT, "COMPARABLE": t.BIGINT, "BOOLEAN": t.BOOLEAN, "NUMERIC": t.INT, "EXACT": t.BIGINT,
    "INTEGER": t.INT, "INT": t.INT, "BIGINT": t.BIGINT, "DOUBLE": t.DOUBLE, "STRING": t.STRING, "BINARY": t.BYTES,
    "DATE": t.DATE, "TIME": t.TimeType(precision=0), "TIMESTAMP": t.TimestampType(precision=3),
    "TIMESTAMP_NTZ": t.TimestampType(precision=3), "DATETIME": t.TimestampType(precision=3), "BITMAP": t.BITMAP,
    "DAY_TIME": t.DayTimeIntervalType(resolution="SECOND", fractional_precision=3), "VARIANT": t.VARIANT,
    "INTERVAL": t.DayTimeIntervalType(resolution="SECOND", fractional_precision=3),
    "ARRAY": t.ArrayType(element=t.INT), "MAP": t.MapType(key=t.STRING, value=t.INT),
    "MULTISET": t.MultisetType(element=t.STRING), "ROW": t.RowType(fields=(t.Field("a", t.INT),)),
}  # fmt: skip
_ALL = definitions()
_OPTIONS = (("unit", "DAY"), ("index", 0), ("name", "a"), ("database", "d"), ("side", "BOTH"))


def _shown(definition: FunctionDef) -> str:
    return f"{definition.name}({', '.join(definition.signature.params)})"


@pytest.mark.parametrize("definition", _ALL, ids=_shown)
def test_documented_with_a_signature_that_reads_back(definition: FunctionDef) -> None:
    assert definition.doc.strip().endswith(".")
    signature = definition.signature
    params = [
        f"{name}..." if signature.variadic and place == len(signature.params) - 1
        else f"[{name}]" if place >= signature.required else name
        for place, name in enumerate(signature.params)
    ]  # fmt: skip
    assert parse_signature(f"{signature.name}({', '.join(params)}) -> {signature.result}") == signature
    assert all(name in FAMILIES for name in signature.params)


@pytest.mark.parametrize("definition", _ALL, ids=_shown)
def test_spark_form_or_a_reason(definition: FunctionDef) -> None:
    form = definition.spark
    if isinstance(form, NoSparkForm):
        assert len(form.reason) > 10
        return
    most = definition.signature.max_args
    assert all(most is None or place < most for place in arguments_of(form))
    count = definition.signature.required + definition.signature.variadic
    text = spark_text(form, [f"x{place}" for place in range(max(count, 1 + max(arguments_of(form), default=-1)))])
    assert "{" not in text
    assert all(f"x{place}" in text for place in range(definition.signature.required))


def _over_nulls(definition: FunctionDef) -> Call | None:
    families = [definition.signature.param(place) for place in range(definition.signature.required)]
    args = tuple(InputRef(place, _TYPES[family]) for place, family in enumerate(families))
    try:
        made = resolve_call(definition.name, args, _OPTIONS)
    except FlowSqlError:
        return None
    if not isinstance(made, Call) or not args or find_definition(made) is not definition:
        return None
    return made


#: Rows of NULLs alone say nothing of these: they make a value of NULLs, or need more than columns.
_OWN_RULE = frozenset({"RAND_INTEGER", "CURRENT_WATERMARK"})


@pytest.mark.parametrize(
    "definition", [d for d in _ALL if d.nulls is Nulls.PROPAGATE and d.name not in _OWN_RULE], ids=_shown
)
def test_null_in_null_out(definition: FunctionDef) -> None:
    call = _over_nulls(definition)
    if call is None:
        pytest.skip("made of other expressions, or asks for more than columns")
    columns = [pa.nulls(3, to_arrow(node.type)) for node in walk(call) if isinstance(node, InputRef)]
    made = compile_projections([call], EvalContext())(columns, 3)[0]
    assert made.null_count == 3
    assert call.type.nullable


@pytest.mark.parametrize("definition", [d for d in _ALL if d.nulls is Nulls.NOT_NULL], ids=_shown)
def test_never_null(definition: FunctionDef) -> None:
    call = _over_nulls(definition)
    if call is None:
        pytest.skip("made of other expressions, or asks for more than columns")
    columns = [pa.nulls(3, to_arrow(node.type)) for node in walk(call) if isinstance(node, InputRef)]
    assert compile_projections([call], EvalContext())(columns, 3)[0].null_count == 0
    assert not call.type.nullable


def _make_functions() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_functions", ROOT / "docs" / "make_functions.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("place", [0, 1, 2, 3], ids=["functions", "types", "places", "capitals"])
def test_pages_are_current(place: int) -> None:
    path, render = _make_functions().PAGES[place]
    assert path.read_text(encoding="utf-8") == render(), "run: python docs/make_functions.py"
