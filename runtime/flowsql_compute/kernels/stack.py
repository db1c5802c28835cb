"""A stack machine for conditions over the rows of a partial match; ``eval/stack.py`` writes its programs."""

from __future__ import annotations

import numpy as np

from flowsql_compute.compiler.declare import device

#: What is put on the stack: (LOAD, column, variable, first, offset), (CONST, word, valid).
LOAD, CONST = 0, 1
#: Aggregates over the rows of a variable: (code, prefix sums or column, variable, bits or greatest).
COUNT_ROWS, COUNT, SUM, AVG, SUM_REAL, AVG_REAL, EXTREME, EXTREME_REAL = 2, 3, 4, 5, 6, 7, 8, 9
#: Arithmetic in place of the top two, or one: (code, bits); integers wrap to their bits, real numbers round to them.
ADD, SUBTRACT, MULTIPLY, DIVIDE, MODULO, NEGATE, ABSOLUTE = 10, 11, 12, 13, 14, 15, 16
ADD_REAL, SUBTRACT_REAL, MULTIPLY_REAL, DIVIDE_REAL, NEGATE_REAL, ABSOLUTE_REAL = 17, 18, 19, 20, 21, 22
#: (code, bits): an integer as a real number, a real number with fewer bits.
TO_REAL, ROUND_REAL = 23, 24
#: Comparisons: (code, relation); SAME takes NULL as a value.
COMPARE, COMPARE_REAL, SAME, SAME_REAL = 25, 26, 27, 28
LESS, LESS_EQUAL, GREATER, GREATER_EQUAL, EQUAL, NOT_EQUAL = 0, 1, 2, 3, 4, 5
#: Truth: NOT, AND and OR of the top two, (TEST, truth value, answer): whether the top is NULL (2), TRUE or FALSE.
NOT, AND, OR, TEST = 29, 30, 31, 32
#: (code, where to go on): where the top is FALSE, TRUE or not NULL; that stays. UNLESS: not TRUE, and takes it off.
IF_FALSE, IF_TRUE, IF_KNOWN, UNLESS, GO = 33, 34, 35, 36, 37
#: Take the top off.
DROP = 38

#: What a program ends with: the condition holds, or does not, or a division by zero has to be told.
HOLDS_NOT, HOLDS, FAILS = 0, 1, 2


@device
def wrapped(value, bits):
    """The low bits of an integer as a signed one."""
    if bits == 64:
        return value
    shift = np.int64(64 - bits)
    return (value << shift) >> shift


@device
def _related(relation, less, equal, greater):
    """Whether a relation holds; all three are false beside NaN."""
    if relation == LESS:
        return less
    if relation == LESS_EQUAL:
        return less or equal
    if relation == GREATER:
        return greater
    if relation == GREATER_EQUAL:
        return greater or equal
    if relation == EQUAL:
        return equal
    return not equal


@device
def _fold_rows(code, kind, col, first, behind, words, doubles, known, stack, reals, top):
    """Put an aggregate that looks at each row on the stack; returns how many values there were."""
    count = 0
    if code == EXTREME:
        for row in range(first, behind):
            if known[col, row]:
                value = words[col, row]
                if count == 0 or (value > stack[top] if kind == 1 else value < stack[top]):
                    stack[top] = value
                count += 1
        return count
    if code == EXTREME_REAL:
        for row in range(first, behind):
            if known[col, row]:
                real = doubles[col, row]
                if count == 0 or (real > reals[top] if kind == 1 else real < reals[top]):
                    reals[top] = real
                count += 1
        return count
    total = 0.0
    for row in range(first, behind):
        if known[col, row]:
            total += doubles[col, row]
            if code == SUM_REAL and kind == 32:
                total = np.float64(np.float32(total))
            count += 1
    if code == AVG_REAL and count:
        total = total / count
        if kind == 32:
            total = np.float64(np.float32(total))
    reals[top] = total
    return count


