"""Avro's binary encoding to slots of 64 bits: a program, made of two schemas, runs over each record.

Source: Apache Avro specification 1.12, "Binary encoding".
"""

from __future__ import annotations

from typing import Final

import numpy as np

from flowsql_compute.compiler.declare import kernel
from flowsql_compute.kernels.wire.varints import little_word, unzigzag, varint, varint_end

#: Instructions; those up to ENUM read a value. Each is a row of ``code``: operation, leaf, argument, null.
#: ``null`` of a value: which of the two branches of its union is null, -1 where it stands in no union.
INTEGER, BOOLEAN, FLOAT, DOUBLE, BYTES, FIXED, ENUM = range(7)
#: ABSENT: a leaf is NULL. PRESENT: it is not. EMPTY: a list is NULL. UNION: one of ``null`` branches, from ``argument``
#: in ``jumps`` on. JUMP. OPEN: a list begins. BLOCK: so many items, or behind the list (``argument``). NEXT: an item
#: ends; again from ``argument`` on, or the next block (``null``). CLOSE: a list ends. REFUSE: nothing fits.
ABSENT, PRESENT, EMPTY, UNION, JUMP, OPEN, BLOCK, NEXT, CLOSE, REFUSE, END = range(7, 18)

#: Why a record ends early: its bytes are too few or no number; a branch, symbol or size that is not there; a value that
#: the reader has no place for.
ENDS_EARLY, NO_SUCH_BRANCH, REFUSED = range(1, 4)

_SIZE_BITS: Final = 31
_LONGEST: Final = 0x7FFFFFFF


@kernel(
    "int64(uint8[::1], int64, int64[::1], int64[::1], boolean, int64[:, ::1], int64[::1], int64[::1], int64[::1],"
    " int64[::1], int64[::1], boolean, int64[::1], uint8[::1], int64[::1])"
)
def decode_avro(
    data, count, starts, stops, contiguous, code, jumps, base, cursor, items, left, fill, slots, valid, state
):  # fmt: skip
    """Read ``count`` records; a leaf's values go to ``slots`` and ``valid`` from ``base[leaf]`` on.

    Record i is ``[starts[i], stops[i])`` of ``data``, or, when ``contiguous``, follows record i - 1 from ``starts[0]``
    on, all before ``stops[0]``. A slot holds a number, the bits of a float, the range of a text (start << 31 | length)
    or where the items of a list end.

    Room: ``cursor`` and ``items`` as many as leaves, zeros; ``left`` as many as lists are in each other; ``state`` 3.
    Without ``fill`` nothing but ``cursor`` and ``items`` is written: they tell how many slots each leaf needs.

    Returns:
        ``count``, or the number of the first record that cannot be read; then ``state`` holds why, where in ``data``,
        and the instruction.
    """
    at = starts[0]
    end = stops[0]
    for record in range(count):
        if not contiguous:
            at = starts[record]
            end = stops[record]
        pc = np.int64(0)
        depth = np.int64(-1)
        wrong = np.int64(0)
        while True:
            operation = code[pc, 0]
            if operation == END:
                break
            leaf = code[pc, 1]
            argument = code[pc, 2]
            null = code[pc, 3]
            pc += 1
            if operation <= ENUM:
                value = np.int64(0)
                is_valid = np.uint8(1)
                if null >= 0:
                    if at >= end:
                        wrong = ENDS_EARLY
                        break
                    branch = np.int64(data[at])
                    at += 1
                    if branch == 2 * null:
                        is_valid = np.uint8(0)
                    elif branch > 2 or branch & 1:
                        wrong = NO_SUCH_BRANCH
                        break
                if is_valid:
                    if operation in (INTEGER, ENUM, BYTES):
                        stop = varint_end(data, at, end)
                        if stop < 0:
                            wrong = ENDS_EARLY
                            break
                        value = unzigzag(varint(data, at, stop))
                        at = stop
                        if operation == BYTES:
                            if value < 0 or value > _LONGEST or value > end - at:
                                wrong = ENDS_EARLY
                                break
                            size = value
                            value = at << _SIZE_BITS | size
                            at += size
                        elif operation == ENUM and (value < 0 or value >= argument):
                            wrong = NO_SUCH_BRANCH
                            break
                    elif operation == BOOLEAN:
                        if at >= end:
                            wrong = ENDS_EARLY
                            break
                        value = np.int64(data[at] != 0)
                        at += 1
                    else:
                        if argument > end - at:
                            wrong = ENDS_EARLY
                            break
                        fixed = operation == FIXED
                        value = at << _SIZE_BITS | argument if fixed else little_word(data, at, argument)
                        at += argument
                if leaf >= 0:
                    if fill:
                        slots[base[leaf] + cursor[leaf]] = value
                        valid[base[leaf] + cursor[leaf]] = is_valid
                    cursor[leaf] += 1
            elif operation in (ABSENT, PRESENT, EMPTY):
                if fill:
                    slots[base[leaf] + cursor[leaf]] = items[leaf]
                    valid[base[leaf] + cursor[leaf]] = np.uint8(operation == PRESENT)
                cursor[leaf] += 1
            elif operation == UNION:
                stop = varint_end(data, at, end)
                if stop < 0:
                    wrong = ENDS_EARLY
                    break
                branch = unzigzag(varint(data, at, stop))
                at = stop
                if branch < 0 or branch >= null:
                    wrong = NO_SUCH_BRANCH
                    break
                pc = jumps[argument + branch]
            elif operation == JUMP:
                pc = argument
            elif operation == OPEN:
                depth += 1
                left[depth] = 0
            elif operation == BLOCK:
                stop = varint_end(data, at, end)
                if stop < 0:
                    wrong = ENDS_EARLY
                    break
                number = unzigzag(varint(data, at, stop))
                at = stop
                if number == 0:
                    pc = argument
                else:
                    if number < 0:
                        stop = varint_end(data, at, end)
                        if stop < 0:
                            wrong = ENDS_EARLY
                            break
                        size = unzigzag(varint(data, at, stop))
                        at = stop
                        number = -number
                        if size < 0 or size > end - at:
                            wrong = ENDS_EARLY
                            break
                        if leaf < 0:
                            # Nobody wants the items: the block is passed over as a whole.
                            at += size
                            pc -= 1
                            continue
                    # An item takes a byte at least; without this a damaged count would run on and on.
                    if number < 0 or number > end - at:
                        wrong = ENDS_EARLY
                        break
                    left[depth] = number
            elif operation == NEXT:
                if leaf >= 0:
                    items[leaf] += 1
                left[depth] -= 1
                pc = argument if left[depth] > 0 else null
            elif operation == CLOSE:
                depth -= 1
                if leaf >= 0:
                    if fill:
                        slots[base[leaf] + cursor[leaf]] = items[leaf]
                        valid[base[leaf] + cursor[leaf]] = 1
                    cursor[leaf] += 1
            else:
                wrong = REFUSED
                break
        if wrong:
            state[0] = wrong
            state[1] = at
            state[2] = pc - 1
            return record
    state[1] = at
    return count
