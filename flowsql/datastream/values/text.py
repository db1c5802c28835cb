"""The text of a value as ``print`` writes it: Java's ``toString`` for values of a declared type, Python's for objects.

Source: printed answers of PyFlink 2.3. A stream without a declared type holds Python objects: ``str`` of them is
printed. A stream of rows prints ``+I[1,a]``, with Python's texts inside.
"""

from __future__ import annotations

import datetime
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
    LocalTimeTypeInfo,
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
from flowsql_compute.eval.text.java_numbers import java_double, java_float

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
            return java_float
        case BasicTypeInfo(basic_type=BasicType.DOUBLE):
            return java_double
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
        case LocalTimeTypeInfo(time_type=LocalTimeTypeInfo.TimeType.LOCAL_TIME):
            return _local_time
        case LocalTimeTypeInfo(time_type=LocalTimeTypeInfo.TimeType.LOCAL_DATE_TIME):
            return lambda value: f"{value.date().isoformat()}T{_local_time(value.time())}"
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


def _instant(value: Instant) -> str:
    moment = _EPOCH + datetime.timedelta(seconds=value.seconds)
    return f"{moment.isoformat()}{_fraction(value.nanos, 3)}Z"


def _local_time(value: datetime.time) -> str:
    """``03:04``, ``03:04:05``, ``03:04:05.100``: no more than is needed."""
    if not value.second and not value.microsecond:
        return value.isoformat("minutes")
    return value.replace(microsecond=0).isoformat("seconds") + _fraction(value.microsecond * 1000, 3)


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
