"""Keys and rows as bytes, for stores that keep them outside memory.

A packed key is, after a prefix of the caller: the namespace, if there is one, as 8 bytes that sort like the number; 8
bytes of NULL bits; then its words (``key_table``), each long string with its bytes behind its two words.
A packed value is, for each store: 8 bytes with the number of rows, then the rows. A row is its words; where a word is a
reference its length stands (-1: NULL), and the bytes of all references follow the words.
"""

from __future__ import annotations

import numpy as np

from flowsql_compute.compiler.declare import kernel
from flowsql_compute.kernels.memory import copy_bytes, load64, store64
from flowsql_runtime.kernels.byte_arena import LENGTH_BITS, LONG, length_at

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


@kernel("void(uint64[:,::1], uint64[::1], uint8[::1], uint8[::1], uint8[::1], boolean, int64[::1], uint8[::1])")
def pack_keys(words, masks, var, scratch, prefix, namespaced, offsets, out):
    """Packed keys behind ``prefix``."""
    w = words.shape[1]
    for i in range(len(words)):
        at = offsets[i]
        copy_bytes(out, at, prefix, 0, prefix.size)
        at += prefix.size
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


@kernel("int64(uint8[::1], int64[::1], int64, boolean, uint8[::1], uint64[:,::1], uint64[::1], uint8[::1])")
def unpack_keys(data, starts, skip, namespaced, var, words, masks, scratch):
    """Words, masks and, if ``scratch`` is not empty, long strings of packed keys, behind ``skip`` bytes each.

    Returns the bytes that ``scratch`` needs.
    """
    used = np.int64(0)
    w = words.shape[1]
    for i in range(len(starts)):
        at = starts[i] + skip
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


@kernel("void(int64[:,::1], uint8[::1], uint8[::1], int32[::1], int64[::1], int64[::1])")
def measure_rows(rows, refs, arena, positions, sizes, counts):
    """Add to ``sizes`` and ``counts``, by position, the bytes and the number of rows."""
    w = rows.shape[1]
    for i in range(len(rows)):
        size = np.int64(8 * w)
        for j in range(w):
            if refs[j] and rows[i, j]:
                size += length_at(arena, rows[i, j])
        sizes[positions[i]] += size
        counts[positions[i]] += 1


@kernel("void(int64[:,::1], uint8[::1], uint8[::1], int32[::1], int64[::1], int64[::1], uint8[::1])")
def pack_rows(rows, refs, arena, positions, counts, cursors, out):
    """Write counts and rows at the cursors of their positions, which move on."""
    for i in range(len(counts)):
        store64(out, cursors[i], counts[i])
        cursors[i] += 8
    w = rows.shape[1]
    for i in range(len(rows)):
        at = cursors[positions[i]]
        behind = at + 8 * w
        for j in range(w):
            word = rows[i, j]
            if refs[j]:
                length = np.int64(-1)
                if word:
                    length = length_at(arena, word)
                    copy_bytes(out, behind, arena, word >> LENGTH_BITS, length)
                    behind += length
                word = length
            store64(out, at + 8 * j, word)
        cursors[positions[i]] = behind


@kernel("int64(uint8[::1], int64[::1], int64[::1], int64, uint8[::1], int64[::1])")
def count_rows(data, cursors, ends, w, refs, counts):
    """Number of rows of the next store at each cursor, 0 where the value ends; returns the bytes their arena needs."""
    total = np.int64(0)
    for i in range(len(cursors)):
        at = cursors[i]
        counts[i] = 0
        if at >= ends[i]:
            continue
        counts[i] = np.int64(load64(data, at))
        at += 8
        for _ in range(counts[i]):
            behind = at + 8 * w
            for j in range(w):
                if refs[j]:
                    length = np.int64(load64(data, at + 8 * j))
                    if length >= 0:
                        behind += length
                        total += length + 8
            at = behind
    return total


@kernel(
    "int64(uint8[::1], int64[::1], int64[::1], int64[::1], uint8[::1], int64[:,::1], int32[::1], uint8[::1], int64)"
)
def unpack_rows(data, cursors, ends, counts, refs, rows, positions, arena, used):
    """Rows of the next store, their positions and bytes; cursors move on. Returns the bytes used of ``arena``."""
    w = rows.shape[1]
    row = 0
    for i in range(len(cursors)):
        at = cursors[i]
        if at >= ends[i]:
            continue
        at += 8
        for _ in range(counts[i]):
            behind = at + 8 * w
            for j in range(w):
                word = np.int64(load64(data, at + 8 * j))
                if refs[j]:
                    length = word
                    word = np.int64(0)
                    if length >= 0:
                        if length >= LONG:
                            store64(arena, used, length)
                            used += 8
                        copy_bytes(arena, used, data, behind, length)
                        word = (used << LENGTH_BITS) | min(length, np.int64(LONG))
                        used += length
                        behind += length
                rows[row, j] = word
            positions[row] = i
            row += 1
            at = behind
        cursors[i] = at
    return used
