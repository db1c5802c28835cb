"""What random expressions found: each case once broke, or depended on how many rows came at once."""

from __future__ import annotations

import datetime
import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from flowsql_compute.eval.cast import cast_array
from flowsql_compute.eval.compile import compile_projections
from flowsql_compute.eval.context import EvalContext
from flowsql_core.config import Configuration
from flowsql_core.errors import BindError, ExecutionError
from flowsql_core.expr import Expr
from flowsql_core.span import Source
from flowsql_core.types import logical as t
from flowsql_core.types.arrow import to_arrow
from flowsql_core.types.text import parse_type
from flowsql_grammar import parse_expression
from flowsql_planner.bind.context import BindContext
from flowsql_planner.bind.expression.binder import ExpressionBinder
from flowsql_planner.bind.expression.scope import Namespace, Scope
from flowsql_planner.catalog.manager import CatalogManager


def bind(text: str, **types: str) -> Expr:
    source = Source(text)
    schema = tuple(t.Column(name, parse_type(type_)) for name, type_ in types.items())
    binder = ExpressionBinder(BindContext(CatalogManager(), Configuration(), source), Scope((Namespace("t", schema),)))
    return binder.bind(parse_expression(source))


def run(text: str, *rows: Any, **types: str) -> list[Any]:
    """The values of an expression over the rows, which must be the same one row at a time."""
    expr = bind(text, **types)
    n = max(1, len(rows))
    columns = [
        pa.array([row[place] for row in rows], to_arrow(parse_type(type_)))
        for place, type_ in enumerate(types.values())
    ]
    whole = compile_projections([expr], EvalContext())(columns, n)[0].to_pylist()
    single = [compile_projections([expr], EvalContext())([c.slice(i, 1) for c in columns], 1)[0][0] for i in range(n)]
    assert repr([value.as_py() for value in single]) == repr(whole)
    return whole


def test_concat_ws_keeps_rows_of_nulls() -> None:
    rows = [("a", "b"), (None, None), (None, "c"), (None, None)]
    assert run("CONCAT_WS('-', a, b)", *rows, a="STRING", b="STRING") == ["a-b", "", "c", ""]


@pytest.mark.parametrize("digits", [-2147483648, -400, 309, 2147483647])
def test_rounding_far_from_the_point(digits: int) -> None:
    wanted = 0 if digits < 0 else 7
    assert run(f"ROUND(x, {digits})", (7,), (None,), x="INT") == [wanted, None]
    assert run("TRUNCATE(x, d)", (7.0, digits), (-7.0, digits), x="DOUBLE", d="INT") == [wanted, -wanted]
    assert run("TRUNCATE(x, d)", (Decimal(7), digits), x="DECIMAL(3, 0)", d="INT") == [wanted]


def test_truncating_makes_no_negative_zero() -> None:
    assert [math.copysign(1, value) for value in run("TRUNCATE(x, 0)", (-0.3,), (0.3,), x="DOUBLE")] == [1, 1]


def test_zones_in_columns() -> None:
    rows = [("2020-07-01 12:00:00", "UTC", "Europe/Berlin"), ("2020-07-01 12:00:00", "UTC", "Asia/Tokyo"),
            ("2020-07-01 12:00:00", None, "UTC"), ("2020-07-01 12:00:00", "Asia/Tokyo", "UTC")]  # fmt: skip
    wanted = ["2020-07-01 14:00:00", "2020-07-01 21:00:00", None, "2020-07-01 03:00:00"]
    assert run("CONVERT_TZ(s, a, b)", *rows, s="STRING", a="STRING", b="STRING") == wanted


def test_places_beyond_any_text() -> None:
    assert run("OVERLAY(s PLACING 'x' FROM 9223372036854775807 FOR 9223372036854775807)", ("ab",), s="STRING") == ["ab"]


def test_an_empty_date_pattern_reads_nothing() -> None:
    assert run("UNIX_TIMESTAMP(s, '')", ("abc",), (None,), s="STRING") == [-(2**63), None]


def test_units_that_intervals_lack_are_refused_when_bound() -> None:
    with pytest.raises(BindError, match="ISOYEAR"):
        bind("EXTRACT(ISOYEAR FROM i)", i="INTERVAL MONTH")


def test_no_character_set_is_asked_for_null() -> None:
    assert run("DECODE(x, 'none')", (None,), x="BYTES") == [None]
    assert run("ENCODE(x, 'none')", (None,), x="STRING") == [None]
    assert run("DECODE(CAST(NULL AS BYTES), 'none')") == [None]
    with pytest.raises(ExecutionError, match="none"):
        run("ENCODE(x, 'none')", ("a",), x="STRING")


