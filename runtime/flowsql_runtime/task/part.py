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
        lineage: of the larger job: parts of files are named after it.
        committables: what the sinks prepared, by uid; the larger job commits it. Filled when all tasks have succeeded.
    """

    splits: Mapping[str, Sequence[Split]] = field(default_factory=dict)
    lineage: str = ""
    committables: dict[str, list[bytes]] = field(default_factory=dict)


class GivenSplits(SplitEnumerator):
    """Deals out the splits of a part."""

    def __init__(self, splits: Sequence[Split]) -> None:
        self._splits = splits

    def initial_splits(self, parallelism: int) -> list[list[Split]]:
        """All to the first reader, in order."""
        return [list(self._splits), *([] for _ in range(parallelism - 1))]
