"""Messages in the wire format of Protocol Buffers to slots of 64 bits.

Source: Protocol Buffers documentation, "Encoding".
"""

from __future__ import annotations

from typing import Final

import numpy as np

from flowsql_compute.compiler.declare import device, kernel
from flowsql_compute.kernels.wire.varints import little_word, unzigzag, varint, varint_end

#: Kinds of fields.
VARINT, ZIGZAG, FIXED_32, FIXED_64, BYTES, MESSAGE = range(6)
#: What a row of ``fields`` holds: number, kind, leaf of values (of a message: whether it is there), leaf of the list
#: (-1: none), node of the message (-1: none), its oneof (0: none). A field of a oneof that nobody asks for has no leaf.
NUMBER, KIND, LEAF, LIST, NODE, ONEOF = range(6)
#: Messages in each other.
DEEPEST: Final = 64

_SIZE_BITS: Final = 31
_WIRE_VARINT, _WIRE_64, _WIRE_BYTES, _WIRE_32 = 0, 1, 2, 5


@device(inline=True)
def _wire(kind):
    """The wire type of a kind."""
    if kind <= ZIGZAG:
        return _WIRE_VARINT
    if kind == FIXED_32:
        return _WIRE_32
    return _WIRE_64 if kind == FIXED_64 else _WIRE_BYTES


@device
def _value_end(data, at, end, wire):
    """Behind the value at ``at``; -1 where it does not end before ``end`` or is of no known type."""
    if wire == _WIRE_VARINT:
        return varint_end(data, at, end)
    if wire == _WIRE_64:
        return at + 8 if at + 8 <= end else np.int64(-1)
    if wire == _WIRE_32:
        return at + 4 if at + 4 <= end else np.int64(-1)
    if wire == _WIRE_BYTES:
        stop = varint_end(data, at, end)
        if stop < 0:
            return np.int64(-1)
        size = np.int64(varint(data, at, stop))
        return stop + size if 0 <= size <= end - stop else np.int64(-1)
    return np.int64(-1)


@device
def _number_at(data, at, stop, kind):
    """The number in ``[at, stop)``."""
    if kind == VARINT:
        return np.int64(varint(data, at, stop))
    if kind == ZIGZAG:
        return unzigzag(varint(data, at, stop))
    return little_word(data, at, stop - at)


@kernel(
    "int64(uint8[::1], int64[::1], int64[::1], int64[:, ::1], int64[:, ::1], int64[::1], int64[:, ::1], int64[::1],"
    " int64[::1], boolean, int64[::1], uint8[::1], int64[:, ::1], uint8[::1])"
)
def decode_protobuf(
    data, starts, stops, fields, nodes, first_leaves, leaves, base, items, fill, slots, valid, stack, bad
):  # fmt: skip
    """Read a message in each range of ``data``; a leaf's values go to ``slots`` and ``valid`` from ``base[leaf]`` on.

    A node, whose fields are ``nodes[n, 0]`` to ``nodes[n, 1]``, begins each of its messages with nothing in the leaves
    ``first_leaves[nodes[n, 2]:nodes[n, 3]]``: those of its fields, also in messages that it holds once. A list has 1
    in ``leaves``. A slot holds a number, the bits of a float, the range of a text (start << 31 | length), or where
    the items of a list end.

    Room: ``items`` as many as leaves, zeros; ``stack`` (4, DEEPEST); ``bad`` as many as messages, zeros.
    Without ``fill`` only ``items`` and ``bad`` are written: how many items each list has.

    Returns:
        How many messages cannot be read; ``bad`` is 1 for them, and there are no items of theirs to be relied upon.
    """
    count_bad = np.int64(0)
    for message in range(starts.size):
        depth = 0
        stack[0, 0] = 0
        stack[1, 0] = message
        stack[2, 0] = stops[message]
        stack[3, 0] = 0
        at = starts[message]
        opened = True
        wrong = False
        while True:
            node = stack[0, depth]
            instance = stack[1, depth]
            end = stack[2, depth]
            if opened:
                opened = False
                if fill:
                    for place in range(nodes[node, 2], nodes[node, 3]):
                        leaf = first_leaves[place]
                        slots[base[leaf] + instance] = items[leaf] if leaves[leaf, 0] else 0
                        valid[base[leaf] + instance] = 0
            if at >= end:
                if depth == 0:
                    break
                depth -= 1
                continue
            stop = varint_end(data, at, end)
            if stop < 0:
                wrong = True
                break
            key = np.int64(varint(data, at, stop))
            at = stop
            number = key >> 3
            wire = key & 7
            first = nodes[node, 0]
            count = nodes[node, 1] - first
            found = np.int64(-1)
            for step in range(count):
                place = (stack[3, depth] + step) % count
                if fields[first + place, 0] == number:
                    found = first + place
                    stack[3, depth] = place
                    break
            stop = _value_end(data, at, end, wire)
            if stop < 0 or number <= 0:
                wrong = True
                break
            if found < 0:
                at = stop
                continue
            kind = fields[found, 1]
            leaf = fields[found, 2]
            listed = fields[found, 3]
            if fill and fields[found, 5] and wire == _wire(kind):
                # Of a oneof the last field counts.
                for place in range(first, first + count):
                    if fields[place, 5] == fields[found, 5] and place != found and fields[place, 2] >= 0:
                        valid[base[fields[place, 2]] + instance] = 0
                        slots[base[fields[place, 2]] + instance] = 0
                        if fields[place, 1] == MESSAGE:
                            below = fields[place, 4]
                            for begun in range(nodes[below, 2], nodes[below, 3]):
                                other = first_leaves[begun]
                                slots[base[other] + instance] = items[other] if leaves[other, 0] else 0
                                valid[base[other] + instance] = 0
            if leaf < 0:
                at = stop
                continue
            if wire != _wire(kind):
                if wire != _WIRE_BYTES or listed < 0 or kind >= BYTES:
                    at = stop
                    continue
                # Numbers behind each other.
                at = varint_end(data, at, end)
                while at < stop:
                    behind = _value_end(data, at, stop, _wire(kind))
                    if behind < 0:
                        wrong = True
                        break
                    if fill:
                        slots[base[leaf] + items[listed]] = _number_at(data, at, behind, kind)
                        valid[base[leaf] + items[listed]] = 1
                    items[listed] += 1
                    at = behind
                if wrong:
                    break
                if fill:
                    slots[base[listed] + instance] = items[listed]
                    valid[base[listed] + instance] = 1
                continue
            index = instance
            if listed >= 0:
                index = items[listed]
                items[listed] += 1
                if fill:
                    slots[base[listed] + instance] = items[listed]
                    valid[base[listed] + instance] = 1
            if kind == MESSAGE:
                if depth + 1 >= DEEPEST:
                    wrong = True
                    break
                at = varint_end(data, at, end)
                if fill:
                    slots[base[leaf] + index] = 0
                    valid[base[leaf] + index] = 1
                # A message that comes twice where one may be is put together from both.
                depth += 1
                stack[0, depth] = fields[found, 4]
                stack[1, depth] = index
                stack[2, depth] = stop
                stack[3, depth] = 0
                opened = listed >= 0
                continue
            if fill:
                if kind == BYTES:
                    begin = varint_end(data, at, end)
                    slots[base[leaf] + index] = begin << _SIZE_BITS | (stop - begin)
                else:
                    slots[base[leaf] + index] = _number_at(data, at, stop, kind)
                valid[base[leaf] + index] = 1
            at = stop
        if wrong:
            bad[message] = 1
            count_bad += 1
    return count_bad
