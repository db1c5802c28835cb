"""Kernels that look for one text column in another: row i is ``data[offsets[i]:offsets[i + 1]]``, both UTF-8."""

from __future__ import annotations

import numpy as np

from flowsql_compute.compiler.declare import device, kernel


@device
def _stands_at(data, at, marks, low, size):
    """Whether ``marks[low:low + size]`` stands at ``at``, where there are at least so many bytes."""
    step = np.int64(0)
    while step < size and data[at + step] == marks[low + step]:
        step += 1
    return step == size


@kernel("void(int32[::1], uint8[::1], int32[::1], uint8[::1], int64[::1], int64[::1], int32[::1])")
def find_nth(offsets, data, mark_offsets, marks, first, nth, found):
    """Where the ``nth`` mark of a row begins, in characters from 1; 0 when nowhere. An empty mark stands at 1.

    Marks that begin before character ``first`` (from 0) do not count; those that do may overlap.
    """
    for row in range(found.size):
        low = np.int64(mark_offsets[row])
        size = np.int64(mark_offsets[row + 1]) - low
        found[row] = 0
        if size == 0:
            found[row] = 1
            continue
        begin = np.int64(offsets[row])
        last = np.int64(offsets[row + 1]) - size
        # The place of the character that holds the byte. Marks begin with the first byte of a character.
        place = np.int64(0)
        missing = nth[row]
        head = marks[low]
        for at in range(begin, last + 1):
            if at > begin and data[at] & 0xC0 != 0x80:
                place += 1
            if data[at] == head and place >= first[row] and _stands_at(data, at, marks, low, size):
                missing -= 1
                if missing == 0:
                    found[row] = place + 1
                    break


@kernel("void(int32[::1], uint8[::1], int32[::1], uint8[::1], boolean, boolean[::1])")
def stands_at_edge(offsets, data, mark_offsets, marks, behind, found):
    """Whether each row begins, or with ``behind`` ends, with its mark."""
    for row in range(found.size):
        low = np.int64(mark_offsets[row])
        size = np.int64(mark_offsets[row + 1]) - low
        begin = np.int64(offsets[row])
        end = np.int64(offsets[row + 1])
        found[row] = size <= end - begin and _stands_at(data, end - size if behind else begin, marks, low, size)


# LIKE


#: Tokens of patterns beside code points: any characters, and one character.
ANY = -1
ONE = -2


@kernel("void(int32[::1], uint8[::1], int32[::1], int32[::1], int32[::1], boolean[::1])")
def like_rows(offsets, data, of_row, ends, tokens, fits):
    """Whether each row fits its pattern: number ``of_row[i]`` of those in ``tokens``, which begin at ``ends``.

    The text between two ``%`` is taken where it stands first: nothing is gained by taking it later. So a row costs at
    most as many steps as its bytes times the longest run of tokens between two ``%``.
    """
    for row in range(fits.size):
        number = of_row[row]
        first = ends[number]
        last = ends[number + 1]
        end = offsets[row + 1]
        place = offsets[row]
        token = first
        # Where the last ``%`` was, and from where on its rest was tried.
        star = -1
        tried = place
        fit = True
        while place < end:
            code, size = code_at(data, place)
            if token < last and tokens[token] == -1:
                star = token
                tried = place
                token += 1
            elif token < last and (tokens[token] == code or (tokens[token] == -2 and not ends_line(code))):
                token += 1
                place += size
            elif star >= 0:
                token = star + 1
                code, size = code_at(data, tried)
                tried += size
                place = tried
            else:
                fit = False
                break
        if fit:
            while token < last and tokens[token] == -1:
                token += 1
            fit = token == last
        fits[row] = fit


@device
def ends_line(code):
    """Whether a code point ends a line, which ``_`` does not stand for."""
    return code == 10 or code == 13 or code == 0x85 or code == 0x2028 or code == 0x2029


@device
def code_at(data, place):
    """The code point at a place, and its bytes."""
    lead = data[place]
    if lead < 0x80:
        return lead + 0, 1
    if lead < 0xE0:
        return ((lead & 0x1F) << 6) | (data[place + 1] & 0x3F), 2
    if lead < 0xF0:
        return ((lead & 0x0F) << 12) | ((data[place + 1] & 0x3F) << 6) | (data[place + 2] & 0x3F), 3
    return (
        ((lead & 0x07) << 18)
        | ((data[place + 1] & 0x3F) << 12)
        | ((data[place + 2] & 0x3F) << 6)
        | (data[place + 3] & 0x3F)
    ), 4