@device
def run_program(
    ops, begin, end, words, doubles, known, sums, counts, runs, run, base, here, current, stack, reals, valid
):
    """Answer a condition for a row that may join a run.

    Args:
        ops: (o, 5), the program is rows ``begin`` to ``end``.
        words, doubles: (c, n), values of columns, the same memory; ``known``: (c, n), 0 is NULL.
        sums, counts: (s, n + 1), sums and numbers of values before each row.
        runs: row ``run`` is start, state and number of rows of each variable; rows count from ``base``.
        here: the row that may join, as one of the variable ``current``; from ``base``, too.
        stack, reals: the same memory; ``valid``: 0 is NULL.

    Returns:
        ``HOLDS``, ``HOLDS_NOT`` or ``FAILS``.
    """
    top = -1
    at = begin
    while at < end:
        code = ops[at, 0]
        a = ops[at, 1]
        b = ops[at, 2]
        c = ops[at, 3]
        following = at + 1
        if code <= EXTREME_REAL and code != CONST:
            # The rows that are asked for.
            first = runs[run, 0]
            behind = here + 1
            if b >= 0:
                for v in range(b):
                    first += runs[run, 2 + v]
                behind = first + runs[run, 2 + b]
                if b == current:
                    if first == behind:
                        first = here
                    behind = here + 1
            top += 1
            if code == LOAD:
                row = first + ops[at, 4] if c else behind - 1 - ops[at, 4]
                valid[top] = 0
                if first <= row < behind:
                    stack[top] = words[a, base + row]
                    valid[top] = known[a, base + row]
            elif code == COUNT_ROWS:
                stack[top] = behind - first
                valid[top] = 1
            elif code <= AVG:
                number = counts[a, base + behind] - counts[a, base + first]
                total = sums[a, base + behind] - sums[a, base + first]
                valid[top] = 1 if number != 0 else 0
                if code == COUNT:
                    stack[top] = number
                    valid[top] = 1
                elif code == SUM:
                    stack[top] = wrapped(total, c)
                elif number != 0:
                    quotient = total // number
                    if quotient < 0 and quotient * number != total:
                        quotient += 1
                    stack[top] = wrapped(quotient, c)
            else:
                number = _fold_rows(code, c, a, base + first, base + behind, words, doubles, known, stack, reals, top)
                valid[top] = 1 if number != 0 else 0
        elif code == CONST:
            top += 1
            stack[top] = a
            valid[top] = b
        elif code <= MODULO:
            top -= 1
            valid[top] &= valid[top + 1]
            if valid[top]:
                x = stack[top]
                y = stack[top + 1]
                if code == ADD:
                    x += y
                elif code == SUBTRACT:
                    x -= y
                elif code == MULTIPLY:
                    x *= y
                elif y == 0:
                    return FAILS
                elif y == -1:
                    # The smallest number by -1 wraps to itself.
                    x = -x if code == DIVIDE else np.int64(0)
                else:
                    quotient = x // y
                    if quotient < 0 and quotient * y != x:
                        quotient += 1
                    x = quotient if code == DIVIDE else x - quotient * y
                stack[top] = wrapped(x, a)
        elif code == NEGATE:
            stack[top] = wrapped(-stack[top], a)
        elif code == ABSOLUTE:
            stack[top] = wrapped(-stack[top] if stack[top] < 0 else stack[top], a)
        elif code <= DIVIDE_REAL:
            top -= 1
            valid[top] &= valid[top + 1]
            if valid[top]:
                if code == ADD_REAL:
                    reals[top] = reals[top] + reals[top + 1]
                elif code == SUBTRACT_REAL:
                    reals[top] = reals[top] - reals[top + 1]
                elif code == MULTIPLY_REAL:
                    reals[top] = reals[top] * reals[top + 1]
                else:
                    # By zero: infinity, or NaN.
                    reals[top] = reals[top] / reals[top + 1]
                if a == 32:
                    reals[top] = np.float64(np.float32(reals[top]))
        elif code == NEGATE_REAL:
            reals[top] = -reals[top]
        elif code == ABSOLUTE_REAL:
            reals[top] = abs(reals[top])
        elif code == TO_REAL:
            # A FLOAT is rounded once, from the integer.
            reals[top] = np.float64(np.float32(stack[top])) if a == 32 else np.float64(stack[top])
        elif code == ROUND_REAL:
            reals[top] = np.float64(np.float32(reals[top]))
        elif code <= SAME_REAL:
            top -= 1
            both = valid[top] != 0 and valid[top + 1] != 0
            if code in (COMPARE, SAME):
                x = stack[top]
                y = stack[top + 1]
                holds = _related(a, x < y, x == y, x > y)
            else:
                p = reals[top]
                q = reals[top + 1]
                holds = _related(a, p < q, p == q, p > q)
            stack[top] = 1 if holds else 0
            if code >= SAME:
                if not both:
                    stack[top] = 1 if valid[top] == valid[top + 1] else 0
                valid[top] = 1
            else:
                valid[top] = 1 if both else 0
        elif code == NOT:
            stack[top] = 1 - stack[top]
        elif code <= OR:
            top -= 1
            # FALSE decides an AND, TRUE an OR.
            decides = 1 if code == OR else 0
            if (valid[top] and stack[top] == decides) or (valid[top + 1] and stack[top + 1] == decides):
                stack[top] = decides
                valid[top] = 1
            else:
                stack[top] = 1 - decides
                valid[top] &= valid[top + 1]
        elif code == TEST:
            is_it = valid[top] == 0
            if a != 2:
                is_it = valid[top] != 0 and stack[top] == a
            stack[top] = b if is_it else 1 - b
            valid[top] = 1
        elif code == IF_FALSE:
            if valid[top] and stack[top] == 0:
                following = a
        elif code == IF_TRUE:
            if valid[top] and stack[top] == 1:
                following = a
        elif code == IF_KNOWN:
            if valid[top]:
                following = a
        elif code == UNLESS:
            top -= 1
            if not valid[top + 1] or stack[top + 1] == 0:
                following = a
        elif code == GO:
            following = a
        else:
            top -= 1
        at = following
    return HOLDS if valid[top] and stack[top] == 1 else HOLDS_NOT
