"""Values to text as CAST AS STRING prints them: ``TRUE``, ``1.0E7``, ``2020-01-02 03:04:05.100``, ``[1, NULL]``."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from flowsql_compute.eval.columns import as_type, make_array, validity, values_and_validity
from flowsql_compute.eval.context import EvalContext
from flowsql_compute.eval.decimal import bound, unscaled
from flowsql_compute.eval.text.java_numbers import java_double, java_float
from flowsql_compute.eval.time.calendar import UNITS_PER_SECOND, date_text, time_text, utc_to_local
from flowsql_core.arrow import compute as pc
from flowsql_core.errors import InternalError
from flowsql_core.types import logical as t

_PLAIN_SCALE = 6


def text_of(array: pa.Array, type_: t.LogicalType, context: EvalContext) -> pa.Array:
    """A column as text (pa.string), NULL where it is NULL."""
    match type_:
        case t.CharacterType():
            return array
        case t.NullType():
            return pa.nulls(len(array), pa.string())
        case t.BooleanType():
            return pc.if_else(array, "TRUE", "FALSE")
        case t.IntegerType():
            return pc.cast(array, pa.string())
        case t.DateType():
            return date_text(array, whole=False)
        case t.DecimalType():
            return _decimal_text(array, type_)
        case t.ApproximateType():
            return double_text(array)
        case t.BinaryStringType():
            return decode_utf8(array)
        case t.TimeType(precision=precision):
            return time_text(array, precision)
        case t.TimestampType(precision=precision):
            return timestamp_text(array, precision)
        case t.TimestampLtzType(precision=precision):
            return timestamp_text(local_wall(array, context.zone), precision)
        case t.DayTimeIntervalType():
            return _day_time_text(array)
        case t.YearMonthIntervalType():
            return _year_month_text(array)
    return _nested_text(array, type_, context)


def local_wall(array: pa.Array, zone: str) -> pa.Array:
    """A TIMESTAMP_LTZ column as the session zone's wall clock (timestamp without zone)."""
    values, valid = values_and_validity(array)
    return make_array(
        utc_to_local(values, UNITS_PER_SECOND[array.type.unit], zone), valid, pa.timestamp(array.type.unit)
    )


def timestamp_text(array: pa.Array, precision: int) -> pa.Array:
    """``yyyy-MM-dd HH:mm:ss`` with exactly ``precision`` digits behind the point."""
    text = pc.cast(array, pa.string())
    wanted = 19 if precision == 0 else 20 + precision
    return (
        text if {"ms": 23, "us": 26, "ns": 29}[array.type.unit] == wanted else pc.utf8_slice_codeunits(text, 0, wanted)
    )


def double_text(array: pa.Array) -> pa.Array:
    """Return Java's ``Double.toString`` and ``Float.toString``, with an exponent below 1e-3 and from 1e7."""
    values, valid = values_and_validity(array)
    text = pc.cast(array, pa.string())
    with np.errstate(invalid="ignore"):
        size = np.abs(values)
        odd = ~((size >= 1e-3) & (size < 1e7)) & (values != 0)
    if valid is not None:
        odd &= valid
    rows = np.flatnonzero(odd)
    plain = pc.if_else(pc.match_substring(text, "."), text, pc.binary_join_element_wise(text, "0", "."))
    if not len(rows):
        return plain
    distinct, inverse = np.unique(values[rows], return_inverse=True)
    text_of_one = java_float if pa.types.is_float32(array.type) else java_double
    shown = pa.array([text_of_one(value) for value in distinct.tolist()], pa.string())
    position = np.zeros(len(values), dtype=np.int64)
    position[rows] = inverse
    return pc.if_else(pa.array(odd), pc.take(shown, pa.array(position)), plain)


def decode_utf8(array: pa.Array) -> pa.Array:
    """Bytes as text; malformed ones become U+FFFD, as in Java."""
    try:
        return pc.cast(array, pa.string())
    except pa.ArrowInvalid:
        # Malformed text is rare enough for a walk over the distinct values.
        encoded = pc.dictionary_encode(array)
        words = [None if word is None else word.decode("utf-8", "replace") for word in encoded.dictionary.to_pylist()]
        return pc.take(pa.array(words, pa.string()), encoded.indices)


