"""Keys of OVER windows that nobody writes to any more: state that ``table.exec.state.ttl`` frees."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flowsql_compute.eval.columns import values_and_validity
from flowsql_runtime.state.backend import StoreFactory
from flowsql_runtime.state.names import TableNames
from flowsql_runtime.state.stores import KeyIndex, StoredColumn

Int32s = npt.NDArray[np.int32]


class IdleKeys:
    """When the state of each key goes.

    Args:
        slack: as Flink's cleaning by timers: a key goes between one and one and a half times ``ttl_ms`` after its last
            row, so that few rows set its timer anew; else ``ttl_ms`` after it, as Flink's state with a time-to-live.

    Source: Flink, ``CleanupState`` and ``StateTtlConfig``.
    """

    def __init__(self, states: StoreFactory, index: KeyIndex, ttl_ms: int, slack: bool) -> None:
        self._ttl_ms = ttl_ms
        self._kept_ms = ttl_ms * 3 // 2 if slack else ttl_ms
        self._times = states.slot_times("idle", index)
        self._since = states.column_store("since", index, [StoredColumn("since", pa.int64(), nullable=False)])

    def names(self) -> dict[str, TableNames]:
        """What the stores mean."""
        return {
            "idle": TableNames("when it was written"),
            "since": TableNames("when it was written", {"v:since": "time"}),
        }

    def touch(self, slots: Int32s, now_ms: int) -> None:
        """They were written to now."""
        slots = np.unique(slots)
        since = values_and_validity(self._since.gather(slots)[0])[0]
        slots = slots[(since == 0) | (now_ms + self._ttl_ms > since + self._kept_ms)]
        if len(slots):
            self._since.scatter(slots, [pa.array(np.full(len(slots), now_ms, np.int64))])
            self._times.touch(slots, now_ms)

    def expired(self, now_ms: int) -> Int32s:
        """Take out the keys whose time is over; whoever keeps one nevertheless touches it again."""
        return self._times.expired(now_ms - self._kept_ms)

    def forget(self, slots: Int32s) -> None:
        """Clear what is kept of slots."""
        self._times.drop_slots(slots)
        self._since.clear(slots)
