"""``ChangelogBatch``: the unit that flows between operators, and the watermark track inside it.

Contract: columns of one length, change kinds (or None when insert-only), row times of DataStream records (or None),
and the *watermark track*: the watermarks that Flink would have emitted between the rows. A batch and its arrays are
never written after they left the operator that made them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flowsql_core import column_bytes
from flowsql_core.arrow import compute as pc
from flowsql_core.element import MIN_WATERMARK

Int64s = npt.NDArray[np.int64]
Int32s = npt.NDArray[np.int32]
Bools = npt.NDArray[np.bool_]
Kinds = npt.NDArray[np.uint8]


@dataclass(frozen=True, eq=False)
class PyObjectColumn:
    """A column of Python objects (``dtype=object``, shape (n,)). It never travels in an Arrow frame."""

    values: npt.NDArray[np.object_]

    def __len__(self) -> int:
        return len(self.values)

    def take(self, rows: npt.NDArray[Any]) -> PyObjectColumn:
        """Rows by position."""
        return PyObjectColumn(self.values[rows])

    def slice(self, start: int, length: int) -> PyObjectColumn:
        """A view of rows ``start .. start + length``."""
        return PyObjectColumn(self.values[start : start + length])

    def to_pylist(self) -> list[Any]:
        """The objects."""
        found: list[Any] = self.values.tolist()
        return found


class RowSource(ABC):
    """Values by row number that are not one array: where late columns of a state select from.

    Rows keep their numbers, so that what was selected may be gathered after more rows came: by the thread that adds
    rows. A batch for another thread leaves them first (:meth:`ChangelogBatch.leave_states`).
    """

    @abstractmethod
    def take(self, rows: npt.NDArray[Any]) -> Any:
        """An Arrow array of rows by number."""

    @abstractmethod
    def row_bytes(self, rows: npt.NDArray[Any], most: int) -> Int64s | None:
        """Bytes of rows by number, int64 (n,), as ``column_bytes.row_bytes``; None if all together take no more than
        ``most``."""


#: An Arrow array, or Python objects (pyarrow ships no types, hence Any).
ColumnData: TypeAlias = Any


@dataclass(frozen=True, eq=False, slots=True)
class _Late:
    """Rows of a column that nobody has asked for yet."""

    source: ColumnData
    rows: npt.NDArray[Any]


class LateColumns(Sequence[ColumnData]):
    """Columns of selected rows, gathered when first looked at.

    A filter before a hash split, or before a column that nobody reads, so copies no row twice or for nothing. Two
    threads that look at the same time gather the same values twice.
    """

    __slots__ = ("_entries",)

    def __init__(self, entries: Sequence[ColumnData | _Late]) -> None:
        self._entries = list(entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return tuple(self[place] for place in range(*index.indices(len(self._entries))))
        entry = self._entries[index]
        if isinstance(entry, _Late):
            entry = _gathered(entry.source, entry.rows)
            self._entries[index] = entry
        return entry

    def entry(self, index: int) -> Any:
        """A column as it stands, for other late columns."""
        return self._entries[index]

    def origin(self, index: int) -> tuple[ColumnData, npt.NDArray[Any]] | None:
        """Of a column not gathered yet: the column that it is selected from, and which rows; None for rows of a
        :class:`RowSource`, which only whoever has the state gathers."""
        entry = self._entries[index]
        if not isinstance(entry, _Late) or isinstance(entry.source, RowSource):
            return None
        return entry.source, entry.rows

    def leave_states(self) -> None:
        """Gather now what is selected from a :class:`RowSource`."""
        for index, entry in enumerate(self._entries):
            if isinstance(entry, _Late) and isinstance(entry.source, RowSource):
                self._entries[index] = _gathered(entry.source, entry.rows)

    @staticmethod
    def of(columns: Sequence[ColumnData], rows: npt.NDArray[Any]) -> LateColumns:
        """Rows of columns by position, in any order; what is late is selected from where it comes from."""
        return LateColumns(_selected(columns, rows))

    @staticmethod
    def padded(columns: Sequence[ColumnData], rows: npt.NDArray[Any]) -> LateColumns:
        """:meth:`of`, where row -1 is NULL in every column: the padded side of an outer join. No Python objects."""
        places = _Places()
        return LateColumns(
            [
                late if isinstance(late.source, _Padded) else _Late(_Padded(late.source, places), late.rows)
                for late in _selected(columns, rows, padded=True)
            ]
        )

    @staticmethod
    def beside(left: Sequence[ColumnData], right: Sequence[ColumnData]) -> LateColumns:
        """The columns of both; nothing is gathered."""
        return LateColumns(
            [
                part.entry(index) if isinstance(part, LateColumns) else part[index]
                for part in (left, right)
                for index in range(len(part))
            ]
        )


def late_columns(columns: Sequence[ColumnData], places: Iterable[int | ColumnData]) -> Sequence[ColumnData]:
    """Columns of a batch by index, mixed with new ones of as many rows; nothing is gathered."""
    if not isinstance(columns, LateColumns):
        return tuple(columns[place] if isinstance(place, int) else place for place in places)
    return LateColumns([columns.entry(place) if isinstance(place, int) else place for place in places])


def _gathered(column: ColumnData, rows: npt.NDArray[Any]) -> ColumnData:
    if isinstance(column, PyObjectColumn | RowSource):
        return column.take(rows)
    return pc.take(column, pa.array(rows), boundscheck=False)


def _selected(columns: Sequence[ColumnData], rows: npt.NDArray[Any], padded: bool = False) -> list[_Late]:
    """Rows of columns, those that are late already by the rows of their source; ``padded``: -1 stays -1."""
    found: list[_Late] = []
    composed: dict[int, npt.NDArray[Any]] = {}
    for index in range(len(columns)):
        entry = columns.entry(index) if isinstance(columns, LateColumns) else columns[index]
        if isinstance(entry, _Late):
            if id(entry.rows) not in composed:
                inner = entry.rows[rows] if len(entry.rows) else rows
                # Row -1 is NULL, as in what `rows` select from.
                composed[id(entry.rows)] = np.where(rows < 0, inner.dtype.type(-1), inner) if padded else inner
            entry = _Late(entry.source, composed[id(entry.rows)])
        else:
            entry = _Late(entry, rows)
        found.append(entry)
    return found


class _Places:
    """Which of some rows are not -1, worked out once for the columns that are gathered with them."""

    __slots__ = ("_last",)

    def __init__(self) -> None:
        self._last: tuple[npt.NDArray[Any], tuple[npt.NDArray[Any], Any] | None] | None = None

    def of(self, rows: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], Any] | None:
        """The rows that are not -1, and for each row its place among these (an Arrow array, NULL at -1); None if
        there is no -1."""
        last = self._last
        if last is not None and last[0] is rows:
            return last[1]
        gone = rows < 0
        found = None
        if gone.any():
            places = np.cumsum(~gone, dtype=np.int32) - np.int32(1)
            found = (np.ascontiguousarray(rows[~gone]), pa.array(places, mask=gone))
        self._last = (rows, found)
        return found


class _Padded(RowSource):
    """A column, or rows of a state, whose row -1 is NULL."""

    def __init__(self, source: ColumnData, places: _Places) -> None:
        self.source = source
        self._places = places

    def take(self, rows: npt.NDArray[Any]) -> Any:
        """An Arrow array of rows by number, NULL at -1."""
        found = self._places.of(rows)
        if found is None:
            return _gathered(self.source, rows)
        there, places = found
        if isinstance(self.source, RowSource):
            return pc.take(self.source.take(there), places, boundscheck=False)
        return pc.take(self.source, pa.array(rows, mask=rows < 0), boundscheck=False)

    def row_bytes(self, rows: npt.NDArray[Any], most: int) -> Int64s | None:
        """Bytes of rows by number; NULL takes none."""
        found = self._places.of(rows)
        there = rows if found is None else found[0]
        if isinstance(self.source, RowSource):
            sizes = self.source.row_bytes(there, most)
        else:
            sizes = column_bytes.bytes_of_rows(self.source, there, len(there))
        if sizes is None or found is None:
            return sizes
        spread = np.zeros(len(rows), np.int64)
        spread[rows >= 0] = sizes
        return spread


def _sliced(columns: Sequence[ColumnData], start: int, stop: int) -> Sequence[ColumnData]:
    """Rows [start, stop) of columns; late ones stay late, and those that share their rows still do."""
    if not isinstance(columns, LateColumns):
        return tuple(column.slice(start, stop - start) for column in columns)
    cut: dict[int, npt.NDArray[Any]] = {}
    entries: list[Any] = []
    for index in range(len(columns)):
        entry = columns.entry(index)
        if isinstance(entry, _Late):
            entry = _Late(entry.source, cut.setdefault(id(entry.rows), entry.rows[start:stop]))
        else:
            entry = entry.slice(start, stop - start)
        entries.append(entry)
    return LateColumns(entries)


def _bytes_of_rows(columns: Sequence[ColumnData], index: int, n: int) -> Int64s | None:
    """Bytes of each of ``n`` rows of a column, int64 (n,); None if together they fit into one array."""
    entry = columns.entry(index) if isinstance(columns, LateColumns) else columns[index]
    rows = None
    if isinstance(entry, _Late):
        entry, rows = entry.source, entry.rows
        if isinstance(entry, RowSource):
            return entry.row_bytes(rows, column_bytes.MOST_BYTES)
    if isinstance(entry, PyObjectColumn):
        return None
    return column_bytes.bytes_of_rows(entry, rows, n)


def _usual(columns: Sequence[ColumnData]) -> Sequence[ColumnData]:
    """The columns with 32-bit offsets; late ones have them already."""
    entries = _entries(columns)
    for index, entry in enumerate(entries):
        if _is_wide(entry):
            gathered = _gathered(entry.source, entry.rows) if isinstance(entry, _Late) else entry
            entries[index] = column_bytes.narrow(gathered)
    return LateColumns(entries) if isinstance(columns, LateColumns) else tuple(entries)


def _entries(columns: Sequence[ColumnData]) -> list[Any]:
    """The columns, late ones as they stand."""
    late = isinstance(columns, LateColumns)
    return [columns.entry(index) if late else columns[index] for index in range(len(columns))]  # type: ignore[attr-defined]


def _is_wide(entry: Any) -> bool:
    """Whether a column, or what a late one selects from, is an array with 64-bit offsets."""
    source = entry.source if isinstance(entry, _Late) else entry
    if isinstance(source, _Padded):
        source = source.source
    if isinstance(source, PyObjectColumn | RowSource):
        return False
    return bool(column_bytes.usual_type(source.type) != source.type)


@dataclass(frozen=True, eq=False)
class RowTimes:
    """Timestamps of DataStream records: ``values_ms`` int64 (n,), ``valid`` bool (n,) or None when all have one."""

    values_ms: Int64s
    valid: Bools | None = None

    def take(self, rows: npt.NDArray[Any]) -> RowTimes:
        """Rows by position or mask."""
        return RowTimes(self.values_ms[rows], None if self.valid is None else self.valid[rows])


@dataclass(frozen=True, eq=False)
class WatermarkTrack:
    """Watermarks inside a batch: before row ``offsets[i]`` the watermark becomes ``wm_ms[i]``; n: after all rows.

    ``offsets`` int32 (m,), not falling; ``wm_ms`` int64 (m,), strictly rising. Both read-only by convention.
    """

    offsets: Int32s
    wm_ms: Int64s

    def __len__(self) -> int:
        return len(self.offsets)

    def remap_sorted(self, rows: npt.NDArray[Any]) -> WatermarkTrack:
        """The track of ``batch.take(rows)`` for rising ``rows``."""
        return WatermarkTrack(np.searchsorted(rows, self.offsets).astype(np.int32), self.wm_ms)

    def cut(self, start: int, stop: int, last: bool) -> WatermarkTrack | None:
        """The part for rows [start, stop); an entry at ``stop`` belongs here only if this is the last part."""
        lo = int(np.searchsorted(self.offsets, start, side="left"))
        hi = int(np.searchsorted(self.offsets, stop, side="right" if last else "left"))
        if lo == hi:
            return None
        return WatermarkTrack(self.offsets[lo:hi] - np.int32(start), self.wm_ms[lo:hi])

    def at_least(self, floor_ms: int) -> WatermarkTrack | None:
        """Only the entries above ``floor_ms`` (what is new to a receiver that already stands there)."""
        if len(self) and self.wm_ms[0] > floor_ms:  # the common case, without a search
            return self
        lo = int(np.searchsorted(self.wm_ms, floor_ms, side="right"))
        return WatermarkTrack(self.offsets[lo:], self.wm_ms[lo:]) if lo < len(self.wm_ms) else None

    def capped(self, ceiling_ms: int, floor_ms: int) -> WatermarkTrack | None:
        """Minimum with another channel's watermark, entries that do not lift ``floor_ms`` dropped."""
        if not len(self) or ceiling_ms <= floor_ms:
            return None
        track = self
        if self.wm_ms[-1] > ceiling_ms:
            hi = int(np.searchsorted(self.wm_ms, ceiling_ms, side="left"))
            wm_ms = self.wm_ms[: hi + 1].copy()
            wm_ms[hi] = ceiling_ms
            track = WatermarkTrack(self.offsets[: hi + 1], wm_ms)
        return track.at_least(floor_ms)

    @property
    def last_ms(self) -> int:
        """The watermark after the whole batch."""
        return int(self.wm_ms[-1])


