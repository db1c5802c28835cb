"""Window functions without a frame, of sorted rows: numbers of a row's place, and values of other rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flowsql_compute.eval.literal import literal_array
from flowsql_compute.eval.not_null import without_nulls
from flowsql_core.arrow import compute as pc
from flowsql_core.expr import AggregateCall, InputRef, Literal
from flowsql_core.graph.bounded_specs import BoundedOverSpec, OverFrame
from flowsql_core.types.arrow import to_arrow
from flowsql_runtime.operators.bounded.over.frames import Partitions
from flowsql_runtime.state.arrow_words import array_of_words

Int64s = npt.NDArray[np.int64]

#: Functions of a row's place in its partition; they have no frame, but for CUME_DIST alone in its window.
PLACES: Final = frozenset({"ROW_NUMBER", "RANK", "DENSE_RANK", "PERCENT_RANK", "CUME_DIST", "NTILE"})
#: Functions of another row, and to which side of the current one it stands.
OFFSETS: Final = {"LAG": -1, "LEAD": 1}


def place_values(
    call: AggregateCall, frame: OverFrame | None, partitions: Partitions, here: Int64s, spec: BoundedOverSpec
) -> Any:
    """A function of where a row stands.

    Args:
        partitions: of the rows, as positions.
        here: positions of the rows, (n,).
    """
    first, size = partitions.first, partitions.last - partitions.first
    row: Int64s = here - first
    type_ = to_arrow(call.type)
    found: Int64s
    match call.function:
        case "ROW_NUMBER":
            found = row + 1
        case "RANK":
            found = partitions.ranked.first - first + 1
        case "DENSE_RANK":
            found = partitions.ranked.number + 1
        case "PERCENT_RANK":
            share = (partitions.ranked.first - first) / np.maximum(size - 1, 1)
            return pa.array(share, type_)
        case "CUME_DIST":
            # As in Flink, where other ranks of the window stand before it: row by row, peers or not.
            seen = row + 1 if frame is None else partitions.ranked.last - first
            return pa.array(seen / size, type_)
        case "NTILE":
            buckets = int(_constant(call.args[0], spec).value)
            small, large = size // buckets, size % buckets
            edge = large * (small + 1)
            behind = large + (row - edge) // np.maximum(small, 1)
            found = np.where(row < edge, row // (small + 1), behind) + np.int64(1)
        case _:
            raise AssertionError(call.function)
    return array_of_words([found.astype(np.int64)], None, type_)


def distance_of(call: AggregateCall, spec: BoundedOverSpec) -> int:
    """How far LAG or LEAD looks; negative: back."""
    away = 1 if len(call.args) < 2 else int(_constant(call.args[1], spec).value)
    return OFFSETS[call.function] * away


def offset_values(
    call: AggregateCall, columns: Sequence[Any], partitions: Partitions, here: Int64s, base: int, spec: BoundedOverSpec
) -> Any:
    """LAG and LEAD: the value of another row of the partition.

    Args:
        columns: rows from position ``base`` on, with all that are looked at.
        here: as of :func:`place_values`.
    """
    wanted = here + distance_of(call, spec)
    there = (wanted >= partitions.first) & (wanted < partitions.last)
    source, type_ = call.args[0].index, to_arrow(call.type)
    if source < len(spec.input):
        found = pc.take(columns[source], pa.array(wanted - base, mask=~there), boundscheck=False)
    else:
        constant = literal_array(_constant(call.args[0], spec), 1)
        found = pc.take(constant, pa.array(np.zeros(len(there), np.int64), mask=~there), boundscheck=False)
    if found.type != type_:
        found = pc.cast(found, type_)
    if len(call.args) > 2:
        default = call.args[2].index
        if default < len(spec.input):
            own = pc.take(columns[default], pa.array(here - base), boundscheck=False)
        else:
            own = literal_array(_constant(call.args[2], spec), len(there))
        found = pc.if_else(pa.array(there), found, own.cast(type_))
    # A default that is NOT NULL makes the column so, whatever its values are.
    return found if call.type.nullable else without_nulls(found, call.type)


def _constant(arg: InputRef, spec: BoundedOverSpec) -> Literal:
    return spec.constants[arg.index - len(spec.input)]
