"""Which small files become one: tables merge those of a checkpoint, streams wait for a size or for checkpoints."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Final

from flowsql_connectors.filesystem.part import Part
from flowsql_core.record import record

#: Bins that further files may still go into, as in Flink's BinPacking.
_OPEN_BINS: Final = 10


@record
class Waiting:
    """A part that stands to be shown, and the lineage of the job that wrote it."""

    lineage: str
    part: Part


class Packing(ABC):
    """Chooses the files that become one."""

    @abstractmethod
    def groups(self, waiting: Sequence[Waiting], checkpoints: int, ended: bool) -> list[list[Waiting]]:
        """Files of one directory each, in their order; what is in no group waits on.

        Args:
            waiting: in the order in which they came.
            checkpoints: since the last time that :meth:`due` said yes, this one included.
            ended: no file follows.
        """

    @abstractmethod
    def due(self, checkpoints: int) -> bool:
        """Whether so many checkpoints let no file wait."""


@record
class FirstFit(Packing):
    """Everything with each checkpoint, in files of up to ``target_bytes``: first fit among a directory's last ten."""

    target_bytes: int

    def groups(self, waiting: Sequence[Waiting], checkpoints: int, ended: bool) -> list[list[Waiting]]:
        """All files."""
        made: list[list[Waiting]] = []
        for found in _by_directory(waiting):
            bins: list[list[Waiting]] = []
            sizes: list[int] = []
            for one in found:
                first_open = max(0, len(bins) - _OPEN_BINS)
                fits = (at for at in range(first_open, len(bins)) if sizes[at] + one.part.size <= self.target_bytes)
                at = next(fits, -1)
                if at < 0:
                    bins.append([])
                    sizes.append(0)
                bins[at].append(one)
                sizes[at] += one.part.size
            made += bins
        return made

    def due(self, checkpoints: int) -> bool:
        """Always."""
        return True


@record
class WhenEnough(Packing):
    """Flink's FileCompactStrategy: by size a directory's files, and all at every n-th checkpoint; 0: not by this."""

    checkpoints: int
    size_bytes: int

    def groups(self, waiting: Sequence[Waiting], checkpoints: int, ended: bool) -> list[list[Waiting]]:
        """What is enough; everything with the n-th checkpoint and at the end."""
        made = []
        for found in _by_directory(waiting):
            group: list[Waiting] = []
            size = 0
            for one in found:
                group.append(one)
                size += one.part.size
                if 0 < self.size_bytes <= size:
                    made.append(group)
                    group, size = [], 0
            if group and (ended or self.due(checkpoints)):
                made.append(group)
        return made

    def due(self, checkpoints: int) -> bool:
        """At the n-th."""
        return 0 < self.checkpoints <= checkpoints


def _by_directory(waiting: Sequence[Waiting]) -> list[list[Waiting]]:
    found: dict[str, list[Waiting]] = {}
    for one in waiting:
        found.setdefault(one.part.directory, []).append(one)
    return list(found.values())
