"""Texts of pairs as maps, whole columns at once."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from flowsql_compute.eval.columns import string_buffers, validity, values_and_validity
from flowsql_compute.eval.nested.lists import Ranges, make_map
from flowsql_compute.eval.nested.map_order import in_hash_order
from flowsql_compute.eval.text.columns import gather, java_hash_codes
from flowsql_compute.kernels.contiguous import for_kernel


def maps_of_pairs(text: pa.Array, pairs: str, between: str, type_: pa.DataType) -> pa.Array:
    """The map of each text: entries between ``pairs``, key and value between ``between``; of equal keys the last wins.

    Both marks are plain texts. Empty entries at the end do not count; an entry without the mark has a NULL value.
    """
    from flowsql_compute.kernels.pairs import pair_bounds

    offsets, data = string_buffers(text)
    valid = validity(text)
    known = np.ones(len(text), dtype=np.bool_) if valid is None else valid
    marks = [np.frombuffer(mark.encode(), dtype=np.uint8) for mark in (pairs, between)]
    most = len(text) + int(np.count_nonzero(data[offsets[0] : offsets[-1]] == marks[0][0]))
    key_low, key_high, value_low, value_high = (np.empty(most, dtype=np.int64) for _ in range(4))
    sizes = np.empty(len(text), dtype=np.int64)
    count = pair_bounds(
        for_kernel(offsets), for_kernel(data), known, *map(for_kernel, marks),
        key_low, key_high, value_low, value_high, sizes,
    )  # fmt: skip
    keys = gather(data, key_low[:count], key_high[:count], None)
    found = value_low[:count] >= 0
    values = gather(data, np.where(found, value_low[:count], 0), np.where(found, value_high[:count], 0), found)
    rows = Ranges(np.cumsum(sizes) - sizes, sizes, valid)
    made = make_map(keys, values, rows, type_)
    hashes, _ = values_and_validity(java_hash_codes(made.keys))
    return in_hash_order(made, hashes, sizes)
