"""Message digests of the rows of byte columns, written as hexadecimal digits: MD5, SHA-1 and the SHA-2 family.

Row i is ``data[offsets[i]:offsets[i + 1]]``; its digest stands at ``out[i * 2 * bytes:]``. Working memory comes with
the call: ``tail``, two blocks, takes what follows the last whole block of a message; ``words`` a block and what is made
of it.

Source: RFC 1321, FIPS 180-4.
"""

from __future__ import annotations

import numpy as np

from flowsql_core.kernels.lazy import device, kernel

_W = np.uint32
_U = np.uint64


@device
def _left(x, by):
    return _W((x << _W(by)) | (x >> _W(32 - by)))


@device
def _right32(x, by):
    return _W((x >> _W(by)) | (x << _W(32 - by)))


@device
def _right64(x, by):
    return (x >> _U(by)) | (x << _U(64 - by))


@device
def _fill_tail(data, start, stop, tail, block, first):
    """The end of a message, a one bit and zeros up to whole blocks; returns where they end.

    ``first``: bytes of the last block that the message must leave for its length.
    """
    size = stop - start
    for at in range(size):
        tail[at] = data[start + at]
    tail[size] = 0x80
    end = block if size + 1 + first <= block else 2 * block
    for at in range(size + 1, end):
        tail[at] = 0
    return end


@device
def _length_at(tail, end, bits):
    """The length of the message in its last eight bytes, most significant byte first."""
    for at in range(8):
        tail[end - 1 - at] = (bits >> (8 * at)) & 0xFF


@device
def _hex_byte(out, at, byte):
    high = byte >> 4
    low = byte & 15
    out[at] = high + (0x30 if high < 10 else 0x57)
    out[at + 1] = low + (0x30 if low < 10 else 0x57)


@device
def _big32(data, at):
    return _W(_W(data[at]) << _W(24) | _W(data[at + 1]) << _W(16) | _W(data[at + 2]) << _W(8) | _W(data[at + 3]))


@device
def _big64(data, at):
    return _U(_big32(data, at)) << _U(32) | _U(_big32(data, at + 4))


@device
def _md5_block(data, at, state, words, constants, shifts):
    for i in range(16):
        word = _W(data[at]) | _W(data[at + 1]) << _W(8) | _W(data[at + 2]) << _W(16) | _W(data[at + 3]) << _W(24)
        words[i] = word
        at += 4
    a = state[0]
    b = state[1]
    c = state[2]
    d = state[3]
    for i in range(64):
        if i < 16:
            mixed = (b & c) | (~b & d)
            place = i
        elif i < 32:
            mixed = (d & b) | (~d & c)
            place = (5 * i + 1) & 15
        elif i < 48:
            mixed = b ^ c ^ d
            place = (3 * i + 5) & 15
        else:
            mixed = c ^ (b | ~d)
            place = (7 * i) & 15
        turned = _W(a + _W(mixed) + constants[i] + words[place])
        a = d
        d = c
        c = b
        by = shifts[i]
        b = _W(b + _W((turned << by) | (turned >> (_W(32) - by))))
    state[0] += a
    state[1] += b
    state[2] += c
    state[3] += d


@kernel("void(int32[::1], uint8[::1], uint32[::1], uint32[::1], uint8[::1], uint32[::1], uint32[::1], uint8[::1])")
def md5_rows(offsets, data, constants, shifts, tail, words, state, out):
    """MD5: ``constants`` and ``shifts`` (64,), ``tail`` (128,), ``words`` (16,), ``state`` (4,)."""
    for row in range(offsets.size - 1):
        at = np.int64(offsets[row])
        stop = np.int64(offsets[row + 1])
        length = stop - at
        state[0] = 0x67452301
        state[1] = 0xEFCDAB89
        state[2] = 0x98BADCFE
        state[3] = 0x10325476
        while at + 64 <= stop:
            _md5_block(data, at, state, words, constants, shifts)
            at += 64
        end = _fill_tail(data, at, stop, tail, 64, 8)
        for byte in range(8):
            tail[end - 8 + byte] = (length << 3 >> (8 * byte)) & 0xFF
        for begin in range(0, end, 64):
            _md5_block(tail, begin, state, words, constants, shifts)
        place = np.int64(row) * 32
        for i in range(4):
            for byte in range(4):
                _hex_byte(out, place, (np.int64(state[i]) >> (8 * byte)) & 0xFF)
                place += 2


