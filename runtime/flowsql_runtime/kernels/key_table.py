"""Open-addressing table from key words to slots.

``table`` uint64, a power of two long: 0 is free, else ``tag << 32 | slot + 1`` with the 32-bit tag of the key's hash;
the low bits of the tag are its home position, so growing and deleting read no keys. ``slot_words`` (slots, w) hold the
keys by slot. ``var`` (w,) is empty when all words are values; else 0 for a value, 1 and 2 for a string's two words:
up to 15 bytes inline with the length in the top byte of word 2; longer ones as hash and ``0xFF << 56 | position`` in an
arena, where 8 bytes of length stand before the bytes.
``meta`` int64: live keys, next unused slot, head of the free list + 1, arena bytes used, arena bytes freed.
"""

from __future__ import annotations

import numpy as np

from flowsql_compute.compiler.declare import device, kernel
from flowsql_compute.kernels.memory import block32, copy_bytes, load64, store64

LIVE, NEXT, FREE, ARENA, GARBAGE = 0, 1, 2, 3, 4
META_SIZE = 5
_U = np.uint64
_SEED = np.uint64(0x9E3779B97F4A7C15)
_MIX = np.uint64(0xFF51AFD7ED558CCD)
_MIX2 = np.uint64(0xC4CEB9FE1A85EC53)
_LONG = np.uint64(0xFF)
_ADDRESS = np.uint64(0x00FFFFFFFFFFFFFF)
_LOW = np.uint64(0xFFFFFFFF)


@device
def _length_at(arena, at):
    return np.int64(load64(arena, at))


@device
def _same_bytes(arena, x, scratch, y):
    length = _length_at(arena, x)
    if length != _length_at(scratch, y):
        return False
    k = 8
    while k + 8 <= 8 + length and load64(arena, x + k) == load64(scratch, y + k):
        k += 8
    while k < 8 + length and arena[x + k] == scratch[y + k]:
        k += 1
    return k == 8 + length


@kernel(
    "int64(uint64[::1], uint64[:,::1], uint64[::1], uint8[::1], uint8[::1], uint64[:,::1], uint64[::1], uint8[::1],"
    " uint8[::1], int64[::1], int64, boolean, int64, int32[::1], int32[::1], int64[::1])"
)
def probe(
    table,
    slot_words,
    slot_masks,
    arena,
    var,
    words,
    masks,
    scratch,
    skip,
    meta,
    start,
    insert,
    limit,
    out,
    fresh,
    count,
):
    """Slots of rows ``start ..`` into ``out`` (-1: not there, or skipped); returns the row reached.

    Args:
        masks, slot_masks: NULL bits a row and a slot; either may be empty.
        skip: non-zero where a row takes no part; may be empty.
        insert: put missing keys in; stops early when ``limit`` keys live, for the caller to grow the table.
        fresh: rows that made a new key, ``count[0]`` of them.
    """
    n, w = words.shape
    size_mask = _U(table.size - 1)
    has_var = var.size > 0
    for i in range(start, n):
        if skip.size and skip[i]:
            out[i] = -1
            continue
        mask = masks[i] if masks.size else _U(0)
        # Written out: a helper that takes arrays costs reference counting for each row.
        h = _SEED ^ (mask * _MIX2)
        for j in range(w):
            word = words[i, j]
            if has_var and var[j] == 2 and (word >> _U(56)) == _LONG:
                continue
            h = (h ^ word) * _MIX
            h ^= h >> _U(32)
        tag = (h * _MIX2) >> _U(32)
        at = tag & size_mask
        found = np.int64(-1)
        while True:
            entry = table[at]
            if entry == 0:
                break
            if (entry >> _U(32)) == tag:
                slot = np.int64(entry & _LOW) - 1
                stored = slot_masks[slot] if slot_masks.size else _U(0)
                same = stored == mask
                for j in range(w):
                    a = slot_words[slot, j]
                    b = words[i, j]
                    if has_var and var[j] == 2 and (a >> _U(56)) == _LONG and (b >> _U(56)) == _LONG:
                        same = same and _same_bytes(arena, np.int64(a & _ADDRESS), scratch, np.int64(b & _ADDRESS))
                    elif a != b:
                        same = False
                if same:
                    found = slot
                    break
            at = (at + _U(1)) & size_mask
        if found < 0 and insert:
            if meta[LIVE] >= limit:
                return i
            if meta[FREE]:
                found = meta[FREE] - 1
                meta[FREE] = np.int64(slot_words[found, 0])
            else:
                found = meta[NEXT]
                meta[NEXT] += 1
            for j in range(w):
                word = words[i, j]
                if has_var and var[j] == 2 and (word >> _U(56)) == _LONG:
                    source = np.int64(word & _ADDRESS)
                    target = meta[ARENA]
                    total = 8 + _length_at(scratch, source)
                    copy_bytes(arena, target, scratch, source, total)
                    meta[ARENA] += total
                    word = (_LONG << _U(56)) | _U(target)
                slot_words[found, j] = word
            if slot_masks.size:
                slot_masks[found] = mask
            table[at] = (tag << _U(32)) | _U(found + 1)
            meta[LIVE] += 1
            fresh[count[0]] = i
            count[0] += 1
        out[i] = found
    return n


