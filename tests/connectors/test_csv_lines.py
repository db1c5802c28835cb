"""Lines that kernels write are those that Arrow's functions join."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flowsql_connectors.formats.csv import CsvFormat
from flowsql_connectors.formats.csv_encode import KERNEL_ROWS, CsvEncoder
from flowsql_connectors.formats.csv_tokens import CsvDialect
from flowsql_core.types.arrow import to_arrow
from tests.connectors.tables import columns_of

_DDL = (
    "a BIGINT, b STRING, c TIMESTAMP(3), d TIMESTAMP_LTZ(3), e TINYINT, f TIMESTAMP(6), g TIMESTAMP(0), h INT,"
    " i TIMESTAMP(9), j DECIMAL(10, 2), k DATE, l DOUBLE, m BOOLEAN, n CHAR(3)"
)
_COLUMNS = columns_of(_DDL)

_whole = st.one_of(st.integers(-(2**63), 2**63 - 1), st.sampled_from([0, 9, 10, 99, 100, 999, 1000, 9999, 10000, -1]))
_moment = st.one_of(
    st.integers(-62_135_596_800_000, 253_402_300_799_999),
    st.sampled_from([0, 1, 1_000, -1, 1_767_225_600_000, 1_767_225_600_120, 951_782_400_000, 60_000, 59_999]),
)
_text = st.one_of(
    st.text(st.sampled_from("ab,\"\n\\ é€😀z#;|'"), max_size=40),
    st.text(st.sampled_from("abcé"), min_size=20, max_size=130),
)


def _moments(scale: int) -> Any:
    return _moment.map(lambda ms: ms * scale + (7 * scale // 1000 if scale > 1 else 0))


_VALUES: list[Any] = [
    _whole,
    _text,
    _moment,
    _moment,
    st.integers(-128, 127),
    _moments(1000),
    _moment.map(lambda ms: ms // 1000),
    st.integers(-(2**31), 2**31 - 1),
    st.integers(-(2**62), 2**62),
    st.sampled_from([Decimal("1.50"), Decimal("-0.01")]),
    st.dates(),
    st.floats(allow_nan=False, width=32),
    st.booleans(),
    st.sampled_from(["abc", "a c", "é,x"]),
]


def _arrays(rows: list[tuple[Any, ...]]) -> tuple[Any, ...]:
    arrays = []
    for column, values in zip(_COLUMNS, zip(*rows, strict=True), strict=True):
        type_ = to_arrow(column.type)
        array = pa.array(values, pa.int64()).cast(type_) if pa.types.is_timestamp(type_) else pa.array(values, type_)
        arrays.append(array)
    return tuple(arrays)


def _lines(dialect: CsvDialect, null: str | None, arrays: tuple[Any, ...], rows: int, kernels: bool) -> list[str]:
    encoder = CsvEncoder(CsvFormat(dialect, () if null is None else (null,), ";", False, False, True), _COLUMNS)
    if kernels:
        encoder.count_rows(KERNEL_ROWS)
    made = encoder.prepare(arrays, rows)
    made.validate(full=True)
    return list(made.to_pylist())


@settings(max_examples=max(60, settings().max_examples), deadline=None)
@given(
    st.lists(st.tuples(*(st.one_of(st.none(), values) for values in _VALUES)), min_size=1, max_size=12),
    st.sampled_from(
        [
            CsvDialect(),
            CsvDialect(quote=None),
            CsvDialect(delimiter=";", quote="'"),
            CsvDialect(escape="\\"),
            CsvDialect(delimiter="\t", quote="\x01"),
        ]
    ),
    st.sampled_from([None, "NULL", "é"]),
    st.booleans(),
)
def test_kernels_write_the_same_lines(
    rows: list[tuple[Any, ...]], dialect: CsvDialect, null: str | None, sliced: bool
) -> None:
    arrays = _arrays(rows)
    if sliced and len(rows) > 1:
        arrays = tuple(array[1:] for array in arrays)
        rows = rows[1:]
    joined = _lines(dialect, null, arrays, len(rows), kernels=False)
    assert _lines(dialect, null, arrays, len(rows), kernels=True) == joined


@pytest.mark.parametrize("ms", [-62_135_596_800_001, 253_402_300_800_000])
def test_years_without_four_digits_are_written_by_arrow(ms: int) -> None:
    row = (1, "a", ms, 0, 1, 0, 0, 1, 0, Decimal("1.00"), dt.date(2020, 1, 1), 1.0, True, "abc")
    arrays = _arrays([row])
    joined = _lines(CsvDialect(), None, arrays, 1, kernels=False)
    assert _lines(CsvDialect(), None, arrays, 1, kernels=True) == joined


def test_lines_begin_where_the_kernels_end() -> None:
    rows = [(n, f"text {n}", n * 60_000, n, 1, n, n, n, n, None, None, None, None, "abc") for n in range(500)]
    arrays = _arrays(rows)
    assert _lines(CsvDialect(), "", arrays, 500, kernels=True) == _lines(CsvDialect(), "", arrays, 500, kernels=False)
