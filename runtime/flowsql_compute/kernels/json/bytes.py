"""Kernels over the bytes of JSON columns: they read plain documents whole and leave any other one to the slow way.

A document is plain when the whole text is one value of RFC 8259, nested at most 62 deep. Strings and numbers of a plain
document may still need a look of their own; the kinds say so.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from flowsql_compute.compiler.declare import device, kernel
from flowsql_compute.kernels.masks import lowest_place, text_end_mask

#: What stands at a path. ``ODD``: the document is not plain.
ODD, MISSING, NULL, TRUTH, INTEGER, DECIMAL, STRING, OBJECT, ARRAY = range(9)
#: A number with an exponent or many digits; a string with escapes.
STRANGE_NUMBER, ESCAPED = 9, 10

#: Deeper documents are not plain: a word holds one bit a level.
DEEPEST: Final = 62
#: Members of an object that is put in order by a kernel.
MOST_MEMBERS: Final = 64

_QUOTE, _BACKSLASH, _COMMA, _COLON = 0x22, 0x5C, 0x2C, 0x3A
_OPEN_OBJECT, _CLOSE_OBJECT, _OPEN_ARRAY, _CLOSE_ARRAY = 0x7B, 0x7D, 0x5B, 0x5D
_ZERO, _NINE, _MINUS, _PLUS, _POINT = 0x30, 0x39, 0x2D, 0x2B, 0x2E
#: Longer numbers are left to the slow way.
_MOST_DIGITS = 1000
#: What may come next.
_VALUE, _DONE, _KEY_OR_END, _KEY, _VALUE_OR_END = range(5)
#: Escapes of a string: none, those that are written back as they are, others.
PLAIN, _SHORT, _OTHER = range(3)
#: Numbers: kept as written everywhere, with zeros at the end of the fraction, only as text, strange.
WHOLE, _FRACTION, _ZEROS, _STRANGE = range(4)


@device
def _skip_space(data, at, end):
    while at < end and (data[at] == 0x20 or data[at] == 0x0A or data[at] == 0x0D or data[at] == 0x09):
        at += 1
    return at


@device
def is_hex(code):
    """Whether a byte is a hexadecimal digit."""
    return (_ZERO <= code <= _NINE) or (0x61 <= code <= 0x66) or (0x41 <= code <= 0x46)


@device
def string_end(data, at, end):
    """Place of the closing quote times 4, and the kind of escapes before it; -1 when the string is wrong."""
    escapes = PLAIN
    while at + 64 <= data.size:
        ends = text_end_mask(data, at)
        if ends != 0:
            at += np.int64(lowest_place(ends))
            break
        at += 64
    while at < end:
        code = data[at]
        if code == _QUOTE:
            return np.int64(at) * 4 + escapes
        if code < 0x20:
            return np.int64(-1)
        if code == _BACKSLASH:
            at += 1
            if at >= end:
                return np.int64(-1)
            code = data[at]
            if code == 0x75:
                if at + 4 >= end:
                    return np.int64(-1)
                for step in range(1, 5):
                    if not is_hex(data[at + step]):
                        return np.int64(-1)
                at += 4
                escapes = _OTHER
            elif code == 0x2F:
                escapes = _OTHER
            elif code in (_QUOTE, _BACKSLASH, 0x62, 0x66, 0x6E, 0x72, 0x74):
                if escapes == PLAIN:
                    escapes = _SHORT
            else:
                return np.int64(-1)
        at += 1
    return np.int64(-1)


@device
def number_end(data, at, end):
    """The end of a number times 4, and its kind; -1 when it is wrong."""
    negative = data[at] == _MINUS
    if negative:
        at += 1
    start = at
    while at < end and _ZERO <= data[at] <= _NINE:
        at += 1
    digits = at - start
    if digits == 0 or digits > _MOST_DIGITS or (digits > 1 and data[start] == _ZERO):
        return np.int64(-1)
    none = data[start] == _ZERO
    kind = _STRANGE if digits > 18 or (none and negative) else WHOLE
    if at < end and data[at] == _POINT:
        at += 1
        point = at
        while at < end and _ZERO <= data[at] <= _NINE:
            at += 1
        size = at - point
        if size == 0:
            return np.int64(-1)
        kind = _ZEROS if data[at - 1] == _ZERO else _FRACTION
        # Small numbers are written with an exponent, and zero loses its sign.
        if digits + size > 30 or (
            none and data[point] == _ZERO and (negative if size == 1 else data[point + 1] == _ZERO)
        ):
            kind = _STRANGE
    if at < end and (data[at] == 0x65 or data[at] == 0x45):
        at += 1
        if at < end and (data[at] == _PLUS or data[at] == _MINUS):
            at += 1
        power = at
        while at < end and _ZERO <= data[at] <= _NINE:
            at += 1
        if at == power or at - power > 6:
            return np.int64(-1)
        kind = _STRANGE
    return np.int64(at) * 4 + kind


@device
def word_end(data, at, end):
    """The end of ``true``, ``false`` or ``null``; -1 for anything else."""
    first = data[at]
    if first == 0x74:
        if end - at >= 4 and data[at + 1] == 0x72 and data[at + 2] == 0x75 and data[at + 3] == 0x65:
            return np.int64(at) + 4
    elif first == 0x66:
        if (
            end - at >= 5 and data[at + 1] == 0x61 and data[at + 2] == 0x6C and data[at + 3] == 0x73
            and data[at + 4] == 0x65
        ):  # fmt: skip
            return np.int64(at) + 5
    elif first == 0x6E and end - at >= 4 and data[at + 1] == 0x75 and data[at + 2] == 0x6C and data[at + 3] == 0x6C:
        return np.int64(at) + 4
    return np.int64(-1)


@device
def _is_name(data, low, high, names, start, stop):
    if high - low != stop - start:
        return False
    same = True
    for step in range(stop - start):
        same &= data[low + step] == names[start + step]
    return same


@kernel(
    "void(int32[::1], uint8[::1], int64[::1], int32[::1], uint8[::1], int64[::1], int64[::1], int64[::1], int8[::1])"
)
def find_path(offsets, data, places, name_offsets, names, counts, low, high, kind):
    """What stands at a path of keys and indexes in each document: bytes [low, high) and kind.

    ``places``: the index of each step, -1 for a key (``names`` from ``name_offsets[step]`` on); ``counts`` is room for
    one number more than steps. A string's range lies between its quotes. Of equal keys the last counts.
    """
    steps = places.size
    for row in range(kind.size):
        at = np.int64(offsets[row])
        end = np.int64(offsets[row + 1])
        found = np.int64(MISSING)
        first = np.int64(-1)
        last = np.int64(-1)
        depth = np.int64(0)
        # The innermost open container that the path leads into, by depth.
        on = np.int64(0)
        objects = np.uint64(0)
        matched = True
        capturing = False
        expected = _VALUE
        plain = False
        while True:
            at = _skip_space(data, at, end)
            if at >= end:
                plain = expected == _DONE and depth == 0
                break
            code = data[at]
            in_object = ((objects >> np.uint64(depth)) & np.uint64(1)) == np.uint64(1)
            if expected == _DONE and code == _COMMA and depth > 0:
                at += 1
                if in_object:
                    expected = _KEY
                else:
                    expected = _VALUE
                    if on == depth:
                        counts[depth] += 1
                continue
            if (
                expected == _DONE
                or (expected == _KEY_OR_END and code == _CLOSE_OBJECT)
                or (expected == _VALUE_OR_END and code == _CLOSE_ARRAY)
            ):
                if depth == 0 or code != (_CLOSE_OBJECT if in_object else _CLOSE_ARRAY):
                    break
                at += 1
                if on == depth:
                    on -= 1
                depth -= 1
                if capturing and depth == steps:
                    capturing = False
                    last = at
                expected = _DONE
                continue
            if expected in (_KEY_OR_END, _KEY):
                if code != _QUOTE:
                    break
                stop = string_end(data, at + 1, end)
                if stop < 0:
                    break
                if on == depth:
                    if stop & 3 != PLAIN:
                        break
                    matched = places[depth - 1] < 0 and _is_name(
                        data, at + 1, stop >> 2, names, name_offsets[depth - 1], name_offsets[depth]
                    )
                at = _skip_space(data, (stop >> 2) + 1, end)
                if at >= end or data[at] != _COLON:
                    break
                at += 1
                expected = _VALUE
                continue
            if on == depth and depth > 0 and not in_object:
                matched = places[depth - 1] == counts[depth]
            here = on == depth and matched
            begin = at
            stop = np.int64(-1)
            is_kind = np.int64(0)
            if code in (_OPEN_OBJECT, _OPEN_ARRAY):
                if depth == DEEPEST:
                    break
                at += 1
                if here:
                    found = np.int64(MISSING)
                    if depth == steps:
                        found = np.int64(OBJECT if code == _OPEN_OBJECT else ARRAY)
                        first = begin
                        capturing = True
                    else:
                        on = depth + 1
                        counts[on] = 0
                depth += 1
                bit = np.uint64(1) << np.uint64(depth)
                if code == _OPEN_OBJECT:
                    objects |= bit
                    expected = _KEY_OR_END
                else:
                    objects &= ~bit
                    expected = _VALUE_OR_END
                continue
            if code == _QUOTE:
                stop = string_end(data, at + 1, end)
                if stop < 0:
                    break
                is_kind = np.int64(STRING if stop & 3 == PLAIN else ESCAPED)
                begin = at + 1
                stop >>= 2
                at = stop + 1
            elif code == _MINUS or _ZERO <= code <= _NINE:
                stop = number_end(data, at, end)
                if stop < 0:
                    break
                if stop & 3 == WHOLE:
                    is_kind = np.int64(INTEGER)
                elif stop & 3 == _STRANGE:
                    is_kind = np.int64(STRANGE_NUMBER)
                else:
                    is_kind = np.int64(DECIMAL)
                stop >>= 2
                at = stop
            else:
                stop = word_end(data, at, end)
                if stop < 0:
                    break
                is_kind = np.int64(NULL if code == 0x6E else TRUTH)
                at = stop
            if here:
                found = np.int64(MISSING)
                if depth == steps:
                    found = is_kind
                    first = begin
                    last = stop
            expected = _DONE
        low[row] = first
        high[row] = last
        kind[row] = found if plain else ODD


@device
def _before(out, one, other):
    """-1, 0 or 1: how the key of the member that begins at ``one`` compares with the one at ``other``."""
    while True:
        one += 1
        other += 1
        a = out[one]
        b = out[other]
        if a == b:
            if a == _QUOTE:
                return 0
        elif a == _QUOTE:
            return -1
        elif b == _QUOTE:
            return 1
        else:
            return -1 if a < b else 1


@device
def _in_order(out, members, start, stop, size, order, spare):
    """Put the members of an object in order: 0 they were, 1 they are now, -1 there are equal keys or too many.

    ``members[start:stop]`` are the places in ``out`` where members begin; the last one ends at ``size``.
    """
    sorted_so_far = True
    for member in range(start + 1, stop):
        compared = _before(out, members[member - 1], members[member])
        if compared == 0:
            return -1
        if compared > 0:
            sorted_so_far = False
    if sorted_so_far:
        return 0
    count = stop - start
    if count > MOST_MEMBERS:
        return -1
    for member in range(count):
        place = member
        while place > 0:
            compared = _before(out, members[start + member], members[start + order[place - 1]])
            if compared == 0:
                return -1
            if compared > 0:
                break
            order[place] = order[place - 1]
            place -= 1
        order[place] = member
    begin = members[start]
    filled = np.int64(0)
    for place in range(count):
        member = start + order[place]
        upto = members[member + 1] - 1 if member + 1 < stop else size
        if place > 0:
            spare[filled] = _COMMA
            filled += 1
        for byte in range(members[member], upto):
            spare[filled] = out[byte]
            filled += 1
    for byte in range(filled):
        out[begin + byte] = spare[byte]
    return 1


@kernel(
    "void(uint8[::1], int64[::1], int64[::1], boolean, boolean, int64[::1], int64[::1], int64[::1], uint8[::1], "
    "int8[::1], int32[::1], uint8[::1])"
)
def write_compact(data, low, high, ordered, trimmed, members, bases, order, spare, state, out_offsets, out):
    """Each document of bytes [low, high) without blanks, keys in order when ``ordered``.

    ``trimmed``: fractions lose the zeros at their end. ``state``: 0 not plain (nothing is written), 1 written, 2
    written with keys moved or zeros lost. Not plain are also escapes other than the short ones, escapes in keys, equal
    keys when ``ordered``, and strange numbers. Rows with ``low`` -1 are empty.

    Room: ``members`` as many numbers as the longest document has bytes, ``bases`` DEEPEST + 2, ``order`` MOST_MEMBERS,
    ``spare`` bytes of the longest document, ``out`` bytes of all.
    """
    size = np.int64(0)
    out_offsets[0] = 0
    for row in range(low.size):
        begin = size
        at = low[row]
        end = high[row]
        depth = np.int64(0)
        known = np.int64(0)
        objects = np.uint64(0)
        expected = _VALUE
        plain = False
        moved = False
        while at >= 0:
            at = _skip_space(data, at, end)
            if at >= end:
                plain = expected == _DONE and depth == 0
                break
            code = data[at]
            in_object = ((objects >> np.uint64(depth)) & np.uint64(1)) == np.uint64(1)
            if expected == _DONE and code == _COMMA and depth > 0:
                out[size] = code
                size += 1
                at += 1
                expected = _KEY if in_object else _VALUE
                continue
            if (
                expected == _DONE
                or (expected == _KEY_OR_END and code == _CLOSE_OBJECT)
                or (expected == _VALUE_OR_END and code == _CLOSE_ARRAY)
            ):
                if depth == 0 or code != (_CLOSE_OBJECT if in_object else _CLOSE_ARRAY):
                    break
                if in_object:
                    if ordered and known - bases[depth] > 1:
                        put = _in_order(out, members, bases[depth], known, size, order, spare)
                        if put < 0:
                            break
                        if put == 1:
                            moved = True
                    known = bases[depth]
                out[size] = code
                size += 1
                at += 1
                depth -= 1
                expected = _DONE
                continue
            if code in (_OPEN_OBJECT, _OPEN_ARRAY):
                if expected in (_KEY, _KEY_OR_END) or depth == DEEPEST:
                    break
                out[size] = code
                size += 1
                at += 1
                depth += 1
                bases[depth] = known
                bit = np.uint64(1) << np.uint64(depth)
                if code == _OPEN_OBJECT:
                    objects |= bit
                    expected = _KEY_OR_END
                else:
                    objects &= ~bit
                    expected = _VALUE_OR_END
                continue
            stop = np.int64(-1)
            is_key = expected in (_KEY, _KEY_OR_END)
            if code == _QUOTE:
                stop = string_end(data, at + 1, end)
                if stop < 0 or stop & 3 == _OTHER or (is_key and stop & 3 != PLAIN):
                    break
                stop = (stop >> 2) + 1
            elif is_key:
                break
            elif code == _MINUS or _ZERO <= code <= _NINE:
                stop = number_end(data, at, end)
                if stop < 0 or stop & 3 == _STRANGE:
                    break
                tail = stop & 3 == _ZEROS and trimmed
                stop >>= 2
                if tail:
                    moved = True
                    upto = stop
                    while data[upto - 1] == _ZERO:
                        upto -= 1
                    if data[upto - 1] == _POINT:
                        upto -= 1
                    for byte in range(at, upto):
                        out[size] = data[byte]
                        size += 1
                    at = stop
            else:
                stop = word_end(data, at, end)
                if stop < 0:
                    break
            if is_key:
                members[known] = size
                known += 1
            # Nothing of a number that was trimmed.
            for byte in range(at, stop):
                out[size] = data[byte]
                size += 1
            at = stop
            expected = _DONE
            if is_key:
                at = _skip_space(data, at, end)
                if at >= end or data[at] != _COLON:
                    break
                out[size] = _COLON
                size += 1
                at += 1
                expected = _VALUE
        if plain:
            state[row] = 2 if moved else 1
        else:
            state[row] = 0
            size = begin
        out_offsets[row + 1] = size
