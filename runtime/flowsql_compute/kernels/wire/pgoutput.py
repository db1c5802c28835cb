"""Messages of PostgreSQL's logical replication to numbers and ranges of bytes.

Source: PostgreSQL documentation, "Logical Replication Message Formats"; protocol version 1, values as texts.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from flowsql_compute.compiler.declare import device, kernel

#: First bytes of messages.
BEGIN, COMMIT, INSERT, UPDATE, DELETE = (ord(letter) for letter in "BCIUD")
#: What a row of ``events`` holds of BEGIN: LSN of the commit, its time in microseconds since 2000, transaction id;
#: of COMMIT: LSN behind it, time;
#: of changes: relation, where the old row begins (-1: none), whether it is whole, where the new row begins (-1: none).
RELATION, OLD, WHOLE, NEW = 1, 2, 3, 4
LSN, TIME, XID = 1, 2, 3
EVENT_FIELDS: Final = 5
#: What a value is: there, NULL, or left out of the log because it did not change.
VALUE, NULL, UNCHANGED = range(3)

_UPDATE_OLD_WHOLE = ord("O")
_UPDATE_OLD_KEY = ord("K")
_NULL_MARK = ord("n")
_UNCHANGED_MARK = ord("u")


@device(inline=True)
def _big(data, at, size):
    """A number of ``size`` bytes, highest first."""
    word = np.int64(0)
    for place in range(at, at + size):
        word = word << 8 | np.int64(data[place])
    return word


@device
def _row_end(data, at):
    """Behind the row at ``at``."""
    count = _big(data, at, 2)
    at += 2
    for _ in range(count):
        mark = data[at]
        at += 1
        if mark != _NULL_MARK and mark != _UNCHANGED_MARK:
            at += 4 + _big(data, at, 4)
    return at


@kernel("void(uint8[::1], int64[::1], int64[:, ::1])")
def read_messages(data, starts, events):
    """What each message at ``starts`` says; ``events`` is (n, EVENT_FIELDS), the first field the kind of message."""
    for message in range(starts.size):
        at = starts[message]
        kind = np.int64(data[at])
        events[message, 0] = kind
        at += 1
        if kind == BEGIN:
            events[message, LSN] = _big(data, at, 8)
            events[message, TIME] = _big(data, at + 8, 8)
            events[message, XID] = _big(data, at + 16, 4)
        elif kind == COMMIT:
            # Flags and the LSN of the commit stand before.
            events[message, LSN] = _big(data, at + 9, 8)
            events[message, TIME] = _big(data, at + 17, 8)
        elif kind in (INSERT, UPDATE, DELETE):
            events[message, RELATION] = _big(data, at, 4)
            events[message, OLD] = -1
            events[message, WHOLE] = 0
            events[message, NEW] = -1
            at += 4
            if data[at] == _UPDATE_OLD_WHOLE or data[at] == _UPDATE_OLD_KEY:
                events[message, OLD] = at + 1
                events[message, WHOLE] = data[at] == _UPDATE_OLD_WHOLE
                at = _row_end(data, at + 1) if kind == UPDATE else at
            if kind != DELETE:
                events[message, NEW] = at + 1


@kernel("void(uint8[::1], int64[::1], int64[::1], int64[:, ::1], uint8[:, ::1])")
def read_rows(data, starts, wanted, ranges, states):
    """The values of rows at ``starts``: ``ranges[wanted[c], r]`` of column ``c`` in row ``r``, and what it is.

    ``wanted`` has -1 for columns that nobody asks for. A range is a start, 31 bits to the left, and a length. A row at
    -1 has nothing.
    """
    for row in range(starts.size):
        at = starts[row]
        if at < 0:
            continue
        count = _big(data, at, 2)
        at += 2
        for column in range(count):
            mark = data[at]
            at += 1
            size = np.int64(0)
            state = UNCHANGED if mark == _UNCHANGED_MARK else NULL
            if mark != _NULL_MARK and mark != _UNCHANGED_MARK:
                size = _big(data, at, 4)
                at += 4
                state = VALUE
            place = wanted[column] if column < wanted.size else np.int64(-1)
            if place >= 0:
                ranges[place, row] = at << 31 | size
                states[place, row] = state
            at += size