def single_watermark(offset: int, wm_ms: int) -> WatermarkTrack:
    """A track of one entry."""
    return WatermarkTrack(np.array([offset], dtype=np.int32), np.array([wm_ms], dtype=np.int64))


@dataclass(frozen=True, eq=False)
class ChangelogBatch:
    """Columns + change kinds + row times + watermark track. See the module docstring.

    Args:
        columns: one per field, all of ``num_rows`` rows (a tuple, or :class:`LateColumns`).
        num_rows: kept apart because a batch may have no column (``COUNT(*)`` needs none).
        kinds: RowKind bytes, uint8 (n,), or None when every row is ``+I``.
    """

    columns: Sequence[ColumnData]
    num_rows: int
    kinds: Kinds | None = None
    row_times: RowTimes | None = None
    track: WatermarkTrack | None = None

    @staticmethod
    def of(
        columns: Sequence[ColumnData],
        kinds: Kinds | None = None,
        track: WatermarkTrack | None = None,
        num_rows: int | None = None,
    ) -> ChangelogBatch:
        """A batch of columns; ``num_rows`` only where there is no column."""
        n = len(columns[0]) if columns else num_rows
        if n is None:
            raise ValueError("a batch without columns needs num_rows")
        return ChangelogBatch(tuple(columns), n, kinds, None, track)

    @staticmethod
    def from_record_batch(data: pa.RecordBatch) -> ChangelogBatch:
        """Insert-only rows, no watermarks."""
        return ChangelogBatch(tuple(data.columns), data.num_rows)

    def to_record_batch(self, names: Sequence[str]) -> pa.RecordBatch:
        """Arrow columns under names; kinds and track stay behind."""
        return pa.RecordBatch.from_arrays(list(self.columns), names=list(names))

    def with_columns(self, columns: Sequence[ColumnData]) -> ChangelogBatch:
        """The same rows, other columns."""
        kept = columns if isinstance(columns, LateColumns) else tuple(columns)
        return ChangelogBatch(kept, self.num_rows, self.kinds, self.row_times, self.track)

    def with_kinds(self, kinds: Kinds | None) -> ChangelogBatch:
        """The same rows, other change kinds."""
        return ChangelogBatch(self.columns, self.num_rows, kinds, self.row_times, self.track)

    def with_track(self, track: WatermarkTrack | None) -> ChangelogBatch:
        """The same rows, other watermarks."""
        return ChangelogBatch(self.columns, self.num_rows, self.kinds, self.row_times, track)

    def filter(self, mask: Bools) -> ChangelogBatch:
        """Rows where ``mask`` (bool, shape (n,)); offsets of the track move along. Columns are gathered late."""
        if mask.all():
            return self
        return self.part(np.flatnonzero(mask))

    def take(self, rows: npt.NDArray[Any]) -> ChangelogBatch:
        """Rows at rising positions; the whole track comes along with its own offsets."""
        return self._taken(rows, tuple(_gathered(late.source, late.rows) for late in _selected(self.columns, rows)))

    def part(self, rows: npt.NDArray[Any]) -> ChangelogBatch:
        """:meth:`take`, with columns gathered late: whoever reads a column copies it, or copies it to its place."""
        return self._taken(rows, LateColumns.of(self.columns, rows))

    def _taken(self, rows: npt.NDArray[Any], columns: Sequence[ColumnData]) -> ChangelogBatch:
        kinds = None if self.kinds is None else self.kinds[rows]
        times = None if self.row_times is None else self.row_times.take(rows)
        track = None if self.track is None else self.track.remap_sorted(rows)
        return ChangelogBatch(columns, len(rows), kinds, times, track)

    def slice(self, start: int, stop: int) -> ChangelogBatch:
        """Rows [start, stop) as views; the parts of a cut carry together what the whole carried."""
        if start == 0 and stop == self.num_rows:
            return self
        columns = _sliced(self.columns, start, stop)
        kinds = None if self.kinds is None else self.kinds[start:stop]
        times = None if self.row_times is None else self.row_times.take(np.arange(start, stop))
        track = None if self.track is None else self.track.cut(start, stop, stop == self.num_rows)
        return ChangelogBatch(columns, stop - start, kinds, times, track)

    def within_offsets(self) -> Iterator[ChangelogBatch]:
        """The batch in parts that are small enough for 32-bit offsets in every column, late ones included.

        For whoever repeats rows or reads them from state: only there a column comes to more than its sources hold.
        Columns that were gathered wide (``column_bytes``) have their usual types in the parts.
        """
        sizes: Int64s | None = None
        for index in range(len(self.columns)):
            found = _bytes_of_rows(self.columns, index, self.num_rows)
            if found is not None:
                sizes = found if sizes is None else sizes + found
        if sizes is None:
            yield self if not any(map(_is_wide, _entries(self.columns))) else self.with_columns(_usual(self.columns))
            return
        for start, stop in column_bytes.ranges_within(sizes, column_bytes.MOST_BYTES):
            part = self.slice(start, stop)
            yield part.with_columns(_usual(part.columns))

    def watermark_per_row(self, before_ms: int = MIN_WATERMARK) -> Int64s:
        """The watermark that stands when each row is processed, int64 (n,); ``before_ms`` stood before the batch."""
        return watermark_per_row(self.num_rows, self.track, before_ms)

    def segments_at(self, boundaries: Int64s) -> list[tuple[int, int, int | None]]:
        """Cut where the watermark first reaches each of the operator's timer times.

        Args:
            boundaries: rising epoch ms, e.g. the operator's pending timers.

        Returns:
            ``(start, stop, watermark)``: rows [start, stop), after which the watermark stands at ``watermark`` and
            reached at least one boundary; the last part has None if nothing was reached after its rows.
        """
        if self.track is None or not len(boundaries):
            return [(0, self.num_rows, None)]
        hits = np.unique(np.searchsorted(self.track.wm_ms, boundaries, side="left"))
        parts: list[tuple[int, int, int | None]] = []
        start = 0
        for hit in hits[hits < len(self.track)]:
            stop = int(self.track.offsets[hit])
            parts.append((start, stop, int(self.track.wm_ms[hit])))
            start = stop
        if start < self.num_rows or not parts:
            parts.append((start, self.num_rows, None))
        return parts

    @cached_property
    def retracting(self) -> Bools | None:
        """True where the row takes something back (``-U``, ``-D``), shape (n,); None when insert-only."""
        return None if self.kinds is None else (self.kinds & 1).astype(np.bool_)

    @property
    def holds_objects(self) -> bool:
        """Whether any column holds Python objects; late columns stay late."""
        columns = self.columns
        if not isinstance(columns, LateColumns):
            return any(isinstance(column, PyObjectColumn) for column in columns)
        origins = (columns.origin(index) or (columns.entry(index),) for index in range(len(columns)))
        return any(isinstance(origin[0], PyObjectColumn) for origin in origins)

    def leave_states(self) -> ChangelogBatch:
        """This batch, for another thread than its operator's: nothing of it is still to be gathered from a state."""
        if isinstance(self.columns, LateColumns):
            self.columns.leave_states()
        return self

    @property
    def nbytes(self) -> int:
        """Approximate size of the referenced rows in bytes."""
        total = 0 if self.kinds is None else self.num_rows
        for column in self.columns:
            total += 64 * self.num_rows if isinstance(column, PyObjectColumn) else column.get_total_buffer_size()
        return total


