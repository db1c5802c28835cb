"""Slots of 64 bits to messages in the wire format of Protocol Buffers.

They are written from the end to the beginning: so the length of a message is known when it stands in front of it.
"""

from __future__ import annotations

import numpy as np

from flowsql_compute.compiler.declare import device, kernel
from flowsql_compute.kernels.memory import copy_bytes
from flowsql_compute.kernels.wire.varints import zigzag

#: Instructions; those up to PUT_BYTES write a value and its key. Each is a row of ``code``: operation, leaf, argument,
#: level, key, mode, items. ``level``: whose index counts. A key of -1 is not written.
PUT_VARINT, PUT_ZIGZAG, PUT_32, PUT_64, PUT_BYTES = range(5)
#: OPEN: the bytes of a message end here; where there is none, on from ``argument``. CLOSE: they begin here. LIST: on
#: the level ``items`` are its items, last one first; where there are none, on from ``argument``. NEXT: again from
#: ``argument`` on.
OPEN, CLOSE, LIST, NEXT, END = range(5, 10)
#: When a value is not written: where it is NULL or zero; where it is NULL; never, and NULL is zero.
UNLESS_ZERO, UNLESS_NULL, ALWAYS = range(3)


@device
def _before(out, at, bits):
    """Write a number so that it ends before ``at``; where it begins."""
    size = 1
    left = bits >> np.uint64(7)
    while left:
        size += 1
        left >>= np.uint64(7)
    begin = at - size
    for place in range(size):
        more = np.uint8(128) if place < size - 1 else np.uint8(0)
        out[begin + place] = np.uint8(bits & np.uint64(127)) | more
        bits >>= np.uint64(7)
    return begin


@kernel(
    "int64(int64, int64[:, ::1], int64[::1], int64[::1], uint8[::1], uint8[::1], int64[::1], int64[::1], int64[::1],"
    " uint8[::1], int64[::1])"
)
def encode_protobuf(count, code, base, slots, valid, text, index, first, marks, out, offsets):
    """Write ``count`` messages so that the last one ends at the end of ``out``; message i begins at ``offsets[i]``.

    A leaf's values are ``slots`` and ``valid`` from ``base[leaf]`` on: numbers, bits of floats, ranges of ``text``
    (start << 31 | length), where a list's items begin (one more than there are lists).

    Room: ``index`` and ``first`` as many as levels; ``marks`` as many as messages are in each other; ``out`` what they
    take at most; ``offsets`` ``count`` + 1.

    Returns:
        Where the first one begins.
    """
    at = np.int64(out.size)
    offsets[count] = at
    for step in range(count):
        index[0] = count - 1 - step
        pc = np.int64(0)
        depth = 0
        while True:
            operation = code[pc, 0]
            if operation == END:
                break
            leaf = code[pc, 1]
            argument = code[pc, 2]
            place = index[code[pc, 3]]
            key = code[pc, 4]
            mode = code[pc, 5]
            items = code[pc, 6]
            pc += 1
            if operation <= PUT_BYTES:
                here = base[leaf] + place
                is_valid = valid[here] != 0
                value = slots[here] if is_valid else np.int64(0)
                size = value & 0x7FFFFFFF
                zero = size == 0 if operation == PUT_BYTES else value == 0
                if mode != ALWAYS and (not is_valid or (zero and mode == UNLESS_ZERO)):
                    continue
                if operation == PUT_VARINT:
                    at = _before(out, at, np.uint64(value))
                elif operation == PUT_ZIGZAG:
                    at = _before(out, at, zigzag(value))
                elif operation == PUT_BYTES:
                    at -= size
                    copy_bytes(out, at, text, value >> 31, size)
                    at = _before(out, at, np.uint64(size))
                else:
                    width = 4 if operation == PUT_32 else 8
                    bits = np.uint64(value)
                    at -= width
                    for byte in range(width):
                        out[at + byte] = np.uint8(bits & np.uint64(255))
                        bits >>= np.uint64(8)
                if key >= 0:
                    at = _before(out, at, np.uint64(key))
            elif operation == OPEN:
                if leaf >= 0 and valid[base[leaf] + place] == 0:
                    if mode == ALWAYS:
                        at = _before(out, at, np.uint64(0))
                        at = _before(out, at, np.uint64(key))
                    pc = argument
                else:
                    marks[depth] = at
                    depth += 1
            elif operation == CLOSE:
                depth -= 1
                at = _before(out, at, np.uint64(marks[depth] - at))
                at = _before(out, at, np.uint64(key))
            elif operation == LIST:
                here = base[leaf] + place
                first[items] = slots[here]
                index[items] = slots[here + 1] - 1
                if valid[here] == 0 or index[items] < first[items]:
                    pc = argument
            else:
                index[items] -= 1
                if index[items] >= first[items]:
                    pc = argument
        offsets[count - 1 - step] = at
    return at
