"""Text to values, row by row right or wrong: what CAST of a string and the csv format share.

Each parser first tries Arrow's own strict parser over the whole column, and walks Flink's lenient grammar only when
that refuses. Source: Flink's ``BinaryStringDataUtil`` and ``DateTimeUtils``.
"""

from __future__ import annotations

import decimal
import re
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flowsql_compute.eval.columns import Bools, make_array, validity, values_and_validity
from flowsql_compute.eval.context import EvalContext
from flowsql_compute.eval.decimal import decimal_column
from flowsql_compute.eval.time.calendar import (
    UNITS_PER_SECOND,
    days_from_civil,
    local_to_utc,
    month_length,
    require_range,
)
from flowsql_core.arrow import compute as pc
from flowsql_core.errors import NotSupportedYetError
from flowsql_core.types import logical as t
from flowsql_core.types.arrow import to_arrow

_TRUE = pa.array(["t", "true", "y", "yes", "1"])
_FALSE = pa.array(["f", "false", "n", "no", "0"])
_FLOATING = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?[dDfF]?$"
_NAMED_FLOATS = r"^[+-]?(NaN|Infinity)$"


def parse_text_column(text: pa.Array, type_: t.LogicalType, context: EvalContext) -> tuple[pa.Array, Bools]:
    """A text column as values of another type.

    Returns:
        The column (NULL where the text is NULL or wrong) and a mask of the rows whose text is wrong, bool (n,).
        Numbers that do not fit a DECIMAL are NULL but not wrong, as in Flink.

    Raises:
        NotSupportedYetError: no text form of the type is read.
    """
    made = _parse(text, type_, context)
    if type_.__class__ is t.DecimalType:
        return made
    wrong = _nulls(made[0]) & ~_nulls(text)
    return made[0], wrong


def _nulls(array: pa.Array) -> Bools:
    valid = validity(array)
    return np.zeros(len(array), dtype=np.bool_) if valid is None else ~valid


def _parse(text: pa.Array, type_: t.LogicalType, context: EvalContext) -> tuple[pa.Array, Bools]:
    unused = np.zeros(0, dtype=np.bool_)
    match type_:
        case t.BooleanType():
            lower = pc.utf8_lower(text)
            known = pc.or_(pc.is_in(lower, value_set=_TRUE), pc.is_in(lower, value_set=_FALSE))
            return pc.if_else(known, pc.is_in(lower, value_set=_TRUE), pa.scalar(None, pa.bool_())), unused
        case t.IntegerType():
            return _integers(text, to_arrow(type_)), unused
        case t.ApproximateType():
            return _floats(text, to_arrow(type_)), unused
        case t.DecimalType():
            return _decimals(text, type_)
        case t.BinaryStringType():
            return pc.cast(text, pa.binary()), unused
        case t.DateType():
            return _dates(text), unused
        case t.TimeType(precision=precision):
            return _times(text, precision), unused
        case t.TimestampType(precision=precision):
            return _timestamps(text, precision, to_arrow(type_)), unused
        case t.TimestampLtzType(precision=precision):
            wall = _timestamps(text, precision, pa.timestamp(to_arrow(type_).unit))
            values, valid = values_and_validity(wall)
            utc = local_to_utc(values, UNITS_PER_SECOND[wall.type.unit], context.zone)
            return make_array(utc, valid, to_arrow(type_)), unused
    raise NotSupportedYetError(f"casting text to {type_.as_nullable()}")


# Numbers


def _integers(text: pa.Array, target: pa.DataType) -> pa.Array:
    # Arrow reads 0x10 as a number, Flink does not.
    if not _any(pc.match_substring(text, "x", ignore_case=True)):
        try:
            return pc.cast(text, target)
        except pa.ArrowInvalid:
            pass
    trimmed = pc.utf8_trim(text, " ")
    proper = pc.and_(
        pc.match_substring_regex(trimmed, r"^[+-]?\d*(\.\d*)?$"), pc.match_substring_regex(trimmed, r"[\d.]")
    )
    whole = pc.replace_substring_regex(trimmed, r"\..*$", "")
    negative = pc.starts_with(whole, "-")
    digits = pc.utf8_ltrim(pc.utf8_ltrim(whole, "+-"), "0")
    # 19 digits may exceed 64 bits; Arrow's unsigned parser takes them all.
    short = pc.and_(proper, pc.less_equal(pc.utf8_length(digits), 19))
    size = pc.cast(pc.if_else(short, pc.if_else(pc.equal(digits, ""), "0", digits), None), pa.uint64())
    values, valid = values_and_validity(size)
    minus, _ = values_and_validity(pc.fill_null(negative, False))
    info = np.iinfo(target.to_pandas_dtype())
    fits = values <= np.where(minus, np.uint64(-int(info.min)), np.uint64(info.max))
    fits = fits if valid is None else fits & valid
    signed = np.where(minus, np.uint64(0) - values, values).view(np.int64)
    return make_array(signed.astype(target.to_pandas_dtype()), fits, target)


