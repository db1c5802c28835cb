"""Keys of DataStreams as the bytes by which batch mode sorts them: those that Flink's serializers write."""

from __future__ import annotations

import calendar
import datetime
import struct
from collections.abc import Callable, Sequence
from typing import Any, Final

from flowsql.common.typeinfo import (
    BasicType,
    BasicTypeInfo,
    DateTypeInfo,
    ExternalTypeInfo,
    ListTypeInfo,
    PrimitiveArrayTypeInfo,
    RowTypeInfo,
    TimestampTypeInfo,
    TimeTypeInfo,
    TupleTypeInfo,
    TypeInformation,
)
from flowsql_core.interpreter.object_bytes import object_bytes

#: Gives the bytes of a value that is not None.
Writer = Callable[[Any], bytes]

_PICKLED_PROTOCOL: Final = 4
_NAN32, _NAN64 = struct.pack(">I", 0x7FC00000), struct.pack(">Q", 0x7FF8000000000000)
_int32, _int64 = struct.Struct(">i").pack, struct.Struct(">q").pack


def key_bytes(key_type: TypeInformation | None) -> Callable[[Any], bytes]:
    """Return what gives the bytes of keys of a type; None: of keys whose type was not declared.

    Batch mode compares them as signed bytes. Keys that Flink would hold for different have different bytes: -0.0 and
    0.0, and without a declared type 1 and 1.0.

    Example: ``key_bytes(Types.INT())(5)`` is ``b"\\0\\0\\0\\0\\5"``.

    Source: Flink, ``RowSerializer``, ``StringValue``, ``FloatSerializer`` and the like; PyFlink pickles other keys.
    """
    return _row([_pickled if key_type is None else _writer(key_type)], lambda key: (key,))


def _writer(type_: TypeInformation) -> Writer:
    match type_:
        case ExternalTypeInfo():
            return _writer(type_.type_info)
        case BasicTypeInfo():
            return _BASIC.get(type_.basic_type, _pickled)
        case TupleTypeInfo():
            writers = [_writer(field) for field in type_.get_field_types()]
            return lambda value: b"".join(_of_field(write, field) for write, field in zip(writers, value, strict=True))
        case RowTypeInfo():
            return _row([_writer(field) for field in type_.get_field_types()], list)
        case ListTypeInfo():
            write = _writer(type_.element_type)
            return lambda value: _int32(len(value)) + b"".join(_of_field(write, element) for element in value)
        case PrimitiveArrayTypeInfo() if type_.is_bytes:
            return lambda value: _int32(len(value)) + bytes(value)
        case DateTypeInfo():
            return lambda value: _int64(calendar.timegm(value.timetuple()) * 1000)
        case TimeTypeInfo():
            return lambda value: _int64(_milliseconds_of_day(value))
        case TimestampTypeInfo():
            return _timestamp
        case _:
            return _pickled


def _row(writers: Sequence[Writer], fields: Callable[[Any], Sequence[Any]]) -> Writer:
    """Two bits of the kind of change and one a field that is None, then the others."""
    length = (2 + len(writers) + 7) // 8

    def write(value: Any) -> bytes:
        found = fields(value)
        kind = getattr(value, "get_row_kind", None)
        change = 0 if kind is None else kind().value
        mask = (change & 1) << (8 * length - 1) | (change >> 1 & 1) << (8 * length - 2)
        parts = []
        for place, (one, field) in enumerate(zip(writers, found, strict=True), 2):
            if field is None:
                mask |= 1 << (8 * length - 1 - place)
            else:
                parts.append(one(field))
        return mask.to_bytes(length, "big") + b"".join(parts)

    return write


def _of_field(write: Writer, value: Any) -> bytes:
    # Tuples and lists hold no None in Flink; here it sorts first.
    return b"" if value is None else write(value)


def _text(value: str) -> bytes:
    """The number of UTF-16 units and one more, then the units; each in groups of seven bits, the lowest first."""
    raw = value.encode("utf-16-be", "surrogatepass")
    units = struct.unpack(f">{len(raw) // 2}H", raw)
    written = bytearray()
    for number in (len(units) + 1, *units):
        while number >= 0x80:
            written.append(number & 0x7F | 0x80)
            number >>= 7
        written.append(number)
    return bytes(written)


def _float32(value: float) -> bytes:
    return struct.pack(">f", value) if value == value else _NAN32


def _float64(value: float) -> bytes:
    return struct.pack(">d", value) if value == value else _NAN64


#: Numbers of decimals that Flink's serializer has a code for.
_CODES: Final = {0: 1, 1: 2, 10: 3}


def _big_integer(value: int) -> bytes:
    raw = value.to_bytes((value + (value < 0)).bit_length() // 8 + 1, "big", signed=True)
    return _int32(len(raw) + 4) + raw


def _big_decimal(value: Any) -> bytes:
    sign, digits, exponent = value.as_tuple()
    unscaled = int("".join(map(str, digits)) or "0") * (-1 if sign else 1)
    written = _int32(_CODES[unscaled]) if unscaled in _CODES else _big_integer(unscaled)
    return written + _int32(-int(exponent))


def _timestamp(value: datetime.datetime) -> bytes:
    seconds = calendar.timegm(value.timetuple())
    return _int64(seconds * 1000 + value.microsecond // 1000) + _int32(value.microsecond * 1000)


def _milliseconds_of_day(value: datetime.time) -> int:
    return ((value.hour * 60 + value.minute) * 60 + value.second) * 1000 + value.microsecond // 1000


def _pickled(value: Any) -> bytes:
    raw = object_bytes(value, _PICKLED_PROTOCOL)
    return _int32(len(raw)) + raw


_BASIC: Final[dict[BasicType, Writer]] = {
    BasicType.STRING: _text,
    BasicType.CHAR: lambda value: value.encode("utf-16-be", "surrogatepass"),
    BasicType.BOOLEAN: lambda value: b"\x01" if value else b"\x00",
    BasicType.BYTE: struct.Struct(">b").pack,
    BasicType.SHORT: struct.Struct(">h").pack,
    BasicType.INT: _int32,
    BasicType.LONG: _int64,
    BasicType.FLOAT: _float32,
    BasicType.DOUBLE: _float64,
    BasicType.BIG_INT: _big_integer,
    BasicType.BIG_DEC: _big_decimal,
}
