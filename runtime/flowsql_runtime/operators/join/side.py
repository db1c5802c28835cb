"""One side of a join: its key columns, its rows in state, and pairs of probing rows with stored ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flowsql_compute.eval.columns import validity, values_and_validity
from flowsql_compute.keys import by_value
from flowsql_core.column_bytes import ranges_within
from flowsql_core.graph.key_identity import KeyIdentity
from flowsql_core.graph.specs import JoinKind, JoinSpec, WindowJoinSpec
from flowsql_core.graph.time_join_specs import IntervalJoinSpec, TemporalJoinSpec
from flowsql_core.record import record
from flowsql_core.types.arrow import to_arrow
from flowsql_core.types.logical import Schema

Int32s = npt.NDArray[np.int32]
Bools = npt.NDArray[np.bool_]

#: Pairs that are made at once: bounds the memory of a batch that meets a popular key.
MOST_PAIRS: Final = 262_144
#: Bytes of joined rows that are made at once. Columns of a few hundred kilobytes stand in memory that the allocator
#: hands out again for the next part; those of tens of megabytes are fresh pages each time, which the system clears.
_PART_BYTES: Final = 8 << 20
#: What a value of variable width is taken to be.
_USUAL_BYTES: Final = 64


@record
class JoinSide:
    """Plan data of one side."""

    keys: tuple[int, ...]
    schema: Schema
    null_safe: tuple[bool, ...]
    identity: KeyIdentity = KeyIdentity.BITS

    def key_columns(self, columns: Sequence[Any]) -> list[Any]:
        """The key columns of a batch: rows whose keys are equal have equal bits in them."""
        keys = [columns[key] for key in self.keys]
        return keys if self.identity is KeyIdentity.BITS else [by_value(key) for key in keys]

    def without_match(self, columns: Sequence[Any]) -> Bools | None:
        """True for rows whose key equals nothing, (n,): NULL unless it is safe, NaN among values. None without any."""
        lost: list[Bools] = []
        for key, null_safe in zip(self.keys, self.null_safe, strict=True):
            column = columns[key]
            valid = None if null_safe else validity(column)
            if valid is not None:
                lost.append(~valid)
            if self.identity is KeyIdentity.VALUE and pa.types.is_floating(column.type):
                lost.append(np.isnan(values_and_validity(column)[0]))
        return np.logical_or.reduce(lost) if lost else None


def key_pairs(
    spec: JoinSpec | WindowJoinSpec | IntervalJoinSpec | TemporalJoinSpec, left: Sequence[str], right: Sequence[str]
) -> tuple[str, ...]:
    """Canonical texts of the join keys. ``left``, ``right``: of the columns of each side."""
    pairs = zip(spec.left_keys, spec.right_keys, spec.null_safe, strict=True)
    return tuple(f"{left[one]} {'<=>' if safe else '='} {right[other]}" for one, other, safe in pairs)


def pairs_at_once(*sides: Schema) -> int:
    """How many joined rows of the columns of ``sides`` are made at once, by what their types take."""
    types = [to_arrow(column.type) for side in sides for column in side]
    width = sum(type_.bit_width // 8 if pa.types.is_primitive(type_) else _USUAL_BYTES for type_ in types)
    return max(1, _PART_BYTES // max(1, width))


def row_ranges(counts: npt.NDArray[Any], most: int | None = None) -> Iterator[tuple[int, int]]:
    """Cut rows so that each part makes at most ``most`` rows, (first, last) of each; at least one part.

    ``counts``: how many rows each makes, (n,). A row that makes more is a part of its own. ``most`` is
    :data:`MOST_PAIRS` at most, and if it is not given.
    """
    return ranges_within(counts, MOST_PAIRS if most is None else min(most, MOST_PAIRS))


def counted_sides(kind: JoinKind) -> tuple[bool, bool]:
    """Whether rows of the left and of the right side know how many partners they have: those emitted without one."""
    match kind:
        case JoinKind.INNER:
            return False, False
        case JoinKind.LEFT | JoinKind.SEMI | JoinKind.ANTI:
            return True, False
        case JoinKind.RIGHT:
            return False, True
        case JoinKind.FULL:
            return True, True
