"""Rows of words: reading columns out and writing them in, positions of keys, merging accumulators."""

from __future__ import annotations

import numpy as np

from flowsql_compute.compiler.declare import kernel
from flowsql_runtime.kernels.accumulate import (
    COUNT,
    MAX,
    MAX_BYTES,
    MAX_DOUBLE,
    MAX_WIDE,
    MIN,
    MIN_BYTES,
    MIN_DOUBLE,
    MIN_WIDE,
    MOMENTS,
    SUM,
    SUM_CHECKED,
    SUM_DOUBLE,
    SUM_FLOAT,
    SUM_RESTARTING,
    SUM_WIDE,
    add_within_38_digits,
    merge_moments,
)
from flowsql_runtime.kernels.byte_arena import compare

_U = np.uint64


@kernel("void(int64[:,::1], int32[::1], int64[:,::1])")
def gather(rows, ids, out):
    """``out[j, i] = rows[ids[i], j]``: every word as a column of its own, each row read once."""
    width = rows.shape[1]
    for i in range(len(ids)):
        row = ids[i]
        for j in range(width):
            out[j, i] = rows[row, j]


@kernel("void(int64[::1], uint8[::1], int64, int64[::1], int32[::1], int64[:,::1], int64, int64, int64)")
def put_words(values, bits, first_bit, chosen, ids, rows, word, valid_word, bit):
    """``rows[ids, word] = values[chosen]``, 0 at NULL; ``chosen`` empty: all values.

    ``bits``: validity, from ``first_bit`` on; empty where no value is NULL. Unless ``valid_word`` is -1, bit ``bit`` of
    that word says whether there is a value.
    """
    for i in range(len(ids)):
        at = chosen[i] if chosen.size else i
        row = np.int64(ids[i])
        there = True
        if bits.size:
            place = first_bit + at
            there = (bits[place >> 3] >> (place & 7)) & 1 == 1
        rows[row, word] = values[at] if there else 0
        if valid_word >= 0:
            mask = np.int64(1) << bit
            rows[row, valid_word] = (rows[row, valid_word] | mask) if there else (rows[row, valid_word] & ~mask)


@kernel("int64(int32[::1], int64[::1], int32[::1], int32[::1], int32[::1])")
def positions(keys, owners, scratch, out, firsts):
    """Number the distinct (owner, key) pairs in order of first sight; pairs of one owner stand together.

    ``scratch`` by key is -1 before and after. ``firsts``: row that began each number. Returns how many there are.
    """
    known = 0
    start = 0
    n = len(keys)
    while start < n:
        stop = start
        while stop < n and owners[stop] == owners[start]:
            key = keys[stop]
            if scratch[key] < 0:
                scratch[key] = known
                firsts[known] = stop
                known += 1
            out[stop] = scratch[key]
            stop += 1
        for i in range(start, stop):
            scratch[keys[i]] = -1
        start = stop
    return known


@kernel(
    "void(int64[:,::1], float64[:,::1], int32[::1], int64[:,::1], float64[:,::1], int32[::1], int64[:,::1], uint8[::1])"
)
def merge(acc, doubles, slots, source, source_doubles, rows, ops, arena):
    """Fold accumulator row ``rows[i]`` of ``source`` into ``slots[i]`` of ``acc``; bytes of both stand in ``arena``.

    ``ops`` as in ``accumulate``; arguments and signs are not looked at.
    """
    for i in range(len(slots)):
        slot = np.int64(slots[i])
        row = np.int64(rows[i])
        for k in range(len(ops)):
            code = ops[k, 0]
            at = ops[k, 1]
            if code in (COUNT, SUM):
                acc[slot, at] += source[row, at]
            elif code == SUM_DOUBLE:
                doubles[slot, at] += source_doubles[row, at]
            elif code == SUM_FLOAT:
                doubles[slot, at] = np.float64(np.float32(doubles[slot, at] + source_doubles[row, at]))
            elif code == SUM_WIDE:
                before = _U(acc[slot, at])
                after = before + _U(source[row, at])
                acc[slot, at + 1] += source[row, at + 1] + (1 if after < before else 0)
                acc[slot, at] = np.int64(after)
            elif code == MOMENTS:
                merge_moments(
                    acc, doubles, slot, at, source[row, at], source_doubles[row, at + 1], source_doubles[row, at + 2]
                )
            else:
                count = ops[k, 4]
                if code == SUM_CHECKED or (code == SUM_RESTARTING and source[row, count] != 0):
                    add_within_38_digits(acc, slot, at, source[row, at], source[row, at + 1], 1, code == SUM_RESTARTING)
                    continue
                if code == SUM_RESTARTING or source[row, count] == 0:
                    continue
                take = acc[slot, count] == 0
                value = source[row, at]
                if not take and code == MIN:
                    take = value < acc[slot, at]
                elif not take and code == MAX:
                    take = value > acc[slot, at]
                elif not take and code == MIN_DOUBLE:
                    take = source_doubles[row, at] < doubles[slot, at]
                elif not take and code == MAX_DOUBLE:
                    take = source_doubles[row, at] > doubles[slot, at]
                elif not take and code in (MIN_BYTES, MAX_BYTES):
                    order = compare(arena, value, acc[slot, at])
                    take = order < 0 if code == MIN_BYTES else order > 0
                elif not take and code in (MIN_WIDE, MAX_WIDE):
                    high = source[row, at + 1]
                    mine = acc[slot, at + 1]
                    less = high < mine or (high == mine and _U(value) < _U(acc[slot, at]))
                    same = high == mine and value == acc[slot, at]
                    take = less if code == MIN_WIDE else not (less or same)
                if take:
                    acc[slot, at] = value
                    if code in (MIN_WIDE, MAX_WIDE):
                        acc[slot, at + 1] = source[row, at + 1]
        acc[slot, 0] += source[row, 0]
