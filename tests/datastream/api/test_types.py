"""Declared types convert values and check them; streams print them as Flink does."""

from __future__ import annotations

import datetime
import decimal
from typing import Any

import pytest

from flowsql.common import Instant, Row, RowKind, TypeInformation, Types
from flowsql.datastream.values.text import java_text, line_text
from flowsql_compute.eval.text.java_numbers import java_double, java_float

D = decimal.Decimal


@pytest.mark.parametrize(
    ("type_", "value", "wanted"),
    [
        (Types.INT(), True, 1),
        (Types.LONG(), 2**63 - 1, 2**63 - 1),
        (Types.BIG_INT(), 10**30, 10**30),
        (Types.BOOLEAN(), 0, False),
        (Types.FLOAT(), 110.1, 110.0999984741211),
        (Types.DOUBLE(), 1, 1.0),
        (Types.SQL_DATE(), datetime.datetime(2020, 1, 2, 3), datetime.date(2020, 1, 2)),
        (
            Types.SQL_TIMESTAMP(),
            datetime.datetime(2020, 1, 2, 3, 4, 5, 678901),
            datetime.datetime(2020, 1, 2, 3, 4, 5, 678000),
        ),
        (Types.TUPLE([Types.INT(), Types.STRING()]), [1, None], (1, None)),
        (Types.ROW([Types.INT(), Types.STRING()]), (1, "a"), Row(f0=1, f1="a")),
        (Types.ROW_NAMED(["id", "n"], [Types.INT(), Types.STRING()]), {"n": "a", "id": 1}, Row(id=1, n="a")),
        (Types.ROW_NAMED(["id", "n"], [Types.INT(), Types.STRING()]), Row(n="a", id=1), Row(id=1, n="a")),
        (Types.LIST(Types.FLOAT()), (0.5, None), [0.5, None]),
        (Types.PRIMITIVE_ARRAY(Types.BYTE()), bytearray(b"ab"), b"ab"),
        (Types.MAP(Types.STRING(), Types.INT()), {"a": True}, {"a": 1}),
        (Types.OBJECT_ARRAY(Types.TUPLE([Types.INT()])), [[1]], [(1,)]),
    ],
)
def test_values_are_converted(type_: TypeInformation, value: Any, wanted: Any) -> None:
    convert = type_.converter()
    assert convert is not None
    made = convert(value)
    assert made == wanted
    assert type(made) is type(wanted)
    if isinstance(made, Row):
        assert made.as_dict() == wanted.as_dict()


@pytest.mark.parametrize(
    ("type_", "value", "error"),
    [
        (Types.INT(), "1", TypeError),
        (Types.INT(), 1.0, TypeError),
        (Types.INT(), None, TypeError),
        (Types.INT(), 2**31, ValueError),
        (Types.BYTE(), -129, ValueError),
        (Types.STRING(), 1, TypeError),
        (Types.FLOAT(), 1e39, ValueError),
        (Types.DOUBLE(), "1.5", TypeError),
        (Types.INSTANT(), 5, TypeError),
        (Types.ROW([Types.INT()]), (1, 2), ValueError),
        (Types.ROW([Types.INT()]), 5, TypeError),
        (Types.TUPLE([Types.INT()]), {"a": 1}, TypeError),
        (Types.TUPLE([Types.INT()]), ("a",), TypeError),
        (Types.LIST(Types.INT()), "abc", TypeError),
        (Types.MAP(Types.STRING(), Types.INT()), [1], TypeError),
    ],
)
def test_what_does_not_fit_is_refused(type_: TypeInformation, value: Any, error: type[Exception]) -> None:
    convert = type_.converter()
    assert convert is not None
    with pytest.raises(error):
        convert(value)


def test_a_row_keeps_its_kind() -> None:
    convert = Types.ROW([Types.FLOAT()]).converter()
    assert convert is not None
    assert convert(Row.of_kind(RowKind.DELETE, 1.5)).get_row_kind() is RowKind.DELETE