def watermark_per_row(num_rows: int, track: WatermarkTrack | None, before_ms: int) -> Int64s:
    """The watermark that stands when each of ``num_rows`` rows is processed, int64 (n,)."""
    if track is None or not len(track):
        return np.full(num_rows, before_ms, dtype=np.int64)
    levels = np.concatenate((np.array([before_ms], dtype=np.int64), track.wm_ms))
    return levels[np.searchsorted(track.offsets, np.arange(num_rows, dtype=np.int32), side="right")]


def concat_batches(batches: Iterable[ChangelogBatch]) -> list[ChangelogBatch]:
    """Several batches in order as one; tracks are joined with shifted offsets.

    More than one where the values of a column do not fit into one array.
    """
    parts = list(batches)
    if len(parts) <= 1:
        return parts
    for index, column in enumerate(parts[0].columns):
        if not isinstance(column, PyObjectColumn) and not column_bytes.fit_together([p.columns[index] for p in parts]):
            middle = len(parts) // 2
            return [*concat_batches(parts[:middle]), *concat_batches(parts[middle:])]
    return [_concatenated(parts)]


def columns_of(batches: Sequence[ChangelogBatch], columns: Sequence[int]) -> tuple[list[Any], int]:
    """Some Arrow columns of several batches, joined, and the number of rows."""
    joined = [column_bytes.joined([batch.columns[column] for batch in batches]) for column in columns]
    return joined, sum(batch.num_rows for batch in batches)


