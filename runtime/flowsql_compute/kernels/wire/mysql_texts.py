"""Rows of a query in MySQL's text protocol to places of values.

Source: MySQL internals, "Text Resultset".
"""

from __future__ import annotations

from typing import Final

import numpy as np

from flowsql_compute.compiler.declare import kernel
from flowsql_compute.kernels.wire.varints import little_word

#: Behind the rows: more are to come; there are no more; the server refused; a row takes more than a packet.
MORE, ENDED, REFUSED, HUGE = range(4)

_HUGE: Final = 0xFFFFFF


@kernel("int64(uint8[::1], int64, int64[:, ::1], uint8[:, ::1], int64[::1])")
def walk_texts(data, size, ranges, valid, state):
    """Places of the values of the rows whose packets are whole in ``data[:size]``; returns how many rows.

    Args:
        ranges: results, (columns, room): start << 31 | length. ``valid``: whether there is a value.
        state: results: bytes of the packets of these rows, and what is behind them.
    """
    at = 0
    rows = 0
    state[1] = MORE
    while at + 4 <= size and rows < ranges.shape[1]:
        length = np.int64(data[at]) | np.int64(data[at + 1]) << 8 | np.int64(data[at + 2]) << 16
        start = at + 4
        if length == _HUGE:
            state[1] = HUGE
            break
        stop = start + length
        if stop > size:
            break
        if data[start] == 255:
            state[1] = REFUSED
            break
        if data[start] == 254 and length < 9:
            state[1] = ENDED
            break
        place = start
        for column in range(ranges.shape[0]):
            head = data[place]
            place += 1
            if head == 251:
                ranges[column, rows] = 0
                valid[column, rows] = 0
                continue
            width = np.int64(head)
            if head == 252:
                width = little_word(data, place, 2)
                place += 2
            elif head == 253:
                width = little_word(data, place, 3)
                place += 3
            elif head == 254:
                width = little_word(data, place, 8)
                place += 8
            ranges[column, rows] = (place << 31) | width
            valid[column, rows] = 1
            place += width
        at = stop
        rows += 1
    state[0] = at
    return rows
