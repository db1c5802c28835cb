"""Rows that wait for a watermark outside state, and those that one reaches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from flowsql_core.batch import ChangelogBatch, WatermarkTrack
from flowsql_core.column_bytes import joined, taken
from flowsql_core.record import record
from flowsql_runtime.kernels import temporal as kernels
from flowsql_runtime.network.channel import referenced_bytes
from flowsql_runtime.window.row_time import milliseconds_of

Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]
Int8s = npt.NDArray[np.int8]

#: Rows, and bytes of their batches, that wait outside state at most.
_MOST_ROWS: Final = 262_144
_MOST_BYTES: Final = 64 << 20
#: Parts of fewer rows are put together when more come.
_SMALL_ROWS: Final = 4_096
#: A part is copied once fewer than one in so many of its rows still wait.
_SPARSE: Final = 4


@record
class TakenRows:
    """Rows that wait no longer, in order of arrival, (n,) each.

    ``columns``: among others the rows; ``rows``: where each stands there. ``entries``: the watermark of the track that
    reaches each.
    """

    columns: Sequence[Any]
    rows: Int64s
    times: Int64s
    kinds: Int8s
    numbers: Int64s
    entries: Int32s


@dataclass(slots=True)
class _Part:
    """Rows of a batch that still wait: ``rows`` of ``columns``, (n,), rising; the others by row."""

    columns: list[Any]
    num_rows: int
    size_bytes: int
    rows: Int64s
    times: Int64s
    kinds: Int8s
    numbers: Int64s
    earliest_ms: int

    def keep(self, stay: npt.NDArray[np.bool_]) -> None:
        """Only some rows wait on, at least one."""
        self.rows, self.times = self.rows[stay], self.times[stay]
        self.kinds, self.numbers = self.kinds[stay], self.numbers[stay]
        self.earliest_ms = int(self.times.min())
        if _SPARSE * len(self.rows) < self.num_rows:
            self.columns = [taken(column, self.rows) for column in self.columns]
            self.size_bytes = self.size_bytes * len(self.rows) // self.num_rows
            self.num_rows = len(self.rows)
            self.rows = np.arange(self.num_rows)


class WaitingRows:
    """Rows of one input in order of arrival, each with its time, its kind of change and its number.

    Columns stand in the batches that they came in, and are gathered once, when their rows leave.
    """

    def __init__(self, time_column: int, empty: Sequence[Any]) -> None:
        self._time_column = time_column
        #: Columns without rows.
        self._empty = list(empty)
        self._parts: list[_Part] = []

    def __len__(self) -> int:
        return sum(len(part.rows) for part in self._parts)

    @property
    def earliest_ms(self) -> int | None:
        """The time of the earliest row; None without rows."""
        return min((part.earliest_ms for part in self._parts), default=None)

    @property
    def full(self) -> bool:
        """Whether no more rows should wait here."""
        parts = self._parts
        return len(self) >= _MOST_ROWS or sum(part.size_bytes for part in parts) >= _MOST_BYTES

    def add(self, batch: ChangelogBatch, first_number: int) -> None:
        """Rows come, numbered from a number on."""
        parts, n = self._parts, batch.num_rows
        while len(parts) > 1 and len(parts[-1].rows) < _SMALL_ROWS and len(parts[-2].rows) < 2 * len(parts[-1].rows):
            parts[-2:] = [_together(parts[-2], parts[-1])]
        if not n:
            return
        times = np.ascontiguousarray(milliseconds_of(batch.columns[self._time_column]))
        kinds = np.zeros(n, np.int8) if batch.kinds is None else batch.kinds.view(np.int8)
        columns = [batch.columns[index] for index in range(len(batch.columns))]
        numbers = first_number + np.arange(n, dtype=np.int64)
        size_bytes = referenced_bytes(batch)
        parts.append(_Part(columns, n, size_bytes, np.arange(n), times, kinds, numbers, int(times.min())))

    def reached(self, track: WatermarkTrack, last_came_with_it: bool) -> TakenRows:
        """Take out the rows that the watermarks of a batch reach.

        Args:
            last_came_with_it: the rows that came last are those of the batch, so that only watermarks behind a row
                reach it.
        """
        found: list[tuple[_Part, Int64s, Int32s]] = []
        staying: list[_Part] = []
        last = self._parts[-1] if self._parts and last_came_with_it else None
        for part in self._parts:
            if part.earliest_ms > track.last_ms:
                staying.append(part)
                continue
            entries = np.empty(len(part.rows), np.int32)
            places = part.rows.astype(np.int32) if part is last else np.full(len(part.rows), -1, np.int32)
            kernels.entries_of(part.times, places, track.offsets, track.wm_ms, entries)
            due = entries < len(track)
            if due.all():
                found.append((part, np.arange(len(due)), entries))
            elif due.any():
                leaving = np.flatnonzero(due)
                found.append((_leaving(part, leaving), leaving, entries[leaving]))
                part.keep(~due)
                staying.append(part)
            else:
                staying.append(part)
        self._parts = staying
        return self._taken([part for part, _, _ in found], [entries for _, _, entries in found])

    def all(self) -> Iterator[TakenRows]:
        """Take out all rows, batch by batch; their entries mean nothing."""
        parts, self._parts = self._parts, []
        for part in parts:
            yield self._taken([part], [np.zeros(len(part.rows), np.int32)])

    def _taken(self, parts: list[_Part], entries: list[Int32s]) -> TakenRows:
        if not parts:
            none = np.zeros(0, np.int64)
            return TakenRows(self._empty, none, none, none.astype(np.int8), none, none.astype(np.int32))
        whole = parts[0] if len(parts) == 1 else _joined(parts)
        return TakenRows(whole.columns, whole.rows, whole.times, whole.kinds, whole.numbers, np.concatenate(entries))


def _leaving(part: _Part, at: Int64s) -> _Part:
    """Some of the rows of a part; few of them with columns of their own."""
    rows, columns, num_rows = part.rows[at], part.columns, part.num_rows
    if _SPARSE * len(rows) < num_rows:
        columns, num_rows = [taken(column, rows) for column in columns], len(rows)
        rows = np.arange(num_rows)
    return _Part(columns, num_rows, 0, rows, part.times[at], part.kinds[at], part.numbers[at], 0)


def _joined(parts: Sequence[_Part]) -> _Part:
    """All rows of parts, behind one another."""
    before = np.cumsum([0, *(part.num_rows for part in parts)])
    return _Part(
        [joined([part.columns[index] for part in parts]) for index in range(len(parts[0].columns))],
        int(before[-1]),
        sum(part.size_bytes for part in parts),
        np.concatenate([part.rows + start for part, start in zip(parts, before, strict=False)]),
        np.concatenate([part.times for part in parts]),
        np.concatenate([part.kinds for part in parts]),
        np.concatenate([part.numbers for part in parts]),
        min(part.earliest_ms for part in parts),
    )


def _together(one: _Part, other: _Part) -> _Part:
    """Two parts as one, with nothing but their rows."""
    whole = _joined((one, other))
    if len(whole.rows) < whole.num_rows:
        whole.columns = [taken(column, whole.rows) for column in whole.columns]
        whole.size_bytes = whole.size_bytes * len(whole.rows) // whole.num_rows
        whole.num_rows = len(whole.rows)
        whole.rows = np.arange(whole.num_rows)
    return whole
