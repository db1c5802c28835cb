"""Rows that user functions emit while one batch is processed, and the watermarks between them."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from flowsql_core.batch import ChangelogBatch, PyObjectColumn, RowTimes, WatermarkTrack
from flowsql_core.element import Watermark
from flowsql_core.stream.output_tag import OutputTag
from flowsql_core.stream.window import MIN_LONG
from flowsql_runtime.operators.base import Output
from flowsql_runtime.stream.copies import IMMUTABLE, copied

#: Rows that may gather before they leave: one element may become millions.
FLUSH_ROWS: Final = 16_384


class _Lane:
    """What goes to one side output."""

    __slots__ = ("levels", "offsets", "times", "values")

    def __init__(self) -> None:
        self.values: list[Any] = []
        self.times: list[int] = []
        self.offsets: list[int] = []
        self.levels: list[int] = []

    def batch(self) -> ChangelogBatch:
        """All rows and watermarks; the lane is empty afterwards."""
        made = object_batch(self.values, self.times, self.offsets, self.levels)
        self.values.clear()
        self.times.clear()
        self.offsets.clear()
        self.levels.clear()
        return made


class Emitter:
    """Gathers emitted objects with their timestamps (the smallest long: none) and hands them on as batches.

    ``values`` and ``times`` are open to loops that know better; :meth:`flush` at the end of each input.
    """

    __slots__ = ("_due", "_levels", "_offsets", "_output", "_sides", "emit", "own", "times", "values")

    def __init__(self, output: Output, object_reuse: bool, due: list[None]) -> None:
        self._output = output
        #: Not empty: what one element became so far leaves, though there may be more.
        self._due = due
        self._sides: dict[str, _Lane] = {}
        self._offsets: list[int] = []
        self._levels: list[int] = []
        self.values: list[Any] = []
        self.times: list[int] = []
        #: Hands on everything in an iterable of a function: ``emit(results, timestamp)``.
        self.emit = self._emit_shared if object_reuse else self._emit_copies
        #: What the next operator gets for an object.
        self.own = _itself if object_reuse else copied

    def _emit_copies(self, results: Any, timestamp: int) -> None:
        values, times, due = self.values, self.times, self._due
        for result in results:
            type_ = type(result)
            if type_ in IMMUTABLE:
                values.append(result)
            elif type_ is tuple:
                if IMMUTABLE.issuperset(map(type, result)):
                    values.append(result)
                elif isinstance(result[0], OutputTag):
                    self.emit_side(result[0].tag_id, copied(result[1]), timestamp)
                    continue
                else:
                    values.append(copied(result))
            else:
                values.append(copied(result))
            times.append(timestamp)
            if due or len(values) >= FLUSH_ROWS:
                due.clear()
                self.flush()

    def _emit_shared(self, results: Any, timestamp: int) -> None:
        values, times, due = self.values, self.times, self._due
        for result in results:
            if type(result) is tuple and result and isinstance(result[0], OutputTag):
                self.emit_side(result[0].tag_id, result[1], timestamp)
                continue
            values.append(result)
            times.append(timestamp)
            if due or len(values) >= FLUSH_ROWS:
                due.clear()
                self.flush()

    def emit_side(self, tag: str, value: Any, timestamp: int) -> None:
        """One element of a side output."""
        lane = self._sides.get(tag)
        if lane is None:
            lane = self._sides[tag] = _Lane()
            # The watermarks of this batch so far stand before its first row.
            lane.levels = self._levels.copy()
            lane.offsets = [0] * len(lane.levels)
        lane.values.append(value)
        lane.times.append(timestamp)

    def watermark(self, level_ms: int) -> None:
        """The watermark rises behind what was emitted so far."""
        self._offsets.append(len(self.values))
        self._levels.append(level_ms)
        for lane in self._sides.values():
            lane.offsets.append(len(lane.values))
            lane.levels.append(level_ms)

    def flush(self) -> None:
        """Hand everything on: sides first, whose watermarks must not overtake their rows."""
        for tag, lane in self._sides.items():
            if lane.values:
                self._output.collect_side(tag, lane.batch())
            elif lane.levels:
                lane.batch()  # the main output tells the watermark to everyone
        if self.values:
            batch = object_batch(self.values, self.times, self._offsets, self._levels)
            self._clear()
            self._output.collect(batch)
        elif self._levels:
            levels = self._levels.copy()
            self._clear()
            for level_ms in levels:
                self._output.emit_watermark(Watermark(level_ms))

    def _clear(self) -> None:
        # In place: loops hold the lists.
        self.values.clear()
        self.times.clear()
        self._offsets.clear()
        self._levels.clear()


def _itself(value: Any) -> Any:
    return value


def object_batch(values: list[Any], times: list[int], offsets: list[int], levels: list[int]) -> ChangelogBatch:
    """A batch of objects: timestamps by row (the smallest long: none), watermarks before rows."""
    n = len(values)
    track = None
    if levels:
        track = WatermarkTrack(np.array(offsets, np.int32), np.array(levels, np.int64))
    return ChangelogBatch((object_column(values),), n, None, row_times(times), track)


def object_column(values: list[Any]) -> PyObjectColumn:
    """A column of objects, whatever they are (NumPy would unpack sequences)."""
    return PyObjectColumn(np.fromiter(values, object, len(values)))


def row_times(times: list[int]) -> RowTimes | None:
    """Timestamps of a batch; None where no record has one."""
    stamps = np.fromiter(times, np.int64, len(times))
    valid = stamps != MIN_LONG
    if valid.all():
        return RowTimes(stamps)
    return RowTimes(stamps, valid) if valid.any() else None


def times_of(batch: ChangelogBatch) -> list[int]:
    """Timestamps of records, the smallest long where one has none."""
    times = batch.row_times
    if times is None:
        return [MIN_LONG] * batch.num_rows
    stamps = times.values_ms if times.valid is None else np.where(times.valid, times.values_ms, MIN_LONG)
    found: list[int] = stamps.tolist()
    return found
