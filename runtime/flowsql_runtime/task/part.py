"""A job that does one part of a larger one's work, in a task of another engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from flowsql_connectors.spi.source import Split, SplitEnumerator


@dataclass(slots=True)
class JobPart:
    """What the larger job deals out to a part, and what it gets back.

    Attributes:
        splits: of each source, by uid; a source that is not named deals out its own.
        reader: the subtask that gets the splits.
        lineage: of the larger job: parts of files are named after it.
        committables: what the sinks prepared, by uid; the larger job commits it. Filled when all tasks have succeeded.
        one_batch: of a stream, and others follow: behind the splits time does not end, and writers leave nothing open.
    """

    splits: Mapping[str, Sequence[Split]] = field(default_factory=dict)
    lineage: str = ""
    committables: dict[str, list[bytes]] = field(default_factory=dict)
    one_batch: bool = False
    reader: int = 0


class GivenSplits(SplitEnumerator):
    """Deals out the splits of a part."""

    def __init__(self, splits: Sequence[Split], reader: int = 0) -> None:
        self._splits = splits
        self._reader = reader

    def initial_splits(self, parallelism: int) -> list[list[Split]]:
        """All to one reader, in order."""
        return [list(self._splits) if subtask == self._reader else [] for subtask in range(parallelism)]
