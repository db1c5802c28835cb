"""Columns of orc files whose type is another one than the table's: what ORC's own reader for Java converts, as it does.

Texts are cut to the length of VARCHAR and CHAR, decimals are rounded half up. Where Java makes NULL of a value that
does not fit, or cuts digits of a whole number off in silence, there is an error.

Source: Flink 2.3, asked in ``tests/connectors/formats/test_orc_evolution.py``.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from flowsql_compute.eval.text.render import float_texts
from flowsql_connectors.formats.columnar.field_names import cast_cutting_times
from flowsql_connectors.formats.text_output import stripped_plain_texts, timestamp_texts
from flowsql_connectors.formats.text_values import TextDialect, parse_texts
from flowsql_core.arrow import compute as pc
from flowsql_core.types.arrow import to_arrow
from flowsql_core.types.logical import (
    BooleanType,
    CharacterType,
    CharType,
    DateType,
    DecimalType,
    DoubleType,
    IntegerType,
    LogicalType,
    TimestampLtzType,
    TimestampType,
    VarCharType,
)


def evolved(array: Any, type_: LogicalType) -> Any:
    """A column of a file as one of a type.

    Raises:
        pa.ArrowInvalid, pa.ArrowNotImplementedError: there is no such conversion, or a value does not fit.
    """
    if isinstance(type_, CharacterType):
        return _cut(_texts(array), type_)
    if isinstance(type_, DecimalType) and array.type != to_arrow(type_):
        return _decimals(array, type_)
    stored = array.type
    if isinstance(type_, DoubleType) and (pa.types.is_float32(stored) or pa.types.is_decimal(stored)):
        # By its text: 0.1 as FLOAT is 0.1, and Arrow's cast of decimals is not the nearest double.
        texts = float_texts(array) if pa.types.is_float32(stored) else pc.cast(array, pa.string())
        return pc.cast(texts, pa.float64())
    if isinstance(type_, BooleanType):
        return _truth(array)
    if isinstance(type_, IntegerType) and pa.types.is_temporal(stored):
        raise pa.ArrowNotImplementedError("a date is no number")
    if isinstance(type_, TimestampType | TimestampLtzType | DateType) and not (
        pa.types.is_temporal(stored) or pa.types.is_string(stored)
    ):
        # A number says no unit: Spark keeps microseconds as BIGINT where a program says TIMESTAMP_NTZ.
        raise pa.ArrowNotImplementedError("a number is no time: declare a number, and make a time of it in SQL")
    return cast_cutting_times(array, to_arrow(type_))


def _texts(array: Any) -> Any:
    stored = array.type
    if pa.types.is_string(stored):
        return array
    if pa.types.is_boolean(stored):
        return pc.if_else(array, "TRUE", "FALSE")
    if pa.types.is_floating(stored):
        return float_texts(array)
    if pa.types.is_decimal(stored):
        return stripped_plain_texts(array)
    if pa.types.is_timestamp(stored) and stored.tz is None:
        return timestamp_texts(array, " ")
    if pa.types.is_integer(stored) or pa.types.is_date(stored):
        return pc.cast(array, pa.string())
    raise pa.ArrowNotImplementedError("it has no text")


def _truth(array: Any) -> Any:
    """Whether a number is another one than 0 without its fraction."""
    stored = array.type
    if pa.types.is_floating(stored):
        array = pc.cast(pc.trunc(array), pa.int64())
    elif not (pa.types.is_integer(stored) or pa.types.is_boolean(stored)):
        raise pa.ArrowNotImplementedError("it is no truth value")
    return pc.cast(array, pa.bool_())


def _cut(texts: Any, type_: CharacterType) -> Any:
    if not isinstance(type_, VarCharType | CharType):
        return texts
    return pc.utf8_slice_codeunits(texts, 0, type_.length)


def _decimals(array: Any, type_: DecimalType) -> Any:
    stored = array.type
    if pa.types.is_boolean(stored):
        array = array.cast(pa.int8())
    elif not (pa.types.is_integer(stored) or pa.types.is_floating(stored) or pa.types.is_decimal(stored)):
        return pc.cast(array, to_arrow(type_))
    texts = float_texts(array) if pa.types.is_floating(stored) else pc.cast(array, pa.string())
    made, bad, reason = parse_texts(texts, type_, TextDialect.CSV)
    if bad is not None:
        raise pa.ArrowInvalid(reason)
    if made.null_count > array.null_count:
        first = pc.index(pc.and_(made.is_null(), array.is_valid()), True).as_py()
        raise pa.ArrowInvalid(f"{texts[first].as_py()} has too many digits")
    return made
