"""Pages: columns of words, each narrowed to the bytes that its values need beside the smallest one.

Data is cut into pages by ``bounds`` (pages + 1); page p holds rows ``bounds[p]`` to before ``bounds[p + 1]``. In the
bytes of a page a column is ``min`` and ``width`` (0 to 8 bytes a value), and the differences to ``min``, which wrap
around.
References to bytes stand as lengths (-1: NULL), their bytes one behind another in a place of their own.

The head of a page: number of rows of each level (int64), ``min`` of each column (int64), sizes of each place of bytes
(int64), ``width`` of each column (a byte each, filled up to a multiple of 8). The columns follow, then the bytes, then
``SLACK``.
"""

from __future__ import annotations

import numpy as np

from flowsql_compute.compiler.declare import device, kernel
from flowsql_compute.kernels.memory import copy_bytes, load64, store64
from flowsql_runtime.kernels.byte_arena import LENGTH_BITS, LONG, length_at

#: Bytes at the end of a page that say nothing: values are read and written a word at a time.
SLACK = 8

_U = np.uint64
_SEED = np.uint64(0x9E3779B97F4A7C15)
_MIX = np.uint64(0xFF51AFD7ED558CCD)
_MIX2 = np.uint64(0xC4CEB9FE1A85EC53)
_LONG_KEY = np.uint64(0xFF)
_ADDRESS = np.uint64(0x00FFFFFFFFFFFFFF)


@kernel("void(uint64[:,::1], uint64[::1], uint8[::1], uint32[::1])")
def bucket_hashes(words, masks, var, out):
    """32 bits of each key's hash, which depend on nothing but the key's values."""
    for i in range(len(words)):
        h = _SEED ^ ((masks[i] if masks.size else _U(0)) * _MIX2)
        for j in range(words.shape[1]):
            word = words[i, j]
            if var.size and var[j] == 2 and (word >> _U(56)) == _LONG_KEY:
                continue
            h = (h ^ word) * _MIX
            h ^= h >> _U(32)
        out[i] = np.uint32((h * _MIX2) >> _U(32))


@kernel("void(uint32[::1], uint32[::1], int64[::1])")
def find_buckets(starts, hashes, out):
    """The range of each hash: the last of ``starts`` (rising, the first is 0) that is not above it.

    Ranges are about equally long, so the search begins where the hash would be among equal ones.
    """
    last = np.int64(len(starts) - 1)
    for i in range(len(hashes)):
        h = hashes[i]
        at = (np.int64(h) * np.int64(len(starts))) >> 32
        while starts[at] > h:
            at -= 1
        while at < last and starts[at + 1] <= h:
            at += 1
        out[i] = at


@kernel("void(uint32[::1], uint64[::1])")
def mark_hashes(hashes, marks):
    """Set the bit of each hash in ``marks``, whose length is a power of two."""
    mask = _U(64 * marks.size - 1)
    for i in range(len(hashes)):
        bit = _U(hashes[i]) & mask
        marks[bit >> _U(6)] |= _U(1) << (bit & _U(63))


@kernel("int64(uint32[::1], uint64[::1], int64[::1])")
def rows_of_marks(hashes, marks, out):
    """Rows (rising) whose hash is marked; returns how many."""
    mask = _U(64 * marks.size - 1)
    count = np.int64(0)
    for i in range(len(hashes)):
        bit = _U(hashes[i]) & mask
        out[count] = i
        count += np.int64((marks[bit >> _U(6)] >> (bit & _U(63))) & _U(1))
    return count


@kernel("void(int64[:,::1], int64, int64[::1], int64[:,::1], uint8[:,::1], int64)")
def measure_column(rows, column, bounds, mins, widths, at):
    """``mins`` and ``widths`` (pages, columns) of one column of ``rows``, at column ``at``."""
    for page in range(len(bounds) - 1):
        start = bounds[page]
        stop = bounds[page + 1]
        low = np.int64(0)
        high = np.int64(0)
        if start < stop:
            low = rows[start, column]
            high = low
        for i in range(start, stop):
            value = rows[i, column]
            low = min(low, value)
            high = max(high, value)
        span = _U(high) - _U(low)
        width = 0
        while span:
            span >>= _U(8)
            width += 1
        mins[page, at] = low
        widths[page, at] = width


