"""Readers that read their splits one at a time."""

from __future__ import annotations

from abc import abstractmethod

from flowsql_connectors.spi.source import ReadStatus, SourceReader, Split, SplitBatch


class SplitQueueReader(SourceReader):
    """A reader whose splits wait in a queue; the data of each is its position, so the queue is the snapshot."""

    def __init__(self) -> None:
        #: The first is being read; ``read`` moves its position and removes it at its end.
        self.splits: list[Split] = []
        self._no_more = False

    def add_splits(self, splits: list[Split]) -> None:
        """Take over splits."""
        self.splits.extend(splits)

    def no_more_splits(self) -> None:
        """END follows the last row."""
        self._no_more = True

    def poll(self, max_rows: int) -> SplitBatch | ReadStatus:
        """The next rows of the first split."""
        if not self.splits:
            return ReadStatus.END if self._no_more else ReadStatus.NOTHING_NOW
        return self.read(self.splits[0], max_rows)

    @abstractmethod
    def read(self, split: Split, max_rows: int) -> SplitBatch | ReadStatus:
        """Rows of the first split, or NOTHING_NOW."""

    def snapshot(self) -> list[Split]:
        """The splits that are left, at their next rows."""
        return list(self.splits)
