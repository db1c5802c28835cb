"""Slices of times, and how often keys stand in slices."""

from __future__ import annotations

from flowsql_compute.compiler.declare import kernel


@kernel("void(int64[::1], int64, int64, int64[::1])")
def slice_ends(times, size, offset, ends):
    """Exclusive end of the slice of each time: slices are ``size`` long, one begins at ``offset``.

    Most rows are in the slice of the row before them, which a comparison tells sooner than a division.
    """
    start = offset
    stop = offset + size
    for i in range(len(times)):
        time = times[i]
        if time < start or time >= stop:
            start = time - (time - offset) % size
            stop = start + size
        ends[i] = stop


@kernel("void(int32[::1], int32[::1])")
def count_in(numbers, uses):
    """``uses[n]`` goes up by one for each time that ``n`` stands in ``numbers``."""
    for number in numbers:
        uses[number] += 1


@kernel("int64(int32[::1], int32[::1], int32[::1])")
def count_out(numbers, uses, unused):
    """``uses[n]`` goes down by one for each; those that fall to 0 go into ``unused``. Returns how many."""
    found = 0
    for number in numbers:
        uses[number] -= 1
        if uses[number] == 0:
            unused[found] = number
            found += 1
    return found
