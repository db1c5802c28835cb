"""Sorted rows of one partition in a file, of which any stretch can be read again."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any, Final

from flowsql_core.batch import ChangelogBatch
from flowsql_runtime.network.spill import SpillFile, SpillSpace
from flowsql_runtime.operators.bounded.held_rows import together

#: Pieces that were read last and stay: frames of neighbouring rows look at the same ones.
_KEPT: Final = 3


class Pieces:
    """Rows in pieces, by their place in the whole.

    Args:
        types: Arrow types of the columns.
    """

    def __init__(self, space: SpillSpace, types: Sequence[Any]) -> None:
        self._space = space
        self._file: SpillFile = space.new_file(tuple(types))
        self._kept: dict[int, ChangelogBatch] = {}
        #: Position of each piece's first row.
        self.firsts: list[int] = []
        self.num_rows = 0

    def __len__(self) -> int:
        return len(self.firsts)

    def add(self, piece: ChangelogBatch) -> None:
        """The next piece; not empty."""
        self._file.append(piece)
        self.firsts.append(self.num_rows)
        self.num_rows += piece.num_rows

    def seal(self) -> None:
        """No more pieces."""
        self._file.seal()

    def read(self, number: int) -> ChangelogBatch:
        """A piece."""
        if number not in self._kept:
            while len(self._kept) >= _KEPT:
                del self._kept[min(self._kept)]
            self._kept[number] = self._file.at(number)
        return self._kept[number]

    def rows(self, first: int, last: int) -> ChangelogBatch:
        """The rows from one position up to another; at least one."""
        parts = []
        for number in range(bisect_right(self.firsts, first) - 1, bisect_right(self.firsts, last - 1)):
            piece, start = self.read(number), self.firsts[number]
            parts.append(piece.slice(max(first - start, 0), min(last - start, piece.num_rows)))
        whole = together(parts)
        assert whole is not None
        return whole

    def delete(self) -> None:
        """Remove the file."""
        self._kept = {}
        self._space.forget(self._file)
