"""Events to rows: which rows each event gives, of what kind, taken column by column."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flowsql_connectors.formats.change.styles import Action
from flowsql_connectors.formats.format import Columns
from flowsql_core.record import record
from flowsql_core.row import DELETE, INSERT, UPDATE_AFTER, UPDATE_BEFORE

Bools = npt.NDArray[np.bool_]
Int64s = npt.NDArray[np.int64]

#: By action: how many rows it gives; of each, whether it is the new one, and its kind.
_COUNT: Final = np.array([0, 1, 2, 1, 1, 0])
_NEW: Final = np.array([[0, 0], [1, 0], [0, 1], [0, 0], [1, 0], [0, 0]], np.bool_)
_KIND: Final = np.array(
    [[0, 0], [INSERT, 0], [UPDATE_BEFORE, UPDATE_AFTER], [DELETE, 0], [DELETE, 0], [0, 0]], np.uint8
)
#: By action: whether it needs the row before, and the new one.
_NEEDS_BEFORE: Final = np.array([0, 0, 1, 1, 0, 0], np.bool_)
_NEEDS_NEW: Final = np.array([0, 1, 1, 0, 1, 0], np.bool_)


@record
class Events:
    """One event a row: ``action``; structs of the row before and the new one, NULL where there is none; ``line``, the
    number of the line that it comes from, ascending."""

    action: npt.NDArray[np.int8]
    before: Any
    new: Any
    line: Int64s

    def lacking(self) -> Bools:
        """Events without a row that they need."""
        return (_NEEDS_BEFORE[self.action] & _nulls(self.before)) | (_NEEDS_NEW[self.action] & _nulls(self.new))

    def up_to_the_first(self, bad: Bools) -> Bools:
        """Events before which, and at which, their line has none that is bad."""
        seen = np.cumsum(bad)
        first = np.flatnonzero(np.diff(self.line, prepend=-1))
        counts = np.diff(np.append(first, len(self.line)))
        return seen - np.repeat((seen - bad)[first], counts) == 0

    def select(self, rows: Bools) -> Events:
        """Some of the events."""
        if rows.all():
            return self
        chosen = pa.array(rows)
        return Events(self.action[rows], self.before.filter(chosen), self.new.filter(chosen), self.line[rows])


def flattened(action: npt.NDArray[np.int8], before: Any, new: Any) -> Events:
    """Events of lines that hold lists of rows: one for each new row, with the row at its place in the other list."""
    starts, sizes = _bounds(new)
    sizes = np.where(action == Action.SKIP, 0, sizes)
    line = np.repeat(np.arange(len(action)), sizes)
    place = np.arange(len(line)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    others, other_sizes = _bounds(before)
    missing = place >= other_sizes[line]
    befores = before.values.take(pa.array(np.where(missing, 0, others[line] + place), mask=missing))
    return Events(action[line], befores, new.values.take(pa.array(starts[line] + place)), line)


def unfold(events: Events, kept: Sequence[Any], taken: Bools | None) -> Columns:
    """The rows of events that lack nothing, with the lines of the events.

    Args:
        events: in order.
        kept: further columns by line; they go with each row of the line.
        taken: (events, fields): of an update's row before, which fields are those of the new row.
    """
    counts = _COUNT[events.action]
    event = np.repeat(np.arange(len(counts)), counts)
    second = np.arange(len(event)) - np.repeat(np.cumsum(counts) - counts, counts)
    of_new = _NEW[events.action[event], second]
    kinds = _KIND[events.action[event], second]
    size = len(counts)
    arrays: list[Any] = []
    for index in range(events.new.type.num_fields):
        fresh = events.new.field(index)
        from_new = of_new if taken is None else of_new | taken[event, index]
        if from_new.all():
            arrays.append(fresh.take(pa.array(event)))
        else:
            both = pa.concat_arrays([events.before.field(index), fresh])
            arrays.append(both.take(pa.array(event + from_new * size)))
    lines = pa.array(events.line[event])
    arrays.extend(array.take(lines) for array in kept)
    return Columns(tuple(arrays), len(event), kinds if kinds.any() else None, events.line[event])


def _nulls(array: Any) -> Bools:
    if not array.null_count:
        return np.zeros(len(array), np.bool_)
    return np.asarray(array.is_null())


def _bounds(lists: Any) -> tuple[Int64s, Int64s]:
    """Where each list begins in the values, and its size; 0 for NULL."""
    offsets = np.frombuffer(lists.buffers()[1], np.int32, lists.offset + len(lists) + 1)[lists.offset :].astype(
        np.int64
    )
    return offsets[:-1], np.where(_nulls(lists), 0, np.diff(offsets))
