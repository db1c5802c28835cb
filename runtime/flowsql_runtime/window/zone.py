"""Local wall clock and epoch: windows over TIMESTAMP_LTZ lie on the session zone's clock, daylight saving included."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Int64s = npt.NDArray[np.int64]


def to_local_ms(epoch_ms: Int64s, zone: str | None) -> Int64s:
    """Wall clock of each instant, read as if it were UTC, epoch ms; the same without a zone or in UTC."""
    if zone in (None, "UTC"):
        return epoch_ms
    import pyarrow as pa
    import pyarrow.compute as pc

    instants = pa.array(epoch_ms, pa.timestamp("ms", tz=zone))
    return _int64s(pc.local_timestamp(instants))


def to_epoch_ms(local_ms: Int64s, zone: str | None) -> Int64s:
    """Instant of each wall clock time: the later one where a clock time comes twice; one that is skipped counts on.

    Source: Flink, ``TimeWindowUtil.toEpochMillsForTimer``.
    """
    if zone in (None, "UTC") or not len(local_ms):
        return local_ms
    import pyarrow as pa
    import pyarrow.compute as pc

    known, places = np.unique(local_ms, return_inverse=True)
    local = pa.array(known, pa.timestamp("ms"))
    epoch = _int64s(pc.assume_timezone(local, zone, ambiguous="latest", nonexistent="earliest"))
    skipped = to_local_ms(epoch, zone) != known
    if skipped.any():
        # Arrow answers the last instant before the gap; its offset carries the clock over the gap.
        before = epoch[skipped]
        epoch = epoch.copy()
        epoch[skipped] = known[skipped] - (to_local_ms(before, zone) - before)
    return epoch[places]


def _int64s(array: object) -> Int64s:
    from flowsql_compute.eval.columns import values_and_validity

    values: Int64s = values_and_validity(array)[0]
    return values
