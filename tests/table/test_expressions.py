"""Expressions as SQL: what each prints, and that every plain one calls a function that Flink has."""

from __future__ import annotations

import datetime
from decimal import Decimal

import pytest

from flowsql.common.row import Row
from flowsql.table import DataTypes
from flowsql.table.expression.functions import FunctionMethod, FunctionProperty, Functions
from flowsql.table.expressions import call, col, lit, null_of, range_, row_interval, with_columns
from flowsql_compute.functions.flink_names import FLINK_FUNCTIONS
from flowsql_core.errors import BindError


def test_every_plain_function_is_one_of_flinks() -> None:
    declared = {
        name: member.function
        for name, member in vars(Functions).items()
        if isinstance(member, FunctionProperty | FunctionMethod)
    }
    assert len(declared) > 120
    assert not {name: function for name, function in declared.items() if function not in FLINK_FUNCTIONS}


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1, "1"),
        (-(2**63), "-9223372036854775808"),
        (1.5, "1.5E0"),
        (-1e-300, "-1e-300"),
        (float("inf"), "CAST('Infinity' AS DOUBLE)"),
        (Decimal("-1.50"), "-1.50"),
        (Decimal("1E+3"), "CAST('1000' AS DECIMAL(4, 0))"),
        (Decimal("0.000000000000000000001"), "CAST('0.000000000000000000001' AS DECIMAL(21, 21))"),
        ("it's", "'it''s'"),
        (b"\x0f", "X'0f'"),
        (True, "TRUE"),
        (None, "NULL"),
        (datetime.date(2020, 1, 2), "DATE '2020-01-02'"),
        (datetime.time(1, 2, 3, 500_000), "TIME '01:02:03.5'"),
        (datetime.datetime(2020, 1, 2, 3, 4, 5), "TIMESTAMP '2020-01-02 03:04:05'"),
        (
            datetime.datetime(2020, 1, 2, 3, tzinfo=datetime.timezone(datetime.timedelta(hours=1))),
            "TIMESTAMP WITH LOCAL TIME ZONE '2020-01-02 02:00:00'",
        ),
        (datetime.timedelta(days=120, seconds=1), "INTERVAL '120 00:00:01.000' DAY(3) TO SECOND(3)"),
        ([1, 2], "ARRAY[1, 2]"),
        ({"k": 1}, "MAP['k', 1]"),
        (Row(1, "x"), "ROW(1, 'x')"),
    ],
)
def test_literals(value: object, text: str) -> None:
    assert repr(lit(value)) == f"Expression({text})"


@pytest.mark.parametrize("value", [2**63, Decimal("NaN"), object()])
def test_what_has_no_literal(value: object) -> None:
    with pytest.raises(BindError):
        lit(value)


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        (lit(5, DataTypes.BIGINT()), "CAST(5 AS BIGINT)"),
        (null_of(DataTypes.INT()), "CAST(NULL AS INT)"),
        (lit(90).days, "INTERVAL '90' DAY"),
        (lit(100).hours, "INTERVAL '100' HOUR(3)"),
        (-lit(3).months, "-INTERVAL '3' MONTH"),
        (lit(-3).months, "INTERVAL -'3' MONTH"),
        (lit(1500).millis, "INTERVAL '1.500' SECOND"),
        (lit(2).weeks + lit(1).quarter, "INTERVAL '2' WEEK + INTERVAL '1' QUARTER"),
        (row_interval(5), "ROW_INTERVAL(5)"),
        (lit(5).rows, "ROW_INTERVAL(5)"),
        (col("x").year, "INTERVAL x YEAR"),
        (call("cat.f", col("x"), lit(1).as_argument("n")), "cat.f(x, n => 1)"),
        (with_columns(range_(1, 2)), "WITH_COLUMNS(RANGE_(1, 2))"),
        (col("x").str_to_map(), "STR_TO_MAP(x)"),
        (col("x").truncate(), "TRUNCATE(x, 0)"),
        (col("x").elt("a", "b"), "ELT(x, 'a', 'b')"),
        (col("x").substring(begin_index=2), "SUBSTRING(x FROM 2)"),
        (col("x").like("a!%", "!"), "x LIKE 'a!%' ESCAPE '!'"),
        (abs(col("x")) ** 2, "POWER(ABS(x), 2)"),
        (col("x").sum.distinct, "SUM(DISTINCT x)"),
    ],
)
def test_expressions_print_as_sql(expression: object, text: str) -> None:
    assert repr(expression) == f"Expression({text})"


def test_a_name_replaces_another() -> None:
    assert repr(col("a").alias("b").alias("c")) == "Expression(`a` AS c)"


def test_arguments_are_checked() -> None:
    with pytest.raises(TypeError, match="missing a required argument: 'places'"):
        col("a").round()
