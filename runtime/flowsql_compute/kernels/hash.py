"""XXH64 over canonical key bytes, one row at a time inside one compiled pass.

The bytes of a row are laid out by ``flowsql_compute.keys``.
Source: the xxHash specification, XXH64; keys have seed 0.
"""

from __future__ import annotations

import numpy as np

from flowsql_compute.compiler.declare import device, kernel
from flowsql_compute.kernels.memory import copy_bytes, load64, store64

P1 = np.uint64(11400714785074694791)
P2 = np.uint64(14029467366897019727)
P3 = np.uint64(1609587929392839161)
P4 = np.uint64(9650029242287828579)
P5 = np.uint64(2870177450012600261)
_U = np.uint64


@device
def _rotl(x, r):
    return (x << r) | (x >> (_U(64) - r))


@device
def _round(acc, word):
    return _rotl(acc + word * P2, _U(31)) * P1


@device
def _merge(h, v):
    return (h ^ _round(_U(0), v)) * P1 + P4


@device
def _avalanche(h):
    h = (h ^ (h >> _U(33))) * P2
    h = (h ^ (h >> _U(29))) * P3
    return h ^ (h >> _U(32))


@kernel("void(uint64[:,::1], uint64[::1], uint64[::1])")
def xxh64_words(words, masks, out):
    """Hash rows of 8-byte words: ``words`` (n, w); ``masks`` (n,) is one more word where it is not 0, or empty."""
    n, w = words.shape
    for i in range(n):
        extra = _U(0)
        if masks.size:
            extra = masks[i]
        count = w + (1 if extra else 0)
        j = 0
        if count >= 4:
            v1 = P1 + P2
            v2 = P2
            v3 = _U(0)
            v4 = _U(0) - P1
            while j + 4 <= count:
                v1 = _round(v1, words[i, j])
                v2 = _round(v2, words[i, j + 1])
                v3 = _round(v3, words[i, j + 2])
                last = words[i, j + 3] if j + 3 < w else extra
                v4 = _round(v4, last)
                j += 4
            h = _rotl(v1, _U(1)) + _rotl(v2, _U(7)) + _rotl(v3, _U(12)) + _rotl(v4, _U(18))
            h = _merge(_merge(_merge(_merge(h, v1), v2), v3), v4)
        else:
            h = P5
        h += _U(count * 8)
        while j < count:
            word = words[i, j] if j < w else extra
            h = _rotl(h ^ _round(_U(0), word), _U(27)) * P1 + P4
            j += 1
        out[i] = _avalanche(h)


@kernel("void(uint8[::1], int64[::1], uint64, uint64[::1])")
def xxh64_rows(data, starts, seed, out):
    """Hash ``data[starts[i]:starts[i + 1]]`` for each of the ``len(starts) - 1`` rows."""
    for i in range(len(starts) - 1):
        at = starts[i]
        stop = starts[i + 1]
        length = stop - at
        if length >= 32:
            v1 = seed + P1 + P2
            v2 = seed + P2
            v3 = seed
            v4 = seed - P1
            while at + 32 <= stop:
                v1 = _round(v1, load64(data, at))
                v2 = _round(v2, load64(data, at + 8))
                v3 = _round(v3, load64(data, at + 16))
                v4 = _round(v4, load64(data, at + 24))
                at += 32
            h = _rotl(v1, _U(1)) + _rotl(v2, _U(7)) + _rotl(v3, _U(12)) + _rotl(v4, _U(18))
            h = _merge(_merge(_merge(_merge(h, v1), v2), v3), v4)
        else:
            h = seed + P5
        h += _U(length)
        while at + 8 <= stop:
            h = _rotl(h ^ _round(_U(0), load64(data, at)), _U(27)) * P1 + P4
            at += 8
        if at + 4 <= stop:
            word = _U(0)
            for k in range(4):
                word |= _U(data[at + k]) << _U(8 * k)
            h = _rotl(h ^ (word * P1), _U(23)) * P2 + P3
            at += 4
        while at < stop:
            h = _rotl(h ^ (_U(data[at]) * P5), _U(11)) * P1
            at += 1
        out[i] = _avalanche(h)


@kernel("void(uint8[::1], int64[::1], uint64[:,::1])")
def append_words(buffer, cursors, words):
    """Write each row's words (n, w), little-endian, at its cursor and move the cursor."""
    n, w = words.shape
    for i in range(n):
        at = cursors[i]
        for j in range(w):
            store64(buffer, at, words[i, j])
            at += 8
        cursors[i] = at


@kernel("void(uint8[::1], int64[::1], int64[::1], int64[::1], uint8[::1])")
def append_bytes(buffer, cursors, starts, lengths, data):
    """Write each row's bytes ``data[starts[i]:][:lengths[i]]`` and their length (8 bytes) at its cursor."""
    readable = data.size - 16
    for i in range(len(starts)):
        at = cursors[i]
        length = lengths[i]
        start = starts[i]
        if length <= 16 and start <= readable:
            # Whole words: what is too much stands where the length goes.
            store64(buffer, at, load64(data, start))
            if length > 8:
                store64(buffer, at + 8, load64(data, start + 8))
        else:
            copy_bytes(buffer, at, data, start, length)
        at += length
        store64(buffer, at, length)
        cursors[i] = at + 8


@kernel("void(int64[::1], int64[::1], int64[::1])")
def strip_decimal_zeros(low, high, scales):
    """Divide 128-bit values by ten while that leaves no rest; ``scales`` count along. Zero has scale 0.

    Scales may fall below zero: 100 is 1 with scale -2, so that equal numbers of any type have equal bytes.
    """
    for i in range(len(low)):
        lo = _U(low[i])
        hi = high[i]
        if lo == 0 and hi == 0:
            scales[i] = 0
            continue
        negative = hi < 0
        uhi = _U(hi)
        if negative:
            lo = ~lo + _U(1)
            uhi = ~uhi + (_U(1) if lo == 0 else _U(0))
        while True:
            if uhi == 0:
                quotient = lo // _U(10)
                if quotient * _U(10) != lo:
                    break
                lo = quotient
            else:
                q3 = (uhi >> _U(32)) // _U(10)
                rest = (uhi >> _U(32)) % _U(10)
                part = (rest << _U(32)) | (uhi & _U(0xFFFFFFFF))
                q2 = part // _U(10)
                part = ((part % _U(10)) << _U(32)) | (lo >> _U(32))
                q1 = part // _U(10)
                part = ((part % _U(10)) << _U(32)) | (lo & _U(0xFFFFFFFF))
                q0 = part // _U(10)
                if part % _U(10) != 0:
                    break
                uhi = (q3 << _U(32)) | q2
                lo = (q1 << _U(32)) | q0
            scales[i] -= 1
        if negative:
            lo = ~lo + _U(1)
            uhi = ~uhi + (_U(1) if lo == 0 else _U(0))
        low[i] = np.int64(lo)
        high[i] = np.int64(uhi)
