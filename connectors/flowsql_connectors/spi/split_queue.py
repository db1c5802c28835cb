"""Readers that read their splits one at a time."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Set

from flowsql_connectors.spi.source import ReadStatus, SourceReader, Split, SplitBatch


class SplitQueueReader(SourceReader):
    """A reader whose splits wait in a queue; the data of each is its position, so the queue is the snapshot."""

    def __init__(self) -> None:
        #: The first is being read; ``read`` moves its position and removes it at its end.
        self.splits: list[Split] = []
        self._no_more = False
        self._paused: Set[str] = frozenset()

    def add_splits(self, splits: list[Split]) -> None:
        """Take over splits."""
        self.splits.extend(splits)

    def no_more_splits(self) -> None:
        """END follows the last row."""
        self._no_more = True

    def poll(self, max_rows: int) -> SplitBatch | ReadStatus:
        """The next rows of the first split that is not paused."""
        if not self.splits:
            return ReadStatus.END if self._no_more else ReadStatus.NOTHING_NOW
        if self.splits[0].id in self._paused:
            at = next((at for at, split in enumerate(self.splits) if split.id not in self._paused), None)
            if at is None:
                return ReadStatus.NOTHING_NOW
            self.splits.insert(0, self.splits.pop(at))
        return self.read(self.splits[0], max_rows)

    def pause_splits(self, paused: Set[str]) -> bool:
        """Those that are paused wait in the queue; where ``read`` keeps more than positions, they cannot."""
        self._paused = paused
        return True

    @abstractmethod
    def read(self, split: Split, max_rows: int) -> SplitBatch | ReadStatus:
        """Rows of the first split, or NOTHING_NOW."""

    def snapshot(self) -> list[Split]:
        """The splits that are left, at their next rows."""
        return list(self.splits)
