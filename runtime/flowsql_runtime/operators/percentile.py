"""PERCENTILE: linear interpolation between the sorted values of each group."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flowsql_core.arrow import compute as pc
from flowsql_core.eval.columns import make_array, values_and_validity

Int64s = npt.NDArray[np.int64]
Doubles = npt.NDArray[np.float64]


def percentiles(columns: Sequence[Any], owners: Int64s, n: int, fractions: Sequence[float], type_: pa.DataType) -> Any:
    """The percentiles of ``n`` groups.

    Args:
        columns: values and, where given, how often each one counts; no NULLs.
        owners: the group of each value, (m,).
        fractions: from 0 to 1 each.
        type_: ``float64`` for one fraction, else a list of it.

    Returns:
        NULL for a group without values.
    """
    values, _ = values_and_validity(pc.cast(columns[0], pa.float64()))
    order = np.lexsort((values, owners))
    values, owners = values[order], owners[order]
    weights = np.ones(len(values), dtype=np.int64)
    if len(columns) > 1:
        # A value that counts no time or less is not there.
        counts, valid = values_and_validity(columns[1])
        known = counts.astype(np.int64) if valid is None else np.where(valid, counts, 0).astype(np.int64)
        weights = np.maximum(known, 0)[order]
    # Positions run through all groups: a group's own start at ``before``.
    ends = np.cumsum(weights)
    totals = np.bincount(owners, weights=weights, minlength=n).astype(np.int64)
    before = np.cumsum(totals) - totals
    filled = totals > 0
    results = [_at(values, ends, before, totals, fraction) for fraction in fractions]
    if not pa.types.is_list(type_):
        return make_array(results[0], filled, type_)
    offsets = np.zeros(n + 1, dtype=np.int32)
    np.cumsum(np.where(filled, len(fractions), 0), out=offsets[1:])
    flat = np.stack(results, axis=1)[filled].reshape(-1)
    lists = pa.ListArray.from_arrays(pa.array(offsets), pa.array(flat), mask=pa.array(~filled))
    return lists.cast(type_)


def _at(values: Doubles, ends: Int64s, before: Int64s, totals: Int64s, fraction: float) -> Doubles:
    place = np.maximum(totals - 1, 0) * fraction
    low, high = np.floor(place), np.ceil(place)
    last = max(len(values) - 1, 0)
    below = np.minimum(np.searchsorted(ends, before + low.astype(np.int64), side="right"), last)
    above = np.minimum(np.searchsorted(ends, before + high.astype(np.int64), side="right"), last)
    if not len(values):
        return np.zeros(len(totals), dtype=np.float64)
    left, right = values[below], values[above]
    return np.where((low == high) | (left == right), left, (high - place) * left + (place - low) * right)