def _any(mask: pa.Array) -> bool:
    return bool(pc.any(mask).as_py())


def _floats(text: pa.Array, target: pa.DataType) -> pa.Array:
    # Arrow reads inf and nan in any case, Java only "Infinity" and "NaN".
    if not _any(pc.match_substring_regex(text, "[a-df-zA-DF-Z]")):
        try:
            return pc.cast(text, target)
        except pa.ArrowInvalid:
            pass
    trimmed = pc.utf8_trim_whitespace(text)
    number = pc.match_substring_regex(trimmed, _FLOATING)
    named = pc.match_substring_regex(trimmed, _NAMED_FLOATS)
    bare = pc.utf8_ltrim(pc.if_else(number, pc.utf8_rtrim(trimmed, "dDfF"), trimmed), "+")
    return pc.cast(pc.if_else(pc.or_(number, named), bare, None), target)


_SHORT_TEXT = re.compile(r"[ \n\t]*([+-]?)(\d*)(?:\.(\d*))?(?:[eE]([+-]?\d+))?[ \n\t]*")
_PLAIN_TEXT = re.compile(r"[ \n\t]*([+-]?)(\d*)(?:\.(\d*))?()")
_DECIMAL_TEXT = re.compile(r"\s*([+-]?)(\d*)(?:\.(\d*))?(?:[eE]([+-]?\d+))?\s*")


def _decimals(text: pa.Array, type_: t.DecimalType) -> tuple[pa.Array, Bools]:
    target, scale = to_arrow(type_), type_.scale
    parts = pc.extract_regex(text, r"^(?P<sign>-?)(?P<whole>\d{1,18})(\.(?P<rest>\d*))?$".replace("(\\.", "(?:\\."))
    simple = pc.is_valid(parts)
    rest = pc.fill_null(pc.struct_field(parts, "rest"), "")
    digits = pc.binary_join_element_wise(
        pc.struct_field(parts, "whole"), pc.utf8_slice_codeunits(pc.utf8_rpad(rest, scale + 1, "0"), 0, scale + 1), ""
    )
    simple = pc.and_(simple, pc.less_equal(pc.utf8_length(digits), 18))
    size, valid = values_and_validity(pc.cast(pc.if_else(simple, digits, None), pa.int64()))
    minus, _ = values_and_validity(pc.fill_null(pc.equal(pc.struct_field(parts, "sign"), "-"), False))
    rounded = (size + 5) // 10
    values: npt.NDArray[Any] = np.where(minus, -rounded, rounded)
    wrong = np.zeros(len(text), dtype=np.bool_)
    if valid is None:
        return decimal_column(values, None, target, len(text)), wrong
    odd = np.flatnonzero(~valid & ~_nulls(text))
    if len(odd):
        values = values.astype(object)
        # Exponents, blanks and long numbers: rare, one by one over the distinct texts.
        encoded = pc.dictionary_encode(pc.take(text, pa.array(odd)))
        known = [_one_decimal(word, type_) for word in encoded.dictionary.to_pylist()]
        for row, index in zip(odd, values_and_validity(encoded.indices)[0], strict=True):
            number = known[index]
            wrong[row] = number is None
            values[row] = number or 0
        valid = (valid | ~_nulls(text)) & ~wrong
    return decimal_column(values, valid, target, len(text)), wrong


def _one_decimal(word: str, type_: t.DecimalType) -> int | None:
    """The unscaled number of one text.

    Up to 18 bytes for a type of up to 18 digits Flink has a parser of its own: it overlooks one wrong character at the
    very end, and takes no digits for 0.
    """
    scale = type_.scale
    if type_.precision <= 18 and len(word.encode()) <= 18:
        if word.strip(" \n\t") in ("", "+", "-"):
            return None
        found = _SHORT_TEXT.fullmatch(word) or _PLAIN_TEXT.fullmatch(word[:-1])
    else:
        found = _DECIMAL_TEXT.fullmatch(word)
        if found is not None and not (found[2] or found[3]):
            return None
    if found is None:
        return None
    number = decimal.Decimal(f"{found[1]}{found[2] or 0}.{found[3] or 0}e{found[4] or 0}")
    if number.adjusted() > 77:
        return 10**78
    return int(number.scaleb(scale, _WIDE).to_integral_value(decimal.ROUND_HALF_UP))


