"""Rows sorted by what they have in common, so that each group of them is a slice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flowsql_compute.eval.columns import values_and_validity
from flowsql_core.arrow import compute as pc


def runs_of(numbers: npt.NDArray[np.int64]) -> tuple[Any | None, list[tuple[int, int, int]]]:
    """The order that brings equal numbers together, None where they stand so, and ``(number, start, stop)`` of runs.

    Runs stand in the order in which their numbers first appear.
    """
    encoded = pc.dictionary_encode(pa.array(numbers))
    codes = values_and_validity(encoded.indices)[0]
    order = None
    if (codes[1:] < codes[:-1]).any():
        by_code = np.argsort(codes, kind="stable")
        order, codes = pa.array(by_code), codes[by_code]
    borders = np.flatnonzero(np.diff(codes)) + 1
    starts = [0, *borders.tolist()]
    stops = [*borders.tolist(), len(numbers)]
    distinct = np.asarray(encoded.dictionary)
    return order, [(int(distinct[codes[start]]), start, stop) for start, stop in zip(starts, stops, strict=True)]


def combined(levels: Sequence[tuple[Any, int]], num_rows: int) -> npt.NDArray[np.int64]:
    """One number for each row of several: ``(numbers, how many there are)`` on each level."""
    numbers = np.zeros(num_rows, dtype=np.int64)
    for codes, count in levels:
        numbers = numbers * count + codes
    return numbers


def taken_apart(number: int, counts: Sequence[int]) -> list[int]:
    """The numbers on each level that one of :func:`combined` was made of."""
    parts = []
    for count in reversed(counts):
        number, at = divmod(number, count)
        parts.append(at)
    return parts[::-1]
