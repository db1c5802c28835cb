"""Texts of pairs as maps, whole columns at once."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from flowsql_core.arrow import compute as pc
from flowsql_core.eval.columns import string_buffers
from flowsql_core.eval.nested_lists import Ranges, make_map, packed
from flowsql_core.eval.text_kernels import gather


def maps_of_pairs(text: pa.Array, pairs: str, between: str, type_: pa.DataType) -> pa.Array:
    """The map of each text: entries between ``pairs``, key and value between ``between``; of equal keys the last wins.

    Both marks are plain texts. Empty entries at the end do not count; an entry without the mark has a NULL value.
    """
    rows, flat = packed(pc.split_pattern(text, pairs))
    owners, within = rows.owners(), rows.within()
    offsets, _ = string_buffers(flat)
    filled = np.flatnonzero(np.diff(offsets))
    last = np.full(len(text), -1, dtype=np.int64)
    # Later places are written later.
    last[owners[filled]] = within[filled]
    sizes = last + 1
    pieces = pc.filter(flat, pa.array(within <= last[owners]))
    offsets, data = string_buffers(pieces)
    low, high = offsets[:-1].astype(np.int64), offsets[1:].astype(np.int64)
    place = np.frombuffer(pc.find_substring(pieces, between).buffers()[1], dtype=np.int32)[: len(pieces)]
    found = place >= 0
    middle = np.where(found, low + place, high)
    keys = gather(data, low, middle, None)
    values = gather(data, np.where(found, middle + len(between.encode()), high), high, found)
    return make_map(keys, values, Ranges(np.cumsum(sizes) - sizes, sizes, rows.valid), type_)
