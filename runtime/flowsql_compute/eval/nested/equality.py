"""Equality of arrays, maps and rows, row by row but column-wise: children are compared as whole columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flowsql_compute.eval.columns import Bools, make_array, spread, validity, values_and_validity
from flowsql_core.arrow import compute as pc
from flowsql_core.record import record


@record
class _Pair:
    a: pa.Array
    b: pa.Array


def nested_equal(call: Any, a: Any, b: Any) -> pa.Array:
    """Whether two columns of one nested type are equal, row by row; NULL where one is NULL.

    ``call`` has the number of rows in ``n``. NULL elements are equal to each other; maps compare without order.
    """
    left = spread(a, call.n) if isinstance(a, pa.Scalar) else a
    right = spread(b, call.n) if isinstance(b, pa.Scalar) else b
    valid = _both(validity(left), validity(right))
    return make_array(_same(_Pair(left, right)), valid, pa.bool_())


def _both(a: Bools | None, b: Bools | None) -> Bools | None:
    if a is None:
        return b
    return a if b is None else a & b


def _same(pair: _Pair) -> Bools:
    """True where both are NULL or both are the same value."""
    a, b = pair.a, pair.b
    n = len(a)
    none_a, none_b = _nulls(a), _nulls(b)
    if pa.types.is_null(a.type) or pa.types.is_null(b.type):
        same = np.ones(n, dtype=np.bool_)
    elif pa.types.is_struct(a.type):
        same = np.ones(n, dtype=np.bool_)
        for index in range(a.type.num_fields):
            same &= _same(_Pair(pc.struct_field(a, [index]), pc.struct_field(b, [index])))
    elif pa.types.is_map(a.type):
        same = _same_maps(a, b)
    elif pa.types.is_list(a.type):
        same = _same_lists(a, b)
    else:
        same, _ = values_and_validity(pc.coalesce(pc.equal(a, b), pa.scalar(False)))
    return np.where(none_a | none_b, none_a & none_b, same)


def _nulls(array: pa.Array) -> Bools:
    valid = validity(array)
    return np.zeros(len(array), dtype=np.bool_) if valid is None else ~valid


def _bounds(array: pa.Array) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    offsets = np.frombuffer(array.buffers()[1], dtype=np.int32, count=array.offset + len(array) + 1)[array.offset :]
    starts = offsets[:-1].astype(np.int64)
    return starts, np.where(_nulls(array), 0, np.diff(offsets)).astype(np.int64)


def _same_lists(a: pa.Array, b: pa.Array) -> Bools:
    (start_a, size_a), (start_b, size_b) = _bounds(a), _bounds(b)
    same: Bools = np.asarray(size_a == size_b)
    rows = np.flatnonzero(same & (size_a > 0))
    sizes = size_a[rows]
    owner = np.repeat(rows, sizes)
    within = np.arange(len(owner)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    pair = _Pair(
        pc.take(a.values, pa.array(start_a[owner] + within)), pc.take(b.values, pa.array(start_b[owner] + within))
    )
    differing = owner[~_same(pair)]
    same[differing] = False
    return same


def _same_maps(a: pa.Array, b: pa.Array) -> Bools:
    """Every entry of one has an equal entry in the other; entries of a row are compared all against all."""
    (start_a, size_a), (start_b, size_b) = _bounds(a), _bounds(b)
    same: Bools = np.asarray(size_a == size_b)
    rows = np.flatnonzero(same & (size_a > 0))
    sizes = size_a[rows]
    pairs = sizes * sizes
    owner = np.repeat(rows, pairs)
    number = np.arange(len(owner)) - np.repeat(np.cumsum(pairs) - pairs, pairs)
    width = size_a[owner]
    left, right = start_a[owner] + number // np.maximum(width, 1), start_b[owner] + number % np.maximum(width, 1)
    keys = _same(_Pair(pc.take(a.keys, pa.array(left)), pc.take(b.keys, pa.array(right))))
    items = _same(_Pair(pc.take(a.items, pa.array(left)), pc.take(b.items, pa.array(right))))
    matches = np.bincount(owner[keys & items], minlength=len(same))
    return np.asarray(same & (matches >= size_a))
