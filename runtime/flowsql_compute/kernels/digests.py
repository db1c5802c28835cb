"""Message digests of the rows of byte columns, written as hexadecimal digits: MD5, SHA-1 and the SHA-2 family.

Row i is ``data[offsets[i]:offsets[i + 1]]``; its digest of ``count`` words stands at ``out[i * count * bytes * 2:]``.
Some rows are digested at once, see ``digest_lanes``. Working memory comes with the call: ``tail`` (256,) takes a block
that the message does not fill, ``words`` (128,) a block of each message, ``state`` (64,) and ``mask`` (8,).

Source: RFC 1321, FIPS 180-4.
"""

from __future__ import annotations

import numpy as np

from flowsql_compute.compiler.declare import device, kernel
from flowsql_compute.kernels.digest_lanes import LANES, WIDE_LANES, md5_step, sha1_step, sha256_step, sha512_step
from flowsql_compute.kernels.memory import load64, store64

_U = np.uint64
_WORD = np.uint64(0xFFFFFFFF)


@device
def _swap32(x):
    """A word of four bytes with its bytes in the other order, uint64 in and out."""
    return (
        (x & _U(0xFF)) << _U(24) | (x & _U(0xFF00)) << _U(8) | (x >> _U(8)) & _U(0xFF00) | (x >> _U(24)) & _U(0xFF)
    )  # fmt: skip


@device
def _swap64(x):
    return _swap32(x & _WORD) << _U(32) | _swap32(x >> _U(32))


@device
def _write_hex(four, out, place):
    """Four bytes as eight digits, the byte of the lowest bits first."""
    spread = (four | four << _U(16)) & _U(0x0000FFFF0000FFFF)
    spread = (spread | spread << _U(8)) & _U(0x00FF00FF00FF00FF)
    nibbles = (spread >> _U(4)) & _U(0x000F000F000F000F) | (spread & _U(0x000F000F000F000F)) << _U(8)
    letters = ((nibbles + _U(0x0606060606060606)) >> _U(4)) & _U(0x0101010101010101)
    store64(out, place, nibbles + _U(0x3030303030303030) + letters * _U(39))


@device
def _fill(data, start, length, begin, last, size, big, tail):
    """The block of a message from ``begin`` on that the message does not fill: a one bit, zeros, in the last one its
    length.
    """
    rest = length - begin
    for at in range(size):
        tail[at] = 0
    for at in range(min(max(rest, 0), size)):
        tail[at] = data[start + begin + at]
    if 0 <= rest < size:
        tail[rest] = 0x80
    if last:
        for byte in range(8):
            tail[(size - 1 - byte) if big else (size - 8 + byte)] = ((length << 3) >> (8 * byte)) & 0xFF


@device
def _put_words(block, at, lane, big, words):
    """Sixteen words of four bytes into a lane."""
    for pair in range(8):
        both = load64(block, at + 8 * pair)
        one = both & _WORD
        other = both >> _U(32)
        words[2 * pair * LANES + lane] = _swap32(one) if big else one
        words[(2 * pair + 1) * LANES + lane] = _swap32(other) if big else other


@device
def _blocks(offsets, row, size, first):
    """How many blocks the message of a row makes; ``first`` bytes are for its length."""
    if row >= offsets.size - 1:
        return np.int64(0)
    return (np.int64(offsets[row + 1]) - np.int64(offsets[row]) + first + size) // size


@device
def _put_blocks(offsets, data, group, number, big, tail, words, mask):
    """A block of each message of a group of rows into its lane."""
    for lane in range(LANES):
        row = group + lane
        count = _blocks(offsets, row, 64, 8)
        mask[lane] = 0xFFFFFFFF if number < count else 0
        if number >= count:
            continue
        start = np.int64(offsets[row])
        length = np.int64(offsets[row + 1]) - start
        if (number + 1) * 64 <= length:
            _put_words(data, start + number * 64, lane, big, words)
        else:
            _fill(data, start, length, number * 64, number + 1 == count, 64, big, tail)
            _put_words(tail, 0, lane, big, words)


