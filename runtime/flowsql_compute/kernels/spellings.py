"""Kernels for bytes in other spellings: base 64, hexadecimal digits, character sets.

Row i is ``data[offsets[i]:offsets[i + 1]]``. Kernels that return an integer return the number of bytes written.

Source: RFC 4648 section 4; the Unicode Standard, section 3.9.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from flowsql_compute.compiler.declare import device, kernel
from flowsql_compute.kernels.codecs import is_utf8

#: Character sets; the numbers are known to the kernel.
ASCII: Final = 0
LATIN_1: Final = 1
UTF_16: Final = 2
UTF_16_BE: Final = 3
UTF_16_LE: Final = 4
UTF_32_BE: Final = 5
UTF_32_LE: Final = 6


@kernel("void(int32[::1], uint8[::1], uint8[::1], int32[::1], uint8[::1])")
def base64_encode(offsets, data, letters, out_offsets, out):
    """Base 64 with ``=`` at the end, to where ``out_offsets`` puts it; ``letters`` (64,)."""
    for row in range(out_offsets.size - 1):
        at = np.int64(offsets[row])
        end = np.int64(offsets[row + 1])
        place = np.int64(out_offsets[row])
        while at < end:
            word = np.int64(data[at]) << 16
            if at + 1 < end:
                word |= np.int64(data[at + 1]) << 8
            if at + 2 < end:
                word |= np.int64(data[at + 2])
            out[place] = letters[word >> 18]
            out[place + 1] = letters[word >> 12 & 63]
            out[place + 2] = letters[word >> 6 & 63] if at + 1 < end else 0x3D
            out[place + 3] = letters[word & 63] if at + 2 < end else 0x3D
            place += 4
            at += 3


@kernel("int64(int32[::1], uint8[::1], int8[::1], boolean, boolean[::1], int32[::1], uint8[::1])")
def base64_decode(offsets, data, codes, as_text, left, out_offsets, out):
    """Bytes from base 64, with or without ``=`` at the end; ``codes`` (256,) has -1 for what is no letter of it.

    Nothing is written of rows ``left``: those with other letters, of other lengths, and with ``as_text`` those that are
    no UTF-8.
    """
    size = np.int64(0)
    out_offsets[0] = 0
    for row in range(offsets.size - 1):
        at = np.int64(offsets[row])
        end = np.int64(offsets[row + 1])
        begin = size
        if (end - at) & 3 == 0 and end > at and data[end - 1] == 0x3D:
            end -= 1
            if data[end - 1] == 0x3D:
                end -= 1
        plain = (end - at) & 3 != 1
        known = np.int64(0)
        while at + 4 <= end:
            one = np.int64(codes[data[at]])
            two = np.int64(codes[data[at + 1]])
            three = np.int64(codes[data[at + 2]])
            four = np.int64(codes[data[at + 3]])
            # Negative as soon as one of them is.
            known |= one | two | three | four
            word = one << 18 | two << 12 | three << 6 | four
            out[size] = word >> 16 & 255
            out[size + 1] = word >> 8 & 255
            out[size + 2] = word & 255
            size += 3
            at += 4
        if plain and at < end:
            one = np.int64(codes[data[at]])
            two = np.int64(codes[data[at + 1]])
            three = np.int64(codes[data[at + 2]]) if at + 2 < end else np.int64(0)
            known |= one | two | three
            out[size] = (one << 2 | two >> 4) & 255
            size += 1
            if at + 2 < end:
                out[size] = (two << 4 | three >> 2) & 255
                size += 1
        plain = plain and known >= 0 and (not as_text or is_utf8(out, begin, size))
        left[row] = not plain
        if not plain:
            size = begin
        out_offsets[row + 1] = size
    return size


@kernel("int64(int32[::1], uint8[::1], int8[::1], boolean[::1], int32[::1], uint8[::1])")
def hex_decode(offsets, data, codes, wrong, out_offsets, out):
    """Bytes from digits; a first digit without a partner makes a zero byte. Rows with other letters are ``wrong``.

    ``codes`` (256,) has -1 for what is no digit.
    """
    size = np.int64(0)
    out_offsets[0] = 0
    for row in range(offsets.size - 1):
        at = np.int64(offsets[row])
        end = np.int64(offsets[row + 1])
        begin = size
        known = np.int64(0)
        if (end - at) & 1:
            known |= np.int64(codes[data[at]])
            out[size] = 0
            size += 1
            at += 1
        while at < end:
            high = np.int64(codes[data[at]])
            low = np.int64(codes[data[at + 1]])
            known |= high | low
            out[size] = (high << 4 | low) & 255
            size += 1
            at += 2
        wrong[row] = known < 0
        if known < 0:
            size = begin
        out_offsets[row + 1] = size
    return size


@device
def _length(lead):
    """Bytes of the character that begins with a byte."""
    return 1 if lead < 0x80 else 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4


@device
def _code(data, at, length):
    """The character of so many bytes."""
    lead = np.int64(data[at])
    if length == 1:
        return lead
    code = lead & (0x3F >> (length - 1))
    for step in range(1, length):
        code = code << 6 | (np.int64(data[at + step]) & 0x3F)
    return code


@device
def _put16(out, at, unit, little):
    place = np.uint64(at)
    out[place] = unit & 255 if little else unit >> 8
    out[place + np.uint64(1)] = unit >> 8 if little else unit & 255


@kernel("int64(int32[::1], uint8[::1], int64, int32[::1], uint8[::1])")
def encode_text(offsets, data, charset, out_offsets, out):
    """Texts in a character set; ASCII and Latin-1 write ``?`` for what they lack, UTF-16 begins with its mark.

    At most 4 bytes a byte in UTF-32, 2 bytes a byte and 2 a row in UTF-16, 1 byte a byte in the others.
    """
    size = np.int64(0)
    out_offsets[0] = 0
    limit = 0x80 if charset == ASCII else 0x100
    little = charset in (UTF_16_LE, UTF_32_LE)
    for row in range(offsets.size - 1):
        at = np.int64(offsets[row])
        end = np.int64(offsets[row + 1])
        # The empty text has no mark.
        if charset == UTF_16 and at < end:
            _put16(out, size, 0xFEFF, False)
            size += 2
        while at < end:
            code = np.int64(data[at])
            if code < 0x80:
                at += 1
            else:
                length = _length(data[at])
                code = _code(data, at, length)
                at += length
            if charset <= LATIN_1:
                out[size] = code if code < limit else 0x3F
                size += 1
            elif charset >= UTF_32_BE:
                _put16(out, size, code & 0xFFFF if little else code >> 16, little)
                _put16(out, size + 2, code >> 16 if little else code & 0xFFFF, little)
                size += 4
            else:
                if code > 0xFFFF:
                    _put16(out, size, 0xD7C0 + (code >> 10), little)
                    code = 0xDC00 | (code & 0x3FF)
                    size += 2
                _put16(out, size, code, little)
                size += 2
        out_offsets[row + 1] = size
    return size
