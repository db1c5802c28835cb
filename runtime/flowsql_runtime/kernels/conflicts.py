"""Rows of one key between two watermarks: what is left of them beside the key's row, and whether that is a conflict.

Identities are numbers: equal ones are equal rows (``wholes``), or rows of one upsert key (``names``).
"""

from __future__ import annotations

import numpy as np

from flowsql_compute.compiler.declare import kernel

#: Kinds of change (bytes of ``RowKind``).
_INSERT, _UPDATE, _DELETE = 0, 2, 3


@kernel(
    "int64(int64[::1], int32[::1], int8[::1], int32[::1], int32[::1], boolean, boolean, int32[::1], int32[:,::1],"
    " int32[:,::1], int32[:,::1], int32[::1], int32[::1], int8[::1], int64[::1])"
)
def settle(
    segments, slots, signs, wholes, names, named, fails, current, of_slot, of_whole, of_name, links, told, kinds, ends
):
    """Settle the rows segment by segment; returns -1, or the row at whose key ``fails`` stops.

    Args:
        segments: (s,) one past the last row of each; rows behind the last segment are not looked at.
        slots: int32 (n,), from 0 on.
        signs, wholes, names: (n + m,) of the rows, then of those that keys have at first. ``named``: a row replaces
            that of the same name.
        current: int32 (slots,), the row that a key shows, -1 for none; holds those at the end after the call.
        of_slot: (slots, 2), of_whole: (identities, 2), of_name: (identities, 2): work space of -1.
        links: (5 (n + m),): work space.
        told: (>= n,) the rows of the changes, ``kinds`` of what kind; ``ends``: (s,) changes up to each segment.
    """
    total = len(signs)
    after = links[:total]  # the next row of the key in this segment
    same = links[total : 2 * total]  # the next row of the same identity
    older = links[2 * total : 3 * total]  # the list of a key's rows
    newer = links[3 * total : 4 * total]
    shown = links[4 * total :]  # the row that stands at a place of that list
    first = np.int64(0)
    count = np.int64(0)
    for segment in range(len(segments)):
        last = segments[segment]
        # Rows of each key, keys in the order of their first row: a chain through the rows that came first.
        head = np.int64(-1)
        tail = np.int64(-1)
        for row in range(first, last):
            slot = slots[row]
            after[row] = -1
            if of_slot[slot, 0] < 0:
                of_slot[slot, 0] = row
                newer[row] = -1
                if tail >= 0:
                    newer[tail] = row
                else:
                    head = np.int64(row)
                tail = np.int64(row)
            else:
                after[of_slot[slot, 1]] = row
            of_slot[slot, 1] = row
        while head >= 0:
            begin = head
            head = np.int64(newer[begin])
            slot = slots[begin]
            # Rows that take each other back go first; a row that is gone has the sign 0.
            row = begin
            while row >= 0:
                whole = wholes[row]
                other = np.int64(of_whole[whole, 0])
                if other >= 0 and signs[other] != signs[row]:
                    of_whole[whole, 0] = same[other]
                    signs[other] = 0
                    signs[row] = 0
                else:
                    same[row] = -1
                    if other >= 0:
                        same[of_whole[whole, 1]] = row
                    else:
                        of_whole[whole, 0] = row
                    of_whole[whole, 1] = row
                row = np.int64(after[row])
            # The list: the key's row, and what is put in and taken out.
            size = 0
            oldest = np.int64(-1)
            newest = np.int64(-1)
            kept = np.int64(current[slot])
            if kept >= 0:
                shown[kept] = kept
                older[kept] = -1
                newer[kept] = -1
                same[kept] = -1
                of_name[names[kept], 0] = kept
                of_name[names[kept], 1] = kept
                oldest = newest = kept
                size = 1
            row = begin
            while row >= 0:
                name = names[row]
                place = np.int64(of_name[name, 0])
                if signs[row] > 0:
                    if named and place >= 0:
                        shown[place] = row
                    else:
                        shown[row] = row
                        same[row] = -1
                        if place >= 0:
                            same[of_name[name, 1]] = row
                        else:
                            of_name[name, 0] = row
                        of_name[name, 1] = row
                        older[row] = newest
                        newer[row] = -1
                        if newest >= 0:
                            newer[newest] = row
                        else:
                            oldest = row
                        newest = row
                        size += 1
                elif signs[row] < 0 and place >= 0:
                    of_name[name, 0] = same[place]
                    if older[place] >= 0:
                        newer[older[place]] = newer[place]
                    else:
                        oldest = np.int64(newer[place])
                    if newer[place] >= 0:
                        older[newer[place]] = older[place]
                    else:
                        newest = np.int64(older[place])
                    size -= 1
                row = np.int64(after[row])
            left = np.int64(-1)
            if oldest >= 0:
                left = np.int64(shown[oldest])
            # Leave the work space as it was.
            row = begin
            while row >= 0:
                of_whole[wholes[row], 0] = -1
                of_name[names[row], 0] = -1
                row = np.int64(after[row])
            if kept >= 0:
                of_name[names[kept], 0] = -1
            of_slot[slot, 0] = -1
            if size > 1 and fails:
                return begin
            kind = -1
            if size == 0:
                if kept >= 0:
                    kind = _DELETE
                    left = kept
                    current[slot] = -1
            elif kept < 0:
                kind = _INSERT
                current[slot] = left
            elif size == 1 and wholes[left] != wholes[kept]:
                kind = _UPDATE
                current[slot] = left
            if kind >= 0:
                told[count] = left
                kinds[count] = kind
                count += 1
        ends[segment] = count
        first = np.int64(last)
    return -1
