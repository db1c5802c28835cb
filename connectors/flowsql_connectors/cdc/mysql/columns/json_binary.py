"""Documents of MySQL's JSON type as the log has them, to texts as MySQL spells them.

Source: MySQL internals, ``json_binary.h``.
"""

from __future__ import annotations

import base64
import json
import struct
from typing import Final

_SMALL_OBJECT, _LARGE_OBJECT, _SMALL_ARRAY, _LARGE_ARRAY, _LITERAL = range(5)
_INT16, _UINT16, _INT32, _UINT32, _INT64, _UINT64, _DOUBLE, _STRING = range(5, 13)
_OPAQUE: Final = 15
_NUMBERS: Final = {
    _INT16: "<h", _UINT16: "<H", _INT32: "<i", _UINT32: "<I", _INT64: "<q", _UINT64: "<Q", _DOUBLE: "<d",
}  # fmt: skip
_LITERALS: Final = ("null", "true", "false")
#: Types that MySQL alone has: of decimals and moments, which JSON knows as texts.
_DECIMAL, _DATE, _TIME, _DATETIME, _TIMESTAMP = 246, 10, 11, 12, 7


def json_text(value: bytes, compact: bool) -> str:
    """The text of a document; ``compact``: without blanks between values."""
    if not value:
        return "null"
    return _Document("," if compact else ", ", ":" if compact else ": ").text(value[0], value, 1)


class _Document:
    def __init__(self, between: str, behind_key: str) -> None:
        self._between = between
        self._behind_key = behind_key

    def text(self, kind: int, data: bytes, at: int) -> str:
        """The value of a kind at a place."""
        if kind in (_SMALL_OBJECT, _LARGE_OBJECT, _SMALL_ARRAY, _LARGE_ARRAY):
            return self._container(kind, data, at)
        if kind == _LITERAL:
            return _LITERALS[data[at]]
        if kind == _DOUBLE:
            return _double(struct.unpack_from("<d", data, at)[0])
        if kind in _NUMBERS:
            return str(struct.unpack_from(_NUMBERS[kind], data, at)[0])
        if kind == _STRING:
            size, at = _size(data, at)
            return _quoted(data[at : at + size].decode())
        size, start = _size(data, at + 1)
        return _opaque(data[at], data[start : start + size])

    def _container(self, kind: int, data: bytes, at: int) -> str:
        large = kind in (_LARGE_OBJECT, _LARGE_ARRAY)
        width = 4 if large else 2
        is_object = kind in (_SMALL_OBJECT, _LARGE_OBJECT)

        def number(place: int, size: int = width) -> int:
            return int.from_bytes(data[place : place + size], "little")

        count = number(at)
        keys = at + 2 * width
        values = keys + (count * (width + 2) if is_object else 0)
        found = []
        for index in range(count):
            entry = values + index * (width + 1)
            inner = data[entry]
            # What fits into the entry stands there, else where the entry says.
            inline = inner in (_LITERAL, _INT16, _UINT16) or (large and inner in (_INT32, _UINT32))
            value = self.text(inner, data, entry + 1 if inline else at + number(entry + 1))
            if is_object:
                key = keys + index * (width + 2)
                start = at + number(key)
                name = data[start : start + number(key + width, 2)].decode()
                value = _quoted(name) + self._behind_key + value
            found.append(value)
        inside = self._between.join(found)
        return f"{{{inside}}}" if is_object else f"[{inside}]"


def _size(data: bytes, at: int) -> tuple[int, int]:
    """A length of seven bits a byte, and the place behind it."""
    size = shift = 0
    while True:
        byte = data[at]
        size |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return size, at


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _double(value: float) -> str:
    """As MySQL spells them: the fewest digits, and a fraction where there is none."""
    text = repr(value)
    if "e" in text:
        mantissa, _, exponent = text.partition("e")
        return f"{mantissa}e{int(exponent)}"
    return text


def _opaque(kind: int, data: bytes) -> str:
    if kind == _DECIMAL:
        return _decimal(data)
    packed = struct.unpack_from("<q", data)[0] if len(data) == 8 else 0
    if kind == _TIME:
        return _quoted(("-" if packed < 0 else "") + _time(abs(packed)))
    if kind in (_DATE, _DATETIME, _TIMESTAMP):
        day = packed >> 41
        months, day = day >> 5, day & 31
        date = f"{months // 13:04}-{months % 13:02}-{day:02}"
        return _quoted(date if kind == _DATE else f"{date} {_time(packed & ((1 << 41) - 1))}")
    return _quoted(f"base64:type{kind}:{base64.b64encode(data).decode()}")


def _time(packed: int) -> str:
    seconds, micros = packed >> 24, packed & 0xFFFFFF
    return f"{seconds >> 12:02}:{seconds >> 6 & 63:02}:{seconds & 63:02}.{micros:06}"


def _decimal(data: bytes) -> str:
    """Precision and scale, then the digits as columns have them."""
    precision, scale = data[0], data[1]
    digits = bytearray(data[2:])
    negative = digits[0] < 128
    digits[0] ^= 128
    flip = 255 if negative else 0
    at, text = 0, ""
    whole = precision - scale
    groups = [whole % 9] * (whole % 9 > 0) + [9] * (whole // 9) + [9] * (scale // 9) + [scale % 9] * (scale % 9 > 0)
    for group in groups:
        size = 4 if group == 9 else (group + 1) // 2
        number = int.from_bytes(bytes(byte ^ flip for byte in digits[at : at + size]), "big")
        text += f"{number:0{group}}"
        at += size
    before = text[:whole].lstrip("0") or "0"
    return ("-" if negative else "") + before + ("." + text[whole:] if scale else "")
