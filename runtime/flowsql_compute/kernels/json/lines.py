"""Kernels over lines of JSON objects: into the shape of columns, for a reader that knows no maps; names in lines."""

from __future__ import annotations

from typing import Final

import numpy as np

from flowsql_compute.compiler.declare import device, kernel
from flowsql_compute.kernels.json.bytes import DEEPEST, PLAIN, WHOLE, number_end, string_end, word_end

#: What is wanted at a place: any value but an object or array; the fields of an object; the elements of an array; the
#: members of an object as an array of objects ``{"k": key, "v": value}``; a number, which may stand in a text; a
#: text, which may be a whole number or a truth value.
LEAF, ROW, LIST, MAP, NUMBER, TEXT = range(6)

_QUOTE, _COMMA, _COLON = 0x22, 0x2C, 0x3A
_OPEN_OBJECT, _CLOSE_OBJECT, _OPEN_ARRAY, _CLOSE_ARRAY = 0x7B, 0x7D, 0x5B, 0x5D
_MINUS, _ZERO, _NINE, _NEWLINE, _LETTER_N = 0x2D, 0x30, 0x39, 0x0A, 0x6E
#: What may come next.
_VALUE, _DONE, _KEY_OR_END, _KEY, _VALUE_OR_END = range(5)
#: In place of a node: a value that nobody wants.
_NOWHERE: Final = -1


@device
def _behind_blanks(data, at, end):
    while at < end and (data[at] == 0x20 or data[at] == 0x0D or data[at] == 0x09):
        at += 1
    return at


@device
def _copy(data, low, high, out, size):
    for at in range(low, high):
        out[size + at - low] = data[at]
    return size + high - low


@device
def _field(data, low, high, names, name_offsets, first, count, guess):
    """The number of the field with the name in [low, high); -1 if there is none. ``guess`` is looked at first."""
    for step in range(count):
        field = first + (guess + step) % count
        start = name_offsets[field]
        if high - low == name_offsets[field + 1] - start:
            same = True
            for at in range(high - low):
                same &= data[low + at] == names[start + at]
            if same:
                return np.int64(field)
    return np.int64(-1)


