"""Rows of a SELECT on their way to the program: with exactly-once checkpoints they wait for the one that covers them.

A row that the program has seen cannot be taken back when a job goes back to a checkpoint. So rows wait for their
checkpoint, as in Flink (``CheckpointedCollectResultBuffer``), or a job that has shown rows is not restarted.
"""

from __future__ import annotations

import threading
from collections.abc import Collection
from typing import Protocol, TypeAlias

from flowsql_core.batch import ChangelogBatch


class Receiver(Protocol):
    """The resource of a collect sink."""

    def accept(self, batch: ChangelogBatch) -> None:
        """Rows; may block while the reader is behind."""
        ...

    def finish(self) -> None:
        """No more rows."""
        ...


#: A sink: operator uid and subtask.
SinkPlace: TypeAlias = tuple[str, int]
_Row: TypeAlias = tuple[Receiver, ChangelogBatch]


class CollectedRows:
    """Rows of all collect sinks of one job, over all its attempts. Any thread.

    Args:
        held: whether rows wait for a checkpoint.
    """

    def __init__(self, held: bool) -> None:
        self._held = held
        #: Sinks of which a row has reached the program.
        self._shown: set[SinkPlace] = set()
        self._lock = threading.Lock()
        self._open: dict[SinkPlace, list[_Row]] = {}
        self._sealed: dict[int, dict[SinkPlace, list[_Row]]] = {}

    def shown(self, sinks: Collection[SinkPlace] | None = None) -> bool:
        """Whether a row (of some sinks) has reached the program."""
        return bool(self._shown) if sinks is None else not self._shown.isdisjoint(sinks)

    def add(self, receiver: Receiver, uid: str, subtask: int, batch: ChangelogBatch) -> None:
        """A sink got rows (its task's thread)."""
        if not self._held:
            self._shown.add((uid, subtask))
            receiver.accept(batch)
            return
        with self._lock:
            self._open.setdefault((uid, subtask), []).append((receiver, batch))

    def seal(self, uid: str, subtask: int, checkpoint_id: int) -> None:
        """The barrier passed a sink: what it got before belongs to the checkpoint."""
        with self._lock:
            sealed = self._sealed.setdefault(checkpoint_id, {})
            sealed.setdefault((uid, subtask), []).extend(self._open.pop((uid, subtask), ()))

    def show(self, checkpoint_id: int) -> None:
        """The checkpoint is complete."""
        with self._lock:
            numbers = sorted(number for number in self._sealed if number <= checkpoint_id)
            found = [self._sealed.pop(number) for number in numbers]
        self._give(found)

    def show_all(self) -> None:
        """The job ended well."""
        with self._lock:
            found = [self._sealed[number] for number in sorted(self._sealed)]
            found.append(self._open)
            self._sealed, self._open = {}, {}
        self._give(found)

    def go_back(self, checkpoint_id: int, sinks: Collection[SinkPlace] | None = None) -> None:
        """The job, or the part with some sinks, starts again from a checkpoint: rows behind it will come again."""
        if sinks is None:
            self.show(checkpoint_id)
            with self._lock:
                self._sealed.clear()
                self._open.clear()
            return
        with self._lock:
            behind = [rows for number, rows in self._sealed.items() if number > checkpoint_id]
            for rows in (*behind, self._open):
                for place in sinks:
                    rows.pop(place, None)

    def _give(self, found: list[dict[SinkPlace, list[_Row]]]) -> None:
        for by_sink in found:
            for place, rows in by_sink.items():
                if rows:
                    self._shown.add(place)
                for receiver, batch in rows:
                    receiver.accept(batch)
