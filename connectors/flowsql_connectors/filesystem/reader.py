"""Reading splits: a fetcher thread decodes ahead while the task works on what it polled.

Arrow decodes without holding the interpreter, so fetcher and task run side by side. The position of a split counts
polled rows only: what lies decoded in the queue is read again after a restore. A few small files the task decodes
itself: that is sooner done than a thread is started.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace

from flowsql_connectors.filesystem.splits import FileSplit
from flowsql_connectors.formats.format import Columns, Decoder, FileView
from flowsql_connectors.spi.source import ReaderContext, ReadStatus, SourceReader, Split, SplitBatch
from flowsql_core.batch import ChangelogBatch
from flowsql_core.record import record

#: Decoded pieces that may wait; two keep the fetcher busy while one is worked on.
_QUEUE_PIECES = 3
#: Files of so many bytes together are decoded without a thread.
_SMALL_BYTES = 64 << 10

#: Adds metadata and partition columns: (split, decoded columns) -> output columns in the order of the scan.
Complete = Callable[[FileSplit, Columns], tuple[object, ...]]


@record
class _Piece:
    """Decoded rows of range number ``at`` of a split; the last piece of a range may be empty."""

    split_id: str
    at: int
    columns: Columns
    ends_range: bool
    ends_split: bool


@dataclass(slots=True)
class _Position:
    """Where polling stands in a split."""

    split: FileSplit
    id: str
    at: int = 0
    rows: int = 0


class FileReader(SourceReader):
    """Reads the splits of one subtask one after another."""

    def __init__(
        self,
        decoder: Decoder,
        complete: Complete,
        empty: ChangelogBatch,
        limit: int | None,
        context: ReaderContext,
    ) -> None:
        self._decoder = decoder
        self._complete = complete
        self._empty = empty
        self._rows_left = limit
        self._context = context
        self._changed = threading.Condition()
        self._positions: dict[str, _Position] = {}
        self._to_fetch: deque[_Position] = deque()
        self._fetched: deque[_Piece | BaseException] = deque()
        self._no_more = False
        self._closed = False
        self._wake: Callable[[], None] | None = None
        self._thread: threading.Thread | None = None
        # The piece that polling is cutting into batches.
        self._current: _Piece | None = None
        self._offset = 0

    def add_splits(self, splits: list[Split]) -> None:
        """Take over splits and start to fetch."""
        with self._changed:
            for encoded in splits:
                split = FileSplit.decode(encoded)
                position = _Position(split, encoded.id, rows=split.rows_done)
                self._positions[encoded.id] = position
                self._to_fetch.append(position)
            waiting_bytes = sum(position.split.file.size for position in self._to_fetch)
            if splits and self._thread is None and waiting_bytes > _SMALL_BYTES:
                name = f"file-fetcher-{self._context.subtask}"
                self._thread = threading.Thread(target=self._fetch_all, name=name, daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def no_more_splits(self) -> None:
        """END follows the last row."""
        with self._changed:
            self._no_more = True
        self._call_wake()

    def poll(self, max_rows: int) -> SplitBatch | ReadStatus:
        """The next rows; what went wrong in the fetcher is raised here."""
        if self._rows_left == 0:
            self._positions.clear()
            return ReadStatus.END
        while (piece := self._current or self._take()) is not None:
            polled = self._cut(piece, max_rows)
            if polled.batch.num_rows or polled.finished:
                return polled
        with self._changed:
            return ReadStatus.END if self._no_more and not self._positions else ReadStatus.NOTHING_NOW

    def _cut(self, piece: _Piece, max_rows: int) -> SplitBatch:
        position = self._positions[piece.split_id]
        rows = min(max_rows, piece.columns.num_rows - self._offset)
        if self._rows_left is not None:
            rows = min(rows, self._rows_left)
            self._rows_left -= rows
        part = piece.columns.slice(self._offset, self._offset + rows)
        position.rows += rows
        self._offset += rows
        finished = False
        if self._offset < piece.columns.num_rows:
            self._current = piece
        else:
            self._current, self._offset = None, 0
            finished = piece.ends_split
            if finished:
                del self._positions[piece.split_id]
            elif piece.ends_range:
                position.at, position.rows = piece.at + 1, 0
        batch = self._empty
        if rows:
            batch = ChangelogBatch.of(self._complete(position.split, part), part.kinds, num_rows=rows)
        return SplitBatch(piece.split_id, batch, finished)

    def _take(self) -> _Piece | None:
        if self._thread is None and not self._fetched and self._to_fetch:
            self._fetch(self._to_fetch.popleft())
        with self._changed:
            if not self._fetched:
                return None
            piece = self._fetched.popleft()
            self._changed.notify_all()
        if isinstance(piece, BaseException):
            raise piece
        self._offset = 0
        return piece

    def wake_when_available(self, wake: Callable[[], None]) -> None:
        """Call ``wake`` once something can be polled."""
        with self._changed:
            here = self._thread is None and bool(self._to_fetch)
            ready = here or bool(self._fetched) or self._current is not None
            ready = ready or (self._no_more and not self._positions)
            self._wake = None if ready else wake
        if ready:
            wake()

    def snapshot(self) -> list[Split]:
        """Unfinished splits at the rows that were polled last."""
        left = []
        for position in self._positions.values():
            ranges = position.split.ranges[position.at :]
            at_position = replace(position.split, ranges=ranges, rows_done=position.rows).encode()
            left.append(Split(position.id, at_position.data))
        return left

    def close(self) -> None:
        """Stop the fetcher."""
        with self._changed:
            self._closed = True
            self._fetched.clear()
            self._changed.notify_all()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(timeout=5)

    # -- the fetcher's side; the task's own where there is no fetcher --------------------------------------------------

    def _fetch_all(self) -> None:
        try:
            while (position := self._next_to_fetch()) is not None:
                self._fetch(position)
        except BaseException as error:  # raised again where it is polled
            self._put(error)

    def _next_to_fetch(self) -> _Position | None:
        with self._changed:
            while not self._to_fetch and not self._closed:
                self._changed.wait()
            return None if self._closed else self._to_fetch.popleft()

    def _fetch(self, position: _Position) -> None:
        split, split_id = position.split, position.id
        view = FileView(split.file.path, split.file.size, split.file.compression)
        skip = split.rows_done
        for at, part in enumerate(split.ranges):
            waiting: Columns | None = None
            for columns in self._decoder.read(view, part):
                if skip:
                    dropped = min(skip, columns.num_rows)
                    skip -= dropped
                    columns = columns.slice(dropped, columns.num_rows)
                if waiting is not None and not self._put(
                    _Piece(split_id, at, waiting, ends_range=False, ends_split=False)
                ):
                    return
                waiting = columns
            skip = 0
            last = at + 1 == len(split.ranges)
            if not self._put(_Piece(split_id, at, waiting or Columns((), 0), ends_range=True, ends_split=last)):
                return

    def _put(self, piece: _Piece | BaseException) -> bool:
        with self._changed:
            while self._thread is not None and len(self._fetched) >= _QUEUE_PIECES and not self._closed:
                self._changed.wait()
            if self._closed:
                return False
            self._fetched.append(piece)
        self._call_wake()
        return True

    def _call_wake(self) -> None:
        with self._changed:
            wake, self._wake = self._wake, None
        if wake is not None:
            wake()
