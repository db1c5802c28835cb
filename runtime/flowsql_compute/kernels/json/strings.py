"""Kernels that put texts into JSON strings and take them out again."""

from __future__ import annotations

import numpy as np

from flowsql_compute.compiler.declare import device, kernel
from flowsql_compute.kernels.json.bytes import is_hex

_QUOTE, _BACKSLASH, _ZERO, _NINE = 0x22, 0x5C, 0x30, 0x39


@device
def _hex_digits(out, size, value, digits):
    for digit in range(digits):
        nibble = (value >> (4 * (digits - 1 - digit))) & 15
        out[size + digit] = nibble + (_ZERO if nibble < 10 else 0x57)
    return size + digits


@device
def _unicode(out, size, value, digits):
    out[size] = _BACKSLASH
    out[size + 1] = 0x75
    return _hex_digits(out, size + 2, value, digits)


@kernel("int64(int32[::1], uint8[::1], uint8[::1], int32[::1], uint8[::1])")
def quote(offsets, data, short, out_offsets, out):
    """Each text as JSON string of ASCII characters; returns the number of bytes written, at most 4 a byte and 2 a row.

    ``short`` (128,): the letter behind the backslash for characters that have one, else 0. A character beyond the
    basic plane is its whole code and the second half of its surrogate pair, as Flink writes it.
    """
    size = np.int64(0)
    out_offsets[0] = 0
    for row in range(offsets.size - 1):
        at = np.int64(offsets[row])
        end = np.int64(offsets[row + 1])
        out[size] = _QUOTE
        size += 1
        while at < end:
            code = np.int64(data[at])
            if code < 0x80:
                letter = short[code]
                if letter:
                    out[size] = _BACKSLASH
                    size += 1
                    out[size] = letter
                else:
                    out[size] = code
                size += 1
                at += 1
            elif code < 0xE0:
                code = (code & 0x1F) << 6 | (data[at + 1] & 0x3F)
                size = _unicode(out, size, code, 4)
                at += 2
            elif code < 0xF0:
                code = (code & 0x0F) << 12 | (np.int64(data[at + 1]) & 0x3F) << 6 | (data[at + 2] & 0x3F)
                size = _unicode(out, size, code, 4)
                at += 3
            else:
                code = (
                    (code & 0x07) << 18 | (np.int64(data[at + 1]) & 0x3F) << 12
                    | (np.int64(data[at + 2]) & 0x3F) << 6 | (data[at + 3] & 0x3F)
                )  # fmt: skip
                size = _unicode(out, size, code, 5 if code < 0x100000 else 6)
                size = _unicode(out, size, 0xDC00 + (code & 0x3FF), 4)
                at += 4
        out[size] = _QUOTE
        size += 1
        out_offsets[row + 1] = size
    return size


@device
def _digit(code):
    return code - _ZERO if code <= _NINE else (code | 0x20) - 0x57


@device
def _utf8(out, size, code):
    if code < 0x80:
        out[size] = code
        return size + 1
    if code < 0x800:
        out[size] = 0xC0 | code >> 6
        out[size + 1] = 0x80 | (code & 0x3F)
        return size + 2
    out[size] = 0xE0 | code >> 12
    out[size + 1] = 0x80 | (code >> 6 & 0x3F)
    out[size + 2] = 0x80 | (code & 0x3F)
    return size + 3


@kernel("int64(int32[::1], uint8[::1], uint8[::1], boolean[::1], int32[::1], uint8[::1])")
def unquote(offsets, data, short, left, out_offsets, out):
    """What stands between quotes, escapes resolved; a text without quotes or with a wrong escape as it is.

    ``short`` (128,): the character behind a backslash as what it stands for, 0 for wrong ones. ``left``: rows with
    halves of surrogate pairs, of which nothing is written. Returns the number of bytes written, at most as many as
    there are.
    """
    size = np.int64(0)
    out_offsets[0] = 0
    for row in range(offsets.size - 1):
        start = np.int64(offsets[row])
        end = np.int64(offsets[row + 1])
        begin = size
        left[row] = False
        whole = end - start < 2 or data[start] != _QUOTE or data[end - 1] != _QUOTE
        if not whole:
            at = start + 1
            while at < end - 1:
                code = np.int64(data[at])
                at += 1
                if code != _BACKSLASH:
                    out[size] = code
                    size += 1
                    continue
                if at >= end - 1:
                    whole = True
                    break
                code = np.int64(data[at])
                at += 1
                if code == 0x75:
                    code = np.int64(0)
                    for step in range(4):
                        if at + step >= end - 1 or not is_hex(data[at + step]):
                            whole = True
                            break
                        code = code << 4 | _digit(np.int64(data[at + step]))
                    if whole:
                        break
                    at += 4
                    if 0xD800 <= code < 0xE000:
                        left[row] = True
                    size = _utf8(out, size, code)
                    continue
                if code >= 0x80 or short[code] == 0:
                    whole = True
                    break
                out[size] = short[code]
                size += 1
        if whole:
            size = begin
            left[row] = False
            for at in range(start, end):
                out[size] = data[at]
                size += 1
        elif left[row]:
            size = begin
        out_offsets[row + 1] = size
    return size
