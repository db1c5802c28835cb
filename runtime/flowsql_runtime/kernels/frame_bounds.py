"""Where frames of time begin, for functions that read all rows of a frame."""

from __future__ import annotations

from flowsql_compute.compiler.declare import kernel


@kernel("void(int32[::1], int64[::1], int64[::1], int64[::1], int32[::1], int32[::1], int64, int64[::1])")
def starts_by_time(keys, places, heads, times, epochs, latest, width, starts):
    """The first row of each row's frame of ``width`` milliseconds.

    Args:
        keys: (n,), number of each row's key; rows of a key come in the order of their times.
        places: (n,), where each row stands among the rows by key.
        heads: by key, where its rows begin; ``latest``: by key, 0. Both are written to.
        times: by place, milliseconds.
        epochs: (n,), rising within a key: rows of an earlier one are in no frame; what was held before is of epoch 0.
        starts: (n,), the result, places.
    """
    for i in range(len(keys)):
        key = keys[i]
        if epochs[i] != latest[key]:
            latest[key] = epochs[i]
            heads[key] = places[i]
        head = heads[key]
        while times[head] < times[places[i]] - width:
            head += 1
        heads[key] = head
        starts[i] = head
