"""Taps: a few of the rows that leave an operator, for somebody who looks. Nobody looks: one attribute test a batch.

A tap never waits and never keeps more than a bounded number of rows. What comes faster than it is read is counted and
left out. The time that it takes from the task is measured and bounded, too.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Mapping
from time import perf_counter_ns
from typing import Final

import numpy as np

from flowsql_core.batch import ChangelogBatch
from flowsql_core.record import record
from flowsql_core.row import RowKind

logger = logging.getLogger(__name__)

#: Rows that are taken of one batch, and that may wait for the reader.
ROWS_PER_BATCH: Final = 100
WAITING_ROWS: Final = 2_000
#: A tap takes this part of a task's time at most, beyond a little to begin with.
SHARE: Final = 0.02
BURST_NS: Final = 20_000_000

#: An output of an operator: its node, and the tag of a side output (None: the main one).
Place = tuple[int, str | None]


@record
class Tapped:
    """What was taken since the reader looked before.

    ``passed``: rows that went by. ``taken``: those of them that are in ``batches``, or were in earlier ones.
    """

    batches: tuple[ChangelogBatch, ...]
    passed: int
    taken: int


class Tap:
    """The rows of one reader. Tasks offer batches, any number of them at a time; the reader takes what is there."""

    def __init__(self, rows_per_batch: int = ROWS_PER_BATCH, waiting_rows: int = WAITING_ROWS) -> None:
        self._rows_per_batch = rows_per_batch
        self._waiting_rows = waiting_rows
        self._lock = threading.Lock()
        self._batches: deque[ChangelogBatch] = deque()
        self._waiting = 0
        self._passed = 0
        self._taken = 0
        self._began_ns = perf_counter_ns()
        self._spent_ns = 0
        self._there = threading.Event()

    def offer(self, batch: ChangelogBatch) -> None:
        """A task's thread: copy some rows, if there is room for them and time."""
        rows = batch.num_rows
        if not rows:
            return
        with self._lock:
            self._passed += rows
            count = min(rows, self._rows_per_batch, self._waiting_rows - self._waiting)
            began_ns = perf_counter_ns()
            if count <= 0 or self._spent_ns > BURST_NS + SHARE * (began_ns - self._began_ns):
                return
            # Reserved here, copied without the lock: other subtasks do not wait for the copy.
            count = _whole_updates(batch, count)
            self._waiting += count
        try:
            # Without its watermarks, and apart from the memory of the whole batch.
            copied = batch.with_track(None).take(np.arange(count))
        except Exception:  # whatever it is, the job goes on
            logger.warning("rows could not be sampled", exc_info=True)
            copied = None
        with self._lock:
            if copied is None:
                self._waiting -= count
            else:
                self._batches.append(copied)
                self._taken += count
            self._spent_ns += perf_counter_ns() - began_ns
        self._there.set()

    def read(self, timeout_s: float) -> Tapped:
        """The reader: what is there, waited for no longer than that."""
        self._there.wait(timeout_s)
        self._there.clear()
        with self._lock:
            batches = tuple(self._batches)
            self._batches.clear()
            self._waiting -= sum(batch.num_rows for batch in batches)
            return Tapped(batches, self._passed, self._taken)


def _whole_updates(batch: ChangelogBatch, count: int) -> int:
    """As many rows, or one less: the first half of an update does not come without its second."""
    kinds = batch.kinds
    is_cut = kinds is not None and count < batch.num_rows and kinds[count - 1] == RowKind.UPDATE_BEFORE
    return count - 1 if is_cut and count > 1 else count


class TapPoint:
    """An output of an operator in all subtasks and attempts of a job. ``taps``: None while nobody looks."""

    __slots__ = ("taps",)

    def __init__(self) -> None:
        self.taps: tuple[Tap, ...] | None = None


class JobTaps:
    """All outputs of a job at which somebody may look. Any thread."""

    def __init__(self) -> None:
        self._points: dict[Place, TapPoint] = {}
        self._lock = threading.Lock()

    def point(self, node_id: int, tag: str | None = None) -> TapPoint:
        """Where the rows of an output can be tapped."""
        with self._lock:
            return self._points.setdefault((node_id, tag), TapPoint())

    def has(self, place: Place) -> bool:
        """Whether the job was deployed here, and has such an output."""
        with self._lock:
            return place in self._points

    def add(self, place: Place, tap: Tap) -> None:
        """Somebody looks; restarts of the job do not change that."""
        point = self.point(*place)
        with self._lock:
            point.taps = (*(point.taps or ()), tap)

    def remove(self, place: Place, tap: Tap) -> None:
        """Nobody looks there any more."""
        point = self.point(*place)
        with self._lock:
            point.taps = tuple(one for one in point.taps or () if one is not tap) or None

    def open(self) -> Mapping[Place, int]:
        """Where somebody looks, and how many do."""
        with self._lock:
            return {place: len(point.taps) for place, point in self._points.items() if point.taps is not None}
