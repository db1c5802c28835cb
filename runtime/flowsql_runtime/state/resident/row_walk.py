"""Walking linked lists of ids: all rows of some slots in one array."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from flowsql_runtime.kernels import row_list as kernels

Int32s = npt.NDArray[np.int32]


def rows_of_slots(slots: Int32s, ends: Int32s, links: Int32s) -> tuple[Int32s, Int32s]:
    """Pairs (position in ``slots``, row id), by position and arrival; slot -1 or an empty one has none."""
    known = (slots >= 0) & (slots < len(ends))
    counts = np.where(known, ends[np.where(known, slots, 0), 1], 0) if len(ends) else 0 * slots
    starts = np.zeros(len(slots) + 1, np.int64)
    np.cumsum(counts, out=starts[1:])
    probes = np.empty(int(starts[-1]), np.int32)
    found = np.empty(len(probes), np.int32)
    if len(probes):
        kernels.expand(np.ascontiguousarray(slots), starts, links, ends, probes, found)
    return probes, found


def counts_of_slots(slots: Int32s, ends: Int32s) -> Int32s:
    """Rows of each slot."""
    if not len(ends):
        return np.zeros(len(slots), np.int32)
    result: Int32s = np.where(slots < len(ends), ends[np.minimum(slots, len(ends) - 1), 1], 0)
    return result
