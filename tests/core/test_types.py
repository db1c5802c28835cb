"""Types as text, as Arrow types, and where they meet."""

from __future__ import annotations

import pyarrow as pa
import pytest

from flowsql_core.errors import BindError
from flowsql_core.types import logical as t
from flowsql_core.types.arrow import from_arrow, to_arrow
from flowsql_core.types.coerce import (
    common_type,
    divide_type,
    explicit_cast_allowed,
    implicit_cast_allowed,
    modulo_type,
    multiply_type,
    plus_minus_type,
    round_type,
)
from flowsql_core.types.text import parse_type

PRINTED = (
    "BOOLEAN", "TINYINT", "SMALLINT NOT NULL", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL(10, 2)", "CHAR(3)",
    "VARCHAR(5)", "STRING", "BINARY(2)", "VARBINARY(9)", "BYTES", "DATE", "TIME(0)", "TIME(3)", "TIMESTAMP(3)",
    "TIMESTAMP(3) *ROWTIME*", "TIMESTAMP_LTZ(3) NOT NULL *PROCTIME*", "TIMESTAMP_LTZ(9)", "INTERVAL MONTH",
    "INTERVAL YEAR(2) TO MONTH", "INTERVAL YEAR(4)", "INTERVAL SECOND(3)", "INTERVAL DAY(3) TO SECOND(6)",
    "INTERVAL DAY(2)", "INTERVAL HOUR TO MINUTE", "ARRAY<INT NOT NULL> NOT NULL", "MAP<STRING NOT NULL, ARRAY<INT>>",
    "MULTISET<DATE>", "ROW<`a` INT, `b c` STRING NOT NULL>", "ROW<`it``s` ROW<`x` DOUBLE> NOT NULL>", "NULL",
    "ROW<`a` INT 'it''s'>",
)  # fmt: skip


@pytest.mark.parametrize("text", PRINTED)
def test_printed_types_parse_back(text: str) -> None:
    assert str(parse_type(text)) == text


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("integer", "INT"), ("numeric(9,3)", "DECIMAL(9, 3)"), ("dec", "DECIMAL(10, 0)"),
        ("DECIMAL(7)", "DECIMAL(7, 0)"),
        ("double precision", "DOUBLE"), ("varchar", "STRING"), ("char", "CHAR(1)"), ("timestamp", "TIMESTAMP(6)"),
        ("timestamp(0) with local time zone", "TIMESTAMP_LTZ(0)"), ("timestamp without time zone", "TIMESTAMP(6)"),
        ("int array not null", "ARRAY<INT> NOT NULL"), ("row(a int, b string)", "ROW<`a` INT, `b` STRING>"),
        ("TIMESTAMP_LTZ(3) *PROCTIME* NOT NULL", "TIMESTAMP_LTZ(3) NOT NULL *PROCTIME*"),
        ("map<int,string>", "MAP<INT, STRING>"), ("character varying(4)", "VARCHAR(4)"), ("time", "TIME(0)"),
    ],
)  # fmt: skip
def test_sql_spellings(text: str, printed: str) -> None:
    assert str(parse_type(text)) == printed


@pytest.mark.parametrize(
    "text", ["", "INTT", "DECIMAL(39, 1)", "DECIMAL(2, 3)", "ARRAY<INT", "INT INT", "ROW<a>", "CHAR(x)"]
)
def test_what_is_no_type_is_refused(text: str) -> None:
    with pytest.raises(BindError, match="Could not parse type"):
        parse_type(text)


@pytest.mark.parametrize("text", [text for text in PRINTED if not text.startswith("INTERVAL")])
def test_arrow_types_map_back_up_to_length_and_precision(text: str) -> None:
    type_ = parse_type(text)
    back = from_arrow(to_arrow(type_))
    assert to_arrow(back) == to_arrow(type_) or "MULTISET" in text


