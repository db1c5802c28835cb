"""Kernel that puts the entries of maps into the order in which Java's HashMap gives them."""

from __future__ import annotations

import numpy as np

from flowsql_compute.compiler.declare import device, kernel


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


@device
def _mixed(value, word):
    """A 32-bit word taken into a hash, both as int64 without sign."""
    word = word * 0xCC9E2D51 & 0xFFFFFFFF
    word = (word << 15 | word >> 17) & 0xFFFFFFFF
    word = word * 0x1B873593 & 0xFFFFFFFF
    value ^= word
    value = (value << 13 | value >> 19) & 0xFFFFFFFF
    return (value * 5 + 0xE6546B64) & 0xFFFFFFFF


@kernel("void(int32[::1], uint8[::1], int32[::1])")
def text_hashes(offsets, data, out):
    """``StringData.hashCode`` of each text: MurmurHash3 of its bytes from 42 on, the last bytes one by one."""
    for row in range(out.size):
        start = np.int64(offsets[row])
        end = np.int64(offsets[row + 1])
        made = np.int64(42)
        at = start
        while at + 4 <= end:
            word = np.int64(data[at]) | np.int64(data[at + 1]) << 8
            made = _mixed(made, word | np.int64(data[at + 2]) << 16 | np.int64(data[at + 3]) << 24)
            at += 4
        while at < end:
            byte = np.int64(data[at])
            made = _mixed(made, byte if byte < 128 else byte + 0xFFFFFF00)
            at += 1
        made ^= end - start
        made ^= made >> 16
        made = made * 0x85EBCA6B & 0xFFFFFFFF
        made ^= made >> 13
        made = made * 0xC2B2AE35 & 0xFFFFFFFF
        made ^= made >> 16
        out[row] = np.int32(made - (np.int64(1) << 32) if made >= np.int64(1) << 31 else made)
