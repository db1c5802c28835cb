"""One side of a join: its key columns, its rows in state, and pairs of probing rows with stored ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flowsql_core.arrow import compute as pc
from flowsql_core.eval.columns import validity
from flowsql_core.record import record
from flowsql_core.types.logical import Schema

Int32s = npt.NDArray[np.int32]
Bools = npt.NDArray[np.bool_]

#: Pairs that are made at once: bounds the memory of a batch that meets a popular key.
MOST_PAIRS: Final = 262_144


@record
class JoinSide:
    """Plan data of one side."""

    keys: tuple[int, ...]
    schema: Schema
    null_safe: tuple[bool, ...]

    def key_columns(self, columns: Sequence[Any]) -> list[Any]:
        """The key columns of a batch."""
        return [columns[key] for key in self.keys]

    def without_match(self, columns: Sequence[Any]) -> Bools | None:
        """Rows whose key is NULL where NULL equals nothing, (n,); None when there is none."""
        found: Bools | None = None
        for key, null_safe in zip(self.keys, self.null_safe, strict=True):
            valid = None if null_safe else validity(columns[key])
            if valid is not None:
                found = ~valid if found is None else found | ~valid
        return found


def pair_ranges(probes: Int32s, rows: int) -> Iterator[tuple[int, int, int, int]]:
    """Cut pairs at borders of probing rows: (first pair, last pair, first row, last row), at least one row each."""
    if len(probes) <= MOST_PAIRS:
        yield 0, len(probes), 0, rows
        return
    start = row = 0
    while row < rows:
        stop = min(start + MOST_PAIRS, len(probes))
        until = rows if stop == len(probes) else max(int(probes[stop]), row + 1)
        end = int(np.searchsorted(probes, until, side="left"))
        yield start, end, row, until
        start, row = end, until


def take_all(columns: Sequence[Any], rows: npt.NDArray[Any]) -> list[Any]:
    """Rows of every column by position."""
    index = pa.array(rows)
    return [pc.take(column, index, boundscheck=False) for column in columns]
