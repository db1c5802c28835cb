"""Slots of 64 bits to Avro's binary encoding: a program, made of a schema, runs over each row.

Source: Apache Avro specification 1.12, "Binary encoding".
"""

from __future__ import annotations

import numpy as np

from flowsql_compute.compiler.declare import device, kernel
from flowsql_compute.kernels.memory import copy_bytes
from flowsql_compute.kernels.wire.varints import put_varint, zigzag

#: Instructions; those up to ENUM write a value. Each is a row of ``code``: operation, leaf, argument, level, null,
#: items. ``null``: which of the two branches of its union is null; -1: none. ``level``: whose index counts.
PUT_INTEGER, PUT_BOOLEAN, PUT_FLOAT, PUT_DOUBLE, PUT_BYTES, PUT_DECIMAL, PUT_FIXED, PUT_ENUM = range(8)
#: PUT_RECORD: its branch; where it is NULL, on from ``argument``. PUT_LIST: its branch and how many items follow on the
#: level ``items``; where there are none, on from ``argument``. PUT_NEXT: an item ends; again from ``argument`` on.
#: PUT_BRANCH: the number of a branch (``items``) where its value is there; else on from ``argument``.
PUT_RECORD, PUT_LIST, PUT_NEXT, PUT_END, PUT_BRANCH = range(8, 13)


@device
def _put_number(out, at, low, high):
    """Two words as two's complement, highest byte first, in as few bytes as hold it; its size stands before."""
    size = 16
    fill = np.uint64(0)
    if high < 0:
        fill = ~fill
    words = (np.uint64(low), np.uint64(high))
    while size > 1:
        top = size - 1
        byte = (words[top // 8] >> np.uint64(8 * (top % 8))) & np.uint64(255)
        below = (words[(top - 1) // 8] >> np.uint64(8 * ((top - 1) % 8))) & np.uint64(255)
        if byte != (fill & np.uint64(255)) or (below >= 128) != (high < 0):
            break
        size -= 1
    at = put_varint(out, at, zigzag(np.int64(size)))
    for place in range(size):
        top = size - 1 - place
        out[at + place] = np.uint8((words[top // 8] >> np.uint64(8 * (top % 8))) & np.uint64(255))
    return at + size


@kernel(
    "int64(int64, int64[:, ::1], int64[::1], int64[::1], uint8[::1], uint8[::1], int64[::1], int64[::1], uint8[::1],"
    " int64[::1])"
)
def encode_avro(count, code, base, slots, valid, text, index, stop, out, offsets):
    """Write ``count`` rows behind each other; row i begins at ``offsets[i]``.

    A leaf's values are ``slots`` and ``valid`` from ``base[leaf]`` on: numbers, bits of floats, ranges of ``text``
    (start << 31 | length), where a list's items begin (one more than there are lists), the place of an enum's symbol,
    below zero where it has none; a decimal has two slots.

    Room: ``index`` and ``stop`` as many as levels; ``out`` what the rows take at most; ``offsets`` ``count`` + 1.

    Returns:
        The number of bytes; or below zero, -1 less the instruction that met no symbol, at ``index`` of its level.
    """
    at = np.int64(0)
    for row in range(count):
        offsets[row] = at
        index[0] = row
        pc = np.int64(0)
        while True:
            operation = code[pc, 0]
            if operation == PUT_END:
                break
            leaf = code[pc, 1]
            argument = code[pc, 2]
            level = code[pc, 3]
            null = code[pc, 4]
            pc += 1
            place = index[level]
            if operation == PUT_NEXT:
                index[level] += 1
                if index[level] < stop[level]:
                    pc = argument
                else:
                    out[at] = 0
                    at += 1
                continue
            here = base[leaf]
            if operation == PUT_BRANCH:
                if valid[here + place] != 0:
                    at = put_varint(out, at, zigzag(code[pc - 1, 5]))
                else:
                    pc = argument
                continue
            is_valid = True
            if null >= 0:
                is_valid = valid[here + place] != 0
                out[at] = np.uint8(2 * (1 - null) if is_valid else 2 * null)
                at += 1
            if operation == PUT_RECORD:
                if not is_valid:
                    pc = argument
            elif operation == PUT_LIST:
                if not is_valid:
                    pc = argument
                else:
                    items = code[pc - 1, 5]
                    index[items] = slots[here + place]
                    stop[items] = slots[here + place + 1]
                    if index[items] == stop[items]:
                        out[at] = 0
                        at += 1
                        pc = argument
                    else:
                        at = put_varint(out, at, zigzag(stop[items] - index[items]))
            elif is_valid:
                if operation == PUT_DECIMAL:
                    at = _put_number(out, at, slots[here + 2 * place], slots[here + 2 * place + 1])
                    continue
                value = slots[here + place]
                if operation == PUT_ENUM and value < 0:
                    return -pc
                if operation in (PUT_INTEGER, PUT_ENUM):
                    at = put_varint(out, at, zigzag(value))
                elif operation == PUT_BOOLEAN:
                    out[at] = np.uint8(value)
                    at += 1
                elif operation in (PUT_BYTES, PUT_FIXED):
                    size = value & 0x7FFFFFFF
                    if operation == PUT_BYTES:
                        at = put_varint(out, at, zigzag(size))
                    copy_bytes(out, at, text, value >> 31, size)
                    at += size
                else:
                    bits = np.uint64(value)
                    for byte in range(argument):
                        out[at + byte] = np.uint8(bits & np.uint64(255))
                        bits >>= np.uint64(8)
                    at += argument
    offsets[count] = at
    return at
