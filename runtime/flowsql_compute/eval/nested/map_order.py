"""The order of a map's entries where Flink made it by a Java HashMap: its keys by bucket.

Source: Java SE documentation of ``java.util.HashMap``; MurmurHash3 for the hash of Flink's texts.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flowsql_compute.eval.columns import string_buffers, values_and_validity
from flowsql_compute.eval.nested.lists import Int64s, ranges_of
from flowsql_compute.kernels.contiguous import for_kernel
from flowsql_core.arrow import compute as pc

#: Entries that a HashMap is made for where nobody says how many.
_USUAL = 16


def in_hash_order(maps: pa.Array, hashes: npt.NDArray[np.int32], asked: Int64s) -> pa.Array:
    """Maps whose keys differ, their entries in the order of a HashMap that was made for ``asked`` (n,) entries.

    ``hashes``: Java's hash code of each key.
    """
    from flowsql_compute.kernels.hash_order import hash_places

    rows = ranges_of(maps)
    places = np.arange(len(hashes))
    hash_places(for_kernel(rows.starts), for_kernel(rows.sizes), for_kernel(asked), for_kernel(hashes), places)
    if np.array_equal(places, np.arange(len(places))):
        return maps
    order = pa.array(places)
    keys = pc.take(maps.keys, order, boundscheck=False)
    items = pc.take(maps.items, order, boundscheck=False)
    return _with_entries(maps, keys, items)


def _with_entries(maps: pa.Array, keys: pa.Array, items: pa.Array) -> pa.Array:
    entry = pa.StructArray.from_arrays([keys, items], fields=[maps.type.key_field, maps.type.item_field])
    return pa.Array.from_buffers(maps.type, len(maps), maps.buffers()[:2], maps.null_count, maps.offset, [entry])


def as_hashed(maps: pa.Array) -> pa.Array:
    """Maps in the order that Flink's new maps of its own data have; those with keys of rare types as they are."""
    hashes = _key_hashes(maps.keys)
    if hashes is None:
        return maps
    return in_hash_order(maps, hashes, np.full(len(maps), _USUAL, dtype=np.int64))


def _key_hashes(keys: pa.Array) -> npt.NDArray[np.int32] | None:
    type_: Any = keys.type
    if pa.types.is_string(type_):
        from flowsql_compute.kernels.hash_order import text_hashes

        offsets, data = string_buffers(keys)
        made = np.empty(len(keys), dtype=np.int32)
        text_hashes(for_kernel(offsets), for_kernel(data), made)
        return made
    if pa.types.is_integer(type_) or pa.types.is_date(type_):
        values, _ = values_and_validity(keys)
        wide = values.astype(np.int64)
        return (wide ^ (wide >> 32) if pa.types.is_int64(type_) else wide).astype(np.int32)
    return None


@lru_cache(maxsize=4096)
def text_order(keys: tuple[str, ...]) -> tuple[str, ...]:
    """Different texts in the order in which Flink gives them as keys of a new map; documents often have the same.

    >>> text_order(("k3", "a", "b", "c", "abcdef", "dd"))
    ('k3', 'a', 'dd', 'c', 'b', 'abcdef')
    """
    if len(keys) < 2:
        return keys
    offsets = pa.array([0, len(keys)], pa.int32())
    entries = pa.MapArray.from_arrays(offsets, pa.array(keys, pa.string()), pa.nulls(len(keys)))
    return tuple(key.as_py() for key in as_hashed(entries).keys)
