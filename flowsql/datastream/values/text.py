"""The text of a value as ``print`` writes it: Java's ``toString`` for values of a declared type, Python's for objects.

Source: printed answers of PyFlink 2.3. A stream without a declared type holds Python objects: ``str`` of them is
printed. A stream of rows prints ``+I[1,a]``, with Python's texts inside.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable
from typing import Any

from flowsql.common.row import Row
from flowsql.common.time import Instant
from flowsql.common.typeinfo import (
    BasicArrayTypeInfo,
    BasicType,
    BasicTypeInfo,
    DateTypeInfo,
    ExternalTypeInfo,
    ListTypeInfo,
    MapTypeInfo,
    ObjectArrayTypeInfo,
    PickledBytesTypeInfo,
    PrimitiveArrayTypeInfo,
    RowTypeInfo,
    TimestampTypeInfo,
    TimeTypeInfo,
    TupleTypeInfo,
    TypeInformation,
)

ToText = Callable[[Any], str]

_EPOCH = datetime.datetime(1970, 1, 1)


def line_text(type_: TypeInformation) -> ToText:
    """What ``print`` writes of a value of a stream."""
    match type_:
        case ExternalTypeInfo() | RowTypeInfo():
            return _row_line
        case PickledBytesTypeInfo():
            return str
        case _:
            return java_text(type_)


def _row_line(row: Row) -> str:
    return f"{row.get_row_kind().short_string()}[{','.join(map(str, row))}]"


def java_text(type_: TypeInformation) -> ToText:
    """Java's ``toString`` of a value of a declared type; ``null`` for None."""
    text = _not_null(type_)
    return lambda value: "null" if value is None else text(value)


def _not_null(type_: TypeInformation) -> ToText:
    match type_:
        case BasicTypeInfo(basic_type=BasicType.BOOLEAN):
            return lambda value: "true" if value else "false"
        case BasicTypeInfo(basic_type=BasicType.FLOAT):
            return float_text
        case BasicTypeInfo(basic_type=BasicType.DOUBLE):
            return double_text
        case BasicTypeInfo(basic_type=BasicType.INSTANT):
            return _instant
        case TupleTypeInfo():
            return _tuple(type_)
        case RowTypeInfo():
            return _nested_row(type_)
        case ExternalTypeInfo():
            return _not_null(type_.type_info)
        case MapTypeInfo():
            return _map(type_)
        case PrimitiveArrayTypeInfo(is_bytes=True):
            return lambda value: "[" + ", ".join(str(b - 256 if b > 127 else b) for b in value) + "]"
        case PrimitiveArrayTypeInfo() | BasicArrayTypeInfo() | ObjectArrayTypeInfo() | ListTypeInfo():
            item = java_text(type_.element_type)
            return lambda value: "[" + ", ".join(map(item, value)) + "]"
        case DateTypeInfo():
            return datetime.date.isoformat
        case TimeTypeInfo():
            return lambda value: value.isoformat("seconds")
        case TimestampTypeInfo():
            return _timestamp
        case _:
            return str


def _tuple(type_: TupleTypeInfo) -> ToText:
    items = [java_text(field) for field in type_.get_field_types()]
    return lambda value: "(" + ",".join(item(v) for item, v in zip(items, value, strict=True)) + ")"


def _nested_row(type_: RowTypeInfo) -> ToText:
    items = [java_text(field) for field in type_.get_field_types()]

    def text(row: Row) -> str:
        inner = ", ".join(item(v) for item, v in zip(items, row, strict=True))
        return f"{row.get_row_kind().short_string()}[{inner}]"

    return text


def _map(type_: MapTypeInfo) -> ToText:
    key, item = java_text(type_.key_type), java_text(type_.value_type)
    return lambda value: "{" + ", ".join(f"{key(k)}={item(v)}" for k, v in value.items()) + "}"


def double_text(value: float) -> str:
    """``Double.toString``: ``1.0E10`` from ten millions on and below a thousandth.

    >>> double_text(1.5), double_text(1e7), double_text(0.00012)
    ('1.5', '1.0E7', '1.2E-4')
    """
    return _decimal_text(value, repr(value))


def float_text(value: float) -> str:
    """``Float.toString``: as few digits as four bytes need.

    >>> float_text(110.0999984741211)
    '110.1'
    """
    import numpy as np

    return _decimal_text(value, str(np.float32(value)))


def _decimal_text(value: float, shortest: str) -> str:
    """The shortest digits of a number, laid out as Java does."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    mantissa, _, exponent = shortest.lower().partition("e")
    sign = "-" if mantissa.startswith("-") else ""
    whole, _, fraction = mantissa.lstrip("-").partition(".")
    digits = (whole + fraction).lstrip("0")
    if not digits:
        return f"{sign}0.0"
    # Places before the point of 0.digits, as in 0.15 * 10**point.
    point = len(whole) + int(exponent or 0) - (len(whole + fraction) - len(digits))
    digits = digits.rstrip("0") or "0"
    if 1e-3 <= abs(value) < 1e7:
        if point <= 0:
            return f"{sign}0.{'0' * -point}{digits}"
        return f"{sign}{digits[:point].ljust(point, '0')}.{digits[point:] or '0'}"
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{point - 1}"


def _instant(value: Instant) -> str:
    moment = _EPOCH + datetime.timedelta(seconds=value.seconds)
    return f"{moment.isoformat()}{_fraction(value.nanos, 3)}Z"


def _timestamp(value: datetime.datetime) -> str:
    text = value.replace(tzinfo=None).isoformat(" ", "seconds")
    return text + (f".{value.microsecond:06d}".rstrip("0") if value.microsecond else ".0")


def _fraction(nanos: int, group: int) -> str:
    """As many groups of digits as are needed."""
    if not nanos:
        return ""
    digits = f"{nanos:09d}"
    while digits.endswith("0" * group):
        digits = digits[:-group]
    return f".{digits}"