@device
def _sha1_block(data, at, state, words):
    for i in range(16):
        words[i] = _big32(data, at + 4 * i)
    for i in range(16, 80):
        words[i] = _left(words[i - 3] ^ words[i - 8] ^ words[i - 14] ^ words[i - 16], 1)
    a = state[0]
    b = state[1]
    c = state[2]
    d = state[3]
    e = state[4]
    for i in range(80):
        if i < 20:
            mixed = (b & c) | (~b & d)
            constant = _W(0x5A827999)
        elif i < 40:
            mixed = b ^ c ^ d
            constant = _W(0x6ED9EBA1)
        elif i < 60:
            mixed = (b & c) | (b & d) | (c & d)
            constant = _W(0x8F1BBCDC)
        else:
            mixed = b ^ c ^ d
            constant = _W(0xCA62C1D6)
        made = _W(_left(a, 5) + _W(mixed) + e + constant + words[i])
        e = d
        d = c
        c = _left(b, 30)
        b = a
        a = made
    state[0] += a
    state[1] += b
    state[2] += c
    state[3] += d
    state[4] += e


@device
def _write32(state, count, out, place):
    """The first ``count`` words as digits, most significant byte first."""
    for i in range(count):
        for byte in range(4):
            _hex_byte(out, place, (np.int64(state[i]) >> (24 - 8 * byte)) & 0xFF)
            place += 2


@kernel("void(int32[::1], uint8[::1], uint8[::1], uint32[::1], uint32[::1], uint8[::1])")
def sha1_rows(offsets, data, tail, words, state, out):
    """SHA-1: ``tail`` (128,), ``words`` (80,), ``state`` (5,)."""
    for row in range(offsets.size - 1):
        at = np.int64(offsets[row])
        stop = np.int64(offsets[row + 1])
        length = stop - at
        state[0] = 0x67452301
        state[1] = 0xEFCDAB89
        state[2] = 0x98BADCFE
        state[3] = 0x10325476
        state[4] = 0xC3D2E1F0
        while at + 64 <= stop:
            _sha1_block(data, at, state, words)
            at += 64
        end = _fill_tail(data, at, stop, tail, 64, 8)
        _length_at(tail, end, length << 3)
        for begin in range(0, end, 64):
            _sha1_block(tail, begin, state, words)
        _write32(state, 5, out, np.int64(row) * 40)


@device
def _sha256_block(data, at, state, words, constants):
    for i in range(16):
        words[i] = _big32(data, at + 4 * i)
    for i in range(16, 64):
        near = words[i - 15]
        far = words[i - 2]
        low = _right32(near, 7) ^ _right32(near, 18) ^ (near >> _W(3))
        high = _right32(far, 17) ^ _right32(far, 19) ^ (far >> _W(10))
        words[i] = _W(words[i - 16] + _W(low) + words[i - 7] + _W(high))
    a = state[0]
    b = state[1]
    c = state[2]
    d = state[3]
    e = state[4]
    f = state[5]
    g = state[6]
    h = state[7]
    for i in range(64):
        one = _W(_right32(e, 6) ^ _right32(e, 11) ^ _right32(e, 25))
        chosen = _W((e & f) ^ (~e & g))
        added = _W(h + one + chosen + constants[i] + words[i])
        other = _W(_right32(a, 2) ^ _right32(a, 13) ^ _right32(a, 22))
        most = _W((a & b) ^ (a & c) ^ (b & c))
        h = g
        g = f
        f = e
        e = _W(d + added)
        d = c
        c = b
        b = a
        a = _W(added + other + most)
    state[0] += a
    state[1] += b
    state[2] += c
    state[3] += d
    state[4] += e
    state[5] += f
    state[6] += g
    state[7] += h


