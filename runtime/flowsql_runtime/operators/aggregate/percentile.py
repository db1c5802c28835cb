"""PERCENTILE: linear interpolation between the sorted values of each group."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flowsql_compute.eval.cast import cast_array
from flowsql_compute.eval.columns import make_array, validity, values_and_validity
from flowsql_compute.eval.context import EvalContext
from flowsql_core.arrow import compute as pc
from flowsql_core.errors import ExecutionError
from flowsql_core.types.arrow import from_arrow
from flowsql_core.types.logical import DOUBLE

Int64s = npt.NDArray[np.int64]
Doubles = npt.NDArray[np.float64]


def percentiles(
    columns: Sequence[Any], owners: Int64s, n: int, fractions: Sequence[float] | None, type_: pa.DataType
) -> Any:
    """The percentiles of ``n`` groups.

    Args:
        columns: values, the fractions of each row if ``fractions`` is None, and, where given, how often each counts.
        owners: the group of each value, rising, (m,).
        fractions: from 0 to 1 each; None: those of the first row of each group.
        type_: ``float64`` for one fraction, else a list of it.

    Returns:
        NULL for a group without values, and for a list of no fractions.

    Raises:
        ExecutionError: a fraction of a row is not from 0 to 1.
    """
    flat, sizes = _fractions(columns, owners, n, fractions)
    counted = [columns[0], *columns[1 if fractions is not None else 2 :]]
    known = validity(columns[0])
    if known is not None:
        counted = [column.filter(make_array(known, None, pa.bool_())) for column in counted]
        owners = owners[known]
    values, _ = values_and_validity(_as_doubles(counted[0]))
    order = np.lexsort((values, owners))
    values, owners = values[order], owners[order]
    weights = np.ones(len(values), dtype=np.int64)
    if len(counted) > 1:
        # A value that counts no time or less is not there.
        counts, valid = values_and_validity(counted[1])
        given = counts.astype(np.int64) if valid is None else np.where(valid, counts, 0).astype(np.int64)
        weights = np.maximum(given, 0)[order]
    # Positions run through all groups: a group's own start at ``before``.
    ends = np.cumsum(weights)
    totals = np.bincount(owners, weights=weights, minlength=n).astype(np.int64)
    before = np.cumsum(totals) - totals
    filled = totals > 0
    groups = np.repeat(np.arange(n), sizes)
    results = _at(values, ends, before[groups], totals[groups], flat)
    if not pa.types.is_list(type_):
        return make_array(results, filled, type_)
    offsets = np.zeros(n + 1, dtype=np.int32)
    np.cumsum(np.where(filled, sizes, 0), out=offsets[1:])
    none = ~filled | (sizes == 0)
    lists = pa.ListArray.from_arrays(pa.array(offsets), pa.array(results[filled[groups]]), mask=pa.array(none))
    return lists.cast(type_)


def _as_doubles(column: Any) -> Any:
    """As Java's doubleValue: the nearest double of a DECIMAL; whole numbers beyond 2^53 are rounded."""
    if pa.types.is_decimal(column.type):
        return cast_array(column, from_arrow(column.type), DOUBLE, False, EvalContext())
    return pc.cast(column, pa.float64(), safe=False)


def _fractions(
    columns: Sequence[Any], owners: Int64s, n: int, fractions: Sequence[float] | None
) -> tuple[Doubles, Int64s]:
    """The fractions of all groups one behind another, and how many each group has."""
    if fractions is not None:
        return np.tile(np.array(fractions, np.float64), n), np.full(n, len(fractions), np.int64)
    there, first = np.unique(owners, return_index=True)
    given = columns[1].take(pa.array(first))
    sizes = np.zeros(n, np.int64)
    sizes[there] = 1
    if pa.types.is_list(given.type):
        sizes[there] = values_and_validity(pc.list_value_length(given))[0]
        given = given.flatten()
    flat: Doubles = values_and_validity(given)[0]
    wrong = np.flatnonzero(~((flat >= 0) & (flat <= 1)))
    if len(wrong):
        shown = repr(float(flat[wrong[0]]))
        message = f"Percentage of PERCENTILE should be between [0.0, 1.0], but was '{shown}'."
        raise ExecutionError("percentile-range", message)
    if not pa.types.is_list(columns[1].type):
        # A group without rows has a place for the result that it lacks.
        every = np.zeros(n, np.float64)
        every[there] = flat
        return every, np.ones(n, np.int64)
    return flat, sizes


def _at(values: Doubles, ends: Int64s, before: Int64s, totals: Int64s, fraction: Doubles) -> Doubles:
    # Places count from 1, so that distances are rounded as in Flink.
    place = np.maximum(totals - 1, 0) * fraction + 1.0
    low, high = np.floor(place), np.ceil(place)
    last = max(len(values) - 1, 0)
    below = np.minimum(np.searchsorted(ends, before + low.astype(np.int64) - 1, side="right"), last)
    above = np.minimum(np.searchsorted(ends, before + high.astype(np.int64) - 1, side="right"), last)
    if not len(values):
        return np.zeros(len(totals), dtype=np.float64)
    left, right = values[below], values[above]
    return np.where((low == high) | (left == right), left, (high - place) * left + (place - low) * right)
