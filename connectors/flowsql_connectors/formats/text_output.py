"""Values as the texts that csv and json files hold; NULL stays NULL."""

from __future__ import annotations

import base64
import decimal
from typing import Any, Final

import numpy as np
import pyarrow as pa

from flowsql_compute.eval.columns import pack_validity
from flowsql_compute.eval.text.render import over_distinct
from flowsql_compute.kernels.moment_texts import LONGEST, write_moments
from flowsql_core.arrow import compute as pc

_PER_SECOND: Final = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
#: Of the years 0 to 9999, since 1970.
_FIRST_SECOND: Final = -62_167_219_200
_END_SECOND: Final = 253_402_300_800


def timestamp_texts(array: Any, separator: str, grouped: bool = False) -> pa.StringArray:
    """``yyyy-MM-dd HH:mm:ss`` and the fraction when it is not zero; LTZ with ``Z``.

    The fraction has the digits up to the last one that is not zero, or 3, 6 or 9 of them when ``grouped``.
    """
    type_ = array.type
    values = np.asarray(array.cast(pa.int64()).fill_null(0))
    per_second = _PER_SECOND[type_.unit]
    if len(values) and not _FIRST_SECOND * per_second <= values.min() <= values.max() < _END_SECOND * per_second:
        return _far_texts(array, separator, grouped)
    valid = np.ones(len(values), np.uint8)
    if array.null_count:
        valid = np.asarray(array.is_valid()).astype(np.uint8)
    offsets, out = np.empty(len(values) + 1, np.int32), np.empty(LONGEST * len(values), np.uint8)
    zulu = type_.tz is not None
    size = write_moments(values, valid, per_second, ord(separator), grouped, zulu, offsets, out)
    validity = pack_validity(valid.astype(bool)) if array.null_count else None
    return pa.StringArray.from_buffers(len(values), pa.py_buffer(offsets), pa.py_buffer(out[:size]), validity)


def _far_texts(array: Any, separator: str, grouped: bool) -> pa.StringArray:
    """Of moments some of which have no year of four digits."""
    local = array if array.type.tz is None else array.cast(pa.timestamp(array.type.unit))
    texts = pc.cast(pc.floor_temporal(local, unit="second").cast(pa.timestamp("s")), pa.string())
    if separator != " ":
        texts = pc.replace_substring(texts, " ", separator)
    zone = "" if array.type.tz is None else "Z"
    nanos = pc.nanosecond(local) if array.type.unit == "ns" else 0
    micros = pc.microsecond(local) if array.type.unit in ("us", "ns") else 0
    fractions = pc.add(pc.add(pc.multiply(pc.millisecond(local), 1_000_000), pc.multiply(micros, 1_000)), nanos)
    return pc.binary_join_element_wise(texts, over_distinct(fractions, _grouped if grouped else _fraction), zone, "")


def _fraction(nanos: int) -> str:
    return "" if nanos == 0 else f".{nanos:09d}".rstrip("0")


def _grouped(nanos: int) -> str:
    digits = _fraction(nanos)
    return digits.ljust(1 + -(-(len(digits) - 1) // 3) * 3, "0") if digits else ""


def time_texts(array: Any) -> pa.StringArray:
    """``HH:mm:ss`` with the fraction's digits up to the last one that is not zero."""
    return _without_zeros(pc.cast(array, pa.string()))


def _without_zeros(texts: pa.StringArray) -> pa.StringArray:
    # Arrow writes the fraction of the whole unit; most often it is all zero.
    return pc.replace_substring_regex(texts, r"\.?0+$", "") if _any_zero_end(texts) else texts


def _any_zero_end(texts: pa.StringArray) -> bool:
    return bool(pc.any(pc.ends_with(texts, "0")).as_py())


def decimal_texts(array: Any, plain: bool) -> pa.StringArray:
    """``BigDecimal``'s text: all digits of the scale when ``plain``, else without trailing zeros and as ``1E+2``."""
    return over_distinct(array, (lambda value: format(value, "f")) if plain else _stripped)


def stripped_plain_texts(array: Any) -> pa.StringArray:
    """Without trailing zeros and without an exponent."""
    return over_distinct(array, lambda value: format(_strip(value), "f"))


def _strip(value: decimal.Decimal) -> decimal.Decimal:
    with decimal.localcontext() as context:
        context.prec = 40
        return value.normalize() if value else decimal.Decimal(0)


def _stripped(value: decimal.Decimal) -> str:
    return str(_strip(value))


def base64_texts(array: Any) -> pa.StringArray:
    """Base64 of bytes."""
    return over_distinct(array, lambda value: base64.b64encode(value).decode())
