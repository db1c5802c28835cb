"""Whole numbers of seven bits a byte, lowest first, as Avro and Protocol Buffers have them; and values as ranges."""

from __future__ import annotations

import numpy as np

from flowsql_compute.compiler.declare import device, kernel
from flowsql_compute.kernels.memory import copy_bytes

_LONGEST = 10


@device(inline=True)
def varint_end(data, at, end):
    """Behind the number at ``at``; -1 where it does not end before ``end``, or after ten bytes."""
    stop = at
    while stop < end and data[stop] >= 128:
        stop += 1
    return np.int64(-1) if stop >= end or stop - at >= _LONGEST else stop + 1


@device(inline=True)
def varint(data, at, stop):
    """The number in ``[at, stop)`` as 64 bits."""
    bits = np.uint64(0)
    shift = np.uint64(0)
    for place in range(at, stop):
        bits |= np.uint64(data[place] & 127) << shift
        shift += np.uint64(7)
    return bits


@device(inline=True)
def unzigzag(bits):
    """0, -1, 1, -2 and so on of 0, 1, 2, 3."""
    return np.int64(bits >> np.uint64(1)) ^ -np.int64(bits & np.uint64(1))


@device(inline=True)
def zigzag(value):
    """0, 1, 2, 3 and so on of 0, -1, 1, -2, as uint64."""
    return np.uint64(value << 1) ^ np.uint64(value >> 63)


@device(inline=True)
def put_varint(out, at, bits):
    """Write a number; the place behind it."""
    while bits >= np.uint64(128):
        out[at] = np.uint8(bits & np.uint64(127)) | np.uint8(128)
        bits >>= np.uint64(7)
        at += 1
    out[at] = np.uint8(bits)
    return at + 1


@device(inline=True)
def little_word(data, at, size):
    """``size`` bytes, lowest first, as int64 without sign."""
    word = np.uint64(0)
    for place in range(size):
        word |= np.uint64(data[at + place]) << np.uint64(8 * place)
    return np.int64(word)


@kernel("void(uint8[::1], int64[::1], int32[::1], uint8[::1])")
def gather_ranges(data, ranges, offsets, out):
    """Copy ranges of bytes behind each other, range i to ``offsets[i]``.

    A range is a start, 31 bits to the left, and a length.
    """
    for row in range(ranges.size):
        size = ranges[row] & 0x7FFFFFFF
        if size:
            copy_bytes(out, np.int64(offsets[row]), data, ranges[row] >> 31, size)


@kernel("int64(uint8[::1], int64[::1], int64[:, ::1])")
def words_of_big_endian(data, ranges, words):
    """Numbers in two's complement, highest byte first, as words of 128 bits: ``words[i]`` is the low and the high one.

    Returns:
        -1, or the first range whose number takes more than 128 bits.
    """
    for row in range(ranges.size):
        start = ranges[row] >> 31
        size = ranges[row] & 0x7FFFFFFF
        fill = np.uint64(0)
        if size and data[start] >= 128:
            fill = ~fill
        low = fill
        high = fill
        for at in range(start, start + size):
            if at < start + size - 16 and np.uint64(data[at]) != (fill & np.uint64(255)):
                return row
            high = (high << np.uint64(8)) | (low >> np.uint64(56))
            low = (low << np.uint64(8)) | np.uint64(data[at])
        words[row, 0] = np.int64(low)
        words[row, 1] = np.int64(high)
    return np.int64(-1)