def _concatenated(parts: list[ChangelogBatch]) -> ChangelogBatch:
    n = sum(part.num_rows for part in parts)
    columns: list[ColumnData] = []
    for index, column in enumerate(parts[0].columns):
        if isinstance(column, PyObjectColumn):
            columns.append(PyObjectColumn(np.concatenate([part.columns[index].values for part in parts])))
        else:
            columns.append(pa.concat_arrays([part.columns[index] for part in parts]))
    kinds = None
    if any(part.kinds is not None for part in parts):
        kinds = np.concatenate(
            [np.zeros(part.num_rows, dtype=np.uint8) if part.kinds is None else part.kinds for part in parts]
        )
    times = None
    if any(part.row_times is not None for part in parts):
        times = _concat_times([part.row_times or _no_times(part.num_rows) for part in parts])
    return ChangelogBatch(tuple(columns), n, kinds, times, _concat_tracks(parts))


def _no_times(num_rows: int) -> RowTimes:
    return RowTimes(np.full(num_rows, MIN_WATERMARK, np.int64), np.zeros(num_rows, np.bool_))


def _concat_times(times: list[RowTimes]) -> RowTimes:
    valid = None
    if any(part.valid is not None for part in times):
        valid = np.concatenate(
            [np.ones(len(part.values_ms), dtype=np.bool_) if part.valid is None else part.valid for part in times]
        )
    return RowTimes(np.concatenate([part.values_ms for part in times]), valid)


def _concat_tracks(parts: list[ChangelogBatch]) -> WatermarkTrack | None:
    offsets, levels, base = [], [], 0
    for part in parts:
        if part.track is not None:
            offsets.append(part.track.offsets + np.int32(base))
            levels.append(part.track.wm_ms)
        base += part.num_rows
    if not offsets:
        return None
    wm_ms = np.concatenate(levels)
    at = np.concatenate(offsets)
    rising = np.ones(len(wm_ms), dtype=np.bool_)
    # Parts may come from senders that repeat a level; only what lifts the watermark stays.
    rising[1:] = wm_ms[1:] > np.maximum.accumulate(wm_ms)[:-1]
    return WatermarkTrack(at[rising], wm_ms[rising])