def _decimal_text(array: pa.Array, type_: t.DecimalType) -> pa.Array:
    if type_.scale <= _PLAIN_SCALE:
        return pc.cast(array, pa.string())
    # Arrow writes an exponent for small numbers; Java's plain text has none.
    values, valid = unscaled(array)
    if bound(values) < 2**63:
        values = values.astype(np.int64)
        size = np.abs(values)
        unit = 10**type_.scale
        whole, rest = (size // unit, size % unit) if type_.scale <= 18 else (np.zeros_like(size), size)
        digits = pc.utf8_lpad(pc.cast(pa.array(rest), pa.string()), type_.scale, "0")
        sign = pc.if_else(pa.array(values < 0), "-", "")
        text = pc.binary_join_element_wise(
            pc.binary_join_element_wise(sign, pc.cast(pa.array(whole), pa.string()), ""), digits, "."
        )
    else:
        digits = pc.cast(as_type(array, pa.decimal128(38, 0)), pa.string())
        sign = pc.if_else(pc.starts_with(digits, "-"), "-", "")
        padded = pc.utf8_lpad(pc.utf8_ltrim(digits, "-"), type_.scale + 1, "0")
        whole = pc.utf8_slice_codeunits(padded, 0, -type_.scale)
        text = pc.binary_join_element_wise(
            pc.binary_join_element_wise(sign, whole, ""), pc.utf8_slice_codeunits(padded, -type_.scale, None), "."
        )
    return (
        text if valid is None else pc.if_else(make_array(valid, None, pa.bool_()), text, pa.scalar(None, pa.string()))
    )


def without_digits(text: pa.Array, digits: pa.Array, scale: int) -> pa.Array:
    """Cut texts of DECIMALs.

    Args:
        text: texts with ``scale`` digits after the point, NULL where ``digits`` is.
        digits: how many of them to keep, fewer than 0 as 0; more than there are change nothing.
    """
    kept, valid = values_and_validity(digits)
    kept = np.clip(kept if valid is None else np.where(valid, kept, scale), 0, scale)
    for wanted in np.unique(kept[kept < scale]).tolist():
        # Without digits the point goes, too.
        cut = pc.utf8_slice_codeunits(text, 0, wanted - scale - (wanted == 0))
        text = pc.if_else(pa.array(kept == wanted), cut, text)
    return text


def _day_time_text(array: pa.Array) -> pa.Array:
    values, valid = values_and_validity(array)
    size = np.abs(values)
    clock = pc.cast(make_array((size % 86_400_000).astype(np.int32), None, pa.time32("ms")), pa.string())
    sign = pc.if_else(pa.array(values < 0), "-", "+")
    days = pc.cast(pa.array(size // 86_400_000), pa.string())
    text = pc.binary_join_element_wise(pc.binary_join_element_wise(sign, days, ""), clock, " ")
    return _masked(text, valid)


def _year_month_text(array: pa.Array) -> pa.Array:
    values, valid = values_and_validity(array)
    size = np.abs(values)
    sign = pc.if_else(pa.array(values < 0), "-", "+")
    years = pc.cast(pa.array(size // 12), pa.string())
    months = pc.utf8_lpad(pc.cast(pa.array(size % 12), pa.string()), 2, "0")
    text = pc.binary_join_element_wise(pc.binary_join_element_wise(sign, years, ""), months, "-")
    return _masked(text, valid)


def _masked(text: pa.Array, valid: Any) -> pa.Array:
    return (
        text if valid is None else pc.if_else(make_array(valid, None, pa.bool_()), text, pa.scalar(None, pa.string()))
    )


def _nested_text(array: pa.Array, type_: t.LogicalType, context: EvalContext) -> pa.Array:
    match type_:
        case t.ArrayType(element=element):
            return _enclosed(array, _shown(array.values, element, context), "[", "]")
        case t.BitmapType():
            from flowsql_compute.eval.nested.bitmaps import bitmap_text

            return bitmap_text(array)
        case t.VariantType():
            # Imported here: texts are cast everywhere, VARIANT is rare.
            from flowsql_compute.eval.json.variant import variant_text

            return variant_text(array)
        case t.MapType(key=key, value=value):
            entries = pc.binary_join_element_wise(
                _shown(array.keys, key, context), _shown(array.items, value, context), "="
            )
            return _enclosed(array, entries, "{", "}")
        case t.MultisetType(element=element):
            entries = pc.binary_join_element_wise(
                _shown(array.keys, element, context), pc.cast(array.items, pa.string()), "="
            )
            return _enclosed(array, entries, "{", "}")
        case t.RowType(fields=fields):
            parts = [_shown(pc.struct_field(array, [index]), field.type, context) for index, field in enumerate(fields)]
            if isinstance(type_, t.StructuredType):
                named = zip(fields, parts, strict=True)
                parts = [pc.binary_join_element_wise(f"{field.name}=", part, "") for field, part in named]
            inner = pc.binary_join_element_wise(*parts, ", ") if parts else pa.repeat("", len(array))
            text = pc.binary_join_element_wise("(", inner, ")", "")
            return _masked(text, validity(array))
        case _:
            raise InternalError(f"no text form of {type_}")


def _shown(array: pa.Array, type_: t.LogicalType, context: EvalContext) -> pa.Array:
    return pc.fill_null(text_of(array, type_, context), "NULL")


def _enclosed(array: pa.Array, elements: pa.Array, opening: str, closing: str) -> pa.Array:
    offsets = np.frombuffer(array.buffers()[1], dtype=np.int32, count=array.offset + len(array) + 1)[array.offset :]
    lists = pa.ListArray.from_arrays(as_type(pa.array(offsets), pa.int32()), elements)
    text = pc.binary_join_element_wise(opening, pc.binary_join(lists, ", "), closing, "")
    return _masked(text, validity(array))