def test_locate_from_a_column() -> None:
    assert run("LOCATE('a', 'banana', n)", (1,), (3,), (None,), (7,), n="INT") == [2, 4, None, 0]


def test_division_of_one_row_by_zero_is_infinite() -> None:
    assert run("x / 0e0", (1.0,), x="DOUBLE") == [math.inf]


def test_nan_of_one_row_equals_no_nan() -> None:
    assert run("x = CAST('NaN' AS DOUBLE)", (math.nan,), x="DOUBLE") == [False]
    assert run("CAST('NaN' AS DOUBLE) = CAST('NaN' AS DOUBLE)") == [True]


def test_precisions_in_a_column() -> None:
    rows = [(1, 0), (1000, 3), (None, 3), (1, None)]
    moment = datetime.datetime(1970, 1, 1, 0, 0, 1, tzinfo=datetime.UTC)
    assert run("TO_TIMESTAMP_LTZ(n, p)", *rows, n="BIGINT", p="INT") == [moment, moment, None, None]
    # Asked of Flink: a precision of a row divides on, down to the epoch.
    epoch = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
    assert run("TO_TIMESTAMP_LTZ(n, CAST(300 AS SMALLINT))", (1,), n="BIGINT") == [epoch]
    with pytest.raises(ExecutionError, match="between 0 and 9 but was -3"):
        run("TO_TIMESTAMP_LTZ(n, p)", (1, -3), n="BIGINT", p="INT")


def test_casts_to_nanoseconds_are_done_where_they_are_needed() -> None:
    rows = [(datetime.datetime(1, 1, 1), False)]
    assert run("CASE WHEN b THEN CAST(x AS TIMESTAMP(9)) END", *rows, x="TIMESTAMP(3)", b="BOOLEAN") == [None]


def test_years_that_python_lacks() -> None:
    text = "DATE_FORMAT(CAST(FROM_UNIXTIME(n) AS STRING), 'w YYYY')"
    assert run(text, (10**14,), n="BIGINT")[0].endswith(" 3170843")


def test_units_that_moments_lack_are_refused_when_bound() -> None:
    for text in ("FLOOR(x TO DOW)", "CEIL(x TO ISOYEAR)"):
        with pytest.raises(BindError, match="can not be rounded"):
            bind(text, x="DATE")


def test_a_rounding_that_fails_is_done_where_it_is_needed() -> None:
    rows = [(datetime.datetime(2020, 1, 1), False)]
    assert run("CASE WHEN b THEN FLOOR(x TO MICROSECOND) END", *rows, x="TIMESTAMP(3)", b="BOOLEAN") == [None]


def test_decimal_columns_less_a_constant() -> None:
    assert run("x - CAST(-128 AS TINYINT)", (Decimal("0.5"),), (None,), x="DECIMAL(38, 18)") == [Decimal("128.5"), None]


def test_bitmaps_of_null_rows_that_hide_elements() -> None:
    # A row whose cast fails is NULL, with the elements that could be cast below it.
    rows = [(["1", "x"],), (["2"],), (None,)]
    assert run("BITMAP_TO_STRING(BITMAP_BUILD(TRY_CAST(a AS ARRAY<INT>)))", *rows, a="ARRAY<STRING>") == [
        None,
        "{2}",
        None,
    ]


def test_substrings_far_outside() -> None:
    rows = [("abc", -(2**63), 2), ("abc", 2**63 - 1, 2), ("abc", 2, 2**63 - 1)]
    assert run("SUBSTRING(s, a, n)", *rows, s="STRING", a="BIGINT", n="BIGINT") == ["", "", "bc"]
    assert run("SUBSTRING(s, -9223372036854775808)", ("abc",), s="STRING") == [""]


def test_the_smallest_integer_sorts_down_last() -> None:
    assert run("ARRAY_SORT(a, FALSE)", ([1, -(2**63), 5, None],), a="ARRAY<BIGINT>") == [[5, 1, -(2**63), None]]
    assert run("ARRAY_MIN(a)", ([1, -(2**63), 5, None],), a="ARRAY<BIGINT>") == [-(2**63)]


