"""Equal elements within the rows of list columns. Rows are short: elements are compared one by one.

Row i holds the flat values from ``starts[i]`` on, ``sizes[i]`` of them; ``codes`` are equal where the values are.
"""

from __future__ import annotations

import numpy as np

from flowsql_compute.compiler.declare import kernel


@kernel("void(int64[::1], int64[::1], int64[::1], int64[::1])")
def first_equals(starts, sizes, codes, firsts):
    """For each value the place of the first equal one of its row."""
    for row in range(starts.size):
        start = starts[row]
        for place in range(start, start + sizes[row]):
            code = codes[place]
            found = start
            while codes[found] != code:
                found += 1
            firsts[place] = found


@kernel("void(int64[::1], int64[::1], int32[::1], uint8[::1], int64[::1])")
def first_equal_texts(starts, sizes, offsets, data, firsts):
    """The same for texts, ``data[offsets[k]:offsets[k + 1]]`` each, none of them NULL."""
    for row in range(starts.size):
        start = starts[row]
        for place in range(start, start + sizes[row]):
            low = np.int64(offsets[place])
            size = np.int64(offsets[place + 1]) - low
            found = start
            while found < place:
                other = np.int64(offsets[found])
                if np.int64(offsets[found + 1]) - other == size:
                    step = np.int64(0)
                    while step < size and data[other + step] == data[low + step]:
                        step += 1
                    if step == size:
                        break
                found += 1
            firsts[place] = found


@kernel("void(int64[::1], int64[::1], int64[::1], int8[::1], int64[::1])")
def sorted_places(starts, sizes, keys, edges, places):
    """The places of each row's values in ascending order of ``edges`` and, where those are equal, of ``keys``."""
    for row in range(starts.size):
        start = starts[row]
        for place in range(start, start + sizes[row]):
            key = keys[place]
            edge = edges[place]
            at = place
            while at > start:
                before = places[at - 1]
                if edges[before] < edge or (edges[before] == edge and keys[before] <= key):
                    break
                places[at] = before
                at -= 1
            places[at] = place


@kernel("void(int64[::1], int64[::1], int64[::1], int64[::1], int64[::1], int64[::1], boolean[::1])")
def among(starts, sizes, codes, other_starts, other_sizes, other_codes, found):
    """Whether each value of a row is among those of the same row of another column."""
    for row in range(starts.size):
        start = other_starts[row]
        stop = start + other_sizes[row]
        for place in range(starts[row], starts[row] + sizes[row]):
            code = codes[place]
            other = start
            while other < stop and other_codes[other] != code:
                other += 1
            found[place] = other < stop


@kernel("int64(int64[:, ::1], int64[:, ::1], int32[::1], uint8[::1], int64[::1], int64[::1], int64[::1])")
def unite_texts(starts, sizes, offsets, data, firsts, lasts, counts):
    """The different texts of each row over several lists, none of them NULL; returns the number of all.

    List k of row i holds the flat texts from ``starts[k, i]`` on, ``sizes[k, i]`` of them. ``firsts`` and ``lasts`` get
    the places where each text stands first and last, ``counts`` (n,) how many texts a row has.
    """
    written = np.int64(0)
    for row in range(counts.size):
        begin = written
        for part in range(starts.shape[0]):
            start = starts[part, row]
            for place in range(start, start + sizes[part, row]):
                low = np.int64(offsets[place])
                size = np.int64(offsets[place + 1]) - low
                found = begin
                while found < written:
                    other = np.int64(offsets[firsts[found]])
                    if np.int64(offsets[firsts[found] + 1]) - other == size:
                        # From the end: texts that begin alike are frequent.
                        back = size - 1
                        while back >= 0 and data[np.uint64(other + back)] == data[np.uint64(low + back)]:
                            back -= 1
                        if back < 0:
                            break
                    found += 1
                if found == written:
                    firsts[written] = place
                    written += 1
                lasts[found] = place
        counts[row] = written - begin
    return written


@kernel("int64(int64[:, ::1], int64[:, ::1], int64[::1], int64[::1], int64[::1], int64[::1])")
def unite_codes(starts, sizes, codes, firsts, lasts, counts):
    """The same for values that are equal where their ``codes`` are."""
    written = np.int64(0)
    for row in range(counts.size):
        begin = written
        for part in range(starts.shape[0]):
            start = starts[part, row]
            for place in range(start, start + sizes[part, row]):
                code = codes[place]
                found = begin
                while found < written and codes[firsts[found]] != code:
                    found += 1
                if found == written:
                    firsts[written] = place
                    written += 1
                lasts[found] = place
        counts[row] = written - begin
    return written


@kernel("void(int64[::1], int64[::1], int64[::1])")
def places_of(starts, sizes, places):
    """The place of each value, row by row."""
    written = np.int64(0)
    for row in range(starts.size):
        start = starts[row]
        for step in range(sizes[row]):
            places[written] = start + step
            written += 1


@kernel("void(int64[::1], int64[::1])")
def owners_of(sizes, owners):
    """The row of each value, row by row."""
    written = np.int64(0)
    for row in range(sizes.size):
        for _ in range(sizes[row]):
            owners[written] = row
            written += 1


@kernel("void(int64[::1], int64[::1], int64[::1], boolean[::1], int64[::1])")
def greatest_places(starts, sizes, keys, counted, places):
    """The place of the first value of each row with the greatest key among the counted ones; -1 where there is none."""
    for row in range(places.size):
        best = np.int64(-1)
        for place in range(starts[row], starts[row] + sizes[row]):
            if counted[place] and (best < 0 or keys[place] > keys[best]):
                best = place
        places[row] = best