@kernel(
    "void(int32[::1], uint8[::1], uint32[::1], uint32[::1], int64, uint8[::1], uint32[::1], uint32[::1], uint8[::1])"
)
def sha256_rows(offsets, data, constants, start, count, tail, words, state, out):
    """SHA-224 and SHA-256, whose digests have ``count`` words.

    ``constants`` (64,), ``start`` (8,), ``tail`` (128,), ``words`` (64,), ``state`` (8,).
    """
    for row in range(offsets.size - 1):
        at = np.int64(offsets[row])
        stop = np.int64(offsets[row + 1])
        length = stop - at
        for i in range(8):
            state[i] = start[i]
        while at + 64 <= stop:
            _sha256_block(data, at, state, words, constants)
            at += 64
        end = _fill_tail(data, at, stop, tail, 64, 8)
        _length_at(tail, end, length << 3)
        for begin in range(0, end, 64):
            _sha256_block(tail, begin, state, words, constants)
        _write32(state, count, out, np.int64(row) * 8 * count)


@device
def _sha512_block(data, at, state, words, constants):
    for i in range(16):
        words[i] = _big64(data, at + 8 * i)
    for i in range(16, 80):
        near = words[i - 15]
        far = words[i - 2]
        low = _right64(near, 1) ^ _right64(near, 8) ^ (near >> _U(7))
        high = _right64(far, 19) ^ _right64(far, 61) ^ (far >> _U(6))
        words[i] = words[i - 16] + low + words[i - 7] + high
    a = state[0]
    b = state[1]
    c = state[2]
    d = state[3]
    e = state[4]
    f = state[5]
    g = state[6]
    h = state[7]
    for i in range(80):
        one = _right64(e, 14) ^ _right64(e, 18) ^ _right64(e, 41)
        chosen = (e & f) ^ (~e & g)
        added = h + one + chosen + constants[i] + words[i]
        other = _right64(a, 28) ^ _right64(a, 34) ^ _right64(a, 39)
        most = (a & b) ^ (a & c) ^ (b & c)
        h = g
        g = f
        f = e
        e = d + added
        d = c
        c = b
        b = a
        a = added + other + most
    state[0] += a
    state[1] += b
    state[2] += c
    state[3] += d
    state[4] += e
    state[5] += f
    state[6] += g
    state[7] += h


@kernel(
    "void(int32[::1], uint8[::1], uint64[::1], uint64[::1], int64, uint8[::1], uint64[::1], uint64[::1], uint8[::1])"
)
def sha512_rows(offsets, data, constants, start, count, tail, words, state, out):
    """SHA-384 and SHA-512, whose digests have ``count`` words.

    ``constants`` (80,), ``start`` (8,), ``tail`` (256,), ``words`` (80,), ``state`` (8,).
    """
    for row in range(offsets.size - 1):
        at = np.int64(offsets[row])
        stop = np.int64(offsets[row + 1])
        length = stop - at
        for i in range(8):
            state[i] = start[i]
        while at + 128 <= stop:
            _sha512_block(data, at, state, words, constants)
            at += 128
        end = _fill_tail(data, at, stop, tail, 128, 16)
        # Rows are shorter than 2 to the 61 bytes: the upper half of the length stays 0.
        _length_at(tail, end, length << 3)
        for begin in range(0, end, 128):
            _sha512_block(tail, begin, state, words, constants)
        place = np.int64(row) * 16 * count
        for i in range(count):
            for byte in range(8):
                _hex_byte(out, place, np.int64((state[i] >> _U(56 - 8 * byte)) & _U(0xFF)))
                place += 2
