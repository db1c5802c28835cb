"""Rows of a SELECT on their way to the program: with exactly-once checkpoints they wait for the one that covers them.

A row that the program has seen cannot be taken back when a job goes back to a checkpoint. So rows wait for their
checkpoint, as in Flink (``CheckpointedCollectResultBuffer``), or a job that has shown rows is not restarted.
"""

from __future__ import annotations

import threading
from typing import Protocol

from flowsql_core.batch import ChangelogBatch


class Receiver(Protocol):
    """The resource of a collect sink."""

    def accept(self, batch: ChangelogBatch) -> None:
        """Rows; may block while the reader is behind."""
        ...

    def finish(self) -> None:
        """No more rows."""
        ...


class CollectedRows:
    """Rows of all collect sinks of one job, over all its attempts. Any thread.

    Args:
        held: whether rows wait for a checkpoint.
    """

    def __init__(self, held: bool) -> None:
        self._held = held
        #: Whether a row has reached the program.
        self.shown = False
        self._lock = threading.Lock()
        self._open: dict[tuple[str, int], list[tuple[Receiver, ChangelogBatch]]] = {}
        self._sealed: dict[int, list[tuple[Receiver, ChangelogBatch]]] = {}

    def add(self, receiver: Receiver, uid: str, subtask: int, batch: ChangelogBatch) -> None:
        """A sink got rows (its task's thread)."""
        if not self._held:
            self.shown = True
            receiver.accept(batch)
            return
        with self._lock:
            self._open.setdefault((uid, subtask), []).append((receiver, batch))

    def seal(self, uid: str, subtask: int, checkpoint_id: int) -> None:
        """The barrier passed a sink: what it got before belongs to the checkpoint."""
        with self._lock:
            self._sealed.setdefault(checkpoint_id, []).extend(self._open.pop((uid, subtask), ()))

    def show(self, checkpoint_id: int) -> None:
        """The checkpoint is complete."""
        with self._lock:
            numbers = sorted(number for number in self._sealed if number <= checkpoint_id)
            rows = [one for number in numbers for one in self._sealed.pop(number)]
        self._give(rows)

    def show_all(self) -> None:
        """The job ended well."""
        with self._lock:
            rows = [one for number in sorted(self._sealed) for one in self._sealed[number]]
            rows += [one for found in self._open.values() for one in found]
            self._sealed.clear()
            self._open.clear()
        self._give(rows)

    def go_back(self, checkpoint_id: int) -> None:
        """The job starts again from a checkpoint: rows behind it will come again."""
        self.show(checkpoint_id)
        with self._lock:
            self._sealed.clear()
            self._open.clear()

    def _give(self, rows: list[tuple[Receiver, ChangelogBatch]]) -> None:
        for receiver, batch in rows:
            self.shown = True
            receiver.accept(batch)
