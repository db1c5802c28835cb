"""The one kernel behind all aggregates: folds rows into accumulators by slot, following a small program.

Accumulators of a slot are one row of int64 words; word 0 counts the slot's rows. A program is a table ``ops`` int64
(k, 5): code, first accumulator word, row of ``args``, row of ``signs``, accumulator word that counts values (or -1).
Codes that look at the count stand before the COUNT that raises it.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from flowsql_compute.compiler.declare import Kernel, device, kernel
from flowsql_runtime.kernels.byte_arena import compare

(
    COUNT,
    SUM,
    SUM_DOUBLE,
    SUM_FLOAT,
    SUM_WIDE,
    MIN,
    MAX,
    MIN_DOUBLE,
    MAX_DOUBLE,
    MIN_WIDE,
    MAX_WIDE,
    MIN_BYTES,
    MAX_BYTES,
    FIRST,
    LAST,
    SINGLE,
    MOMENTS,
    MERGE_MOMENTS,
    SET,
    RESTART,
    COPY,
    SUM_RESTARTING,
    SUM_CHECKED,
) = range(23)

#: Codes whose result is the same in whatever order values come.
COMMUTATIVE = frozenset(
    {COUNT, SUM, SUM_WIDE, MIN, MAX, MIN_DOUBLE, MAX_DOUBLE, MIN_WIDE, MAX_WIDE, MIN_BYTES, MAX_BYTES}
)
#: What most programs consist of.
SHORT_CODES = frozenset({COUNT, SUM, MIN, MAX, SUM_DOUBLE})
#: What is recorded: each touched slot once, each row, or nothing.
ONCE, EVERY, NOTHING = 0, 1, 2
#: What ``status[0]`` says after the call.
FINE, MORE_THAN_ONE = 0, 1
#: High word of a sum that left 38 digits.
OVERFLOWN = -(2**63)
_LIMIT_HIGH = 10**38 >> 64
_LIMIT_LOW = 10**38 & (2**64 - 1)
_U = np.uint64


@device
def add_within_38_digits(acc, slot, at, low, high, sign, restarts):
    """Add a DECIMAL of two words, or take it out where ``sign`` is below 0; a sum of more than 38 digits is lost.

    ``restarts``: the next value is the sum from then on, as in SUM. Else it stays lost, as in $SUM0 and AVG.
    """
    have = acc[slot, at + 1]
    if high == OVERFLOWN:
        # The partial sum of another slot.
        if not restarts:
            acc[slot, at] = 0
            acc[slot, at + 1] = OVERFLOWN
        return
    if have == OVERFLOWN and not restarts:
        return
    value = _U(low)
    if sign < 0:
        value = ~value + _U(1)
        high = ~high + (1 if value == _U(0) else 0)
    if have == OVERFLOWN:
        acc[slot, at] = np.int64(value)
        acc[slot, at + 1] = high
        return
    total = _U(acc[slot, at]) + value
    above = have + high + (1 if total < value else 0)
    size_low = total
    size_high = above
    if above < 0:
        size_low = ~total + _U(1)
        size_high = ~above + (1 if size_low == _U(0) else 0)
    too_large = (have < 0) == (high < 0) and (above < 0) != (have < 0)
    if too_large or size_high > _LIMIT_HIGH or (size_high == _LIMIT_HIGH and size_low >= _U(_LIMIT_LOW)):
        acc[slot, at] = 0
        acc[slot, at + 1] = OVERFLOWN
    else:
        acc[slot, at] = np.int64(total)
        acc[slot, at + 1] = above


@device
def _fold_moments(acc, doubles, slot, at, x, sign):
    """Welford's update of (count, mean, sum of squared differences); taking back is the same backwards."""
    n = acc[slot, at] + sign
    acc[slot, at] = n
    if n == 0:
        doubles[slot, at + 1] = 0.0
        doubles[slot, at + 2] = 0.0
        return
    delta = x - doubles[slot, at + 1]
    doubles[slot, at + 1] += sign * delta / n
    doubles[slot, at + 2] += sign * delta * (x - doubles[slot, at + 1])


