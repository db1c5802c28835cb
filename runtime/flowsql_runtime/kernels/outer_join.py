"""What an outer join emits for rows of one side and their partners on the other, change by change."""

from __future__ import annotations

from flowsql_compute.compiler.declare import kernel

_INSERT, _DELETE = 0, 3


@kernel(
    "int64(uint8[::1], int64, int64, int32[::1], int32[::1], boolean, boolean, int32[::1], int32[::1], int32[::1],"
    " uint8[::1])"
)
def changes(kinds, first, last, probes, before, own_outer, other_outer, causes, own, partner, out):
    """Changes that rows ``first .. last`` make, in Flink's order (``StreamingJoinOperator``); returns how many.

    A row that comes first takes back what stood padded for its partners; one that goes leaves them padded last.

    Args:
        kinds: of the rows of the batch, bytes of ``RowKind``; odd ones go.
        probes: row of each pair, rising.
        before: where ``other_outer``, how many partners the other row of each pair had.
        causes, own, partner, out: of each change the row that made it; that row, or -1 where its side is padded; its
            pair, or -1 where the other side is padded; its kind. Room: rows and twice the pairs.
    """
    made = 0
    pair = 0
    for row in range(first, last):
        start = pair
        while pair < len(probes) and probes[pair] == row:
            pair += 1
        goes = kinds[row] & 1
        if start == pair:
            if own_outer:
                causes[made] = row
                own[made] = row
                partner[made] = -1
                out[made] = _DELETE if goes else _INSERT
                made += 1
            continue
        if other_outer and not goes:
            for i in range(start, pair):
                if before[i] == 0:
                    causes[made] = row
                    own[made] = -1
                    partner[made] = i
                    out[made] = _DELETE
                    made += 1
        kind = kinds[row]
        if goes:
            if own_outer:
                kind = _DELETE
        elif own_outer or other_outer:
            kind = _INSERT
        for i in range(start, pair):
            causes[made] = row
            own[made] = row
            partner[made] = i
            out[made] = kind
            made += 1
        if other_outer and goes:
            for i in range(start, pair):
                if before[i] == 1:
                    causes[made] = row
                    own[made] = -1
                    partner[made] = i
                    out[made] = _INSERT
                    made += 1
    return made


@kernel("int64(int64[::1], int64[::1])")
def cuts(before, out):
    """First rows of parts in which nothing repeats; returns how many. Row 0 is the first one of them.

    Args:
        before: of each row the last one before it that is like it, or -1.
        out: room for as many as there are rows, at least one.
    """
    out[0] = 0
    made = 1
    for row in range(len(before)):
        if before[row] >= out[made - 1]:
            out[made] = row
            made += 1
    return made