@kernel("void(int64[:,::1], int64, int64[::1], int64[:,::1], uint8[:,::1], int64, int64[::1], uint8[::1])")
def write_column(rows, column, bounds, mins, widths, at, cursors, out):
    """Write one column at the pages' cursors, which move on. Up to 7 bytes behind it are overwritten."""
    for page in range(len(bounds) - 1):
        low = _U(mins[page, at])
        width = np.int64(widths[page, at])
        cursor = cursors[page]
        if width:
            for i in range(bounds[page], bounds[page + 1]):
                store64(out, cursor, _U(rows[i, column]) - low)
                cursor += width
        cursors[page] = cursor


@kernel(
    "void(uint8[::1], int64[::1], int64[::1], int64[:,::1], int64[:,::1], uint8[:,::1], int64[:,::1], int64[:,::1])"
)
def read_heads(data, starts, level_of, counts, mins, widths, sizes, places):
    """Heads of the pages at ``starts``.

    Args:
        level_of: level of each column.
        counts: (pages, levels), out. mins, widths: (pages, columns), out. sizes: (pages, places of bytes), out.
        places: (pages, columns + places of bytes), out: where each begins.
    """
    columns = len(level_of)
    for page in range(len(starts)):
        at = starts[page]
        for level in range(counts.shape[1]):
            counts[page, level] = np.int64(load64(data, at))
            at += 8
        for column in range(columns):
            mins[page, column] = np.int64(load64(data, at))
            at += 8
        for place in range(sizes.shape[1]):
            sizes[page, place] = np.int64(load64(data, at))
            at += 8
        for column in range(columns):
            widths[page, column] = data[at + column]
        at += (columns + 7) & ~7
        for column in range(columns):
            places[page, column] = at
            at += np.int64(widths[page, column]) * counts[page, level_of[column]]
        for place in range(sizes.shape[1]):
            places[page, columns + place] = at
            at += sizes[page, place]


@kernel("void(int64[:,::1], int64[:,::1], uint8[:,::1], int64[:,::1], int64[::1], uint8[::1])")
def write_heads(counts, mins, widths, sizes, cursors, out):
    """Heads at the pages' cursors, which move on."""
    columns = mins.shape[1]
    for page in range(len(cursors)):
        at = cursors[page]
        for level in range(counts.shape[1]):
            store64(out, at, counts[page, level])
            at += 8
        for column in range(columns):
            store64(out, at, mins[page, column])
            at += 8
        for place in range(sizes.shape[1]):
            store64(out, at, sizes[page, place])
            at += 8
        padded = (columns + 7) & ~7
        for column in range(padded):
            out[at + column] = widths[page, column] if column < columns else np.uint8(0)
        cursors[page] = at + padded


@device
def _value(data, at, low, width):
    if width == 0:
        return low
    return low + np.int64((load64(data, at) << _U(64 - 8 * width)) >> _U(64 - 8 * width))


@kernel("void(uint8[::1], int64[:,::1], int64[:,::1], uint8[:,::1], int64, int64[::1], int64[:,::1], int64)")
def read_column(data, places, mins, widths, at, bounds, rows, column):
    """All values of one column of all pages."""
    for page in range(len(bounds) - 1):
        low = mins[page, at]
        width = np.int64(widths[page, at])
        place = places[page, at]
        for i in range(bounds[page], bounds[page + 1]):
            rows[i, column] = _value(data, place, low, width)
            place += width


@kernel(
    "void(uint8[::1], int64[:,::1], int64[:,::1], uint8[:,::1], int64, int32[::1], int64[::1], int64[:,::1], int64)"
)
def pick_column(data, places, mins, widths, at, pages, picked, rows, column):
    """Values of one column at some rows of pages."""
    for i in range(len(pages)):
        page = pages[i]
        width = np.int64(widths[page, at])
        rows[i, column] = _value(data, places[page, at] + width * picked[i], mins[page, at], width)


# -- bytes behind references of rows


@kernel("void(int64[:,::1], int64, uint8[::1], int64[::1], int64[:,::1], int64)")
def lengths_of_references(rows, column, arena, bounds, sizes, place):
    """Put lengths in the place of references, whose bytes stay where they are; their sums by page into ``sizes``."""
    for page in range(len(bounds) - 1):
        for i in range(bounds[page], bounds[page + 1]):
            ref = rows[i, column]
            length = np.int64(-1)
            if ref:
                length = length_at(arena, ref)
                sizes[page, place] += length
            rows[i, column] = length


