"""Texts of timestamps: those of a kernel are those that Arrow and Python make."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flowsql_connectors.formats.text_output import _far_texts, timestamp_texts

_SECONDS = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
#: 0001-01-01 and 9999-12-31, in seconds since 1970.
_FIRST, _LAST = -62_135_596_800, 253_402_300_799


@st.composite
def _moments(draw: st.DrawFn) -> pa.Array:
    unit = draw(st.sampled_from(sorted(_SECONDS)))
    # What 64 bits hold of nanoseconds ends in 2262.
    seconds = st.integers(-9_000_000_000, 9_000_000_000) if unit == "ns" else st.integers(_FIRST, _LAST)
    digits = st.sampled_from([0, 1, 9, 10, 100, 120, 123, 999]) if unit != "s" else st.just(0)
    values = [
        None if draw(st.integers(0, 5)) == 0 else draw(seconds) * _SECONDS[unit] + draw(digits) % _SECONDS[unit]
        for _ in range(draw(st.integers(0, 8)))
    ]
    array = pa.array(values, pa.timestamp(unit, draw(st.sampled_from([None, "UTC"]))))
    return array.slice(draw(st.integers(0, len(array))))


@given(_moments(), st.sampled_from([" ", "T"]), st.booleans())
def test_the_kernel_and_arrow_agree(array: pa.Array, separator: str, grouped: bool) -> None:
    found = timestamp_texts(array, separator, grouped)
    found.validate(full=True)
    assert found.to_pylist() == _far_texts(array, separator, grouped).to_pylist()


@pytest.mark.parametrize(
    ("micros", "grouped", "text"),
    [
        (0, False, "1970-01-01 00:00:00"),
        (-1, False, "1969-12-31 23:59:59.999999"),
        (120_000, False, "1970-01-01 00:00:00.12"),
        (120_000, True, "1970-01-01 00:00:00.120"),
        (120_010, True, "1970-01-01 00:00:00.120010"),
        (-62_135_596_800_000_000, False, "0001-01-01 00:00:00"),
        (951_782_399_000_001, False, "2000-02-28 23:59:59.000001"),
        (951_868_799_000_000, False, "2000-02-29 23:59:59"),
    ],
)
def test_texts(micros: int, grouped: bool, text: str) -> None:
    assert timestamp_texts(pa.array([micros], pa.timestamp("us")), " ", grouped).to_pylist() == [text]


def test_years_of_more_digits_are_left_to_arrow() -> None:
    array = pa.array([253_402_300_800, 0], pa.timestamp("s"))
    assert timestamp_texts(array, " ").to_pylist() == ["10000-01-01 00:00:00", "1970-01-01 00:00:00"]
