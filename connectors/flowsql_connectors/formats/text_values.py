"""Texts inside files to typed values, by the Java rules of Flink's csv and json formats.

What has the plain form of its type is cast by Arrow in one go; only odd texts (``+7``, ``1.5f``, ``2020-02-30``) are
read one by one, each distinct text once. The two formats differ in trimming and in how lenient dates and times are.
"""

from __future__ import annotations

import base64
import binascii
import calendar
import datetime
import decimal
import enum
import re
from typing import Any, Final

import numpy as np
import pyarrow as pa

from flowsql_core.arrow import compute as pc
from flowsql_core.errors import ExecutionError, NotSupportedYetError
from flowsql_core.types.arrow import to_arrow
from flowsql_core.types.logical import (
    BinaryStringType,
    BooleanType,
    CharacterType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LogicalType,
    TimestampLtzType,
    TimestampType,
    TimeType,
)


class TextDialect(enum.Enum):
    """Whose rules: csv, csv with ISO-8601 timestamps, json with SQL timestamps, json with ISO-8601 timestamps."""

    CSV = "csv"
    CSV_ISO = "csv-iso"
    JSON_SQL = "json-sql"
    JSON_ISO = "json-iso"

    @property
    def is_csv(self) -> bool:
        """Whether blanks around values count for nothing, and dates are as lenient as Java's."""
        return self in (TextDialect.CSV, TextDialect.CSV_ISO)


#: What Java trims.
JAVA_BLANK: Final = "".join(chr(code) for code in range(33))
#: The digits of any script, as in Java; its doubles know only ours.
_INTEGER: Final = re.compile(r"[+-]?\d+")
_DECIMAL: Final = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
_PLAIN_MOMENT: Final = (
    r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?[+-][0-9]{2}(:?[0-9]{2})?$"
)
_PLAIN_DECIMAL: Final = r"^[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?$"
_DOUBLE: Final = re.compile(r"([+-]?(?:NaN|Infinity|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?))[fFdD]?")
_HEX_DOUBLE: Final = re.compile(r"([+-]?0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?[0-9]+)[fFdD]?")
_JDBC_DATE: Final = re.compile(r"([0-9]{4})-([0-9]{1,2})-([0-9]{1,2})")
_ISO_DATE: Final = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})")
_ISO_TIME: Final = re.compile(r"([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:\.([0-9]{0,9}))?)?")
_SQL_TIME: Final = re.compile(r"([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]{0,9}))?")
_SQL_STAMP: Final = re.compile(
    r"(-?[0-9]{4})-([0-9]{2})-([0-9]{2}) ([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]{0,9}))?"
)
_ISO_STAMP: Final = re.compile(
    r"(-?[0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:\.([0-9]{0,9}))?)?"
)
#: What csv takes as ISO-8601: T or a blank, and behind moments Z or an offset.
_CSV_STAMP: Final = re.compile(
    r"(-?[0-9]{4})-([0-9]{2})-([0-9]{2})[T ]([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:\.([0-9]{0,9}))?)?"
)
_OFFSET: Final = re.compile(r"(?:Z|([+-])([0-9]{2})(?::?([0-9]{2}))?)$")
#: Texts up to which one odd text sends all to the exact rules, and parts in which more of them are looked at.
_FEW_TEXTS: Final = 256
_SLICES: Final = 16
_DAY_NS: Final = 86_400_000_000_000
_UNIT_NS: Final = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1}


