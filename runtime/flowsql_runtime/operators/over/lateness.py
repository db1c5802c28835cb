"""Which rows of a frame that slides come too late, by key: Flink compares them with what the key answered last."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flowsql_compute.eval.columns import values_and_validity
from flowsql_core.record import record
from flowsql_runtime.kernels.over import frames as numbering
from flowsql_runtime.kernels.over import stages as kernels
from flowsql_runtime.state.backend import StoreFactory
from flowsql_runtime.state.names import TableNames
from flowsql_runtime.state.stores import KeyIndex, StoredColumn

Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]

_NOTHING: Final = np.zeros(0, np.int32)


@record
class Judged:
    """What becomes of rows.

    ``fires`` (n,): which watermark answers each: as many as there are if none does yet, -1 for a late row. ``epochs``
    (n,): how often the key's frame had been dropped before. ``over``: slots whose frames are to be dropped after all
    rows; ``gone``: those among them of which nothing else is kept, as no row of theirs waits.
    """

    fires: Int32s
    epochs: Int32s
    over: Int32s
    gone: Int32s


class Lateness:
    """The time that each key answered last, and from when its frame is over.

    Args:
        width_ms: of frames of time; None for frames of rows.
    """

    def __init__(self, states: StoreFactory, index: KeyIndex, width_ms: int | None) -> None:
        columns = [StoredColumn("last", pa.int64(), nullable=False), StoredColumn("over", pa.int64(), nullable=False)]
        self._width_ms = width_ms
        self._answered = states.column_store("answered", index, columns if width_ms is not None else columns[:1])
        self._timers = None if width_ms is None else states.timers("over", index)
        self._scratch: Int32s = np.zeros(0, np.int32)

    def names(self) -> dict[str, TableNames]:
        """What the stores mean."""
        tables = {"answered": TableNames("what was answered last", {"v:last": "time"})}
        if self._timers is not None:
            tables["answered"] = TableNames("what was answered last", {"v:last": "time", "v:over": "end of the frame"})
            tables["over"] = TableNames("when frames are over")
        return tables

    def earliest(self) -> int | None:
        """When the next frame of time may be over; None without any."""
        return None if self._timers is None else self._timers.earliest()

    def judge(
        self, times: Int64s, arrivals: Int32s, slots: Int32s, waited: int, levels: Int64s, *, late: bool = True
    ) -> Judged:
        """Play rows and watermarks in their order; arguments as of ``kernels.over.stages``, with slots for keys.

        ``late``: rows may be.
        """
        n = len(times)
        timer_times, timer_slots = np.zeros(0, np.int64), np.zeros(0, np.int32)
        if self._timers is not None and len(levels):
            timer_times, timer_slots = self._timers.due(int(levels[-1]))
        everything = np.ascontiguousarray(np.concatenate((slots, timer_slots)))
        if int(everything.max(initial=-1)) >= len(self._scratch):
            self._scratch = np.full(2 * int(everything.max()) + 2, -1, np.int32)
        keys, ranks = np.empty(len(everything), np.int32), np.empty(len(everything), np.int32)
        touched, counts = np.empty(len(everything), np.int32), np.empty(len(everything), np.int32)
        known = int(numbering.number(everything, self._scratch, keys, ranks, touched, counts))
        touched = touched[:known].copy()
        stored = [values_and_validity(column)[0].copy() for column in self._answered.gather(touched)]
        last, over = stored[0], stored[1] if len(stored) > 1 else np.zeros(known, np.int64)
        if not late:
            last[:] = np.iinfo(np.int64).min
        fires, epochs = np.empty(n, np.int32), np.zeros(n, np.int32)
        clears = np.zeros(known, np.int32)
        made_times, made_keys = np.empty(n, np.int64), np.empty(n, np.int32)
        made = kernels.stages(
            times, arrivals, keys[:n].copy(), waited, levels, -1 if self._width_ms is None else self._width_ms, last,
            over, np.ascontiguousarray(timer_times), keys[n:].copy(), np.empty(len(levels), np.int32),
            np.empty(2 * n + len(timer_times), np.int32), fires, epochs, clears, made_times, made_keys,
        )  # fmt: skip
        self._answered.scatter(touched, [pa.array(column) for column in (last, over)[: len(stored)]])
        if self._timers is None:
            return Judged(fires, epochs, _NOTHING, _NOTHING)
        self._timers.register(made_times[:made].copy(), touched[made_keys[:made]])
        answered = np.flatnonzero((fires >= 0) & (fires < len(levels)))
        latest = np.zeros(known, np.int32)
        np.maximum.at(latest, keys[answered], epochs[answered])
        ended = clears > latest
        return Judged(fires, epochs, touched[ended], touched[ended & (over == 0)])

    def forget(self, slots: Int32s) -> None:
        """Clear what is kept of slots."""
        self._answered.clear(slots)
