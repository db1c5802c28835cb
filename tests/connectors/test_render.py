"""Values as text in the three notations; ROW and JSON texts are Flink's."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from flowsql_compute.eval.text.java_numbers import java_double, java_float
from flowsql_compute.eval.text.render import Notation, json_rows, print_rows, render_column
from flowsql_core.batch import ChangelogBatch, PyObjectColumn
from flowsql_core.types.arrow import to_arrow
from flowsql_core.types.logical import Column, RawType
from flowsql_core.types.text import parse_type

_UTC = dt.UTC
_CASES: list[tuple[str, Any, str, str, str]] = [
    ("BOOLEAN", True, "true", "true", "TRUE"),
    ("INT", None, "null", "null", "NULL"),
    ("DOUBLE", 1e10, "1.0E10", "1.0E10", "1.0E10"),
    ("DOUBLE", float("nan"), '"NaN"', "NaN", "NaN"),
    ("DOUBLE", float("-inf"), '"-Infinity"', "-Infinity", "-Infinity"),
    ("FLOAT", 1.1, "1.1", "1.1", "1.1"),
    ("DECIMAL(10, 3)", Decimal("1.5"), '"1.500"', "1.500", "1.500"),
    ("DECIMAL(20, 10)", Decimal("1e-10"), '"0.0000000001"', "1E-10", "0.0000000001"),
    ("STRING", 'a"\\\n\x01é', '"a\\"\\\\\\n\\u0001é"', 'a"\\\n\x01é', 'a"\\\n\x01é'),
    ("BYTES", b"hi\xff", '"x6869ff"', "[104, 105, -1]", "x'6869ff'"),
    ("DATE", dt.date(2020, 1, 2), '"2020-01-02"', "2020-01-02", "2020-01-02"),
    ("TIME(0)", dt.time(10), '"10:00:00"', "10:00", "10:00:00"),
    ("TIME(3)", dt.time(10, 0, 0, 500000), '"10:00:00.500"', "10:00:00.500", "10:00:00.5"),
    ("TIME(3)", dt.time(10, 0), '"10:00:00"', "10:00", "10:00:00.0"),
    ("TIMESTAMP(3)", dt.datetime(2020, 1, 2), '"2020-01-02 00:00:00"', "2020-01-02T00:00", "2020-01-02 00:00:00.000"),
    (
        "TIMESTAMP(6)", dt.datetime(2020, 1, 2, 3, 4, 5, 123400),
        '"2020-01-02 03:04:05.123400"', "2020-01-02T03:04:05.123400", "2020-01-02 03:04:05.123400",
    ),
    (
        "TIMESTAMP(9)", dt.datetime(2020, 1, 2, 3, 4, 0, 100000),
        '"2020-01-02 03:04:00.100"', "2020-01-02T03:04:00.100", "2020-01-02 03:04:00.100000000",
    ),
    (
        "TIMESTAMP_LTZ(3)", dt.datetime(2020, 1, 2, 3, 4, tzinfo=_UTC),
        '"2020-01-02 03:04:00Z"', "2020-01-02T03:04:00Z", "2020-01-02 03:04:00.000",
    ),
    ("ARRAY<INT>", [1, None], "[1, null]", "[1, null]", "[1, NULL]"),
    ("ARRAY<STRING>", [], "[]", "[]", "[]"),
    ("ROW<x INT, y STRING>", {"x": 1, "y": "z"}, '[1, "z"]', "+I[1, z]", "(1, z)"),
    ("ROW<x INT, y STRING>", None, "null", "null", "NULL"),
    ("MAP<STRING, INT>", [("m", 2), ("k", None)], '[["k", null], ["m", 2]]', "{m=2, k=null}", "{m=2, k=NULL}"),
    ("MULTISET<INT>", [(3, 1)], "[[3, 1]]", "{3=1}", "{3=1}"),
]  # fmt: skip


@pytest.mark.parametrize(("type_", "value", "as_json", "as_row", "in_tableau"), _CASES)
def test_notations(type_: str, value: Any, as_json: str, as_row: str, in_tableau: str) -> None:
    logical = parse_type(type_)
    # Between others and as a slice: offsets and NULL neighbours must not shift anything.
    column = pa.array([None, value, value, None], to_arrow(logical)).slice(1, 2)
    for notation, text in ((Notation.JSON, as_json), (Notation.ROW, as_row), (Notation.TABLEAU, in_tableau)):
        texts = render_column(column, logical, notation)
        assert [texts[0].as_py(), texts[1].as_py()] == [text, text]
        assert texts.null_count == 0


@pytest.mark.parametrize(
    ("type_", "value", "as_json", "in_tableau"),
    [
        ("INTERVAL DAY TO SECOND(3)", 432_000_000, '"PT120H"', "+5 00:00:00.000"),
        ("INTERVAL YEAR TO MONTH", 14, '"P1Y2M"', "+1-02"),
        ("INTERVAL MONTH", 14, '"P14M"', "+1-02"),
        ("INTERVAL MONTH", -24, '"P-24M"', "-2-00"),
        ("INTERVAL YEAR", 24, '"P2Y"', "+2-00"),
    ],
)
def test_intervals(type_: str, value: int, as_json: str, in_tableau: str) -> None:
    logical = parse_type(type_)
    column = pa.array([value, None], to_arrow(logical))
    assert render_column(column, logical, Notation.JSON)[0].as_py() == as_json
    assert render_column(column, logical, Notation.TABLEAU)[0].as_py() == in_tableau


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.0"), (-0.0, "-0.0"), (1.0, "1.0"), (100.0, "100.0"), (1234567.0, "1234567.0"), (1e7, "1.0E7"),
        (1.5e300, "1.5E300"), (0.001, "0.001"), (0.00012, "1.2E-4"), (-12.75, "-12.75"), (123456.789, "123456.789"),
        (1e-7, "1.0E-7"), (9007199254740993.0, "9.007199254740992E15"),
    ],
)  # fmt: skip
def test_java_double(value: float, text: str) -> None:
    assert java_double(value) == text
    assert float(text) == value


def test_java_float() -> None:
    assert java_float(float(np.float32(0.1))) == "0.1"
    assert java_float(float(np.float32(1e10))) == "1.0E10"


def test_rows_of_every_kind() -> None:
    schema = (Column("a", parse_type("INT")), Column("b", parse_type("STRING")))
    kinds = np.array([0, 1, 2, 3], dtype=np.uint8)
    batch = ChangelogBatch.of((pa.array([1, 2, 3, 4], pa.int32()), pa.array(["x", "y\u2028", None, ""])), kinds)
    lines = [json.loads(line) for line in json_rows(batch, schema, "s").split("\n") if line]
    assert [(line["sink"], line["op"], line["row"]) for line in lines] == [
        ("s", "+I", [1, "x"]), ("s", "-U", [2, "y\u2028"]), ("s", "+U", [3, None]), ("s", "-D", [4, ""]),
    ]  # fmt: skip
    assert print_rows(batch.slice(1, 3), schema, "p> ") == "p> -U[2, y\u2028]\np> +U[3, null]\n"
    assert json_rows(batch.slice(0, 0), schema) == ""


def test_python_objects() -> None:
    column = PyObjectColumn(np.array([{"a": 1}, None], dtype=object))
    raw = RawType(class_name="builtins.dict")
    assert render_column(column, raw, Notation.JSON).to_pylist() == ['{"a":1}', "null"]
    assert render_column(column, raw, Notation.ROW).to_pylist() == ["{'a': 1}", "null"]
