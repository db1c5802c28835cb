"""Keys as bytes, for stores that keep them outside memory.

A packed key is the namespace, if there is one, as 8 bytes that sort like the number; 8 bytes of NULL bits; then its
words (``key_table``), each long string with its bytes behind its two words.
"""

from __future__ import annotations

import numpy as np

from flowsql_compute.compiler.declare import kernel
from flowsql_compute.kernels.memory import copy_bytes, load64, store64

_U = np.uint64
_LONG_KEY = np.uint64(0xFF)
_ADDRESS = np.uint64(0x00FFFFFFFFFFFFFF)


@kernel("int64(uint64[:,::1], uint8[::1], uint8[::1], int64, int64[::1])")
def measure_keys(words, var, scratch, fixed, offsets):
    """Offsets (n + 1) of packed keys; ``fixed``: bytes of a key without long strings. Returns the sum."""
    used = np.int64(0)
    for i in range(len(words)):
        offsets[i] = used
        used += fixed
        for j in range(var.size):
            if var[j] == 2 and (words[i, j] >> _U(56)) == _LONG_KEY:
                used += np.int64(load64(scratch, np.int64(words[i, j] & _ADDRESS)))
    offsets[len(words)] = used
    return used


@kernel("void(uint64[:,::1], uint64[::1], uint8[::1], uint8[::1], boolean, int64[::1], uint8[::1])")
def pack_keys(words, masks, var, scratch, namespaced, offsets, out):
    """Packed keys."""
    w = words.shape[1]
    for i in range(len(words)):
        at = offsets[i]
        first = 0
        if namespaced:
            word = words[i, 0] ^ (_U(1) << _U(63))
            for k in range(8):
                out[at + k] = (word >> _U(8 * (7 - k))) & _U(0xFF)
            at += 8
            first = 1
        store64(out, at, np.int64(masks[i]) if masks.size else np.int64(0))
        at += 8
        for j in range(first, w):
            word = words[i, j]
            if var.size and var[j] == 2 and (word >> _U(56)) == _LONG_KEY:
                source = np.int64(word & _ADDRESS)
                length = np.int64(load64(scratch, source))
                store64(out, at, np.int64((_LONG_KEY << _U(56)) | _U(length)))
                at += 8
                copy_bytes(out, at, scratch, source + 8, length)
                at += length
            else:
                store64(out, at, np.int64(word))
                at += 8


@kernel("int64(uint8[::1], int64[::1], boolean, uint8[::1], uint64[:,::1], uint64[::1], uint8[::1])")
def unpack_keys(data, starts, namespaced, var, words, masks, scratch):
    """Words, masks and, if ``scratch`` is not empty, long strings of packed keys.

    Returns the bytes that ``scratch`` needs.
    """
    used = np.int64(0)
    w = words.shape[1]
    for i in range(len(starts)):
        at = starts[i]
        first = 0
        if namespaced:
            word = _U(0)
            for k in range(8):
                word = (word << _U(8)) | _U(data[at + k])
            words[i, 0] = word ^ (_U(1) << _U(63))
            at += 8
            first = 1
        masks[i] = _U(load64(data, at))
        at += 8
        for j in range(first, w):
            word = _U(load64(data, at))
            at += 8
            if var.size and var[j] == 2 and (word >> _U(56)) == _LONG_KEY:
                length = np.int64(word & _ADDRESS)
                if scratch.size:
                    store64(scratch, used, length)
                    copy_bytes(scratch, used + 8, data, at, length)
                word = (_LONG_KEY << _U(56)) | _U(used)
                used += 8 + length
                at += length
            words[i, j] = word
    return used