@device
def _begin(offsets, group, start, state):
    """Every lane's first state; returns how many blocks the longest message of a group makes."""
    most = np.int64(0)
    for lane in range(LANES):
        most = max(most, _blocks(offsets, group + lane, 64, 8))
        for word in range(start.size):
            state[word * LANES + lane] = start[word]
    return most


@device
def _finish(offsets, group, count, big, state, out):
    for lane in range(min(LANES, offsets.size - 1 - group)):
        for word in range(count):
            value = _U(state[word * LANES + lane])
            _write_hex(_swap32(value) if big else value, out, ((group + lane) * count + word) * 8)


@kernel("void(int32[::1], uint8[::1], uint32[::1], uint8[::1], uint32[::1], uint32[::1], uint32[::1], uint8[::1])")
def md5_rows(offsets, data, start, tail, words, state, mask, out):
    """MD5, whose state begins as ``start`` (4,)."""
    for group in range(0, offsets.size - 1, LANES):
        for number in range(_begin(offsets, group, start, state)):
            _put_blocks(offsets, data, group, number, False, tail, words, mask)
            md5_step(words, state, mask)
        _finish(offsets, group, 4, False, state, out)


@kernel("void(int32[::1], uint8[::1], uint32[::1], uint8[::1], uint32[::1], uint32[::1], uint32[::1], uint8[::1])")
def sha1_rows(offsets, data, start, tail, words, state, mask, out):
    """SHA-1, whose state begins as ``start`` (5,)."""
    for group in range(0, offsets.size - 1, LANES):
        for number in range(_begin(offsets, group, start, state)):
            _put_blocks(offsets, data, group, number, True, tail, words, mask)
            sha1_step(words, state, mask)
        _finish(offsets, group, 5, True, state, out)


@kernel(
    "void(int32[::1], uint8[::1], uint32[::1], int64, uint8[::1], uint32[::1], uint32[::1], uint32[::1], uint8[::1])"
)
def sha256_rows(offsets, data, start, count, tail, words, state, mask, out):
    """SHA-224 and SHA-256, whose state begins as ``start`` (8,) and whose digests have ``count`` words."""
    for group in range(0, offsets.size - 1, LANES):
        for number in range(_begin(offsets, group, start, state)):
            _put_blocks(offsets, data, group, number, True, tail, words, mask)
            sha256_step(words, state, mask)
        _finish(offsets, group, count, True, state, out)


@kernel(
    "void(int32[::1], uint8[::1], uint64[::1], int64, uint8[::1], uint64[::1], uint64[::1], uint64[::1], uint8[::1])"
)
def sha512_rows(offsets, data, start, count, tail, words, state, mask, out):
    """SHA-384 and SHA-512, whose state begins as ``start`` (8,) and whose digests have ``count`` words of 8 bytes."""
    for group in range(0, offsets.size - 1, WIDE_LANES):
        most = np.int64(0)
        for lane in range(WIDE_LANES):
            most = max(most, _blocks(offsets, group + lane, 128, 16))
            for word in range(8):
                state[word * WIDE_LANES + lane] = start[word]
        for number in range(most):
            for lane in range(WIDE_LANES):
                row = group + lane
                blocks = _blocks(offsets, row, 128, 16)
                mask[lane] = _U(0) - _U(1) if number < blocks else _U(0)
                if number >= blocks:
                    continue
                begin = np.int64(offsets[row])
                length = np.int64(offsets[row + 1]) - begin
                if (number + 1) * 128 <= length:
                    for word in range(16):
                        words[word * WIDE_LANES + lane] = _swap64(load64(data, begin + number * 128 + 8 * word))
                else:
                    _fill(data, begin, length, number * 128, number + 1 == blocks, 128, True, tail)
                    for word in range(16):
                        words[word * WIDE_LANES + lane] = _swap64(load64(tail, 8 * word))
            sha512_step(words, state, mask)
        for lane in range(min(WIDE_LANES, offsets.size - 1 - group)):
            for word in range(count):
                value = _swap64(state[word * WIDE_LANES + lane])
                place = ((group + lane) * count + word) * 16
                _write_hex(value & _WORD, out, place)
                _write_hex(value >> _U(32), out, place + 8)
