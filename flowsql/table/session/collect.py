"""The road from a running job to the program that asked: a bounded queue of batches, with back-pressure both ways."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator

from flowsql_core.batch import ChangelogBatch

#: Rows that may wait for a slow reader; a job ahead of that pauses.
CAPACITY_ROWS = 1 << 18


class CollectBuffer:
    """The resource behind a ``CollectSinkSpec``: a task calls ``accept`` and ``finish``, the reader iterates.

    ``accept`` blocks while more than ``capacity_rows`` rows wait. After ``cancel`` it drops what comes, so that a
    cancelled job ends at once.
    """

    def __init__(self, capacity_rows: int = CAPACITY_ROWS) -> None:
        self._capacity_rows = capacity_rows
        self._waiting: deque[ChangelogBatch] = deque()
        self._waiting_rows = 0
        self._finished = False
        self._cancelled = False
        self._changed = threading.Condition()

    def accept(self, batch: ChangelogBatch) -> None:
        """Take a batch from the job; blocks while the reader is behind."""
        if not batch.num_rows:
            return
        with self._changed:
            self._changed.wait_for(lambda: self._waiting_rows < self._capacity_rows or self._cancelled)
            if self._cancelled:
                return
            self._waiting.append(batch)
            self._waiting_rows += batch.num_rows
            self._changed.notify_all()

    def finish(self) -> None:
        """The job has sent everything, or will never send more."""
        with self._changed:
            self._finished = True
            self._changed.notify_all()

    def cancel(self) -> None:
        """The reader wants no more."""
        with self._changed:
            self._cancelled = True
            self._waiting.clear()
            self._waiting_rows = 0
            self._changed.notify_all()

    def batches(self, ended: Callable[[], bool], deadline: float | None = None) -> Iterator[ChangelogBatch]:
        """Batches in order until the job finished, was cancelled, or ``deadline`` (``time.monotonic``) passed.

        ``ended`` tells whether the job is over: a job that failed never calls ``finish``.
        """
        while True:
            batch = self._next(ended, deadline)
            if batch is None:
                return
            yield batch

    def _next(self, ended: Callable[[], bool], deadline: float | None) -> ChangelogBatch | None:
        with self._changed:
            while not self._waiting:
                if self._finished or self._cancelled:
                    return None
                now = time.monotonic()
                if deadline is not None and now >= deadline:
                    return None
                over = ended()
                if over and not self._waiting:
                    return None
                # The wait is short only for a job that died; a living one wakes the reader itself.
                limit = 0.05 if deadline is None else min(0.05, deadline - now)
                self._changed.wait(limit)
            batch = self._waiting.popleft()
            self._waiting_rows -= batch.num_rows
            self._changed.notify_all()
            return batch
