"""Rows of an input that has not ended: in memory up to a share, and beyond it in files, dealt out by their key."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

import numpy as np

from flowsql_compute.keys import key_hash64
from flowsql_core.batch import ChangelogBatch, concat_batches
from flowsql_core.errors import ExecutionError
from flowsql_runtime.network.spill import SpillFile, SpillSpace, spillable
from flowsql_runtime.task.memory import MEMORY, OperatorMemory

#: Files that rows are dealt out to at each level.
FAN_OUT: Final = 16
#: Levels of dealing out: 16 ** 4 parts. What is too large then has few keys, and dealing out does not divide it.
DEEPEST: Final = 4
#: Odd numbers whose products spread the bits of a hash, one a level: rows of one part are spread anew.
_SPREAD: Final = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0xD6E8FEB86659FD93)


def settled(batch: ChangelogBatch) -> ChangelogBatch:
    """The rows alone, all columns gathered: what they are selected from need not stay."""
    return ChangelogBatch(tuple(batch.columns), batch.num_rows)


def size_bytes(batch: ChangelogBatch) -> int:
    """Bytes of a settled batch; of Python objects a guess."""
    return sum(getattr(column, "nbytes", 64 * batch.num_rows) for column in batch.columns)


class DealtRows:
    """Rows in files by a hash of their key: equal keys are in one part, in order of arrival.

    Args:
        keys: columns.
        level: how often these rows were dealt out before.
    """

    def __init__(self, space: SpillSpace, keys: Sequence[int], level: int = 0) -> None:
        self._space = space
        self._keys = tuple(keys)
        self.level = level
        self._files: list[SpillFile | None] = [None] * FAN_OUT
        #: Bytes and rows of each part, as they are in memory.
        self.part_bytes = [0] * FAN_OUT

    def add(self, batch: ChangelogBatch) -> None:
        """Write rows to their parts.

        Raises:
            ExecutionError: rows that no file can hold.
        """
        if not batch.num_rows:
            return
        if not spillable(batch):
            raise ExecutionError(
                "memory-exceeded",
                "Rows with Python objects need more memory than there is, and no file can hold them.",
                hint=f"raise '{MEMORY.key}'",
            )
        hashes = key_hash64([batch.columns[key] for key in self._keys], batch.num_rows)
        with np.errstate(over="ignore"):
            parts = ((hashes * np.uint64(_SPREAD[self.level])) >> np.uint64(60)).astype(np.int8)
        order = np.argsort(parts, kind="stable")
        ends = np.cumsum(np.bincount(parts, minlength=FAN_OUT))
        first = 0
        for part, last in enumerate(ends.tolist()):
            if last > first:
                self._write(part, settled(batch.part(order[first:last])))
            first = last

    def _write(self, part: int, batch: ChangelogBatch) -> None:
        file = self._files[part]
        if file is None:
            file = self._files[part] = self._space.new_file(tuple(column.type for column in batch.columns))
        file.append(batch)
        self.part_bytes[part] += size_bytes(batch)

    def read(self, part: int) -> Iterator[ChangelogBatch]:
        """The rows of a part, once."""
        file = self._files[part]
        if file is None:
            return
        file.seal()
        while file.unread:
            yield file.next()
        self._space.forget(file)
        self._files[part] = None


class HeldRows:
    """Rows that wait for the end of their input.

    Args:
        memory: account at the process budget.
        share_bytes: what may be in memory.
        space: gives files, asked when the first is needed.
        keys: columns by which rows are dealt out; none: they cannot be.
    """

    def __init__(
        self, memory: OperatorMemory, share_bytes: int, space: Callable[[], SpillSpace], keys: Sequence[int]
    ) -> None:
        self._memory = memory
        self._share_bytes = share_bytes
        self._space = space
        self._keys = tuple(keys)
        self._batches: list[ChangelogBatch] = []
        self._bytes = 0
        self.dealt: DealtRows | None = None

    def add(self, batch: ChangelogBatch) -> None:
        """Keep rows.

        Raises:
            ExecutionError: ``memory-exceeded`` where rows cannot be dealt out.
        """
        if self.dealt is not None:
            self.dealt.add(batch)
            return
        kept = settled(batch)
        size = size_bytes(kept)
        if self._keys:
            if self._bytes + size > self._share_bytes or not self._memory.try_reserve(size):
                self.deal()
                assert self.dealt is not None
                self.dealt.add(kept)
                return
        else:
            self._memory.reserve(size)
        self._bytes += size
        self._batches.append(kept)

    def deal(self) -> None:
        """Put all rows into files; those that come later, too."""
        if self.dealt is None:
            self.dealt = DealtRows(self._space(), self._keys)
            for batch in self.drain():
                self.dealt.add(batch)

    def drain(self) -> Iterator[ChangelogBatch]:
        """The rows in memory, which goes back batch by batch."""
        batches, self._batches = self._batches, []
        yield from batches
        self._memory.release(self._bytes)
        self._bytes = 0

    def drain_kept(self) -> list[ChangelogBatch]:
        """The rows in memory, whose bytes stay accounted for."""
        batches, self._batches = self._batches, []
        return batches

    def parts(self) -> Iterator[list[ChangelogBatch]]:
        """Rows of equal keys together: all of them, or a part that fits in memory after the other."""
        if self.dealt is None:
            yield list(self.drain())
        else:
            yield from self._fitting(self.dealt)

    def _fitting(self, dealt: DealtRows) -> Iterator[list[ChangelogBatch]]:
        for part in range(FAN_OUT):
            if dealt.part_bytes[part] > self._share_bytes and dealt.level + 1 < DEEPEST:
                finer = DealtRows(self._space(), self._keys, dealt.level + 1)
                for batch in dealt.read(part):
                    finer.add(batch)
                yield from self._fitting(finer)
                continue
            self._memory.reserve(dealt.part_bytes[part])
            batches = list(dealt.read(part))
            if batches:
                yield batches
            self._memory.release(dealt.part_bytes[part])


def together(batches: Sequence[ChangelogBatch]) -> ChangelogBatch | None:
    """Several batches as one; None without rows.

    Raises:
        ExecutionError: a column takes more than 2 GiB.
    """
    joined = concat_batches([batch for batch in batches if batch.num_rows])
    if len(joined) > 1:
        raise ExecutionError(
            "too-many-bytes",
            "The values of one column of rows that have to be looked at together take more than 2 GiB.",
            hint="raise 'parallelism.default', or split the query",
        )
    return joined[0] if joined else None
