"""Splits of file scans: which ranges of which file a reader reads, and how they are dealt out.

A whole file goes to one reader where files share out evenly: then each file keeps its order and its own watermark, as
in Flink. Otherwise a file is striped: reader r of n reads every n-th range, so that all of them move through its event
time together and none runs ahead by more than a range.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from hashlib import blake2b
from typing import Final

import orjson

from flowsql_connectors.file_systems.choice import is_remote
from flowsql_connectors.filesystem.files import FoundFile
from flowsql_connectors.formats.format import Range
from flowsql_connectors.spi.source import Split, SplitEnumerator
from flowsql_core.errors import ConnectorError
from flowsql_core.record import record

#: Bytes of a range at most, and at least (smaller files are one range).
LARGEST_RANGE: Final = 8 * 1024 * 1024
SMALLEST_RANGE: Final = 256 * 1024
#: The fullest reader may have this much more than its share before files are striped.
_FAIR_SHARE: Final = 1.25
_DIGEST_BYTES: Final = 16


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
    """Finds files when the job starts, and later ones if asked, and deals their ranges out.

    Args:
        find: all files of the table, or, given the path of one, that one if it belongs to the table.
        cut: ranges of a file, of about so many bytes.
        interval_ms: how often to look for files that appeared since; None: never.
        whole_files: no two readers share a file.
    """

    def __init__(
        self,
        find: Callable[..., list[FoundFile]],
        cut: Callable[[FoundFile, int], list[Range]],
        interval_ms: int | None = None,
        whole_files: bool = False,
    ) -> None:
        self._whole_files = whole_files
        self._find = find
        self._cut = cut
        self._interval_ms = interval_ms
        #: Digests of the paths that were dealt out. As in Flink a path is read once, whatever happens to its file.
        self._known: set[bytes] = set()
        #: Bytes that each reader was given.
        self._loads: list[int] = []

    def initial_splits(self, parallelism: int) -> list[list[Split]]:
        """All files of the table, by the rule in the module's docstring."""
        files = self._find()
        self._remember(file.path for file in files)
        splits = [FileSplit(file, self._ranges(file, parallelism)) for file in files]
        return self._deal([split for split in splits if split.ranges], parallelism)

    def parts(self, part_bytes: int) -> list[list[Split]]:
        """Consecutive ranges of the files in order of their names."""
        whole: list[FileSplit] = []
        for file in self._find():
            target = max(SMALLEST_RANGE, min(LARGEST_RANGE, part_bytes))
            whole.append(FileSplit(file, tuple(self._cut(file, target))))
        made = cut_in_parts(sorted(whole, key=lambda split: split.file.path), part_bytes)
        return [[split.encode() for split in part] for part in made]

    def batch(self, files: Sequence[str], rows: range, parallelism: int) -> list[list[Split]]:
        """The ranges of some files by the rule in the module's docstring; those that are not the table's are left."""
        del rows
        found = [file for path in files for file in self._find(path)]
        splits = [FileSplit(file, self._ranges(file, parallelism)) for file in found]
        return [
            [split.encode() for split in share]
            for share in deal([s for s in splits if s.ranges], parallelism, self._whole_files)
        ]

    def redistribute(self, splits: list[Split], parallelism: int) -> list[list[Split]]:
        """Restored splits: what is left of a file is dealt anew, a range that was begun keeps its position."""
        decoded = [FileSplit.decode(split) for split in splits]
        self._remember(split.file.path for split in decoded)
        return self._deal(decoded, parallelism)

    def discovery_interval_ms(self) -> int | None:
        """``source.monitor-interval``."""
        return self._interval_ms

    def discover(self, parallelism: int) -> list[Split]:
        """Files whose paths are new, one split each."""
        found = []
        for file in self._find():
            if _digest(file.path) in self._known:
                continue
            try:
                ranges = self._ranges(file, parallelism)
            except ConnectorError:
                if not is_remote(file.path) and not os.path.exists(file.path):
                    continue
                # Whoever reads it says what is wrong with it, and fails the job.
                ranges = (Range(0, 1),)
            found.append(FileSplit(file, ranges).encode())
        return found

    def assign(self, found: list[Split], parallelism: int) -> list[list[Split]]:
        """New files, most to the readers that were given least; a file without rows is only remembered."""
        decoded = [FileSplit.decode(split) for split in found]
        self._remember(split.file.path for split in decoded)
        return self._deal([split for split in decoded if split.ranges], parallelism)

    def snapshot(self) -> bytes:
        """16 bytes a path that was dealt out."""
        return b"".join(sorted(self._known))

    def restore(self, state: bytes) -> None:
        """The paths that were dealt out."""
        self._known = {state[at : at + _DIGEST_BYTES] for at in range(0, len(state), _DIGEST_BYTES)}

    def _ranges(self, file: FoundFile, parallelism: int) -> tuple[Range, ...]:
        # Several ranges a reader, so that striping balances.
        target = max(SMALLEST_RANGE, min(LARGEST_RANGE, file.size // (4 * parallelism) + 1))
        return tuple(self._cut(file, target))

    def _remember(self, paths: Iterable[str]) -> None:
        if self._interval_ms is not None:
            self._known.update(map(_digest, paths))

    def _deal(self, splits: list[FileSplit], parallelism: int) -> list[list[Split]]:
        shares = deal(splits, parallelism, self._whole_files)
        weights = [sum(split.weight for split in share) for share in shares]
        readers = list(range(parallelism))
        if self._loads:
            # The heaviest share goes to the reader that was given least so far.
            least = sorted(readers, key=self._loads.__getitem__)
            heaviest = sorted(readers, key=weights.__getitem__, reverse=True)
            readers = [share for _, share in sorted(zip(least, heaviest, strict=True))]
        else:
            self._loads = [0] * parallelism
        for reader, share in enumerate(readers):
            self._loads[reader] += weights[share]
        return [[split.encode() for split in shares[share]] for share in readers]


def _digest(path: str) -> bytes:
    return blake2b(path.encode(), digest_size=_DIGEST_BYTES).digest()


def deal(splits: list[FileSplit], parallelism: int, whole_files: bool = False) -> list[list[FileSplit]]:
    """Splits for each reader, in reading order. ``whole_files``: no two readers share a file."""
    splits = sorted(splits, key=lambda split: (split.file.path, split.ranges[0].start if split.ranges else 0))
    if parallelism == 1:
        return [splits]
    whole = _deal_whole(splits, parallelism)
    if whole_files:
        return whole
    loads = [sum(split.weight for split in share) for share in whole]
    if sum(loads) and max(loads) * parallelism <= _FAIR_SHARE * sum(loads):
        return whole
    return _deal_striped(splits, parallelism)


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


def cut_in_parts(splits: Iterable[FileSplit], part_bytes: int) -> list[list[FileSplit]]:
    """Splits in reading order as parts of about so many bytes, cut between their ranges."""
    parts: list[list[FileSplit]] = []
    left = 0.0
    for split in splits:
        # Ranges of some formats count row groups.
        unit = split.file.size / split.weight if split.weight else 0.0
        taken: list[Range] = []
        for part in split.ranges:
            if left <= 0:
                if taken:
                    parts[-1].append(replace(split, ranges=tuple(taken)))
                    taken = []
                parts.append([])
                left = float(part_bytes)
            taken.append(part)
            left -= unit * (part.stop - part.start)
        if taken:
            parts[-1].append(replace(split, ranges=tuple(taken)))
    return parts
