"""Reading splits: a fetcher thread decodes ahead while the task works on what it polled.

Arrow decodes without holding the interpreter, so fetcher and task run side by side. The position of a split counts
polled rows only: what lies decoded in the queue is read again after a restore. A few small files the task decodes
itself: that is sooner done than a thread is started.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator, Set
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace

from flowsql_connectors.filesystem.splits import FileSplit
from flowsql_connectors.formats.format import Columns, Decoder
from flowsql_connectors.spi.counters import BYTES_READ
from flowsql_connectors.spi.source import ReaderContext, ReadStatus, SourceReader, Split, SplitBatch
from flowsql_core.batch import ChangelogBatch
from flowsql_core.record import record

#: Decoded pieces that may wait; two keep the fetcher busy while one is worked on.
_QUEUE_PIECES = 3
#: Files of so many bytes together are decoded without a thread.
_SMALL_BYTES = 64 << 10
#: Files that stay open while they are paused; others are read again from the start of their range.
_OPEN_FILES = 16

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

    def encode(self) -> Split:
        """The split from here on."""
        left = replace(self.split, ranges=self.split.ranges[self.at :], rows_done=self.rows)
        return Split(self.id, left.encode().data)


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

    def caught_up(self) -> bool:
        """Whether no file is left."""
        return not self._positions

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
        return [position.encode() for position in self._positions.values()]

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
        view = split.file.view(self._context.configuration)
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
            self._context.count(BYTES_READ, self._decoder.range_bytes(view, part))
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


@dataclass(slots=True, eq=False)
class _OpenFile:
    """What was decoded of a split and is not polled yet, and what decodes on behind it."""

    rest: Iterator[tuple[int, Columns]]
    coming: Future[tuple[int, Columns] | None] | None = None
    at: int = 0
    columns: Columns | None = None
    offset: int = 0


class PausingFileReader(SourceReader):
    """Reads the splits of one subtask one after another too, but leaves a paused one for the next and comes back to it.

    A thread decodes the next piece of the split that is read. Of paused splits that were begun the ones read last stay
    open with the piece that they stand in.
    """

    def __init__(
        self,
        make_decoder: Callable[[], Decoder],
        complete: Complete,
        empty: ChangelogBatch,
        limit: int | None,
        context: ReaderContext,
    ) -> None:
        self._make_decoder = make_decoder
        self._complete = complete
        self._empty = empty
        self._rows_left = limit
        self._context = context
        self._positions: dict[str, _Position] = {}
        self._paused: Set[str] = frozenset()
        #: By split, the one read last at the end.
        self._open: dict[str, _OpenFile] = {}
        self._no_more = False
        self._thread = ThreadPoolExecutor(1, f"file-fetcher-{context.subtask}")

    def add_splits(self, splits: list[Split]) -> None:
        """Take over splits."""
        for encoded in splits:
            split = FileSplit.decode(encoded)
            self._positions[encoded.id] = _Position(split, encoded.id, rows=split.rows_done)

    def caught_up(self) -> bool:
        """Whether no file is left."""
        return not self._positions

    def no_more_splits(self) -> None:
        """END follows the last row."""
        self._no_more = True

    def pause_splits(self, paused: Set[str]) -> bool:
        """These wait; the first of the others is read."""
        self._paused = paused
        return True

    def poll(self, max_rows: int) -> SplitBatch | ReadStatus:
        """The next rows of the first split that is not paused; what went wrong in the thread is raised here."""
        if self._rows_left == 0:
            self._positions.clear()
        if not self._positions:
            return ReadStatus.END if self._no_more or self._rows_left == 0 else ReadStatus.NOTHING_NOW
        position = self._next()
        if position is None:
            return ReadStatus.NOTHING_NOW
        file = self._opened(position)
        while file.columns is None:
            coming = self._coming(file)
            if not coming.done():
                return ReadStatus.NOTHING_NOW
            piece = coming.result()
            if piece is None:
                del self._open[position.id], self._positions[position.id]
                return SplitBatch(position.id, self._empty, finished=True)
            file.at, columns = piece
            file.columns = columns if columns.num_rows else None
            file.coming = None
            self._coming(file)
        return SplitBatch(position.id, self._cut(position, file, file.columns, max_rows))

    def _cut(self, position: _Position, file: _OpenFile, columns: Columns, max_rows: int) -> ChangelogBatch:
        rows = min(max_rows, columns.num_rows - file.offset)
        if self._rows_left is not None:
            rows = min(rows, self._rows_left)
            self._rows_left -= rows
        part = columns.slice(file.offset, file.offset + rows)
        if file.at > position.at:
            position.at, position.rows = file.at, 0
        position.rows += rows
        file.offset += rows
        if file.offset == columns.num_rows:
            file.columns, file.offset = None, 0
        return ChangelogBatch.of(self._complete(position.split, part), part.kinds, num_rows=rows)

    def wake_when_available(self, wake: Callable[[], None]) -> None:
        """When a piece is decoded; new splits and splits that go on come with a mail of the task's own."""
        position = self._next()
        file = None if position is None else self._open.get(position.id)
        if file is not None and file.coming is not None and file.columns is None:
            file.coming.add_done_callback(lambda _: wake())
        elif position is not None or self._no_more:
            wake()

    def snapshot(self) -> list[Split]:
        """Unfinished splits at the rows that were polled last."""
        return [position.encode() for position in self._positions.values()]

    def close(self) -> None:
        """Nothing more is decoded."""
        self._thread.shutdown(wait=True, cancel_futures=True)
        self._open.clear()

    def _next(self) -> _Position | None:
        return next((self._positions[name] for name in self._positions if name not in self._paused), None)

    def _opened(self, position: _Position) -> _OpenFile:
        file = self._open.pop(position.id, None)
        if file is None:
            file = _OpenFile(self._pieces(position.split, position.at, position.rows))
            for name in list(self._open)[: max(0, len(self._open) + 1 - _OPEN_FILES)]:
                # Positions count polled rows: what is closed here is decoded again once it goes on.
                del self._open[name]
        self._open[position.id] = file
        return file

    def _coming(self, file: _OpenFile) -> Future[tuple[int, Columns] | None]:
        if file.coming is None:
            file.coming = self._thread.submit(next, file.rest, None)
        return file.coming

    def _pieces(self, split: FileSplit, first: int, skip: int) -> Iterator[tuple[int, Columns]]:
        """Decoded rows with the number of their range."""
        # One for each file that is open: decoders keep what they read between the pieces of a file.
        decoder = self._make_decoder()
        view = split.file.view(self._context.configuration)
        for at in range(first, len(split.ranges)):
            for columns in decoder.read(view, split.ranges[at]):
                dropped = min(skip, columns.num_rows)
                skip -= dropped
                yield at, columns.slice(dropped, columns.num_rows) if dropped else columns
            skip = 0
            self._context.count(BYTES_READ, decoder.range_bytes(view, split.ranges[at]))
