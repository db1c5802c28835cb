"""Splits of the job's scans: dealt out when the job starts, and, of scans that go on looking, when they appear.

A checkpoint holds the enumerator's state as of its trigger and the splits of each reader as of its barrier. So that no
split falls between the two and none is in both, each one that is found bears the number of the checkpoint that was
triggered last: a reader gets it only behind that checkpoint's barrier, and has it before the barrier of the next.

Where a part of the job goes back to a checkpoint the enumerator does not: its readers get again what they were given
since, which is kept until a checkpoint holds it (Flink, ``SplitAssignmentTracker``).
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from flowsql_core.clock import Clock
from flowsql_runtime.time.processing import ProcessingTime

if TYPE_CHECKING:
    from flowsql_connectors.spi.source import Split, SplitEnumerator

logger = logging.getLogger(__name__)


class SourceCoordinator:
    """Splits of one scan. Any thread.

    Args:
        name: for messages.
        enumerator: of the scan.
        parallelism: subtasks.
        restored: unfinished splits of a snapshot; None: the job starts anew.
        state: the enumerator's in that snapshot.
    """

    def __init__(
        self,
        name: str,
        enumerator: SplitEnumerator,
        parallelism: int,
        restored: Sequence[Split] | None,
        state: bytes | None,
    ) -> None:
        self._name = name
        self._enumerator = enumerator
        self._parallelism = parallelism
        self._lock = threading.Lock()
        #: One look at a time: of two at once both would find the same splits.
        self._looking = threading.Lock()
        self._triggered = 0
        if state is not None:
            enumerator.restore(state)
        initial = (
            enumerator.initial_splits(parallelism)
            if restored is None
            else enumerator.redistribute(list(restored), parallelism)
        )
        self._initial = tuple(initial)
        #: Per subtask what its reader begins with.
        self._first = initial
        #: Per subtask the splits that it did not take yet, each behind which checkpoint.
        self._waiting: list[list[tuple[int, Split]]] = [[] for _ in range(parallelism)]
        #: Likewise those that were found since the last complete checkpoint was triggered, taken or not.
        self._given: list[list[tuple[int, Split]]] = [[] for _ in range(parallelism)]
        #: Per subtask the last checkpoint before its reader began.
        self._began: list[int] = [0] * parallelism
        self._wakes: dict[int, Callable[[], None]] = {}
        #: Whether the scan was looked through since the job started; what is restored may be old.
        self._looked = restored is None or enumerator.discovery_interval_ms() is None

    @property
    def looked(self) -> bool:
        """Whether all splits are known that were there when the job started."""
        return self._looked

    @property
    def interval_ms(self) -> int | None:
        """How often to look for new splits; None: never."""
        return self._enumerator.discovery_interval_ms()

    def snapshot(self, checkpoint_id: int) -> bytes:
        """The enumerator's state; what is found from now on belongs behind this checkpoint."""
        with self._lock:
            self._triggered = checkpoint_id
            return self._enumerator.snapshot()

    def discover(self) -> None:
        """Look for new splits and deal them out; what goes wrong is logged, and the next look tries again."""
        try:
            with self._looking:
                found = self._enumerator.discover(self._parallelism)
                with self._lock:
                    self._looked = True
                    if not found:
                        return
                    for subtask, splits in enumerate(self._enumerator.assign(found, self._parallelism)):
                        found_now = [(self._triggered, split) for split in splits]
                        self._waiting[subtask] += found_now
                        self._given[subtask] += found_now
                    wakes = [wake for subtask, wake in self._wakes.items() if self._waiting[subtask]]
        except Exception:
            # As in Flink: a look that fails is no failure of the job.
            logger.exception("op=%s: looking for new splits failed", self._name)
            return
        for wake in wakes:
            wake()

    def first(self, subtask: int) -> list[Split]:
        """What a reader begins with."""
        with self._lock:
            return self._first[subtask]

    def go_back(self, subtask: int, checkpoint_id: int | None, splits: list[Split] | None) -> None:
        """A reader will begin again, at a checkpoint or where the job did.

        Args:
            checkpoint_id: None: where the job began.
            splits: of the reader at that checkpoint; None: those that it began with.
        """
        with self._lock:
            self._first[subtask] = list(self._initial[subtask]) if splits is None else splits
            since = self._given[subtask]
            self._waiting[subtask] = [one for one in since if checkpoint_id is None or one[0] >= checkpoint_id]
            # No barrier of a checkpoint up to now will reach the new reader: it waits for none of them.
            self._began[subtask] = self._triggered

    def completed(self, checkpoint_id: int) -> None:
        """Nobody goes back behind this checkpoint any more."""
        with self._lock:
            self._given = [[one for one in given if one[0] >= checkpoint_id] for given in self._given]

    def take(self, subtask: int, passed: int) -> list[Split]:
        """New splits of a reader that the barriers up to ``passed`` have passed."""
        with self._lock:
            passed = max(passed, self._began[subtask])
            waiting = self._waiting[subtask]
            self._waiting[subtask] = [one for one in waiting if one[0] > passed]
            return [split for behind, split in waiting if behind <= passed]

    def all_taken(self, subtask: int) -> bool:
        """Whether a reader has every split of its that was there when the job started."""
        with self._lock:
            return self._looked and not self._waiting[subtask]

    def join(self, subtask: int, wake: Callable[[], None]) -> None:
        """A reader takes part; ``wake`` is called when there is something to take (any thread)."""
        with self._lock:
            self._wakes[subtask] = wake
            waiting = bool(self._waiting[subtask])
        if waiting:
            wake()

    def leave(self, subtask: int) -> None:
        """A reader ended."""
        with self._lock:
            self._wakes.pop(subtask, None)

    @property
    def followed(self) -> bool:
        """Whether any reader takes part."""
        return bool(self._wakes)


class Discovery:
    """The thread of a job that looks for new splits; it ends with the last reader."""

    def __init__(self, job_name: str, clock: Clock) -> None:
        self._time = ProcessingTime(clock)
        self._changed = threading.Condition()
        self._due_ms: dict[SourceCoordinator, int] = {}
        self._job_name = job_name
        self._thread: threading.Thread | None = None
        self._time.on_jump(self._look_again)

    def add(self, coordinator: SourceCoordinator) -> None:
        """Look regularly, from one interval later on; at once where nobody has looked since the job started."""
        interval_ms = coordinator.interval_ms
        assert interval_ms is not None
        first_ms = interval_ms if coordinator.looked else 0
        with self._changed:
            self._due_ms.setdefault(coordinator, self._time.clock.now_ms() + first_ms)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name=f"discovery-{self._job_name[:40]}", daemon=True)
                self._thread.start()
            self._changed.notify()

    def remove(self, coordinator: SourceCoordinator) -> None:
        """Look no more."""
        with self._changed:
            self._due_ms.pop(coordinator, None)
            self._changed.notify()

    def _look_again(self) -> None:
        with self._changed:
            self._changed.notify()

    def _run(self) -> None:
        while (due := self._next()) is not None:
            for coordinator in due:
                coordinator.discover()

    def _next(self) -> list[SourceCoordinator] | None:
        """Wait for scans that are due; None when there are none any more."""
        with self._changed:
            while self._due_ms:
                now_ms = self._time.clock.now_ms()
                due = [coordinator for coordinator, at_ms in self._due_ms.items() if at_ms <= now_ms]
                for coordinator in due:
                    self._due_ms[coordinator] = now_ms + (coordinator.interval_ms or 0)
                if due:
                    return due
                self._changed.wait(self._time.seconds_until(min(self._due_ms.values())))
            self._thread = None
            return None
