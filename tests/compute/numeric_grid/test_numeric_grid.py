"""Numeric expressions over columns of edge values, with the answers of Flink: the ``.jsonl`` files beside.

A line is an expression ``e``, its type ``t`` and its value in each row of the table (``v``), or the class of the error
with which Flink refuses it. The tables are csv files: ``u`` holds the edge values of each type, ``uf`` those without
NaN and infinities, ``p`` pairs of values (``a_`` and ``b_`` columns; ``c_`` as ``b_`` without zeros), ``pn`` the same
columns NOT NULL, ``o`` and ``ow`` (NOT NULL) a DECIMAL(38, 0) that overflows with one more.
What Flink fails on with an error of its own is not in the files.
"""

from __future__ import annotations

import csv
import json
import math
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from flowsql_compute.eval.cast import cast_array
from flowsql_compute.eval.compile import compile_projections, fold
from flowsql_compute.eval.context import EvalContext
from flowsql_compute.eval.text.render import Notation, render_column
from flowsql_core.config import Configuration
from flowsql_core.errors import BindError
from flowsql_core.expr import Expr
from flowsql_core.span import Source
from flowsql_core.types.logical import STRING, Column, LogicalType
from flowsql_core.types.text import parse_type
from flowsql_grammar import parse_expression
from flowsql_planner.bind.context import BindContext
from flowsql_planner.bind.expression.binder import ExpressionBinder
from flowsql_planner.bind.expression.scope import Namespace, Scope
from flowsql_planner.catalog.manager import CatalogManager

HERE = Path(__file__).parent
CONTEXT = EvalContext()
_TYPES = {
    "i1": "TINYINT", "i2": "SMALLINT", "i4": "INT", "i8": "BIGINT", "f4": "FLOAT", "f8": "DOUBLE",
    "d1": "DECIMAL(1, 0)", "d10": "DECIMAL(10, 2)", "d18": "DECIMAL(18, 18)", "d19": "DECIMAL(19, 0)",
    "d38": "DECIMAL(38, 0)", "e38": "DECIMAL(38, 10)", "g38": "DECIMAL(38, 38)",
}  # fmt: skip
_PAIRS = {f"{side}_{name}": type_ for side in "abc" for name, type_ in _TYPES.items()}
_OVERFLOW = {"m": "DECIMAL(38, 0)", "d": "DECIMAL(10, 2)", "k": "INT", "s": "STRING"}
#: Columns of each table after ``id``, and whether they may be NULL.
_TABLES = {
    "u": (_TYPES, True), "uf": (_TYPES, True), "p": (_PAIRS, True), "pn": (_PAIRS, False),
    "o": (_OVERFLOW, True), "ow": (_OVERFLOW, False),
}  # fmt: skip
#: Where FlowSQL differs on purpose, or Flink's answer is one that no program can want.
_DIFFERENT = {
    # Flink writes the digits of the rounded number into a column of another scale: 1.00 becomes 0.10.
    *(f"{function}({name}, i1)" for function in ("ROUND", "TRUNCATE") for name in _TYPES if name[0] not in "if"),
    # Numbers are not cut at the largest moment of nanoseconds.
    "TO_TIMESTAMP_LTZ(f4, 0)", "TO_TIMESTAMP_LTZ(f8, 0)",
    # Inside of a CASE Flink believes that a CAST is NOT NULL, elsewhere it asks.
    "CASE WHEN CAST(m AS DECIMAL(5, 2)) IS NULL THEN 'n' ELSE 'v' END",
}  # fmt: skip


@cache
def _schema(table: str) -> tuple[Column, ...]:
    types, nullable = _TABLES[table]
    ending = "" if nullable else " NOT NULL"
    columns = [Column(name, parse_type(type_ + ending)) for name, type_ in types.items()]
    return Column("id", parse_type("INT NOT NULL")), *columns


def _bind(text: str, table: str) -> Expr:
    source = Source(text)
    scope = Scope((Namespace("t", _schema(table)),))
    binder = ExpressionBinder(BindContext(CatalogManager(), Configuration(), source), scope)
    return binder.bind(parse_expression(source))


def _columns(table: str) -> tuple[list[pa.Array], int]:
    rows = list(csv.reader((HERE / f"{table}.csv").read_text(encoding="utf-8").splitlines()))
    types: list[LogicalType] = [column.type for column in _schema(table)]
    texts = [
        pa.array([None if row[at] == "NULL" else row[at] for row in rows], pa.string()) for at in range(len(types))
    ]
    made = [cast_array(text, STRING, type_, False, CONTEXT) for text, type_ in zip(texts, types, strict=True)]
    return made, len(rows)


def _same(got: Any, wanted: Any) -> bool:
    if isinstance(got, float) and isinstance(wanted, float):
        # The last digit of transcendental functions is that of a library.
        return math.isclose(got, wanted, rel_tol=1e-14) and math.copysign(1, got) == math.copysign(1, wanted)
    return type(got) is type(wanted) and bool(got == wanted)


def _wrong(line: str, table: str, columns: list[pa.Array], n: int) -> str | None:
    case = json.loads(line)
    if case["e"] in _DIFFERENT:
        return None
    try:
        expr = _bind(case["e"], table)
    except BindError as error:
        return None if "error" in case else f"{case['e']}: {error.message}"
    if "error" in case:
        return f"{case['e']}: {expr.type}, not an error"
    column = compile_projections([fold(expr, CONTEXT)], CONTEXT)(columns, n)[0]
    got = [json.loads(text.as_py()) for text in render_column(column, expr.type, Notation.JSON)]
    differ = [
        f"row {at}: {a!r}, not {b!r}" for at, (a, b) in enumerate(zip(got, case["v"], strict=True)) if not _same(a, b)
    ]
    if str(expr.type) == case["t"] and not differ:
        return None
    return f"{case['e']}: {expr.type} ({case['t']}) {'; '.join(differ)}"


@pytest.mark.parametrize(
    "table",
    [
        pytest.param(path.stem, marks=[pytest.mark.nightly] if path.stem == "p" else [])
        for path in sorted(HERE.glob("*.jsonl"))
    ],
)
def test_answers_are_flinks(table: str) -> None:
    columns, n = _columns(table)
    lines = (HERE / f"{table}.jsonl").read_text(encoding="utf-8").splitlines()
    assert not [found for line in lines if (found := _wrong(line, table, columns, n)) is not None]
