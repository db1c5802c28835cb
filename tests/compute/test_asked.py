"""What Flink answered to many expressions at once: ``asked/*.test``, a file a family.

Each expression stands above its answer: ``TYPE = value`` as the conformance suite encodes values, or ``error`` where
Flink refuses the expression or fails on it.
"""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from flowsql_compute.eval.compile import fold
from flowsql_compute.eval.context import EvalContext
from flowsql_compute.eval.text.render import Notation, render_column
from flowsql_compute.functions.registry import definitions, find_definition
from flowsql_core.errors import FlowSqlError
from flowsql_core.expr import Call, walk

ASKED = Path(__file__).parent / "asked"
#: What needs a running job, what is folded before it is a call, and what Flink's generated code lacks.
_ELSEWHERE = frozenset(
    {
        "CURRENT_WATERMARK(ANY)", "PROCTIME()", "+(INTERVAL)", "-(INTERVAL)", "AND(ANY, ANY)", "OR(ANY, ANY)",
        "CARDINALITY(MULTISET)", "||(BINARY, BINARY)",
    }
)  # fmt: skip


def _scalars() -> ModuleType:
    spec = importlib.util.spec_from_file_location("scalar_rows", Path(__file__).with_name("test_scalars.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def asked(path: Path) -> list[tuple[str, str]]:
    """Expressions and answers of one file."""
    lines = [line for line in path.read_text(encoding="utf-8").split("\n") if line.strip() and line[0] not in "#!"]
    return [(lines[at], lines[at + 1].strip()) for at in range(0, len(lines), 2)]


def zone_of(path: Path) -> str:
    """The session's zone: a line ``!zone NAME``, else UTC."""
    found = re.search(r"(?m)^!zone (\S+)$", path.read_text(encoding="utf-8"))
    return "UTC" if found is None else found[1]


def _answer(rows: ModuleType, expression: str) -> tuple[str, Any]:
    expr = rows.bind(expression)
    column = rows.evaluate(expr)
    assert rows.evaluate(fold(expr, rows.CONTEXT)).equals(column) or "nan" in str(column).lower(), (
        "folding changes the value"
    )
    return str(expr.type), json.loads(render_column(column, expr.type, Notation.JSON)[0].as_py())


def _wrong(rows: ModuleType, expression: str, wanted: str) -> str | None:
    try:
        type_, value = _answer(rows, expression)
    except FlowSqlError as error:
        return None if wanted.startswith("error") else f"{expression}: {error.message}, not {wanted}"
    if wanted.startswith("error"):
        return f"{expression}: {type_} = {value!r}, not an error"
    type_text, _, text = wanted.partition(" = ")
    asked_for = json.loads(text)
    near = pytest.approx(asked_for, rel=1e-7) if isinstance(asked_for, float) else asked_for
    if type_ == type_text and value == near:
        return None
    return f"{expression}: {type_} = {json.dumps(value, ensure_ascii=False)}, not {wanted}"


@pytest.mark.parametrize("path", sorted(ASKED.rglob("*.test")), ids=lambda path: path.stem)
def test_answers_are_flinks(path: Path) -> None:
    rows = _scalars()
    rows.CONTEXT = EvalContext(zone=zone_of(path))
    wrong = [_wrong(rows, expression, wanted) for expression, wanted in asked(path)]
    assert not [line for line in wrong if line]


def test_every_overload_is_asked() -> None:
    """Each signature that is called itself (others are rewritten to them) stands in one of the files or in values."""
    rows = _scalars()
    called: set[int] = set()
    for path in sorted(ASKED.rglob("*.test")):
        for expression, answer in asked(path):
            if not answer.startswith("error"):
                called.update(
                    id(find_definition(node)) for node in walk(rows.bind(expression)) if isinstance(node, Call)
                )
    shown = {
        f"{one.name}({', '.join(one.signature.params)})"
        for one in definitions()
        if one.rewrite is None and id(one) not in called
    }
    assert shown == _ELSEWHERE