@kernel("void(int64[::1], int64[:,::1], int64, uint8[::1], int64[::1], int64[::1], uint8[::1])")
def write_bytes(references, rows, column, arena, bounds, cursors, out):
    """The bytes of ``references`` with the lengths in ``rows``, at the pages' cursors, which move on."""
    for page in range(len(bounds) - 1):
        cursor = cursors[page]
        for i in range(bounds[page], bounds[page + 1]):
            length = rows[i, column]
            if length > 0:
                copy_bytes(out, cursor, arena, references[i] >> LENGTH_BITS, length)
                cursor += length
        cursors[page] = cursor


@kernel("void(uint8[::1], int64[:,::1], int64[:,::1], uint8[:,::1], int64, int64, int64[::1], int64[::1])")
def starts_of_bytes(data, places, mins, widths, at, place, bounds, out):
    """Where the bytes of each row of one column of references begin."""
    for page in range(len(bounds) - 1):
        width = np.int64(widths[page, at])
        low = mins[page, at]
        cursor = places[page, at]
        where = places[page, place]
        for i in range(bounds[page], bounds[page + 1]):
            out[i] = where
            where += max(_value(data, cursor, low, width), 0)
            cursor += width


@kernel("int64(uint8[::1], int64[::1], int64[:,::1], int64, uint8[::1], int64)")
def references_of_bytes(data, starts, rows, column, arena, used):
    """Put references into ``arena`` in the place of lengths, with copies of the bytes at ``starts``; returns the bytes
    used of it."""
    for i in range(len(starts)):
        length = rows[i, column]
        word = np.int64(0)
        if length >= 0:
            if length >= LONG:
                store64(arena, used, length)
                used += 8
            copy_bytes(arena, used, data, starts[i], length)
            word = (used << LENGTH_BITS) | min(length, np.int64(LONG))
            used += length
        rows[i, column] = word
    return used


# -- long strings of keys


@kernel("void(uint64[:,::1], int64, uint8[::1], int64[::1], int64[:,::1], int64)")
def lengths_of_keys(words, column, scratch, bounds, sizes, place):
    """Put lengths of long strings in the place of their positions; sums by page into ``sizes``."""
    for page in range(len(bounds) - 1):
        for i in range(bounds[page], bounds[page + 1]):
            word = words[i, column]
            if (word >> _U(56)) == _LONG_KEY:
                length = np.int64(load64(scratch, np.int64(word & _ADDRESS)))
                sizes[page, place] += length
                words[i, column] = (_LONG_KEY << _U(56)) | _U(length)


@kernel("void(uint64[::1], uint64[:,::1], int64, uint8[::1], int64[::1], int64[::1], uint8[::1])")
def write_keys(positions, words, column, scratch, bounds, cursors, out):
    """Long strings at the pages' cursors, which move on; ``positions``: words before :func:`lengths_of_keys`."""
    for page in range(len(bounds) - 1):
        cursor = cursors[page]
        for i in range(bounds[page], bounds[page + 1]):
            word = words[i, column]
            if (word >> _U(56)) == _LONG_KEY:
                length = np.int64(word & _ADDRESS)
                copy_bytes(out, cursor, scratch, np.int64(positions[i] & _ADDRESS) + 8, length)
                cursor += length
        cursors[page] = cursor


@kernel("int64(uint8[::1], int64[:,::1], int64, int64[::1], uint64[:,::1], int64, uint8[::1], int64)")
def positions_of_keys(data, places, place, bounds, words, column, scratch, used):
    """Put positions in ``scratch`` in the place of lengths, with copies of the strings; returns the bytes used of it.

    With an empty ``scratch`` it only says how many bytes it would use.
    """
    for page in range(len(bounds) - 1):
        where = places[page, place]
        for i in range(bounds[page], bounds[page + 1]):
            word = words[i, column]
            if (word >> _U(56)) == _LONG_KEY:
                length = np.int64(word & _ADDRESS)
                if scratch.size:
                    store64(scratch, used, length)
                    copy_bytes(scratch, used + 8, data, where, length)
                    words[i, column] = (_LONG_KEY << _U(56)) | _U(used)
                used += 8 + length
                where += length
    return used