@device
def merge_moments(acc, doubles, slot, at, n, mean, squares):
    """Chan's merge of two partial moments, rounded as Flink rounds it (``WelfordM2AggFunction``)."""
    have = acc[slot, at]
    total = have + n
    acc[slot, at] = total
    if total == 0:
        doubles[slot, at + 1] = 0.0
        doubles[slot, at + 2] = 0.0
    elif have == 0:
        doubles[slot, at + 1] = mean
        doubles[slot, at + 2] = squares
    elif n != 0:
        delta = mean - doubles[slot, at + 1]
        doubles[slot, at + 1] += np.float64(n) / total * delta
        doubles[slot, at + 2] = doubles[slot, at + 2] + squares + np.float64(have) * n / total * delta * delta


@device(inline=True)
def _fold_other(acc, doubles, args, arg_doubles, arena, status, ops, k, slot, i, sign):
    """One op of a code that is not among ``SHORT_CODES``, for one row."""
    code = ops[k, 0]
    at = ops[k, 1]
    arg = ops[k, 2]
    value = args[arg, i]
    if code == SUM_FLOAT:
        doubles[slot, at] = np.float64(np.float32(doubles[slot, at] + sign * arg_doubles[arg, i]))
    elif code == SUM_WIDE:
        before = _U(acc[slot, at])
        if sign > 0:
            after = before + _U(value)
            acc[slot, at + 1] += args[arg + 1, i] + (1 if after < before else 0)
        else:
            after = before - _U(value)
            acc[slot, at + 1] -= args[arg + 1, i] + (1 if after > before else 0)
        acc[slot, at] = np.int64(after)
    elif code in (SUM_CHECKED, SUM_RESTARTING):
        add_within_38_digits(acc, slot, at, value, args[arg + 1, i], sign, code == SUM_RESTARTING)
    elif code == MIN_DOUBLE:
        if acc[slot, ops[k, 4]] == 0 or arg_doubles[arg, i] < doubles[slot, at]:
            acc[slot, at] = value
    elif code == MAX_DOUBLE:
        if acc[slot, ops[k, 4]] == 0 or arg_doubles[arg, i] > doubles[slot, at]:
            acc[slot, at] = value
    elif code in (MIN_WIDE, MAX_WIDE):
        high = args[arg + 1, i]
        mine = acc[slot, at + 1]
        less = high < mine or (high == mine and _U(value) < _U(acc[slot, at]))
        more = high > mine or (high == mine and _U(value) > _U(acc[slot, at]))
        if acc[slot, ops[k, 4]] == 0 or (less if code == MIN_WIDE else more):
            acc[slot, at] = value
            acc[slot, at + 1] = high
    elif code in (MIN_BYTES, MAX_BYTES):
        order = 0
        if acc[slot, at] != 0:
            order = compare(arena, value, acc[slot, at])
        if acc[slot, at] == 0 or (order < 0 if code == MIN_BYTES else order > 0):
            acc[slot, at] = value
    elif code == FIRST:
        if acc[slot, ops[k, 4]] == 0:
            acc[slot, at] = value
    elif code == COPY:
        # The row of another slot, and the row that comes in on top of it.
        for j in range(acc.shape[1]):
            acc[slot, j] = acc[value, j] if value >= 0 else 0
        acc[slot, 0] += sign
    elif code == RESTART:
        for j in range(acc.shape[1]):
            acc[slot, j] = 0
    elif code in (LAST, SET):
        acc[slot, at] = value
    elif code == SINGLE:
        if acc[slot, ops[k, 4]] != 0:
            status[0] = MORE_THAN_ONE
        acc[slot, at] = value
    elif code == MOMENTS:
        _fold_moments(acc, doubles, slot, at, arg_doubles[arg, i], np.int64(sign))
    elif code == MERGE_MOMENTS:
        merge_moments(acc, doubles, slot, at, value, arg_doubles[arg + 1, i], arg_doubles[arg + 2, i])


@device
def _fold_none(acc, doubles, args, arg_doubles, arena, status, ops, k, slot, i, sign):
    """Stands for ``_fold_other`` where no op has such a code."""