def test_arrow_types_from_outside() -> None:
    assert str(from_arrow(pa.uint32())) == "BIGINT"
    assert str(from_arrow(pa.uint64())) == "DECIMAL(20, 0)"
    assert str(from_arrow(pa.timestamp("s", tz="Europe/Berlin"))) == "TIMESTAMP_LTZ(0)"
    assert str(from_arrow(pa.large_string(), nullable=False)) == "STRING NOT NULL"


@pytest.mark.parametrize(
    ("types", "meet"),
    [
        ("INT|BIGINT NOT NULL", "BIGINT"), ("INT NOT NULL|DECIMAL(2, 1) NOT NULL", "DECIMAL(11, 1) NOT NULL"),
        ("FLOAT|INT", "FLOAT"), ("FLOAT|DECIMAL(2, 1)", "DOUBLE"), ("DOUBLE|BIGINT", "DOUBLE"),
        ("CHAR(2) NOT NULL|CHAR(5) NOT NULL", "VARCHAR(5) NOT NULL"), ("CHAR(2)|STRING", "STRING"),
        ("NULL|INT NOT NULL", "INT"),
        ("DECIMAL(38, 10)|BIGINT", "DECIMAL(38, 10)"), ("DECIMAL(38, 20)|BIGINT", "DECIMAL(38, 19)"),
        ("TIMESTAMP(0)|TIMESTAMP(3)", "TIMESTAMP(3)"), ("ARRAY<INT NOT NULL>|ARRAY<BIGINT>", "ARRAY<BIGINT>"),
        ("TIMESTAMP(3) *ROWTIME*|TIMESTAMP(3)", "TIMESTAMP(3)"),
        ("TIMESTAMP(3) *ROWTIME*|TIMESTAMP(3) *ROWTIME*", "TIMESTAMP(3) *ROWTIME*"),
        ("BINARY(1)|BINARY(3)", "VARBINARY(3)"),
    ],
)  # fmt: skip
def test_common_type(types: str, meet: str) -> None:
    assert str(common_type([parse_type(text) for text in types.split("|")])) == meet


@pytest.mark.parametrize("types", ["INT|STRING", "BOOLEAN|INT", "DATE|TIME(0)", "ROW<`a` INT>|ROW<`a` INT, `b` INT>"])
def test_no_common_type(types: str) -> None:
    assert common_type([parse_type(text) for text in types.split("|")]) is None


def _decimal(precision: int, scale: int) -> t.DecimalType:
    return t.DecimalType(precision=precision, scale=scale)


def test_decimal_arithmetic_types_are_flinks() -> None:
    a, b, wide = _decimal(10, 2), _decimal(6, 3), _decimal(38, 10)
    assert plus_minus_type(a, b) == _decimal(12, 3)
    assert multiply_type(a, b) == _decimal(17, 5)
    assert divide_type(a, b) == _decimal(20, 9)
    assert modulo_type(a, b) == _decimal(6, 3)
    assert (plus_minus_type(wide, wide), multiply_type(wide, wide)) == (_decimal(38, 9), _decimal(38, 6))
    assert multiply_type(_decimal(4, 3), t.BIGINT) == _decimal(24, 3)
    assert round_type(_decimal(13, 3), 0) == _decimal(11, 0)
    assert round_type(_decimal(13, 3), -1) == _decimal(11, 0)
    assert round_type(t.INT, -2) == t.INT


def test_casts_that_are_allowed() -> None:
    assert implicit_cast_allowed(t.INT, t.BIGINT)
    assert not implicit_cast_allowed(t.STRING, t.INT)
    assert explicit_cast_allowed(t.STRING, t.INT)
    assert not explicit_cast_allowed(t.INT, t.DATE)
    assert not explicit_cast_allowed(t.BOOLEAN, t.DATE)
    assert explicit_cast_allowed(parse_type("ARRAY<STRING>"), parse_type("ARRAY<INT>"))
    assert not explicit_cast_allowed(parse_type("ROW<`a` INT>"), parse_type("ROW<`a` INT, `b` INT>"))
