"""Kernels over the bytes of string columns: row i is ``data[offsets[i]:offsets[i + 1]]``."""

from __future__ import annotations

import numpy as np

from flowsql_compute.compiler.declare import device, kernel
from flowsql_compute.kernels.masks import count_ones, equal_mask, lowest_place
from flowsql_compute.kernels.memory import copy32


@kernel("void(int32[::1], uint8[::1], uint8, int64, int64[::1], int64[::1])")
def piece_bounds_of_byte(offsets, data, mark, index, low, high):
    """:func:`piece_bounds` between marks of one byte."""
    one = np.uint64(1)
    none = np.uint64(0)
    for row in range(low.size):
        start = np.int64(offsets[row])
        end = np.int64(offsets[row + 1])
        low[row] = -1
        high[row] = -1
        piece = start
        # Marks still to come before the piece.
        before = index
        at = start
        while at < end:
            size = min(end - at, np.int64(64))
            if at + 64 <= data.size:
                mask = equal_mask(data, at, mark)
                if size < 64:
                    mask &= (one << np.uint64(size)) - one
            else:
                mask = none
                for step in range(size):
                    mask |= np.uint64(data[at + step] == mark) << np.uint64(step)
            while mask != none and before > 0:
                piece = at + np.int64(lowest_place(mask)) + 1
                mask &= mask - one
                before -= 1
            if mask != none:
                low[row] = piece
                high[row] = at + np.int64(lowest_place(mask))
                break
            at += size
        # The empty text has no pieces.
        if low[row] < 0 and before == 0 and start < end:
            low[row] = piece
            high[row] = end


@kernel("void(int32[::1], uint8[::1], uint8[::1], int64, int64[::1], int64[::1])")
def piece_bounds(offsets, data, mark, index, low, high):
    """Byte range [low, high) of the ``index``-th piece between marks (not empty); ``low`` is -1 where there is none."""
    size = mark.size
    first = mark[0]
    for row in range(low.size):
        start = offsets[row]
        end = offsets[row + 1]
        low[row] = -1
        high[row] = -1
        # The empty text has no pieces.
        if start == end:
            continue
        seen = 0
        place = start
        piece = start
        while place <= end - size:
            hit = data[place] == first
            if hit and size > 1:
                for step in range(1, size):
                    if data[place + step] != mark[step]:
                        hit = False
                        break
            if hit:
                if seen == index:
                    break
                seen += 1
                place += size
                piece = place
            else:
                place += 1
        if seen == index:
            low[row] = piece
            high[row] = place if place <= end - size else end


@kernel("void(uint8[::1], int64[::1], int32[::1], uint8[::1])")
def copy_ranges(data, low, out_offsets, out):
    """Copy one byte range a row, from ``low`` on, to where ``out_offsets`` (n + 1) puts it."""
    for row in range(low.size):
        target = out_offsets[row]
        shift = low[row] - target
        for place in range(target, out_offsets[row + 1]):
            out[place] = data[place + shift]


@kernel("int64(int32[::1], uint8[::1], uint8, int32[::1], uint8[::1])")
def delete_byte(offsets, data, unwanted, out_offsets, out):
    """Copy all rows without one byte value; returns the number of bytes written. ``out`` has 64 bytes to spare."""
    end = np.int64(offsets[offsets.size - 1])
    at = np.int64(offsets[0])
    row = np.uint64(0)
    rows = np.uint64(offsets.size)
    written = np.int64(0)
    # A run is read up to 32 bytes too far.
    while at + 96 <= end:
        mask = equal_mask(data, at, unwanted)
        # Rows that begin in these 64 bytes.
        while row < rows and offsets[row] < at + 64:
            before = np.uint64(offsets[row] - at)
            deleted = count_ones(mask & ((np.uint64(1) << before) - np.uint64(1)))
            out_offsets[row] = written + np.int64(before - deleted)
            row += np.uint64(1)
        # Runs between unwanted bytes; what is copied too far is overwritten by the next run.
        source = at
        at += 64
        while source < at:
            place = at - 64 + np.int64(lowest_place(mask)) if mask != np.uint64(0) else at
            mask &= mask - np.uint64(1)
            copy32(out, written, data, source)
            if place - source > 32:
                copy32(out, written + 32, data, source + 32)
            written += place - source
            source = place + 1
    while row < rows:
        stop = np.int64(offsets[row])
        while at < stop:
            value = data[np.uint64(at)]
            out[np.uint64(written)] = value
            # Without a branch: an unwanted byte is overwritten by the next one.
            written += value != unwanted
            at += 1
        out_offsets[row] = written
        row += np.uint64(1)
    return written


