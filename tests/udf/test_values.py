"""What functions are given, and what becomes of what they return."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from flowsql.common import Row
from flowsql.table import TableEnvironment
from flowsql.table.udf import udf
from flowsql_core.errors import ExecutionError, NotSupportedYetError
from flowsql_core.types.arrow import to_arrow
from flowsql_core.types.text import parse_type
from flowsql_runtime.python.values_in import reader
from flowsql_runtime.python.values_out import WrongValueError, writer

D = decimal.Decimal
BERLIN = "Europe/Berlin"


def day(*parts: int) -> datetime.datetime:
    return datetime.datetime(*parts)  # type: ignore[arg-type]


# One type a line, with values that come back as they went, NULL among them.
ROUND_TRIPS: dict[str, list[Any]] = {
    "BOOLEAN": [True, None, False],
    "TINYINT": [-128, None, 127],
    "SMALLINT": [-32768, None, 5],
    "INT": [1, None, -(2**31)],
    "BIGINT": [2**63 - 1, None, -(2**63)],
    "FLOAT": [0.5, None, float("inf")],
    "DOUBLE": [0.1, None, -0.0],
    "STRING": ["ä", None, ""],
    "CHAR(2)": ["ab", None],
    "BYTES": [b"\x00\xff", None, b""],
    "DECIMAL(10, 2)": [D("1.50"), None, D("-99999999.99")],
    "DECIMAL(38, 10)": [D("1234567890123456789012345678.0000000001"), None, D("0E-10")],
    "DATE": [datetime.date(1, 1, 1), None, datetime.date(9999, 12, 31)],
    "TIME(3)": [datetime.time(1, 2, 3, 456000), None, datetime.time()],
    "TIMESTAMP(3)": [day(1969, 12, 31, 23, 59, 59, 999000), None],
    "TIMESTAMP(6)": [day(2020, 1, 2, 3, 4, 5, 678901), None, day(1, 1, 1)],
    "TIMESTAMP(9)": [day(2020, 1, 2, 3, 4, 5, 678901), None],
    "INTERVAL SECOND(3)": [datetime.timedelta(days=-1, milliseconds=5), None],
    "INTERVAL MONTH": [14, None],
    "ARRAY<INT>": [[1, None], None, []],
    "ARRAY<ARRAY<STRING>>": [[["a"], None, []], None],
    "MAP<STRING, INT>": [{"a": 1, "b": None}, None, {}],
    "MULTISET<STRING>": [{"a": 2}, None],
    "ROW<a INT, b STRING>": [Row(a=1, b="x"), None, Row(a=None, b=None)],
    "ROW<a INT NOT NULL, c ARRAY<ROW<d DATE>>>": [Row(a=1, c=[Row(d=datetime.date(2020, 1, 1))]), None],
}


@pytest.mark.parametrize("type_", ROUND_TRIPS)
def test_values_come_back(type_: str) -> None:
    values = ROUND_TRIPS[type_]
    logical = parse_type(type_)
    column = writer(logical, BERLIN)(values)
    assert column.type == to_arrow(logical)
    column.validate(full=True)
    assert reader(logical, BERLIN)(column) == values
    # A part of a larger column, from its second row on.
    longer = pa.concat_arrays([writer(logical, BERLIN)([None, values[0]]), column])
    assert reader(logical, BERLIN)(longer.slice(1, len(values))) == [values[0], *values][: len(values)]


def test_a_local_timestamp_is_in_the_zone_of_the_session() -> None:
    logical = parse_type("TIMESTAMP_LTZ(3)")
    summer = datetime.datetime(2020, 7, 1, 12, tzinfo=datetime.UTC)
    column = writer(logical, BERLIN)([summer, day(2020, 1, 1, 12), None])
    assert column.cast(pa.int64()).to_pylist() == [1593604800000, 1577876400000, None]
    found = reader(logical, BERLIN)(column)
    assert [None if each is None else each.isoformat() for each in found] == [
        "2020-07-01T14:00:00+02:00",
        "2020-01-01T12:00:00+01:00",
        None,
    ]


@dataclasses.dataclass
class Point:
    a: int
    b: str


# Type, what a function returns, what stands in the column.
TAKEN: list[tuple[str, Any, Any]] = [
    ("INT", True, 1),
    ("BIGINT", np.int32(5), 5),
    ("INT", 3.0, 3),
    ("BIGINT", np.float64(-2), -2),
    ("DOUBLE", 3, 3.0),
    ("DOUBLE", 2**60 + 1, float(2**60 + 1)),
    ("DOUBLE", D("1.5"), 1.5),
    ("DOUBLE", np.float32(0.5), 0.5),
    ("BOOLEAN", np.bool_(True), True),
    ("BOOLEAN", 1, True),
    ("BOOLEAN", 0, False),
    ("BYTES", bytearray(b"ab"), b"ab"),
    ("DECIMAL(10, 2)", D("1.235"), D("1.24")),
    ("DECIMAL(10, 2)", D("1.245"), D("1.24")),
    ("DECIMAL(10, 2)", 7, D("7.00")),
    ("DATE", day(2020, 1, 2, 3), datetime.date(2020, 1, 2)),
    ("TIMESTAMP(3)", day(2020, 1, 2, 3, 4, 5, 678999), day(2020, 1, 2, 3, 4, 5, 678000)),
    ("TIMESTAMP(0)", day(1969, 1, 1, 0, 0, 0, 5), day(1969, 1, 1)),
    ("TIMESTAMP(3)", datetime.datetime(2020, 1, 2, tzinfo=datetime.UTC), day(2020, 1, 2)),
    ("TIMESTAMP(6)", np.datetime64("2020-01-02T03:04:05"), day(2020, 1, 2, 3, 4, 5)),
    ("ARRAY<INT>", (1, 2), [1, 2]),
    ("ARRAY<DOUBLE>", np.array([1.5, 2.5]), [1.5, 2.5]),
    ("ROW<a INT, b STRING>", (1, "x"), Row(a=1, b="x")),
    ("ROW<a INT, b STRING>", Row(1, "x"), Row(a=1, b="x")),
    ("ROW<a INT, b STRING>", Row(b="x", a=1), Row(a=1, b="x")),
    ("ROW<a INT, b STRING>", {"b": "x"}, Row(a=None, b="x")),
    ("ROW<a INT, b STRING>", Point(1, "x"), Row(a=1, b="x")),
]


@pytest.mark.parametrize(("type_", "given", "wanted"), TAKEN)
def test_values_of_other_classes_are_taken(type_: str, given: Any, wanted: Any) -> None:
    logical = parse_type(type_)
    assert reader(logical, BERLIN)(writer(logical, BERLIN)([None, given, given])) == [None, wanted, wanted]


# Type, what a function returns, what the error says beside.
REFUSED: list[tuple[str, Any, str]] = [
    ("INT", 3.5, ""),
    ("INT", float("nan"), ""),
    ("INT", 2**31, "out of range"),
    ("INT", "5", ""),
    ("DOUBLE", "1.5", ""),
    ("STRING", 5, ""),
    ("STRING", b"x", ""),
    ("STRING", "\ud800", "a text with a lone surrogate"),
    ("BYTES", "x", ""),
    ("BOOLEAN", "x", ""),
    ("DECIMAL(4, 2)", D("123.4"), "too many digits"),
    ("DECIMAL(4, 2)", D("NaN"), ""),
    ("DECIMAL(4, 2)", 1.5, ""),
    ("DATE", "2020-01-01", ""),
    ("TIME(0)", 5, ""),
    ("TIMESTAMP(3)", datetime.date(2020, 1, 1), ""),
    ("INTERVAL SECOND(3)", 5, ""),
    ("ARRAY<INT>", "abc", ""),
    ("ARRAY<INT>", [1, "x"], "'x' in it is no INT"),
    ("ARRAY<INT NOT NULL>", [1, None], "NULL in it"),
    ("MAP<STRING, INT>", [("a", 1)], ""),
    ("MAP<STRING, INT>", {None: 1}, "NULL in it"),
    ("ROW<a INT, b STRING>", (1,), "1 fields instead of 2"),
    ("ROW<a INT, b STRING>", (1, 2), "field b: 2 in it is no STRING"),
    ("INT NOT NULL", None, ""),
]


@pytest.mark.parametrize(("type_", "given", "reason"), REFUSED)
def test_values_that_do_not_fit_name_their_row(type_: str, given: Any, reason: str) -> None:
    logical = parse_type(type_)
    fine = None if logical.nullable else 5
    with pytest.raises(WrongValueError) as caught:
        writer(logical, BERLIN)([fine, fine, given, given])
    assert caught.value.row == 2
    assert caught.value.reason == reason
    assert repr(caught.value.value) == repr(given)


def test_types_without_a_python_form_are_refused() -> None:
    for type_ in ("VARIANT", "BITMAP"):
        with pytest.raises(NotSupportedYetError):
            reader(parse_type(type_), "UTC")
        with pytest.raises(NotSupportedYetError):
            writer(parse_type(type_), "UTC")


def test_dates_that_python_lacks_are_an_error() -> None:
    far = pa.array([None, 10_000_000], pa.date32())
    with pytest.raises(ExecutionError, match="years 1 to 9999"):
        reader(parse_type("DATE"), "UTC")(far)
    assert reader(parse_type("DATE"), "UTC")(far.slice(0, 1)) == [None]


def test_constants_are_values_too() -> None:
    made = TableEnvironment.create()
    made.create_temporary_system_function("look", udf(lambda *values: repr(values), result_type="STRING"))
    query = (
        "SELECT look(a, 1, 1.50, 'x', DATE '2020-01-02', TIMESTAMP '2020-01-02 03:04:05.5', "
        "CAST(NULL AS INT), INTERVAL '1' HOUR, TRUE) FROM (VALUES (7)) AS t(a)"
    )
    with made.execute_sql(query).collect() as rows:
        (row,) = rows
    assert row[0] == repr(
        (7, 1, D("1.50"), "x", datetime.date(2020, 1, 2), day(2020, 1, 2, 3, 4, 5, 500000), None,
         datetime.timedelta(hours=1), True)
    )  # fmt: skip


def test_none_is_passed_to_the_function() -> None:
    made = TableEnvironment.create()
    made.create_temporary_system_function("known", udf(lambda x: x is not None, result_type="BOOLEAN"))
    query = "SELECT known(a) FROM (VALUES (1), (CAST(NULL AS INT))) AS t(a)"
    with made.execute_sql(query).collect() as rows:
        assert [row[0] for row in rows] == [True, False]


@pytest.mark.parametrize("function", [lambda x: x, lambda x: [x], lambda x: {"k": x}, lambda x: Row(x)], ids=range(4))
def test_results_of_one_function_go_to_the_next_as_they_are(function: Callable[[Any], Any]) -> None:
    made = TableEnvironment.create()
    made.create_temporary_system_function("pack", udf(function, result_type="STRING"))
    made.create_temporary_system_function("look", udf(lambda x: repr(x), result_type="STRING"))
    with made.execute_sql("SELECT look(pack(a)) FROM (VALUES (7)) AS t(a)").collect() as rows:
        assert [row[0] for row in rows] == [repr(function(7))]