@kernel(
    "int64(int64[:,::1], float64[:,::1], int32[::1], int64[:,::1], int64[:,::1], float64[:,::1], int8[:,::1],"
    " uint8[::1], int64, boolean, uint8[::1], int32[::1], int32[::1], int64[:,::1], int64[::1])"
)
def accumulate(
    acc, doubles, slots, ops, args, arg_doubles, signs, arena, record, clear, seen, touched, first_rows, states, status
):
    """Fold all rows; returns how many changes were recorded.

    Args:
        acc, doubles: accumulator rows by slot, the same memory as integers and as doubles.
        args, arg_doubles: argument words (a, n), likewise.
        signs: (s, n): 1 in, -1 out, 0 no part; row 0 is the row's own sign and drives word 0.
        record: ONCE (``seen`` is 0 for all slots), EVERY or NOTHING.
        clear: a slot whose row count comes to 0 starts over.
        touched, first_rows: slot of each change and the row that began it.
        states: (2m, words): accumulators before (even rows) and after (odd rows) each change.
    """
    n = len(slots)
    width = acc.shape[1]
    changes = 0
    for i in range(n):
        slot = np.int64(slots[i])
        base = signs[0, i]
        if slot < 0:
            continue
        if record == EVERY or (record == ONCE and not seen[slot]):
            touched[changes] = slot
            first_rows[changes] = i
            for j in range(width):
                states[2 * changes, j] = acc[slot, j]
            changes += 1
            seen[slot] = 1
        acc[slot, 0] += base
        for k in range(len(ops)):
            sign = signs[ops[k, 3], i]
            if sign == 0:
                continue
            code = ops[k, 0]
            at = ops[k, 1]
            if code == COUNT:
                acc[slot, at] += sign
                continue
            arg = ops[k, 2]
            value = args[arg, i]
            if code == SUM:
                acc[slot, at] += sign * value
            elif code == MIN:
                if acc[slot, ops[k, 4]] == 0 or value < acc[slot, at]:
                    acc[slot, at] = value
            elif code == MAX:
                if acc[slot, ops[k, 4]] == 0 or value > acc[slot, at]:
                    acc[slot, at] = value
            elif code == SUM_DOUBLE:
                doubles[slot, at] += sign * arg_doubles[arg, i]
            else:
                _fold_other(acc, doubles, args, arg_doubles, arena, status, ops, k, slot, i, sign)
        if clear and acc[slot, 0] == 0:
            for j in range(width):
                acc[slot, j] = 0
        if record == EVERY:
            for j in range(width):
                states[2 * changes - 1, j] = acc[slot, j]
    if record == ONCE:
        for c in range(changes):
            slot = np.int64(touched[c])
            seen[slot] = 0
            for j in range(width):
                states[2 * c + 1, j] = acc[slot, j]
    return changes


#: Folds programs of ``SHORT_CODES`` only; compiles in a third of the time.
accumulate_short = accumulate.variant("accumulate_short", _fold_other=_fold_none)


def folding(codes: Iterable[int]) -> Kernel:
    """The kernel for a program of these codes."""
    return accumulate_short if SHORT_CODES.issuperset(codes) else accumulate


@kernel("void(int64[:,::1], int32[::1], int8[::1], int8[::1])")
def ignore_unknown(acc, slots, signs, out):
    """``signs`` without those -1 that meet a slot with no row: nothing is there to take back."""
    for i in range(len(slots)):
        slot = slots[i]
        out[i] = signs[i]
        if acc[slot, 0] == 0 and signs[i] < 0:
            out[i] = 0
        acc[slot, 0] += out[i]
    for i in range(len(slots)):
        acc[slots[i], 0] -= out[i]