def parse_texts(texts: Any, type_: LogicalType, dialect: TextDialect) -> tuple[Any, Any, str | None]:
    """Typed values of a string array (NULL stays NULL).

    Returns:
        ``(values, bad, reason)``: the array in ``to_arrow(type_)``; a boolean array that is true where a text has no
        value of the type (there ``values`` is NULL), or None when all are good; the reason of the first bad one.
    """
    if isinstance(type_, CharacterType):
        return texts, None, None
    if isinstance(type_, BooleanType):
        return pc.equal(pc.utf8_lower(pc.utf8_trim(texts, JAVA_BLANK)), "true"), None, None
    fast = parse_plain(texts, type_, dialect)
    if fast is not None:
        return fast, None, None
    if len(texts) <= _FEW_TEXTS:
        return _parse_distinct(texts, type_, dialect)
    # Few odd texts send only those around them to the exact rules.
    size = -(-len(texts) // _SLICES)
    slices = [texts.slice(start, size) for start in range(0, len(texts), size)]
    plain = [parse_plain(part, type_, dialect) for part in slices]
    if 2 * sum(values is None for values in plain) > len(slices):
        return _parse_distinct(texts, type_, dialect)
    parts = [
        parse_texts(part, type_, dialect) if values is None else (values, None, None)
        for part, values in zip(slices, plain, strict=True)
    ]
    joined = pa.concat_arrays([values for values, _, _ in parts])
    reason = next((why for _, _, why in parts if why is not None), None)
    if reason is None:
        return joined, None, None
    good = [pa.repeat(pa.scalar(False), len(values)) if bad is None else bad for values, bad, _ in parts]
    return joined, pa.concat_arrays(good), reason


def parse_true_or_false(texts: Any) -> tuple[Any, Any, str | None]:
    """As :func:`parse_texts` of BOOLEAN, but other words than ``true`` and ``false`` are bad (FALSE in Flink)."""
    words = pc.utf8_lower(pc.utf8_trim(texts, JAVA_BLANK))
    known = pc.or_kleene(pc.is_null(words), pc.is_in(words, pa.array(["true", "false"])))
    values = pc.equal(words, "true")
    if pc.all(known).as_py() is not False:
        return values, None, None
    first = texts[pc.index(known, False).as_py()].as_py()
    return values, pc.invert(known), f"'{first}' is neither true nor false"


def _parse_distinct(texts: Any, type_: LogicalType, dialect: TextDialect) -> tuple[Any, Any, str | None]:
    """:func:`parse_texts` by the exact rules, each distinct text once."""
    encoded = pc.dictionary_encode(texts)
    values: list[Any] = []
    bad: list[bool] = []
    reason = None
    for text in encoded.dictionary:
        try:
            values.append(text_value(text.as_py(), type_, dialect))
            bad.append(False)
        except ValueError as error:
            values.append(None)
            bad.append(True)
            reason = reason or str(error)
    found = pc.take(pa.array(values, to_arrow(type_)), encoded.indices)
    if not any(bad):
        return found, None, None
    return found, pc.fill_null(pc.take(pa.array(bad), encoded.indices), False), reason


def parse_plain(texts: Any, type_: LogicalType, dialect: TextDialect) -> Any | None:
    """Arrow's own cast where every text has the one form that Arrow and Flink read alike; None if any has not."""
    target = to_arrow(type_)
    try:
        match type_:
            case IntegerType():
                return pc.cast(texts, target) if _all_match(texts, r"^-?[0-9]+$") else None
            case FloatType() | DoubleType():
                return pc.cast(texts, target) if _all_match(texts, _PLAIN_DECIMAL) else None
            case DecimalType(precision=precision, scale=scale):
                # More digits before the point may overflow unseen where Arrow multiplies by 10^scale.
                plain = rf"^-?[0-9]{{1,{max(precision - scale, 1)}}}(\.[0-9]+)?$"
                return pc.cast(texts, target) if _all_match(texts, plain) else None
            case BinaryStringType():
                return _plain_base64(texts)
            case DateType():
                return pc.cast(texts, target) if _lengths_within(texts, 10, 10) else None
            case TimeType():
                if not _lengths_within(texts, 8, 18) or not _all_match(texts, r"^\d\d:\d\d:\d\d(\.\d+)?$"):
                    return None
                # Arrow casts no text to a time, but to a timestamp; further digits than a time stores are cut off.
                stamps = pc.cast(pc.binary_join_element_wise("1970-01-01", texts, " "), pa.timestamp("ns"))
                step = 10 ** (9 - _time_digits(type_, dialect))
                millis = pc.multiply(pc.divide(pc.cast(stamps, pa.int64()), step), step // 1_000_000)
                return pc.cast(pc.cast(pc.cast(millis, pa.int32()), pa.time32("ms")), target)
            case TimestampType():
                return _plain_timestamps(texts, target, dialect)
            case TimestampLtzType() if dialect is TextDialect.CSV_ISO and not _all_match(texts, "Z$"):
                # Arrow knows offsets as well.
                return pc.cast(texts, target) if _all_match(texts, _PLAIN_MOMENT) else None
            case TimestampLtzType():
                if not len(texts) or not pc.all(pc.ends_with(texts, "Z")).as_py():
                    return None
                local = pc.utf8_slice_codeunits(texts, 0, -1)
                made = _plain_timestamps(local, pa.timestamp(target.unit), dialect)
                return None if made is None else made.cast(pa.timestamp(target.unit, "UTC")).cast(target)
    except pa.ArrowInvalid:
        return None
    return None


def _plain_base64(texts: Any) -> Any | None:
    """Bytes of base 64 whose groups of four are whole."""
    # Loaded by tables that have columns of bytes alone.
    from flowsql_compute.eval.text.spellings import bytes_of_base64

    _, lengths, _ = _bounds(texts)
    if (lengths & 3).any():
        return None
    made, left = bytes_of_base64(texts)
    return None if left.any() else made


def _plain_timestamps(texts: Any, target: Any, dialect: TextDialect) -> Any | None:
    """``yyyy-MM-dd?HH:mm:ss[.fff]``: Arrow also takes shorter forms and 'T', which length and one byte rule out."""
    marks = "T" if dialect is TextDialect.JSON_ISO else "T " if dialect is TextDialect.CSV_ISO else " "
    if not _lengths_within(texts, 19, 29) or not any(_byte_everywhere(texts, 10, ord(mark)) for mark in marks):
        return None
    return pc.cast(texts, target)


def _bounds(texts: Any) -> tuple[Any, Any, Any]:
    """Starts, lengths and bytes of a string array's non-NULL values, straight from its buffers."""
    dense = texts.drop_null() if texts.null_count else texts
    _, offsets, data = dense.buffers()
    if not len(dense) or data is None:
        return np.zeros(0, np.int32), np.zeros(0, np.int32), np.zeros(0, np.uint8)
    ends = np.frombuffer(offsets, dtype=np.int32)[dense.offset : dense.offset + len(dense) + 1]
    return ends[:-1], ends[1:] - ends[:-1], np.frombuffer(data, dtype=np.uint8)


def _lengths_within(texts: Any, least: int, most: int) -> bool:
    _, lengths, _ = _bounds(texts)
    return not len(lengths) or (int(lengths.min()) >= least and int(lengths.max()) <= most)


def _byte_everywhere(texts: Any, position: int, byte: int) -> bool:
    starts, _, data = _bounds(texts)
    return bool((data[starts + position] == byte).all())


def _all_match(texts: Any, pattern: str) -> bool:
    matched = pc.all(pc.match_substring_regex(texts, pattern)).as_py()
    return matched is not False


def text_value(text: str | None, type_: LogicalType, dialect: TextDialect) -> Any:
    """One text as the Python value that ``pa.array`` takes for the type; None where Flink makes NULL of it.

    Raises:
        ValueError: no value of the type; the message is Flink's where it has one.
    """
    if text is None:
        return None
    match type_:
        case CharacterType():
            return text
        case BooleanType():
            return text.strip(JAVA_BLANK).lower() == "true"
        case IntegerType(bits=bits):
            return _integer(text, bits)
        case FloatType():
            with np.errstate(over="ignore"):
                return float(np.float32(_double(text)))
        case DoubleType():
            return _double(text)
        case DecimalType():
            return decimal_value(text if dialect.is_csv else text.strip(JAVA_BLANK), type_)
        case BinaryStringType():
            return _base64(text)
        case DateType():
            return _date(text, dialect)
        case TimeType():
            return _time(text, type_, dialect)
        case TimestampType():
            return _timestamp(text, to_arrow(type_).unit, dialect)
        case TimestampLtzType() if dialect is TextDialect.CSV_ISO:
            return _moment(text.strip(JAVA_BLANK), to_arrow(type_).unit)
        case TimestampLtzType():
            if not text.rstrip(JAVA_BLANK if dialect.is_csv else "").endswith("Z"):
                raise ValueError(f"Text '{text}' could not be parsed at index {len(text)}")
            return _timestamp(text.rstrip(JAVA_BLANK)[:-1], to_arrow(type_).unit, dialect)
    raise NotSupportedYetError(f"reading {type_} from text")


def _integer(text: str, bits: int) -> int:
    trimmed = text.strip(JAVA_BLANK)
    if _INTEGER.fullmatch(trimmed):
        number = int(trimmed)
        if -(1 << bits - 1) <= number < 1 << bits - 1:
            return number
    raise ValueError(f'For input string: "{trimmed}"')


def _double(text: str) -> float:
    trimmed = text.strip(JAVA_BLANK)
    if match := _DOUBLE.fullmatch(trimmed):
        return float(match[1])
    if match := _HEX_DOUBLE.fullmatch(trimmed):
        return float.fromhex(match[1])
    raise ValueError(f'For input string: "{trimmed}"' if trimmed else "empty String")


def decimal_value(text: str, type_: DecimalType) -> decimal.Decimal | None:
    """A decimal rounded half up to the type's scale; None when it has too many digits before the point."""
    if not _DECIMAL.fullmatch(text):
        raise ValueError(f'For input string: "{text}"')
    with decimal.localcontext() as context:
        context.prec = max(80, len(text) + 40)
        number = decimal.Decimal(text)
        if number and number.adjusted() >= type_.precision - type_.scale:
            return None
        rounded = number.quantize(decimal.Decimal(1).scaleb(-type_.scale), decimal.ROUND_HALF_UP)
        return rounded if not rounded or rounded.adjusted() < type_.precision - type_.scale else None


def _base64(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise ValueError(f"Cannot access contents as binary due to broken Base64 encoding: {error}") from error


def _date(text: str, dialect: TextDialect) -> int:
    match = (_JDBC_DATE if dialect.is_csv else _ISO_DATE).fullmatch(text)
    if match is None:
        raise ValueError(f"Text '{text}' could not be parsed as a date (yyyy-MM-dd)")
    year, month, day = int(match[1]), int(match[2]), int(match[3])
    try:
        if dialect.is_csv and 1 <= day <= 31:
            # java.sql.Date is lenient: 2020-02-30 is 2020-03-01.
            return (datetime.date(year, month, 1) - datetime.date(1970, 1, 1)).days + day - 1
        return (datetime.date(year, month, day) - datetime.date(1970, 1, 1)).days
    except ValueError as error:
        raise ValueError(f"Text '{text}' could not be parsed: Invalid date") from error


def _time(text: str, type_: TimeType, dialect: TextDialect) -> int:
    match = (_ISO_TIME if dialect.is_csv else _SQL_TIME).fullmatch(text)
    if match is None:
        raise ValueError(f"Text '{text}' could not be parsed as a time (HH:mm:ss)")
    hour, minute, second = int(match[1]), int(match[2]), int(match[3] or 0)
    fraction = match[4] or ""
    # Java's SMART resolution, which json has and csv has not.
    if hour == 24 and not dialect.is_csv and not (minute or second or int(fraction or 0)):
        hour = 0
    if hour > 23 or minute > 59 or second > 59:
        raise ValueError(f"Text '{text}' could not be parsed: Invalid value for a time of day")
    digits = (fraction + "000")[: _time_digits(type_, dialect)].ljust(3, "0")
    return ((hour * 60 + minute) * 60 + second) * 1000 + int(digits)


def _time_digits(type_: TimeType, dialect: TextDialect) -> int:
    """How many digits of a fraction are kept: csv keeps those of the type, json always milliseconds."""
    return min(type_.precision, 3) if dialect.is_csv else 3


def _timestamp(text: str, unit: str, dialect: TextDialect) -> int:
    trimmed = text.strip(JAVA_BLANK) if dialect.is_csv else text
    match = _STAMPS[dialect].fullmatch(trimmed)
    if match is None:
        raise ValueError(f"Text '{trimmed}' could not be parsed at index 0")
    year, month, day = int(match[1]), int(match[2]), int(match[3])
    hour, minute, second = int(match[4]), int(match[5]), int(match[6] or 0)
    fraction_ns = int((match[7] or "").ljust(9, "0"))
    midnight = hour == 24 and not (minute or second or fraction_ns)
    if not 1 <= month <= 12 or not 1 <= day <= 31 or (hour > 23 and not midnight) or minute > 59 or second > 59:
        raise ValueError(f"Text '{trimmed}' could not be parsed: Invalid value for a date or time")
    # Java's SMART resolution: a day past the month's end is its last day; 24:00 is the next day's start.
    # Python has no years before 1: the Gregorian calendar repeats every 400 years of 146097 days.
    cycles = 0 if year >= 1 else (-year) // 400 + 1
    year += 400 * cycles
    day = min(day, calendar.monthrange(year, month)[1])
    days = datetime.date(year, month, day).toordinal() - _EPOCH_ORDINAL - 146097 * cycles
    nanos = days * _DAY_NS + ((hour * 60 + minute) * 60 + second) * 1_000_000_000 + fraction_ns
    if unit == "ns" and not -(2**63) <= nanos < 2**63:
        raise ExecutionError(
            "timestamp-range", f"'{trimmed}' is outside the range of timestamps with more than 6 digits (1677 to 2262)."
        )
    return nanos // _UNIT_NS[unit]


_STAMPS: Final = {
    TextDialect.CSV: _SQL_STAMP,
    TextDialect.CSV_ISO: _CSV_STAMP,
    TextDialect.JSON_SQL: _SQL_STAMP,
    TextDialect.JSON_ISO: _ISO_STAMP,
}


def _moment(text: str, unit: str) -> int:
    """A timestamp with ``Z`` or an offset, as UTC."""
    offset = _OFFSET.search(text)
    if offset is None:
        raise ValueError(f"Text '{text}' could not be parsed at index {len(text)}: Z or an offset is missing")
    local = _timestamp(text[: offset.start()], unit, TextDialect.CSV_ISO)
    minutes = int(offset[2] or 0) * 60 + int(offset[3] or 0)
    return local - (-1 if offset[1] == "-" else 1) * minutes * (60_000_000_000 // _UNIT_NS[unit])


_EPOCH_ORDINAL: Final = datetime.date(1970, 1, 1).toordinal()