def test_types_are_values() -> None:
    assert Types.ROW([Types.INT()]) == Types.ROW_NAMED(["a"], [Types.INT()])
    assert Types.LIST(Types.INT()) != Types.LIST(Types.LONG())
    assert Types.LIST(Types.INT()) != Types.OBJECT_ARRAY(Types.INT())
    assert len({Types.INT(), Types.INT(), Types.LONG()}) == 2
    assert repr(Types.ROW_NAMED(["a"], [Types.MAP(Types.STRING(), Types.LONG())])) == (
        "RowTypeInfo(a: MapTypeInfo<String, Long>)"
    )
    with pytest.raises(TypeError, match="primitive array"):
        Types.PRIMITIVE_ARRAY(Types.STRING())


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.0"), (-0.0, "-0.0"), (1.0, "1.0"), (100.0, "100.0"), (9999999.0, "9999999.0"), (1e7, "1.0E7"),
        (123456789.125, "1.23456789125E8"), (0.001, "0.001"), (0.00099, "9.9E-4"), (-1.5e-10, "-1.5E-10"),
        (float("inf"), "Infinity"), (float("-inf"), "-Infinity"), (float("nan"), "NaN"), (1e22, "1.0E22"),
    ],
)  # fmt: skip
def test_doubles_print_as_in_java(value: float, text: str) -> None:
    assert java_double(value) == text


def test_floats_print_with_the_digits_of_four_bytes() -> None:
    assert [java_float(x) for x in (110.0999984741211, 16777216.0, 0.1)] == ["110.1", "1.6777216E7", "0.1"]


@pytest.mark.parametrize(
    ("type_", "value", "text"),
    [
        (Types.TUPLE([Types.STRING(), Types.BOOLEAN(), Types.INT()]), ("a", True, None), "(a,true,null)"),
        (Types.TUPLE([Types.TUPLE([Types.DOUBLE()])]), ((1.0,),), "((1.0))"),
        (Types.LIST(Types.STRING()), ["a", None], "[a, null]"),
        (Types.PRIMITIVE_ARRAY(Types.BYTE()), b"\x01\xff", "[1, -1]"),
        (Types.MAP(Types.STRING(), Types.INT()), {"k": 1}, "{k=1}"),
        (Types.BIG_DEC(), D("1.50"), "1.50"),
        (Types.INSTANT(), Instant(1, 500_000_000), "1970-01-01T00:00:01.500Z"),
        (Types.INSTANT(), Instant(0, 0), "1970-01-01T00:00:00Z"),
        (Types.SQL_TIMESTAMP(), datetime.datetime(2020, 1, 2, 3, 4, 5), "2020-01-02 03:04:05.0"),
        (Types.SQL_TIMESTAMP(), datetime.datetime(2020, 1, 2, 3, 4, 5, 120000), "2020-01-02 03:04:05.12"),
        (Types.SQL_DATE(), datetime.date(2020, 1, 2), "2020-01-02"),
        (Types.SQL_TIME(), datetime.time(3, 4, 5, 6000), "03:04:05"),
        (Types.TUPLE([Types.ROW([Types.INT(), Types.STRING()])]), (Row(1, "a"),), "(+I[1, a])"),
    ],
)
def test_typed_values_print_as_in_java(type_: TypeInformation, value: Any, text: str) -> None:
    assert java_text(type_)(value) == text


def test_lines_of_rows_and_of_objects() -> None:
    row = Row.of_kind(RowKind.UPDATE_AFTER, 1, None, 1.5)
    assert line_text(Types.ROW([Types.INT(), Types.INT(), Types.DOUBLE()]))(row) == "+U[1,None,1.5]"
    assert line_text(Types.PICKLED_BYTE_ARRAY())((1, "a", None)) == "(1, 'a', None)"