def test_pieces_far_behind_the_last() -> None:
    rows = [("a-b", "-", 2**63 - 1), ("a-b", "-", 1), ("", "-", 0), ("a-b", "", 0), ("a-b", "-", -1), (None, "-", 0)]
    wanted = [None, "b", None, "a-b", None, None]
    assert run("SPLIT_INDEX(s, m, i)", *rows, s="STRING", m="STRING", i="BIGINT") == wanted
    many = [(f"{place}-x", "-", place) for place in range(40)]
    assert run("SPLIT_INDEX(s, m, i)", *many, s="STRING", m="STRING", i="INT") == ["0", "x", *[None] * 38]


def test_json_with_unknown_leave_for_duplicates() -> None:
    assert run("TRY_PARSE_JSON('1', b)", (None,), (True,), b="BOOLEAN") == [None, "1"]
    assert run("TRY_PARSE_JSON('1', CAST(NULL AS BOOLEAN))") == [None]


def test_maps_are_made_where_they_are_needed() -> None:
    assert run("CASE WHEN b THEN MAP[k, 1] END", (None, False), k="STRING", b="BOOLEAN") == [None]


def test_dates_that_python_lacks_in_lists() -> None:
    rows = [(datetime.date(2020, 1, 1), "x"), (datetime.date(2021, 1, 1), "2021")]
    assert run("d IN (DATE '2020-01-01', TO_DATE('x', 'yyyy'))", *rows, d="DATE", s="STRING") == [True, False]


def test_casts_of_lists_see_no_element_of_other_rows() -> None:
    # A row of no condition is NULL; a batch may be part of a longer one.
    rows = [(["1", "2"], True), (["x"], False), (["3"], True)]
    text = "CAST(CASE WHEN b THEN a END AS ARRAY<INT>)"
    assert run(text, *rows, a="ARRAY<STRING>", b="BOOLEAN") == [[1, 2], None, [3]]
    column = pa.array([["x"], ["1"], None, ["2"]], pa.list_(pa.string())).slice(1)
    strings, ints = t.ArrayType(element=t.STRING), t.ArrayType(element=t.INT)
    assert cast_array(column, strings, ints, False, EvalContext()).to_pylist() == [[1], None, [2]]


def test_a_malformed_pattern_is_not_asked_of_null() -> None:
    text = "s SIMILAR TO 'a!b' ESCAPE '!'"
    assert run(text, (None,), s="STRING") == [None]
    with pytest.raises(ExecutionError, match="Invalid escape sequence"):
        run(text, ("a",), s="STRING")


def test_a_malformed_pattern_of_like_is_not_asked_of_null() -> None:
    assert run("s LIKE 'a!b' ESCAPE LOWER('!')", (None,), s="STRING") == [None]


def test_moments_before_the_first_year_are_printed() -> None:
    rows = [(datetime.datetime(1, 1, 1, 12),), (None,), (datetime.datetime(2020, 5, 6, 7, 8, 9, 120_000),)]
    text = "PRINTF('%s', TIMESTAMPADD(DAY, -1, x))"
    assert run(text, *rows, x="TIMESTAMP(3)") == ["0000-12-31T12:00", "null", "2020-05-05T07:08:09.120"]
    assert run("PRINTF('%s', x)", *rows, x="TIMESTAMP(3)") == ["0001-01-01T12:00", "null", "2020-05-06T07:08:09.120"]


@pytest.mark.parametrize("before", [0, 40])
def test_equal_zeros_in_order(before: int) -> None:
    # As Flink answers: sorting up turns equal elements around, sorting down does not; the first is the extreme.
    x = [([0.0, -0.0, 0.0, -0.0],), ([1.0, -0.0, 0.0, -1.0],), ([-0.0, None, 0.0],), (None,)]
    fill = [([float(place)],) for place in range(before)]
    up = ["[-0.0, 0.0, -0.0, 0.0]", "[-1.0, 0.0, -0.0, 1.0]", "[None, 0.0, -0.0]", "None"]
    down = ["[0.0, -0.0, 0.0, -0.0]", "[1.0, -0.0, 0.0, -1.0]", "[-0.0, 0.0, None]", "None"]
    assert [str(v) for v in run("ARRAY_SORT(a)", *fill, *x, a="ARRAY<DOUBLE>")[before:]] == up
    assert [str(v) for v in run("ARRAY_SORT(a, FALSE)", *fill, *x, a="ARRAY<DOUBLE>")[before:]] == down
    assert [str(v) for v in run("ARRAY_MAX(a)", *x, a="ARRAY<DOUBLE>")] == ["0.0", "1.0", "-0.0", "None"]
    assert [str(v) for v in run("ARRAY_MIN(a)", *x, a="ARRAY<DOUBLE>")] == ["0.0", "-1.0", "-0.0", "None"]