@kernel(
    "int64(uint8[::1], int64, int64[::1], int64[::1], int64[::1], int64[::1], int32[::1], uint8[::1], boolean,"
    " int64[::1], int64[::1], int64[::1], int64[::1], uint8[::1])"
)
def shape_lines(
    data, end, kinds, firsts, counts, field_nodes, name_offsets, names, complete, open_nodes, serials, found, stamps,
    out
):  # fmt: skip
    """Write the objects of the lines with only the fields that are wanted, maps as arrays of entries; no blanks.

    The nodes of the wanted shape, of which 0 is the ROW of a line, have ``kinds``; ``firsts`` is a ROW's first field, a
    LIST's or MAP's node below; ``counts`` how many fields a ROW has. A field leads to ``field_nodes``; its name stands
    in ``names`` from ``name_offsets`` on. ``complete``: each object must hold all fields of its ROW.

    Room: ``open_nodes`` DEEPEST + 1, ``serials`` and ``found`` as many as nodes, ``stamps`` as many as fields, zeros;
    ``out`` three times the size of ``data`` and a byte.

    Returns:
        The number of bytes written; -1 where some line is not plain: it is no single object of RFC 8259 on one line,
        has a value of another shape, lacks a field that it must have, has one twice or with escapes in its name.
    """
    size = np.int64(0)
    at = np.int64(0)
    serial = np.int64(0)
    while at < end:
        begin = _behind_blanks(data, at, end)
        at = begin
        depth = np.int64(0)
        # One bit a level: whether it is an object, and whether a member was written.
        objects = np.uint64(0)
        written = np.uint64(0)
        node = np.int64(0)
        expected = _VALUE
        while True:
            at = _behind_blanks(data, at, end)
            if at >= end or data[at] == _NEWLINE:
                if at == begin:
                    at += 1
                    break
                if expected != _DONE or depth != 0:
                    return -1
                out[size] = _NEWLINE
                size += 1
                at += 1
                break
            code = data[at]
            bit = np.uint64(1) << np.uint64(depth)
            in_object = (objects & bit) != np.uint64(0)
            holder = open_nodes[depth] if depth > 0 else np.int64(_NOWHERE)
            if expected == _DONE and code == _COMMA and depth > 0:
                at += 1
                expected = _KEY if in_object else _VALUE
                if holder >= 0 and kinds[holder] != ROW:
                    out[size] = _COMMA if kinds[holder] == LIST else _CLOSE_OBJECT
                    size += 1
                continue
            if (
                expected == _DONE
                or (expected == _KEY_OR_END and code == _CLOSE_OBJECT)
                or (expected == _VALUE_OR_END and code == _CLOSE_ARRAY)
            ):
                if depth == 0 or code != (_CLOSE_OBJECT if in_object else _CLOSE_ARRAY):
                    return -1
                at += 1
                if holder >= 0:
                    kind = kinds[holder]
                    if kind == ROW and complete and found[holder] != counts[holder]:
                        return -1
                    if kind == MAP and expected == _DONE:
                        out[size] = _CLOSE_OBJECT
                        size += 1
                    out[size] = _CLOSE_OBJECT if kind == ROW else _CLOSE_ARRAY
                    size += 1
                depth -= 1
                expected = _DONE
                continue
            if expected in (_KEY, _KEY_OR_END):
                if code != _QUOTE:
                    return -1
                stop = string_end(data, at + 1, end)
                if stop < 0:
                    return -1
                low = at
                high = (stop >> 2) + 1
                node = np.int64(_NOWHERE)
                if holder >= 0:
                    if kinds[holder] == MAP:
                        node = firsts[holder]
                    else:
                        if stop & 3 != PLAIN:
                            return -1
                        field = np.int64(-1)
                        if counts[holder] > 0:
                            field = _field(
                                data, low + 1, high - 1, names, name_offsets, firsts[holder], counts[holder],
                                found[holder]
                            )  # fmt: skip
                        if field >= 0:
                            if stamps[field] == serials[holder]:
                                return -1
                            stamps[field] = serials[holder]
                            found[holder] += 1
                            node = field_nodes[field]
                if node >= 0:
                    if (written & bit) != np.uint64(0):
                        out[size] = _COMMA
                        size += 1
                    written |= bit
                    if kinds[holder] == MAP:
                        # {"k":
                        out[size] = _OPEN_OBJECT
                        out[size + 1] = _QUOTE
                        out[size + 2] = 0x6B
                        out[size + 3] = _QUOTE
                        out[size + 4] = _COLON
                        size = _copy(data, low, high, out, size + 5)
                        # ,"v"
                        out[size] = _COMMA
                        out[size + 1] = _QUOTE
                        out[size + 2] = 0x76
                        out[size + 3] = _QUOTE
                        size += 4
                    else:
                        size = _copy(data, low, high, out, size)
                    out[size] = _COLON
                    size += 1
                at = _behind_blanks(data, high, end)
                if at >= end or data[at] != _COLON:
                    return -1
                at += 1
                expected = _VALUE
                continue
            if depth > 0 and not in_object:
                node = firsts[holder] if holder >= 0 else np.int64(_NOWHERE)
            if code in (_OPEN_OBJECT, _OPEN_ARRAY):
                if depth == DEEPEST:
                    return -1
                if node >= 0:
                    kind = kinds[node]
                    if kind not in (ROW, LIST, MAP) or (kind == LIST) != (code == _OPEN_ARRAY):
                        return -1
                    out[size] = _OPEN_OBJECT if kind == ROW else _OPEN_ARRAY
                    size += 1
                    serial += 1
                    serials[node] = serial
                    found[node] = 0
                at += 1
                depth += 1
                open_nodes[depth] = node
                bit = np.uint64(1) << np.uint64(depth)
                written &= ~bit
                if code == _OPEN_OBJECT:
                    objects |= bit
                    expected = _KEY_OR_END
                else:
                    objects &= ~bit
                    expected = _VALUE_OR_END
                continue
            if depth == 0:
                return -1
            stop = np.int64(-1)
            whole = True
            if code == _QUOTE:
                stop = string_end(data, at + 1, end)
                if stop >= 0:
                    stop = (stop >> 2) + 1
            elif code == _MINUS or _ZERO <= code <= _NINE:
                stop = number_end(data, at, end)
                if stop >= 0:
                    whole = stop & 3 == WHOLE
                    stop >>= 2
            else:
                stop = word_end(data, at, end)
            if stop < 0:
                return -1
            if node >= 0:
                kind = kinds[node]
                if kind == LEAF or code == _LETTER_N:
                    size = _copy(data, at, stop, out, size)
                elif kind == NUMBER:
                    if code == _QUOTE:
                        inside = number_end(data, at + 1, stop - 1)
                        if inside < 0 or inside >> 2 != stop - 1:
                            return -1
                        size = _copy(data, at + 1, stop - 1, out, size)
                    else:
                        size = _copy(data, at, stop, out, size)
                elif kind == TEXT:
                    if code == _QUOTE:
                        size = _copy(data, at, stop, out, size)
                    elif whole:
                        out[size] = _QUOTE
                        size = _copy(data, at, stop, out, size + 1)
                        out[size] = _QUOTE
                        size += 1
                    else:
                        return -1
                else:
                    return -1
            at = stop
            expected = _DONE
    return size


@kernel("int64(uint8[::1], int64[::1], int64[::1], int32[::1], uint8[::1], uint8[::1])")
def names_within(data, low, high, name_offsets, names, found):
    """Set ``found`` (rows x names, row by row) to 1 where an object in bytes [low, high) has a member of the name.

    The object may stand at any depth. The bytes of a row are one plain value;
    ``names`` stand from ``name_offsets`` on; ``found`` comes as zeros.

    Returns:
        -1 where some member's name is written with escapes; what was found is not to be used then; else 0.
    """
    count = name_offsets.size - 1
    for row in range(low.size):
        at = low[row]
        end = high[row]
        guess = np.int64(0)
        while at < end:
            if data[at] != _QUOTE:
                at += 1
                continue
            stop = string_end(data, at + 1, end)
            begin = at + 1
            at = _behind_blanks(data, (stop >> 2) + 1, end)
            if at >= end or data[at] != _COLON:
                continue
            if stop & 3 != PLAIN:
                return -1
            field = _field(data, begin, stop >> 2, names, name_offsets, np.int64(0), count, guess)
            if field >= 0:
                found[row * count + field] = 1
                guess = field + 1
    return 0
