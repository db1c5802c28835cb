"""Functions on which Flink and DuckDB agree, over random columns: DuckDB is the judge."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from flowsql_compute.eval.compile import compile_projections
from flowsql_compute.eval.context import EvalContext
from flowsql_compute.functions.registry import resolve_call, resolve_cast
from flowsql_core.expr import Expr, InputRef, Literal
from flowsql_core.types import logical as t
from flowsql_core.types.arrow import to_arrow
from flowsql_core.types.text import parse_type

TYPES = (
    t.INT,
    t.BIGINT,
    t.DOUBLE,
    t.STRING,
    t.DATE,
    t.TimestampType(precision=6),
    t.DecimalType(precision=12, scale=3),
)
INT_, L, D, S, DATE, TS, DEC = (InputRef(index, type_) for index, type_ in enumerate(TYPES))
_MOMENTS = st.datetimes(datetime.datetime(1900, 1, 1), datetime.datetime(2199, 12, 31))
_WORDS = st.text(alphabet="abcXY é中,%_", max_size=8)
ROWS = st.lists(
    st.tuples(
        st.none() | st.integers(-1000, 1000),
        st.none() | st.integers(-(2**40), 2**40),
        st.none() | st.floats(-1e6, 1e6, allow_nan=False),
        st.none() | _WORDS,
        st.none() | st.dates(datetime.date(1900, 1, 1), datetime.date(2199, 12, 31)),
        st.none() | _MOMENTS,
        st.none() | st.decimals(-(10**8), 10**8, places=3),
    ),
    min_size=1,
    max_size=20,
)


def lit(value: Any, type_: str) -> Literal:
    return Literal(value, parse_type(f"{type_} NOT NULL"))


def call(name: str, *args: Expr, **options: Any) -> Expr:
    return resolve_call(name, args, tuple(options.items()))


CASES: dict[str, Expr] = {
    "i + 7": call("+", INT_, lit(7, "INT")),
    "l * i": call("*", L, INT_),
    "l // 7": call("/", L, lit(7, "INT")),
    "l % 7": call("MOD", L, lit(7, "BIGINT")),
    "abs(l)": call("ABS", L),
    "i BETWEEN 3 AND 99": call("AND", call(">=", INT_, lit(3, "INT")), call("<=", INT_, lit(99, "INT"))),
    "i IN (1, 2, NULL)": call("IN", INT_, lit(1, "INT"), lit(2, "INT"), Literal(None, t.INT)),
    "i IS DISTINCT FROM l": call("IS DISTINCT FROM", INT_, L),
    "i > 0 OR l > 0": call("OR", call(">", INT_, lit(0, "INT")), call(">", L, lit(0, "INT"))),
    "coalesce(i, 5)": call("COALESCE", INT_, lit(5, "INT")),
    "nullif(i, 3)": call("NULLIF", INT_, lit(3, "INT")),
    "floor(d)": call("FLOOR", D),
    "d < i": call("<", D, INT_),
    "dec + i": call("+", DEC, INT_),
    "dec * 1.25": call("*", DEC, lit(Decimal("1.25"), "DECIMAL(3, 2)")),
    "dec > 12": call(">", DEC, lit(12, "INT")),
    "dec::DECIMAL(12, 1)": resolve_cast(DEC, t.DecimalType(precision=12, scale=1), False),
    "i::VARCHAR": resolve_cast(INT_, t.STRING, False),
    "dec::VARCHAR": resolve_cast(DEC, t.STRING, False),
    "dt::VARCHAR": resolve_cast(DATE, t.STRING, False),
    "lower(s)": call("LOWER", S),
    "length(s)": call("CHAR_LENGTH", S),
    "reverse(s)": call("REVERSE", S),
    "replace(s, 'a', '')": call("REPLACE", S, lit("a", "CHAR(1)"), lit("", "CHAR(1)")),
    "s || 'x'": call("||", S, lit("x", "CHAR(1)")),
    "s LIKE 'a%'": call("LIKE", S, lit("a%", "CHAR(2)")),
    "s LIKE '%_,%'": call("LIKE", S, lit("%_,%", "CHAR(4)")),
    "trim(s)": call("TRIM", S),
    "position('b' IN s)": call("POSITION", lit("b", "CHAR(1)"), S),
    "substring(s, 2, 3)": call("SUBSTRING", S, lit(2, "INT"), lit(3, "INT")),
    "s < 'b'": call("<", S, lit("b", "CHAR(1)")),
    "year(ts)": call("YEAR", TS),
    "week(dt)": call("WEEK", DATE),
    "dayofyear(dt)": call("DAYOFYEAR", DATE),
    "isodow(dt)": call("EXTRACT", DATE, unit="ISODOW"),
    "isoyear(dt)": call("EXTRACT", DATE, unit="ISOYEAR"),
    "minute(ts)": call("MINUTE", TS),
    "strftime(ts, '%Y-%m-%d %H:%M')": call("DATE_FORMAT", TS, lit("yyyy-MM-dd HH:mm", "CHAR(16)")),
    "strftime(ts, '%a %d %B')": call("DATE_FORMAT", TS, lit("EEE dd MMMM", "CHAR(11)")),
    "date_trunc('month', dt)::DATE": call("FLOOR", DATE, unit="MONTH"),
    "date_trunc('hour', ts)": call("FLOOR", TS, unit="HOUR"),
    "ts + INTERVAL 40 DAY": call("+", TS, lit(40 * 86_400_000, "INTERVAL SECOND(3)")),
    "ts + INTERVAL 5 MONTH": call("+", TS, lit(5, "INTERVAL MONTH")),
    "dt::TIMESTAMP": resolve_cast(DATE, t.TimestampType(precision=6), False),
    "ts::DATE": resolve_cast(TS, t.DATE, False),
}

#: Flink counts the fields of moments before 1970 backwards from the next midnight, and cuts them
#: towards 1970; DuckDB does not.
SINCE_1970 = {"year(ts)", "minute(ts)", "ts::DATE"}
_EPOCH = datetime.datetime(1970, 1, 1)


@pytest.mark.parametrize("sql", CASES)
@given(rows=ROWS)
def test_agrees_with_duckdb(sql: str, rows: list[tuple[Any, ...]]) -> None:
    if sql in SINCE_1970:
        rows = [row for row in rows if row[5] is None or row[5] >= _EPOCH]
        assume(rows)
    columns = [pa.array(column, to_arrow(type_)) for column, type_ in zip(zip(*rows, strict=True), TYPES, strict=True)]
    expr = CASES[sql]
    ours = compile_projections([expr], EvalContext())(columns, len(rows))[0].to_pylist()
    data = pa.table(dict(zip(("i", "l", "d", "s", "dt", "ts", "dec"), columns, strict=True)))
    with duckdb.connect() as connection:
        connection.register("data", data)
        theirs = [row[0] for row in connection.execute(f"SELECT {sql} FROM data").fetchall()]
    assert ours == theirs