_WIDE = decimal.Context(prec=200)


# Dates and times


def _fields(text: pa.Array, pattern: str, names: tuple[str, ...]) -> tuple[list[npt.NDArray[np.int64]], Bools, Any]:
    """Named groups of at most nine digits as numbers (0 where a group is empty), and which rows matched."""
    parts = pc.extract_regex(text, pattern)
    columns = []
    for name in names:
        group = pc.fill_null(pc.struct_field(parts, name), "")
        columns.append(values_and_validity(pc.cast(pc.if_else(pc.equal(group, ""), "0", group), pa.int64()))[0])
    valid = validity(parts)
    return columns, np.ones(len(text), dtype=np.bool_) if valid is None else valid, parts


def _dates(text: pa.Array) -> pa.Array:
    try:
        return pc.cast(text, pa.date32())
    except pa.ArrowInvalid:
        pass
    trimmed = pc.utf8_trim(text, " ")
    pattern = r"^(?P<y>\d{1,9})(?:-(?P<m>\d{1,2}))?(?:-(?P<d>\d{1,2}))?(?: .*)?$"
    (year, month, day), matched, parts = _fields(trimmed, pattern, ("y", "m", "d"))
    for name, column in (("m", month), ("d", day)):
        missing, _ = values_and_validity(pc.equal(pc.fill_null(pc.struct_field(parts, name), ""), ""))
        column[missing] = 1
    good = matched & (year <= 9999) & (month >= 1) & (month <= 12) & (day >= 1)
    month = np.where(good, month, 1)
    good &= day <= month_length(year, month)
    return make_array(days_from_civil(year, month, day).astype(np.int32), good, pa.date32())


def _times(text: pa.Array, precision: int) -> pa.Array:
    pattern = r"^ *(?P<h>\d{1,2})(?::(?P<m>\d{1,2}))?(?::(?P<s>\d{1,2}))?(?:\.(?P<f>\d{0,9}))? *$"
    (hour, minute, second, _), matched, parts = _fields(text, pattern, ("h", "m", "s", "f"))
    good = matched & (hour < 24) & (minute < 60) & (second < 60)
    kept = min(precision, 3)
    millis = _fraction(parts, 3) // 10 ** (3 - kept) * 10 ** (3 - kept)
    return make_array(((hour * 60 + minute) * 60_000 + second * 1000 + millis).astype(np.int32), good, pa.time32("ms"))


def _fraction(parts: Any, digits: int) -> npt.NDArray[np.int64]:
    """Group ``f`` as a fraction cut to so many digits."""
    padded = pc.utf8_slice_codeunits(
        pc.utf8_rpad(pc.fill_null(pc.struct_field(parts, "f"), ""), digits, "0"), 0, digits
    )
    return values_and_validity(pc.cast(padded, pa.int64()))[0].copy()


def _timestamps(text: pa.Array, precision: int, target: pa.DataType) -> pa.Array:
    digits = {"ms": 3, "us": 6, "ns": 9}[target.unit]
    if precision == digits:
        strict = rf"^\d{{4}}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d{{1,{digits}}})?$"
        if pc.all(pc.match_substring_regex(text, strict)).as_py():
            try:
                return pc.cast(text, target)
            except pa.ArrowInvalid:
                pass
    pattern = (
        r"^(?P<y>\d{4})-(?P<m>\d{1,2})-(?P<d>\d{1,2})"
        r"(?: (?P<h>\d{1,2}):(?P<i>\d{1,2}):(?P<s>\d{1,2})(?:\.(?P<f>\d{0,9}))?)?$"
    )
    (year, month, day, hour, minute, second), matched, parts = _fields(text, pattern, ("y", "m", "d", "h", "i", "s"))
    good = matched & (month >= 1) & (month <= 12) & (day >= 1) & (day <= 31) & (year >= 1)
    fraction = _fraction(parts, digits)
    # 24:00:00 is the midnight at the end of the day.
    end_of_day = (hour == 24) & (minute == 0) & (second == 0) & (_fraction(parts, 9) == 0)
    good &= ((hour < 24) | end_of_day) & (minute < 60) & (second < 60)
    month = np.where(good, month, 1)
    # 30 February is read as the month's last day ("smart" resolution of java.time).
    day = np.minimum(day, month_length(year, month))
    seconds = days_from_civil(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second
    require_range(np.where(good, seconds, 0), target)
    cut = 10 ** (digits - min(precision, digits))
    return make_array(seconds * 10**digits + fraction // cut * cut, good, target)