@kernel("int64(int64[:,::1], int32[::1], int8[:,::1], boolean, int8[:,::1], int32[::1])")
def distinct(counts, entries, signs, bits, out, gone):
    """Signs of DISTINCT calls that share the values of one column under several filters.

    Args:
        counts: by entry: one count a filter, or (``bits``: nothing is ever taken back) one word with a bit a filter.
        signs: (f, n), 0 where the filter keeps the row out.
        out: (f, n): 1 where a value comes for the first time, -1 where it goes for the last.
        gone: entries whose counts may all be 0 now; returns how many.
    """
    filters, n = signs.shape
    left = 0
    for i in range(n):
        entry = np.int64(entries[i])
        if entry < 0:
            for f in range(filters):
                out[f, i] = 0
            continue
        for f in range(filters):
            sign = signs[f, i]
            out[f, i] = 0
            if sign == 0:
                continue
            if bits:
                bit = np.int64(1) << f
                if counts[entry, 0] & bit == 0:
                    counts[entry, 0] |= bit
                    out[f, i] = 1
                continue
            counts[entry, f] += sign
            now = counts[entry, f]
            if sign > 0 and now == 1:
                out[f, i] = 1
            elif sign < 0 and now == 0:
                out[f, i] = -1
            if now == 0:
                gone[left] = entry
                left += 1
    return left


@kernel("int64(int64[:,::1], int32[::1], int64[:,::1], int8[:,::1], int32[::1])")
def distinct_net(counts, entries, changes, out, gone):
    """As ``distinct``, by how often the rows of a batch came more than they went.

    Args:
        counts: by entry: one count a filter.
        changes: (f, n).
        out: (f, n): 1 where a value is there from now on, -1 where it is no longer.
        gone: entries whose counts may all be 0 now; returns how many.
    """
    filters, n = changes.shape
    left = 0
    for i in range(n):
        entry = np.int64(entries[i])
        for f in range(filters):
            out[f, i] = 0
            if entry < 0 or changes[f, i] == 0:
                continue
            before = counts[entry, f]
            now = before + changes[f, i]
            counts[entry, f] = now
            if before <= 0 and now > 0:
                out[f, i] = 1
            elif before > 0 and now <= 0:
                out[f, i] = -1
            if now == 0:
                gone[left] = entry
                left += 1
    return left


@kernel("void(int64[::1], int64[::1], int64[::1], int64, int64[::1], int64[::1])")
def divide_wide(low, high, counts, digits, out_low, out_high):
    """``sum * 10**digits / count`` of 128-bit sums, rounded half up; rows with count 0 give 0.

    Schoolbook: the quotient bit by bit, then one decimal digit after the other, so that nothing overflows before the
    result itself does.
    """
    for i in range(len(low)):
        count = counts[i]
        lo = _U(low[i])
        hi = _U(high[i])
        negative = high[i] < 0
        if negative:
            lo = ~lo + _U(1)
            hi = ~hi + (_U(1) if lo == 0 else _U(0))
        if count < 0:
            negative = not negative
            count = -count
        if count == 0:
            out_low[i] = 0
            out_high[i] = 0
            continue
        divisor = _U(count)
        q_hi = hi // divisor
        rest = hi % divisor
        if rest == 0:
            q_lo = lo // divisor
            rest = lo % divisor
        else:
            q_lo = _U(0)
            for bit in range(63, -1, -1):
                rest = (rest << _U(1)) | ((lo >> _U(bit)) & _U(1))
                if rest >= divisor:
                    rest -= divisor
                    q_lo |= _U(1) << _U(bit)
        for _ in range(digits):
            rest *= _U(10)
            digit = rest // divisor
            rest = rest % divisor
            # (q_hi, q_lo) = (q_hi, q_lo) * 10 + digit
            a = (q_lo & _U(0xFFFFFFFF)) * _U(10) + digit
            b = (q_lo >> _U(32)) * _U(10) + (a >> _U(32))
            q_hi = q_hi * _U(10) + (b >> _U(32))
            q_lo = (b << _U(32)) | (a & _U(0xFFFFFFFF))
        if rest >= divisor - rest:
            q_lo += _U(1)
            if q_lo == 0:
                q_hi += _U(1)
        if negative:
            q_lo = ~q_lo + _U(1)
            q_hi = ~q_hi + (_U(1) if q_lo == 0 else _U(0))
        out_low[i] = np.int64(q_lo)
        out_high[i] = np.int64(q_hi)
