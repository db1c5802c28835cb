"""When a watermark leaves the assigner: Flink's recurrence over the rows of a batch, in columns."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from flowsql_core.batch import WatermarkTrack

Int64s = npt.NDArray[np.int64]

#: Up to so many emissions are found one by one with a binary search each; beyond, all successors are computed at once.
_FEW = 64


def emissions(levels: Int64s, last_ms: int, interval_ms: int) -> WatermarkTrack | None:
    """The watermarks of one batch.

    Args:
        levels: not falling, int64 (n,): the watermark that the rows up to each one allow.
        last_ms: the watermark emitted last.
        interval_ms: a level more than this above the last emitted one is emitted, right after its row.

    Returns:
        Offset ``i + 1`` for an emission after row i; None without emissions.

    Source: Flink, ``WatermarkAssignerOperator.processElement``.
    """
    n = len(levels)
    # Python integers: a level of the smallest long must not wrap.
    if not n or int(levels[-1]) - last_ms <= interval_ms:
        return None
    first = int(np.searchsorted(levels, last_ms + interval_ms, side="right"))
    rows = _one_by_one(levels, first, interval_ms)
    at = np.array(_chained(levels, first, interval_ms) if rows is None else rows, dtype=np.int64)
    return WatermarkTrack((at + 1).astype(np.int32), levels[at])


def with_full_interval(
    track: WatermarkTrack | None, n: int, level_ms: int, last_ms: int, interval_ms: int
) -> WatermarkTrack | None:
    """The watermarks of a batch, and one behind its last row when event time has filled an interval.

    Intervals are counted from the epoch, so windows of whole intervals end with the batch that passes their end and
    need not wait for the next tick of the clock.

    Args:
        track: what :func:`emissions` made of the batch.
        n: rows of the batch.
        level_ms: the watermark that its last row allows.
        last_ms: the watermark emitted before the batch.
        interval_ms: period of ticks.
    """
    emitted_ms = last_ms if track is None else track.last_ms
    # Time up to t has passed with watermark t - 1.
    if (level_ms + 1) // interval_ms <= (emitted_ms + 1) // interval_ms:
        return track
    last = WatermarkTrack(np.array([n], np.int32), np.array([level_ms], np.int64))
    if track is None:
        return last
    return WatermarkTrack(np.append(track.offsets, last.offsets), np.append(track.wm_ms, last.wm_ms))


def _one_by_one(levels: Int64s, row: int, interval_ms: int) -> list[int] | None:
    rows: list[int] = []
    n = len(levels)
    while row < n:
        rows.append(row)
        if len(rows) > _FEW:
            return None
        row = int(np.searchsorted(levels, levels[row] + interval_ms, side="right"))
    return rows


def _chained(levels: Int64s, row: int, interval_ms: int) -> list[int]:
    """All successors in one search (the needles rise, so it is cheap), then a walk over plain integers."""
    successor = np.searchsorted(levels, levels + interval_ms, side="right").tolist()
    rows: list[int] = []
    n = len(levels)
    while row < n:
        rows.append(row)
        row = successor[row]
    return rows
