"""Kernel that puts the entries of maps into the order in which Java's HashMap gives them."""

from __future__ import annotations

import numpy as np

from flowsql_core.kernels.lazy import kernel


@kernel("void(int64[::1], int64[::1], int64[::1], int32[::1], int64[::1])")
def hash_places(starts, sizes, asked, hashes, places):
    """For each row the places of its entries by bucket; those of one bucket stay as they are.

    Row i holds the entries from ``starts[i]`` on, ``sizes[i]`` of them, of different keys with these ``hashes``; the
    map was made for ``asked[i]`` entries. ``places`` has one more number for each entry.
    """
    for row in range(starts.size):
        start = starts[row]
        size = sizes[row]
        buckets = np.int64(1)
        # As many as were asked for; twice as many whenever they are three quarters full.
        while buckets < asked[row] or size > buckets * 3 // 4:
            buckets *= 2
        for entry in range(start, start + size):
            spread = np.int64(hashes[entry]) & 0xFFFFFFFF
            bucket = (spread ^ (spread >> 16)) & (buckets - 1)
            at = entry
            while at > start:
                other = np.int64(hashes[places[at - 1]]) & 0xFFFFFFFF
                if ((other ^ (other >> 16)) & (buckets - 1)) <= bucket:
                    break
                places[at] = places[at - 1]
                at -= 1
            places[at] = entry
