"""Texts to typed values, where Arrow's own casts would give others."""

from __future__ import annotations

import decimal

import pyarrow as pa
import pytest

from flowsql_connectors.formats.text_values import TextDialect, parse_texts
from flowsql_core.types.logical import DecimalType


@pytest.mark.parametrize("dialect", TextDialect)
def test_decimals_with_too_many_digits_are_null(dialect: TextDialect) -> None:
    type_ = DecimalType(precision=38, scale=18)
    # Arrow multiplies by 10^18 in 128 bits, of which the first number has too many and the last one just enough.
    texts = pa.array(["1" + "0" * 30, "1" + "0" * 20, "9" * 20 + ".5", None])
    values, bad, _ = parse_texts(texts, type_, dialect)
    assert bad is None
    assert values.to_pylist() == [None, None, decimal.Decimal("9" * 20 + ".5"), None]
