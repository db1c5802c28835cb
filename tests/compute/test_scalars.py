"""Scalar expressions against the types, values and messages of Flink: ``scalars/*.test``."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from flowsql_compute.eval.compile import compile_projections, fold
from flowsql_compute.eval.context import EvalContext
from flowsql_compute.eval.text.render import Notation, render_column
from flowsql_core.config import Configuration
from flowsql_core.errors import FlowSqlError
from flowsql_core.expr import Expr
from flowsql_core.span import Source
from flowsql_grammar.script import parse_statement
from flowsql_planner.bind.context import BindContext
from flowsql_planner.bind.query.query import bind_query
from flowsql_planner.catalog.manager import CatalogManager
from flowsql_planner.logical.nodes import Project

HERE = Path(__file__).parent / "scalars"
CONTEXT = EvalContext()


def bind(expression: str) -> Expr:
    source = Source(f"SELECT {expression}")
    statement: Any = parse_statement(source)
    context = BindContext(CatalogManager(), Configuration(), source)
    rel = bind_query(context, getattr(statement, "query", statement))
    assert isinstance(rel, Project)
    return rel.exprs[0]


def evaluate(expr: Expr, columns: Sequence[pa.Array] = (), n: int = 1) -> pa.Array:
    return compile_projections([expr], CONTEXT)(columns, n)[0]


def blocks(name: str) -> list[tuple[str, str]]:
    text = (HERE / name).read_text(encoding="utf-8")
    lines = [line for line in text.split("\n") if line.strip() and line[0] not in "#!"]
    return [(lines[at], lines[at + 1].strip()) for at in range(0, len(lines), 2)]


@pytest.mark.parametrize(("expression", "answer"), blocks("values.test"), ids=lambda text: text[:60])
def test_type_and_value_are_flinks(expression: str, answer: str) -> None:
    type_text, _, wanted = answer.partition(" = ")
    expr = bind(expression)
    assert str(expr.type) == type_text
    shown = json.loads(render_column(evaluate(expr), expr.type, Notation.JSON)[0].as_py())
    expected = json.loads(wanted)
    assert shown == pytest.approx(expected, rel=1e-7) if isinstance(expected, float) else shown == expected


@pytest.mark.parametrize(("expression", "answer"), blocks("values.test"), ids=lambda text: text[:60])
def test_folding_keeps_the_value(expression: str, answer: str) -> None:
    expr = bind(expression)
    folded = fold(expr, CONTEXT)
    assert folded.type.as_nullable() == expr.type.as_nullable()
    assert evaluate(folded).equals(evaluate(expr)) or "NaN" in answer


@pytest.mark.parametrize(("expression", "answer"), blocks("errors.test"), ids=lambda text: text[:60])
def test_refusals_speak_as_flink(expression: str, answer: str) -> None:
    with pytest.raises(FlowSqlError) as caught:
        evaluate(bind(expression))
    wanted = answer.removeprefix("error ")
    head = re.split(r"Supported form|at index|\. Expected", wanted)[0].strip()
    assert caught.value.message.startswith(head[:60]), (caught.value.message, wanted)
