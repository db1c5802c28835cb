"""Kernels that cut texts by places and put texts into texts: row i is ``data[offsets[i]:offsets[i + 1]]``, UTF-8."""

from __future__ import annotations

import numpy as np

from flowsql_compute.compiler.declare import kernel
from flowsql_compute.kernels.memory import copy_bytes


@kernel("void(int32[::1], uint8[::1], int64[::1], int64[::1], int64[::1], int64[::1])")
def character_bounds(offsets, data, begin, stop, low, high):
    """Byte range [low, high) of the characters [begin, stop) of each row; places behind the last are the end."""
    for row in range(low.size):
        at = np.int64(offsets[row])
        end = np.int64(offsets[row + 1])
        first = begin[row]
        last = stop[row]
        place = np.int64(0)
        while at < end and place < first:
            at += 1
            while at < end and data[at] & 0xC0 == 0x80:
                at += 1
            place += 1
        low[row] = at
        while at < end and place < last:
            at += 1
            while at < end and data[at] & 0xC0 == 0x80:
                at += 1
            place += 1
        high[row] = at


@kernel("int64(int32[::1], uint8[::1], int32[::1], uint8[::1], int64[::1], int64[::1], int32[::1], uint8[::1])")
def overlay_bytes(offsets, data, new_offsets, new, start, size, out_offsets, out):
    """Each row with ``size`` of its bytes from ``start`` (from 1) on replaced by the row's new text.

    A row is left as it is where ``start`` lies outside, and ends with the new text where ``size`` reaches its end or is
    not positive. Returns the number of bytes written, at most those of both columns.
    """
    written = np.int64(0)
    out_offsets[0] = 0
    for row in range(out_offsets.size - 1):
        low = np.int64(offsets[row])
        length = np.int64(offsets[row + 1]) - low
        first = start[row]
        kept = first - 1 if 0 < first <= length else length
        copy_bytes(out, written, data, low, kept)
        written += kept
        if 0 < first <= length:
            begin = np.int64(new_offsets[row])
            added = np.int64(new_offsets[row + 1]) - begin
            copy_bytes(out, written, new, begin, added)
            written += added
            if size[row] > 0 and first + size[row] <= length:
                behind = kept + size[row]
                copy_bytes(out, written, data, low + behind, length - behind)
                written += length - behind
        out_offsets[row + 1] = written
    return written
