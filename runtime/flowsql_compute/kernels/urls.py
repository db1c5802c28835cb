"""The parts of plain URLs in text columns."""

from __future__ import annotations

from typing import Final

import numpy as np

from flowsql_compute.compiler.declare import kernel

#: What is asked for.
HOST, PATH, QUERY, REF, PROTOCOL, FILE, AUTHORITY, USERINFO = range(8)
#: ``low`` of rows that are no plain URL; -1 is a part that the URL has not.
LEFT: Final = -2

_COLON, _SLASH, _QUESTION, _HASH = 0x3A, 0x2F, 0x3F, 0x23
#: Longer ports may be out of range.
_MOST_DIGITS = 5


@kernel("void(int32[::1], uint8[::1], int64, int64[::1], int64[::1])")
def url_part(offsets, data, part, low, high):
    """Bytes [low, high) of a part of each URL ``http://...`` or ``https://...``.

    Left are texts that begin otherwise, with blanks or control characters at their end, without authority, with user
    information, an address in brackets or a strange port.
    """
    for row in range(low.size):
        start = np.int64(offsets[row])
        end = np.int64(offsets[row + 1])
        low[row] = LEFT
        high[row] = LEFT
        if (
            end - start < 9 or data[end - 1] <= 0x20 or data[start] != 0x68 or data[start + 1] != 0x74
            or data[start + 2] != 0x74 or data[start + 3] != 0x70
        ):  # fmt: skip
            continue
        colon = start + 4
        if data[colon] == 0x73:
            colon += 1
        if data[colon] != _COLON or data[colon + 1] != _SLASH or data[colon + 2] != _SLASH:
            continue
        begin = colon + 3
        at = begin
        host = np.int64(-1)
        plain = True
        while at < end:
            code = data[at]
            if code in (_SLASH, _QUESTION, _HASH):
                break
            if code == _COLON and host < 0:
                host = at
            elif code in (0x40, 0x5B, 0x5D) or (host >= 0 and not 0x30 <= code <= 0x39):
                plain = False
                break
            at += 1
        authority = at
        if not plain or authority == begin or (host >= 0 and authority - host - 1 > _MOST_DIGITS):
            continue
        if host < 0:
            host = authority
        while at < end and data[at] != _QUESTION and data[at] != _HASH:
            at += 1
        path = at
        query = np.int64(-1)
        if at < end and data[at] == _QUESTION:
            at += 1
            query = at
            while at < end and data[at] != _HASH:
                at += 1
        stop = at
        low[row] = -1
        high[row] = -1
        if part == HOST:
            low[row] = begin
            high[row] = host
        elif part == PATH:
            low[row] = authority
            high[row] = path
        elif part == QUERY:
            if query >= 0:
                low[row] = query
                high[row] = stop
        elif part == REF:
            if stop < end:
                low[row] = stop + 1
                high[row] = end
        elif part == PROTOCOL:
            low[row] = start
            high[row] = colon
        elif part == FILE:
            low[row] = authority
            high[row] = stop
        elif part == AUTHORITY:
            low[row] = begin
            high[row] = authority