@device
def _next_place(data, place, last, needle, shifts):
    """Where ``needle`` next stands, from ``place`` to ``last``; behind ``last`` where it does not.

    ``shifts`` (256,): by the byte under the needle's end how far it may move on.

    Source: R. N. Horspool, "Practical fast searching in strings", Software: Practice and Experience 10(6), 1980.
    """
    behind = needle.size - 1
    end = needle[behind]
    while place <= last:
        byte = data[place + behind]
        if byte == end:
            step = np.int64(0)
            while step < behind and data[place + step] == needle[step]:
                step += 1
            if step == behind:
                return place
        place += shifts[byte]
    return place


@kernel("void(int32[::1], uint8[::1], uint8[::1], int64[::1], int32[::1])")
def find_first(offsets, data, needle, shifts, found):
    """Byte position in its row where ``needle`` (not empty) first stands, -1 where it does not."""
    for row in range(found.size):
        start = np.int64(offsets[row])
        last = np.int64(offsets[row + 1]) - needle.size
        place = _next_place(data, start, last, needle, shifts)
        found[row] = place - start if place <= last else -1


@kernel(
    "void(int32[::1], uint8[::1], uint8[::1], int64[::1], boolean[::1], boolean, boolean[::1], int64, int64[::1],"
    " int64[::1])"
)
def run_after_literal(offsets, data, literal, shifts, lead, at_start, stop, at_least, low, high):
    """The bytes behind the first well-placed literal up to a stop byte; ``low`` is -1 where there is none.

    ``lead`` (256,): bytes that may stand before the literal; ``at_start``: it may open the row; ``stop`` (256,) ends
    the run; a run shorter than ``at_least`` does not count.
    """
    size = literal.size
    for row in range(low.size):
        start = np.int64(offsets[row])
        end = np.int64(offsets[row + 1])
        low[row] = -1
        high[row] = -1
        last = end - size
        place = _next_place(data, start, last, literal, shifts)
        while place <= last:
            if at_start if place == start else lead[data[place - 1]]:
                stand = place + size
                while stand < end and not stop[data[stand]]:
                    stand += 1
                if stand - place - size >= at_least:
                    low[row] = place + size
                    high[row] = stand
                    break
            place = _next_place(data, place + 1, last, literal, shifts)


@kernel("void(int32[::1], uint8[::1], boolean[::1], boolean, int32[::1])")
def count_members(offsets, data, member, runs, counts):
    """How many bytes of each row are ``member`` (256,); with ``runs`` how many runs of such bytes."""
    for row in range(counts.size):
        count = np.int32(0)
        before = False
        for at in range(offsets[row], offsets[row + 1]):
            inside = member[data[at]]
            count += inside and not (runs and before)
            before = inside
        counts[row] = count


@kernel("void(int32[::1], uint8[::1], boolean[::1], boolean, int64[::1], int64[::1])")
def member_bounds(offsets, data, member, runs, low, high):
    """Byte ranges of what :func:`count_members` counts, row by row; without ``runs`` a character each."""
    count = 0
    for row in range(offsets.size - 1):
        before = False
        for at in range(offsets[row], offsets[row + 1]):
            inside = member[data[at]]
            if inside and runs and before:
                high[count - 1] = at + 1
            elif inside:
                low[count] = at
                high[count] = at + 1
                count += 1
            elif before and not runs and data[at] & 0xC0 == 0x80:
                # The rest of a character whose first byte is a member.
                high[count - 1] = at + 1
                inside = True
            before = inside
