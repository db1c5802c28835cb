"""Combinations of rows of several inputs, made input by input: which row of each, and what it takes for more."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flowsql_core.arrow import compute as pc
from flowsql_core.batch import LateColumns
from flowsql_core.record import record
from flowsql_runtime.state.scratch import number_rows

Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]
Uint8s = npt.NDArray[np.uint8]


@record
class Side:
    """Rows of one input: columns, and which of their rows stands in each combination, -1 where it is padded, (n,)."""

    columns: Sequence[Any]
    rows: Int32s


@record
class Combinations:
    """Rows of the first inputs side by side, in the order of what causes them.

    Args:
        causes: row of the batch that makes each, int32 (n,), rising.
        kinds: what each does to the result, bytes of ``RowKind`` (n,).
        sides: of the first inputs.
    """

    causes: Int32s
    kinds: Uint8s
    sides: tuple[Side, ...]

    def __len__(self) -> int:
        return len(self.causes)

    def take(self, chosen: npt.NDArray[Any]) -> Combinations:
        """Some of them, in any order, maybe more than once."""
        sides = tuple(Side(side.columns, side.rows[chosen]) for side in self.sides)
        return Combinations(self.causes[chosen], self.kinds[chosen], sides)

    def beside(self, side: Side) -> Combinations:
        """The same with rows of the next input."""
        return Combinations(self.causes, self.kinds, (*self.sides, side))

    def unpadded(self, places: Sequence[int]) -> npt.NDArray[np.bool_]:
        """Which have a row of each of some inputs, (n,)."""
        found = np.ones(len(self), np.bool_)
        for place in places:
            found &= self.sides[place].rows >= 0
        return found

    def columns(self) -> LateColumns:
        """All columns so far, gathered when they are looked at."""
        whole: LateColumns | None = None
        for side in self.sides:
            padded = len(side.rows) > 0 and side.rows.min() < 0
            part = (LateColumns.padded if padded else LateColumns.of)(side.columns, side.rows)
            whole = part if whole is None else LateColumns.beside(whole, part)
        return LateColumns([]) if whole is None else whole


def equal_pairs(
    left: Sequence[Any], asking: Int64s, left_groups: Int32s, right: Sequence[Any], right_groups: Int32s
) -> tuple[Int64s, Int64s]:
    """Pairs (place in ``asking``, right row) of one group whose columns are equal, by the one and then by the other.

    Costs what it is given and what it finds. NULL equals NULL here.

    Args:
        left: columns; ``asking``: which of their rows take part, (n,), and ``left_groups``: the group of each.
        right: columns of equal types, of m rows; ``right_groups``: the group of each.
    """
    rows = pa.array(asking)
    groups = pa.array(np.concatenate([left_groups, right_groups]))
    both = [pa.concat_arrays([pc.take(a, rows), b.cast(a.type)]) for a, b in zip(left, right, strict=True)]
    numbers, count = number_rows([groups, *both])
    n = len(asking)
    theirs = numbers[n:]
    order = np.argsort(theirs, kind="stable")
    sizes = np.bincount(theirs, minlength=count)
    starts = np.cumsum(sizes) - sizes
    found = sizes[numbers[:n]]
    lefts = np.repeat(np.arange(n), found)
    within = np.arange(len(lefts)) - np.repeat(np.cumsum(found) - found, found)
    return lefts, order[np.repeat(starts[numbers[:n]], found) + within]
