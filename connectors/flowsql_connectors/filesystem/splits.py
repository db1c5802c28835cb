"""Splits of file scans: which ranges of which file a reader reads, and how they are dealt out.

A whole file goes to one reader where files share out evenly: then each file keeps its order and its own watermark, as
in Flink. Otherwise a file is striped: reader r of n reads every n-th range, so that all of them move through its event
time together and none runs ahead by more than a range.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

import orjson

from flowsql_connectors.filesystem.files import FoundFile
from flowsql_connectors.formats.format import Range
from flowsql_connectors.spi.source import Split, SplitEnumerator
from flowsql_core.record import record

#: Bytes of a range at most, and at least (smaller files are one range).
LARGEST_RANGE: Final = 8 * 1024 * 1024
SMALLEST_RANGE: Final = 256 * 1024
#: The fullest reader may have this much more than its share before files are striped.
_FAIR_SHARE: Final = 1.25


@record
class FileSplit:
    """Ranges of one file in reading order; ``rows_done`` rows of the first one were already read."""

    file: FoundFile
    ranges: tuple[Range, ...]
    rows_done: int = 0

    def encode(self) -> Split:
        """The split as opaque bytes."""
        file = self.file
        body = [
            [file.path, file.size, file.modified_ms, list(file.partition)],
            [[part.start, part.stop] for part in self.ranges],
            self.rows_done,
        ]
        return Split(f"{file.path}@{self.ranges[0].start if self.ranges else file.size}", orjson.dumps(body))

    @staticmethod
    def decode(split: Split) -> FileSplit:
        """The split behind opaque bytes."""
        (path, size, modified_ms, partition), ranges, rows_done = orjson.loads(split.data)
        file = FoundFile(path, size, modified_ms, tuple(partition))
        return FileSplit(file, tuple(Range(start, stop) for start, stop in ranges), rows_done)

    @property
    def weight(self) -> int:
        """Bytes (or row groups) left to read."""
        return sum(part.stop - part.start for part in self.ranges)


class FileEnumerator(SplitEnumerator):
    """Finds files when the job starts and deals their ranges out."""

    def __init__(self, find: Callable[[], list[FoundFile]], cut: Callable[[FoundFile, int], list[Range]]) -> None:
        self._find = find
        self._cut = cut

    def initial_splits(self, parallelism: int) -> list[list[Split]]:
        """All files of the table, by the rule in the module's docstring."""
        files = self._find()
        splits = []
        for file in files:
            # Several ranges a reader, so that striping balances.
            target = max(SMALLEST_RANGE, min(LARGEST_RANGE, file.size // (4 * parallelism) + 1))
            ranges = tuple(self._cut(file, target))
            if ranges:
                splits.append(FileSplit(file, ranges))
        return deal(splits, parallelism)

    def redistribute(self, splits: list[Split], parallelism: int) -> list[list[Split]]:
        """Restored splits: what is left of a file is dealt anew, a range that was begun keeps its position."""
        return deal([FileSplit.decode(split) for split in splits], parallelism)


def deal(splits: list[FileSplit], parallelism: int) -> list[list[Split]]:
    """Splits for each reader, in reading order."""
    splits = sorted(splits, key=lambda split: (split.file.path, split.ranges[0].start if split.ranges else 0))
    if parallelism == 1:
        return [[split.encode() for split in splits]]
    whole = _deal_whole(splits, parallelism)
    loads = [sum(split.weight for split in share) for share in whole]
    if sum(loads) and max(loads) * parallelism <= _FAIR_SHARE * sum(loads):
        return [[split.encode() for split in share] for share in whole]
    return [[split.encode() for split in share] for share in _deal_striped(splits, parallelism)]


def _deal_whole(splits: list[FileSplit], parallelism: int) -> list[list[FileSplit]]:
    """In order of names, each to the reader that has least so far."""
    shares: list[list[FileSplit]] = [[] for _ in range(parallelism)]
    loads = [0] * parallelism
    for split in splits:
        least = loads.index(min(loads))
        shares[least].append(split)
        loads[least] += split.weight
    return shares


def _deal_striped(splits: list[FileSplit], parallelism: int) -> list[list[FileSplit]]:
    shares: list[list[FileSplit]] = [[] for _ in range(parallelism)]
    turn = 0
    for split in splits:
        stripes: list[list[Range]] = [[] for _ in range(parallelism)]
        first = turn
        for part in split.ranges:
            stripes[turn % parallelism].append(part)
            turn += 1
        for reader, ranges in enumerate(stripes):
            if ranges:
                begun = split.rows_done if reader == first % parallelism else 0
                shares[reader].append(replace(split, ranges=tuple(ranges), rows_done=begun))
    return shares
