"""Kernels that spell the bytes of text columns otherwise: escapes of URLs, Java's hash codes."""

from __future__ import annotations

import numpy as np

from flowsql_compute.compiler.declare import device, kernel
from flowsql_compute.kernels.json.bytes import is_hex

_PERCENT, _PLUS, _BLANK = 0x25, 0x2B, 0x20


@device
def _capital_digit(nibble):
    return nibble + (0x30 if nibble < 10 else 0x37)


@kernel("int64(int32[::1], uint8[::1], boolean[::1], int32[::1], uint8[::1])")
def url_encode(offsets, data, kept, out_offsets, out):
    """Texts as form fields: bytes where ``kept`` (256,) as they are, blanks as ``+``, others as ``%`` and two digits.

    Returns the number of bytes written, at most three a byte.
    """
    size = np.int64(0)
    out_offsets[0] = 0
    for row in range(offsets.size - 1):
        for at in range(offsets[row], offsets[row + 1]):
            code = np.int64(data[at])
            if kept[code]:
                out[size] = code
                size += 1
            elif code == _BLANK:
                out[size] = _PLUS
                size += 1
            else:
                out[size] = _PERCENT
                out[size + 1] = _capital_digit(code >> 4)
                out[size + 2] = _capital_digit(code & 15)
                size += 3
        out_offsets[row + 1] = size
    return size


@device
def _value(code):
    return code - 0x30 if code <= 0x39 else (code | 0x20) - 0x57


@device
def is_utf8(data, at, end):
    """Whether bytes [at, end) are well-formed UTF-8."""
    while at < end:
        code = np.int64(data[at])
        if code < 0x80:
            at += 1
            continue
        # The bounds of the second byte keep overlong forms, halves of surrogate pairs and too high codes out.
        low = np.int64(0x80)
        high = np.int64(0xBF)
        if 0xC2 <= code <= 0xDF:
            more = 1
        elif 0xE0 <= code <= 0xEF:
            more = 2
            if code == 0xE0:
                low = np.int64(0xA0)
            elif code == 0xED:
                high = np.int64(0x9F)
        elif 0xF0 <= code <= 0xF4:
            more = 3
            if code == 0xF0:
                low = np.int64(0x90)
            elif code == 0xF4:
                high = np.int64(0x8F)
        else:
            return False
        if at + more >= end or data[at + 1] < low or data[at + 1] > high:
            return False
        for step in range(2, more + 1):
            if data[at + step] & 0xC0 != 0x80:
                return False
        at += more + 1
    return True


@kernel("int64(int32[::1], uint8[::1], boolean[::1], int32[::1], uint8[::1])")
def url_decode(offsets, data, left, out_offsets, out):
    """Form fields as texts; nothing is written of rows ``left``, those with a wrong escape or bytes that are no UTF-8.

    Returns the number of bytes written, at most one a byte.
    """
    size = np.int64(0)
    out_offsets[0] = 0
    for row in range(offsets.size - 1):
        at = np.int64(offsets[row])
        end = np.int64(offsets[row + 1])
        begin = size
        plain = True
        while at < end and plain:
            code = np.int64(data[at])
            if code != _PERCENT:
                out[size] = _BLANK if code == _PLUS else code
                size += 1
                at += 1
                continue
            run = size
            while at < end and data[at] == _PERCENT:
                if at + 2 >= end or not is_hex(data[at + 1]) or not is_hex(data[at + 2]):
                    plain = False
                    break
                out[size] = _value(np.int64(data[at + 1])) << 4 | _value(np.int64(data[at + 2]))
                size += 1
                at += 3
            plain = plain and is_utf8(out, run, size)
        left[row] = not plain
        if not plain:
            size = begin
        out_offsets[row + 1] = size
    return size


@kernel("void(int32[::1], uint8[::1], int32[::1])")
def java_hashes(offsets, data, out):
    """``String.hashCode`` of each text: a polynomial of base 31 over its UTF-16 units."""
    for row in range(out.size):
        made = np.int64(0)
        at = np.int64(offsets[row])
        end = np.int64(offsets[row + 1])
        while at < end:
            code = np.int64(data[at])
            if code < 0x80:
                at += 1
            elif code < 0xE0:
                code = (code & 0x1F) << 6 | (data[at + 1] & 0x3F)
                at += 2
            elif code < 0xF0:
                code = (code & 0x0F) << 12 | (np.int64(data[at + 1]) & 0x3F) << 6 | (data[at + 2] & 0x3F)
                at += 3
            else:
                code = (
                    (code & 0x07) << 18 | (np.int64(data[at + 1]) & 0x3F) << 12
                    | (np.int64(data[at + 2]) & 0x3F) << 6 | (data[at + 3] & 0x3F)
                )  # fmt: skip
                at += 4
                # Two units: the halves of a surrogate pair.
                made = (made * 31 + 0xD7C0 + (code >> 10)) & 0xFFFFFFFF
                code = 0xDC00 + (code & 0x3FF)
            made = (made * 31 + code) & 0xFFFFFFFF
        out[row] = np.int32(made)


@kernel("void(int32[::1], uint8[::1], int64[::1])")
def inet_numbers(offsets, data, out):
    """The number of each IPv4 address of one to four parts; -1 for other texts."""
    for row in range(out.size):
        number = np.int64(0)
        part = np.int64(-1)
        places = np.int64(0)
        for at in range(offsets[row], offsets[row + 1]):
            digit = np.int64(data[at]) - 0x30
            if 0 <= digit <= 9 and part * 10 + digit <= 255:
                part = max(part, np.int64(0)) * 10 + digit
            elif digit == -2 and part >= 0 and places < 3:
                number |= part << (24 - 8 * places)
                places += 1
                part = np.int64(-1)
            else:
                places = np.int64(4)
                break
        out[row] = number | part if part >= 0 and places < 4 else -1
