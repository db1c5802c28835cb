"""The names of all members in JSON texts without blanks."""

from __future__ import annotations

from typing import Final

import numpy as np

from flowsql_compute.compiler.declare import device, kernel
from flowsql_compute.kernels.json.bytes import string_end

#: Different names of a document beyond which it is left to parsed documents.
MOST_NAMES: Final = 64
_QUOTE: Final = 0x22
_COLON: Final = 0x3A


@device
def _is_known(out, starts, ends, count, data, low, high):
    for place in range(count):
        if ends[place] - starts[place] != high - low:
            continue
        same = True
        for step in range(high - low):
            if out[starts[place] + step] != data[low + step]:
                same = False
                break
        if same:
            return True
    return False


@kernel("void(int32[::1], uint8[::1], boolean[::1], int64[::1], int64[::1], boolean[::1], int32[::1], uint8[::1])")
def member_names(offsets, data, skipped, starts, ends, left, out_offsets, out):
    """The names in each document with their quotes, each once, in the order in which they come first.

    ``skipped`` rows have none; ``left``: a document with more than ``MOST_NAMES``, or no JSON. ``starts`` and ``ends``
    are room for ``MOST_NAMES`` numbers, ``out`` for the bytes of all documents.
    """
    size = np.int64(0)
    out_offsets[0] = 0
    for row in range(left.size):
        at = np.int64(offsets[row])
        end = np.int64(offsets[row + 1])
        begin = size
        count = np.int64(0)
        odd = False
        if skipped[row]:
            at = end
        while at < end:
            if data[at] != _QUOTE:
                at += 1
                continue
            low = at
            found = string_end(data, at + 1, end)
            if found < 0:
                odd = True
                break
            at = found // 4 + 1
            if at < end and data[at] == _COLON and not _is_known(out, starts, ends, count, data, low, at):
                if count == MOST_NAMES:
                    odd = True
                    break
                starts[count] = size
                for place in range(low, at):
                    out[size] = data[place]
                    size += 1
                ends[count] = size
                count += 1
        if odd:
            size = begin
        left[row] = odd
        out_offsets[row + 1] = np.int32(size)
