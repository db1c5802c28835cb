"""Partitions, peers and frames of sorted rows, as positions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flowsql_compute.eval.columns import validity, values_and_validity
from flowsql_compute.eval.time.calendar import UNITS_PER_SECOND
from flowsql_core.graph.bounded_specs import Distance, OverFrame
from flowsql_runtime.operators.bounded.order import ComparedWord, begins_by_value

Int64s = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

_DAY_MS = 86_400_000


@dataclass(frozen=True, eq=False, slots=True)
class RankedPeers:
    """Peers as RANK, DENSE_RANK, PERCENT_RANK and CUME_DIST see them, all (n,).

    ``number``: how many groups of peers of its partition stand before a row's own.
    """

    first: Int64s
    last: Int64s
    number: Int64s


@dataclass(frozen=True, eq=False, slots=True)
class Partitions:
    """Sorted rows: for each, where its partition and its peers (rows of equal order) start and end; all (n,).

    A row with NaN belongs to the partition and to the peers of the row before it, as Flink's comparison of neighbours
    has it; only for ranks it has no peer: ``ranked``.
    """

    first: Int64s
    last: Int64s
    peer_first: Int64s
    peer_last: Int64s
    ranked: RankedPeers

    @staticmethod
    def of(keys: Sequence[ComparedWord], words: Sequence[ComparedWord], n: int) -> Partitions:
        """Of rows sorted by the words of their partition, then by those of their order."""
        partitions = begins_by_value(keys, n)
        first, last = _runs(partitions, n)
        peers = partitions | begins_by_value(words, n)
        ranked = peers
        if any(word.nan is not None for word in words):
            ranked = partitions | begins_by_value(words, n, nan_begins=True)
        groups: Int64s = np.cumsum(ranked, dtype=np.int64)
        return Partitions(first, last, *_runs(peers, n), RankedPeers(*_runs(ranked, n), groups - groups[first]))

    def frame(self, frame: OverFrame, value: Any, descending: bool) -> tuple[Int64s, Int64s]:
        """First row of each row's frame, and the one behind its last row.

        Args:
            value: the sorted column of the order, where a RANGE measures distances; else None.
        """
        here = np.arange(len(self.first))
        if frame.counts_rows:
            low = self.first if frame.start is None else np.clip(here + int(frame.start), self.first, self.last)
            high = self.last if frame.end is None else np.clip(here + int(frame.end) + 1, self.first, self.last)
        else:
            low = self._bound(frame.start, value, descending, after=False, to_end=frame.end is None)
            high = self._bound(frame.end, value, descending, after=True)
        return low, np.maximum(low, high)

    def _bound(self, distance: Distance, value: Any, descending: bool, after: bool, to_end: bool = False) -> Int64s:
        if distance is None:
            return self.last if after else self.first
        if distance == 0:
            return self.peer_last if after else self.peer_first
        numbers, valid = numbers_of(value)
        away = in_units(distance, value.type)
        if descending:
            numbers = -numbers
        low, high = self.first, self.last
        if valid is not None:
            # The NULLs of a partition stand together at one of its ends.
            known: Int64s = np.concatenate((np.zeros(1, np.int64), np.cumsum(valid, dtype=np.int64)))
            nulls_lead = ~valid[self.first]
            count = known[self.last] - known[self.first]
            low = np.where(nulls_lead, self.last - count, self.first)
            known_last = high = low + count
        wanted = numbers + away
        low, high = low.copy(), high.copy()
        while True:
            open_ = low < high
            if not open_.any():
                break
            middle = (low + high) // 2
            at = np.minimum(middle, len(numbers) - 1)
            below = (numbers[at] <= wanted) if after else (numbers[at] < wanted)
            up = open_ & below.astype(np.bool_)
            low = np.where(up, middle + 1, low)
            high = np.where(open_ & ~up, middle, high)
        if valid is None:
            return low
        if (distance > 0) == after:
            # No distance leads from NULL to a value: a frame that holds the row itself ends with its peers.
            return np.where(valid, low, self.peer_last if after else self.peer_first)
        if after:
            # Flink adds rows up to the first that is beyond the bound. A NULL is always: NULLs that lead keep all rows
            # out, and those at the end see what the last row with a value saw.
            seen = low[np.maximum(known_last - 1, 0)]
            return np.where(nulls_lead, self.first, np.where(valid, low, seen))
        if to_end:
            # Flink leaves out rows up to the first within the bound, and never takes them back. For a NULL none is.
            return np.where(nulls_lead | ~valid | (low == known_last), self.last, low)
        return np.where(valid, low, self.peer_last)


def _runs(begin: Bools, n: int) -> tuple[Int64s, Int64s]:
    """Start and end of the run of each row."""
    starts = np.flatnonzero(begin)
    ends = np.append(starts[1:], n)
    lengths = ends - starts
    return np.repeat(starts, lengths), np.repeat(ends, lengths)


def numbers_of(array: Any) -> tuple[npt.NDArray[Any], Bools | None]:
    """Values to measure distances between: int64, float64, or Python's integers of a wide DECIMAL."""
    values, _ = values_and_validity(array)
    valid = validity(array)
    if values.ndim == 2:
        whole = values[:, 1].astype(object) * (1 << 64) + values[:, 0].view(np.uint64).astype(object)
        return whole, valid
    if values.dtype.kind == "f":
        return values.astype(np.float64), valid
    return values.astype(np.int64), valid


def in_units(distance: int | float | Decimal, type_: Any) -> Any:
    """A distance as values of a type are counted."""
    if pa.types.is_timestamp(type_):
        return int(distance) * UNITS_PER_SECOND[type_.unit] // 1000
    if pa.types.is_date(type_):
        return int(distance) // _DAY_MS
    if pa.types.is_decimal(type_):
        return int((Decimal(str(distance)) * (Decimal(10) ** type_.scale)).to_integral_value())
    return float(distance) if pa.types.is_floating(type_) else int(distance)