#: Rows of a block, as many as ``block32`` has words.
_BLOCK = 32


@kernel(
    "int64(uint64[::1], uint64[:,::1], uint64[::1], int64[::1], int64, boolean, int64, int32[::1], int32[::1],"
    " int64[::1])"
)
def probe_word(table, slot_words, words, meta, start, insert, limit, out, fresh, count):
    """:func:`probe` for keys of one word without NULLs, the most common ones.

    Rows go in blocks: first all entries, then all keys are read, so that cache misses overlap.
    """
    n = words.size
    size_mask = _U(table.size - 1)
    tags = block32()
    entries = block32()
    keys = block32()
    for block in range(start, n, _BLOCK):
        stop = min(n, block + _BLOCK)
        for i in range(block, stop):
            h = (_SEED ^ words[i]) * _MIX
            h ^= h >> _U(32)
            tag = (h * _MIX2) >> _U(32)
            tags[i - block] = tag
            entries[i - block] = table[tag & size_mask]
        for b in range(stop - block):
            slot = np.int64(entries[b] & _LOW) - 1
            keys[b] = slot_words[max(slot, 0), 0]
        for i in range(block, stop):
            b = i - block
            tag = tags[b]
            word = words[i]
            entry = entries[b]
            if entry != 0 and (entry >> _U(32)) == tag and keys[b] == word:
                out[i] = np.int64(entry & _LOW) - 1
                continue
            at = tag & size_mask
            found = np.int64(-1)
            while True:
                entry = table[at]
                if entry == 0:
                    break
                if (entry >> _U(32)) == tag:
                    slot = np.int64(entry & _LOW) - 1
                    if slot_words[slot, 0] == word:
                        found = slot
                        break
                at = (at + _U(1)) & size_mask
            if found < 0 and insert:
                if meta[LIVE] >= limit:
                    return i
                if meta[FREE]:
                    found = meta[FREE] - 1
                    meta[FREE] = np.int64(slot_words[found, 0])
                else:
                    found = meta[NEXT]
                    meta[NEXT] += 1
                slot_words[found, 0] = word
                table[at] = (tag << _U(32)) | _U(found + 1)
                meta[LIVE] += 1
                fresh[count[0]] = i
                count[0] += 1
            out[i] = found
    return n


@kernel("void(uint64[::1], uint64[::1])")
def move_entries(old, new):
    """Put every entry of ``old`` into the larger, empty ``new``."""
    size_mask = _U(new.size - 1)
    for i in range(old.size):
        entry = old[i]
        if entry:
            at = (entry >> _U(32)) & size_mask
            while new[at]:
                at = (at + _U(1)) & size_mask
            new[at] = entry


@kernel("void(uint64[::1], uint64[:,::1], uint64[::1], uint8[::1], uint8[::1], int64[::1], int32[::1])")
def remove(table, slot_words, slot_masks, arena, var, meta, slots):
    """Delete live slots by shifting entries back; the slots go to the free list, chained through their first word."""
    size_mask = _U(table.size - 1)
    for i in range(len(slots)):
        slot = np.int64(slots[i])
        mask = slot_masks[slot] if slot_masks.size else _U(0)
        h = _SEED ^ (mask * _MIX2)
        for j in range(slot_words.shape[1]):
            word = slot_words[slot, j]
            if var.size and var[j] == 2 and (word >> _U(56)) == _LONG:
                continue
            h = (h ^ word) * _MIX
            h ^= h >> _U(32)
        at = ((h * _MIX2) >> _U(32)) & size_mask
        while np.int64(table[at] & _LOW) != slot + 1:
            at = (at + _U(1)) & size_mask
        hole = at
        while True:
            at = (at + _U(1)) & size_mask
            entry = table[at]
            if entry == 0:
                break
            home = (entry >> _U(32)) & size_mask
            if ((at - home) & size_mask) >= ((at - hole) & size_mask):
                table[hole] = entry
                hole = at
        table[hole] = 0
        if var.size:
            for j in range(slot_words.shape[1]):
                word = slot_words[slot, j]
                if var[j] == 2 and (word >> _U(56)) == _LONG:
                    meta[GARBAGE] += 8 + _length_at(arena, np.int64(word & _ADDRESS))
        slot_words[slot, 0] = _U(meta[FREE])
        meta[FREE] = slot + 1
        meta[LIVE] -= 1


