"""Local wall clock and epoch: windows over TIMESTAMP_LTZ lie on the session zone's clock, daylight saving included."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

Int64s = npt.NDArray[np.int64]

#: Zones do not change their offset twice within this time.
_GRID_MS: Final = 6 * 3_600_000


def to_local_ms(epoch_ms: Int64s, zone: str | None) -> Int64s:
    """Wall clock of each instant, read as if it were UTC, epoch ms; the same without a zone or in UTC."""
    if zone in (None, "UTC"):
        return epoch_ms
    import pyarrow as pa

    from flowsql_core.arrow import compute as pc

    instants = pa.array(epoch_ms, pa.timestamp("ms", tz=zone))
    return _int64s(pc.local_timestamp(instants))


def to_epoch_ms(local_ms: Int64s, zone: str | None, *, earlier: bool = False) -> Int64s:
    """Instant of each wall clock time: the later one where a clock time comes twice; one that is skipped counts on.

    ``earlier``: the earlier one of the two.

    Source: Flink, ``TimeWindowUtil.toEpochMillsForTimer`` and, for the earlier one, ``toEpochMills``.
    """
    if zone in (None, "UTC") or not len(local_ms):
        return local_ms
    import pyarrow as pa

    from flowsql_core.arrow import compute as pc

    known, places = np.unique(local_ms, return_inverse=True)
    local = pa.array(known, pa.timestamp("ms"))
    ambiguous = "earliest" if earlier else "latest"
    epoch = _int64s(pc.assume_timezone(local, zone, ambiguous=ambiguous, nonexistent="earliest"))
    skipped = to_local_ms(epoch, zone) != known
    if skipped.any():
        # Arrow answers the last instant before the gap; its offset carries the clock over the gap.
        before = epoch[skipped]
        epoch = epoch.copy()
        epoch[skipped] = known[skipped] - (to_local_ms(before, zone) - before)
    return epoch[places]


def rowtime_ms(ends_ms: Int64s, zone: str | None) -> Int64s:
    """Row time of windows that end at a wall clock time: their last millisecond, the earlier one if it comes twice."""
    return to_epoch_ms(ends_ms - 1, zone, earlier=True)


def local_offsets(low_ms: int, high_ms: int, zone: str | None) -> tuple[Int64s, Int64s]:
    """What :func:`to_epoch_ms` takes off local times of a range: ``breaks`` (m,) and ``offsets`` (m + 1,), ms.

    ``offsets[i]`` holds for local times from ``breaks[i - 1]`` on and before ``breaks[i]``.
    """
    if zone in (None, "UTC"):
        return np.zeros(0, np.int64), np.zeros(1, np.int64)
    grid = np.arange(low_ms // _GRID_MS, high_ms // _GRID_MS + 2) * _GRID_MS
    offsets = grid - to_epoch_ms(grid, zone)
    at = np.flatnonzero(np.diff(offsets))
    low, high, old = grid[at], grid[at + 1], offsets[at]
    while len(at) and int((high - low).max()) > 1:
        middle = (low + high) // 2
        same = middle - to_epoch_ms(middle, zone) == old
        low, high = np.where(same, middle, low), np.where(same, high, middle)
    return high, np.concatenate((offsets[:1], offsets[at + 1]))


def _int64s(array: object) -> Int64s:
    from flowsql_compute.eval.columns import values_and_validity

    values: Int64s = values_and_validity(array)[0]
    return values
