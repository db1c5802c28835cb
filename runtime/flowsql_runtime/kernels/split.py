"""Dealing the rows of a batch to the channels of a hash exchange."""

from __future__ import annotations

import numpy as np

from flowsql_compute.compiler.declare import kernel

_U = np.uint64


@kernel("void(uint64[::1], int32[::1], int32[::1], int64[::1], int32[::1])")
def deal(hashes, owners, order, ends, channels):
    """Rows by channel, in their order: ``order[ends[c - 1]:ends[c]]`` are those of channel c.

    Args:
        hashes: key hash of each row; its top bits are the key group.
        owners: channel of each key group.
        channels: (n,) working memory.
    """
    n = len(hashes)
    groups = _U(len(owners))
    ends[:] = 0
    for i in range(n):
        channel = owners[np.int64(((hashes[i] >> _U(32)) * groups) >> _U(32))]
        channels[i] = channel
        ends[channel] += 1
    total = 0
    for c in range(len(ends)):
        count = ends[c]
        ends[c] = total
        total += count
    for i in range(n):
        channel = channels[i]
        order[ends[channel]] = i
        ends[channel] += 1