@kernel("int64(uint64[:,::1], uint8[::1], int32[::1], uint8[::1], uint8[::1])")
def compact_arena(slot_words, var, slots, old, new):
    """Copy the long strings of live ``slots`` into ``new``; returns the bytes used."""
    used = 0
    for i in range(len(slots)):
        slot = slots[i]
        for j in range(slot_words.shape[1]):
            word = slot_words[slot, j]
            if var[j] == 2 and (word >> _U(56)) == _LONG:
                source = np.int64(word & _ADDRESS)
                total = 8 + _length_at(old, source)
                copy_bytes(new, used, old, source, total)
                slot_words[slot, j] = (_LONG << _U(56)) | _U(used)
                used += total
    return used


@kernel("int64(int64[::1], int64[::1], uint8[::1], uint64[:,::1], int64, uint8[::1], int64)")
def encode_bytes(starts, lengths, data, words, column, scratch, used):
    """Two words a row from ``column`` on; long strings go to ``scratch`` from ``used`` on; returns the new ``used``."""
    readable = data.size - 16
    for i in range(len(starts)):
        at = starts[i]
        length = lengths[i]
        if length <= 15:
            first = _U(0)
            second = _U(0)
            if at <= readable:
                first = load64(data, at)
                if length < 8:
                    # Shifting in two steps: a shift by all 64 bits is not defined.
                    first = (first << _U(8 * (7 - length)) << _U(8)) >> _U(8) >> _U(8 * (7 - length))
                else:
                    second = load64(data, at + 8)
                    second = (second << _U(8 * (15 - length)) << _U(8)) >> _U(8) >> _U(8 * (15 - length))
            else:
                for k in range(min(length, 8)):
                    first |= _U(data[at + k]) << _U(8 * k)
                for k in range(8, length):
                    second |= _U(data[at + k]) << _U(8 * (k - 8))
            words[i, column] = first
            words[i, column + 1] = second | (_U(length) << _U(56))
        else:
            h = _SEED ^ _U(length)
            store64(scratch, used, length)
            copy_bytes(scratch, used + 8, data, at, length)
            k = 0
            while k + 8 <= length:
                h = (h ^ load64(data, at + k)) * _MIX
                h ^= h >> _U(32)
                k += 8
            word = _U(0)
            while k < length:
                word |= _U(data[at + k]) << _U(8 * (k & 7))
                k += 1
            h = (h ^ word) * _MIX2
            words[i, column] = h ^ (h >> _U(29))
            words[i, column + 1] = (_LONG << _U(56)) | _U(used)
            used += 8 + length
    return used


@kernel("int64(uint64[:,::1], int64, int32[::1], uint8[::1], int64[::1], uint8[::1])")
def decode_bytes(slot_words, column, slots, arena, offsets, out):
    """String of each slot: fills ``offsets`` (n + 1) and, if ``out`` is not empty, bytes; returns their sum."""
    used = 0
    for i in range(len(slots)):
        offsets[i] = used
        second = slot_words[slots[i], column + 1]
        top = second >> _U(56)
        if top == _LONG:
            at = np.int64(second & _ADDRESS)
            length = _length_at(arena, at)
            if out.size:
                copy_bytes(out, used, arena, at + 8, length)
        else:
            length = np.int64(top)
            if out.size:
                first = slot_words[slots[i], column]
                for k in range(min(length, 8)):
                    out[used + k] = (first >> _U(8 * k)) & _U(0xFF)
                for k in range(8, length):
                    out[used + k] = (second >> _U(8 * (k - 8))) & _U(0xFF)
        used += length
    offsets[len(slots)] = used
    return used
