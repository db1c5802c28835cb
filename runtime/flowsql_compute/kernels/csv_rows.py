"""Where the rows of csv text begin, and which of them only the exact rules read.

The grammar is that of ``flowsql_connectors.formats.csv_tokens``; here it is walked byte by byte.
"""

from __future__ import annotations

from typing import Final

from flowsql_compute.compiler.declare import device, kernel

#: A row that a bulk reader takes; one that it reads otherwise; a comment or blanks, which are no row; all that follows
#: a quote that nothing closes.
PLAIN, ODD, COMMENT, REST = range(4)

_NEWLINE: Final = 10
_RETURN: Final = 13
_TAB: Final = 9
_BLANK: Final = 32
_HASH: Final = 35


@device
def _behind_line(data, at, size):
    """Behind the end of the line that goes on at ``at``."""
    while at < size and data[at] != _NEWLINE and data[at] != _RETURN:
        at += 1
    if at + 1 < size and data[at] == _RETURN and data[at + 1] == _NEWLINE:
        return at + 2
    return min(at + 1, size)


@kernel("int64(uint8[::1], int64, int64, int64, int64, boolean, boolean, int64[::1], uint8[::1])")
def mark_rows(data, size, delimiter, quote, escape, comments, blank_is_odd, starts, kinds):
    """Place and kind of each row of ``data[:size]``; returns how many, with comments.

    Args:
        delimiter, quote, escape: bytes; -1 for none.
        blank_is_odd: whether an empty line is a row that the bulk reader misreads.
        starts, kinds: results; ``starts`` has the end of the last row behind it. As many as there are line ends
            (with ``comments`` twice as many), and 2.
    """
    at = 0
    rows = 0
    while at < size:
        starts[rows] = at
        kind = PLAIN
        if comments:
            # Blank lines, and blanks before a row, are passed with comments.
            first = at
            while first < size and (data[first] == _BLANK or data[first] == _NEWLINE or data[first] == _RETURN):
                first += 1
            is_comment = first < size and data[first] == _HASH
            if first > at or is_comment:
                at = _behind_line(data, first, size) if is_comment else first
                kinds[rows] = COMMENT
                rows += 1
                continue
        if blank_is_odd and (data[at] == _NEWLINE or data[at] == _RETURN):
            kind = ODD
        while True:
            if at < size and data[at] == quote:
                at += 1
                closed = False
                while at < size and not closed:
                    if data[at] == escape:
                        kind = ODD
                        at += 2
                    elif data[at] != quote:
                        at += 1
                    elif at + 1 < size and data[at + 1] == quote:
                        at += 2
                    else:
                        closed = True
                        at += 1
                if not closed:
                    kinds[rows] = REST
                    starts[rows + 1] = size
                    return rows + 1
                while at < size and (data[at] == _BLANK or data[at] == _TAB):
                    kind = ODD
                    at += 1
            else:
                while at < size and data[at] != delimiter and data[at] != _NEWLINE and data[at] != _RETURN:
                    if data[at] == escape:
                        kind = ODD
                        if at + 1 >= size:
                            break
                        at += 2
                    else:
                        if data[at] == quote:
                            kind = ODD
                        at += 1
            if at < size and data[at] == delimiter:
                at += 1
                continue
            if at < size and data[at] != _NEWLINE and data[at] != _RETURN:
                # Nothing but a delimiter may follow here: the reader goes on behind the line.
                kind = ODD
            at = _behind_line(data, at, size)
            break
        kinds[rows] = kind
        rows += 1
    starts[rows] = size
    return rows
