"""Readers whose splits a thread reads one after another, rows of each in one order; polling cuts them into batches."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, Generic, Protocol, TypeVar

import pyarrow as pa

from flowsql_connectors.spi.source import ReaderContext, ReadStatus, SourceReader, Split, SplitBatch
from flowsql_core.batch import ChangelogBatch
from flowsql_core.record import record
from flowsql_core.types.arrow import to_arrow
from flowsql_core.types.logical import Schema

P = TypeVar("P")

#: Batches that wait to be polled.
_QUEUE: Final = 8


class SplitCode(Protocol[P]):
    """Parts of the input with the number of rows that were read of them, as splits."""

    def encode(self, part: P, rows: int) -> Split:
        """The split of a part."""
        ...

    def decode(self, split: Split) -> tuple[P, int]:
        """The part of a split, and the rows read."""
        ...


@record
class _Piece:
    """Rows of a split; none at its end."""

    split_id: str
    columns: Sequence[Any] | None
    rows: int = 0


class FetchingReader(SourceReader, Generic[P]):
    """Reads the splits of one subtask one after another.

    Args:
        code: parts as splits.
        read: columns of a part and their number of rows, the same ones at every call; called in the reader's thread.
        batch_rows: most rows of a batch; None: as many as polling takes.
        limit: rows that suffice.
        release: ends what ``read`` has open; called in the reader's thread.
        name: of the thread.
    """

    def __init__(
        self,
        code: SplitCode[P],
        read: Callable[[P], Iterator[tuple[Sequence[Any], int]]],
        release: Callable[[], None],
        output: Schema,
        batch_rows: int | None,
        limit: int | None,
        context: ReaderContext,
        name: str,
    ) -> None:
        self._code = code
        self._read = read
        self._release = release
        self._batch_rows = batch_rows
        self._rows_left = limit
        self._empty = ChangelogBatch.of(tuple(pa.nulls(0, to_arrow(column.type)) for column in output), num_rows=0)
        self._name = f"{name}-{context.subtask}"
        self._changed = threading.Condition()
        #: Each split that is not finished, and the rows polled of it.
        self._polled: dict[str, tuple[P, int]] = {}
        self._to_read: deque[tuple[str, P, int]] = deque()
        self._pieces: deque[_Piece | BaseException] = deque()
        self._no_more = False
        self._closed = False
        self._wake: Callable[[], None] | None = None
        self._thread: threading.Thread | None = None
        self._current: _Piece | None = None
        self._offset = 0

    def add_splits(self, splits: list[Split]) -> None:
        """Take over splits and start to read."""
        with self._changed:
            for split in splits:
                part, rows = self._code.decode(split)
                self._polled[split.id] = (part, rows)
                self._to_read.append((split.id, part, rows))
            if splits and self._thread is None:
                self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def caught_up(self) -> bool:
        """Whether no split is left."""
        return not self._polled

    def no_more_splits(self) -> None:
        """END follows the last row."""
        with self._changed:
            self._no_more = True
            self._changed.notify_all()
        self._call_wake()

    def poll(self, max_rows: int) -> SplitBatch | ReadStatus:
        """The next rows; what went wrong in the thread is raised here."""
        if self._rows_left == 0:
            self._polled.clear()
            return ReadStatus.END
        piece = self._current or self._take()
        if piece is None:
            with self._changed:
                return ReadStatus.END if self._no_more and not self._polled else ReadStatus.NOTHING_NOW
        if piece.columns is None:
            del self._polled[piece.split_id]
            return SplitBatch(piece.split_id, self._empty, finished=True)
        rows = min(max_rows, piece.rows - self._offset, self._batch_rows or max_rows)
        if self._rows_left is not None:
            rows = min(rows, self._rows_left)
            self._rows_left -= rows
        columns = tuple(column.slice(self._offset, rows) for column in piece.columns)
        part, polled = self._polled[piece.split_id]
        self._polled[piece.split_id] = (part, polled + rows)
        self._offset += rows
        self._current = piece if self._offset < piece.rows else None
        return SplitBatch(piece.split_id, ChangelogBatch.of(columns, num_rows=rows))

    def _take(self) -> _Piece | None:
        with self._changed:
            if not self._pieces:
                return None
            piece = self._pieces.popleft()
            self._changed.notify_all()
        if isinstance(piece, BaseException):
            raise piece
        self._offset = 0
        return piece

    def wake_when_available(self, wake: Callable[[], None]) -> None:
        """Call ``wake`` once something can be polled."""
        with self._changed:
            ready = bool(self._pieces) or self._current is not None or (self._no_more and not self._polled)
            self._wake = None if ready else wake
        if ready:
            wake()

    def snapshot(self) -> list[Split]:
        """Unfinished splits with the rows that were polled of them."""
        return [self._code.encode(part, rows) for part, rows in self._polled.values()]

    def close(self) -> None:
        """Stop the thread, which releases what it has open."""
        with self._changed:
            self._closed = True
            self._pieces.clear()
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join(timeout=5)

    # -- the thread's side ---------------------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            while (begun := self._next()) is not None:
                split_id, part, skip = begun
                for columns, rows in self._read(part):
                    dropped = min(skip, rows)
                    skip -= dropped
                    if dropped < rows:
                        rest = [column.slice(dropped) for column in columns] if dropped else columns
                        if not self._put(_Piece(split_id, rest, rows - dropped)):
                            return
                if not self._put(_Piece(split_id, None)):
                    return
        except BaseException as error:  # raised again where it is polled
            self._put(error)
        finally:
            self._release()

    def _next(self) -> tuple[str, P, int] | None:
        with self._changed:
            while not self._to_read and not self._closed and not self._no_more:
                self._changed.wait()
            return None if self._closed or not self._to_read else self._to_read.popleft()

    def _put(self, piece: _Piece | BaseException) -> bool:
        with self._changed:
            while len(self._pieces) >= _QUEUE and not self._closed:
                self._changed.wait()
            if self._closed:
                return False
            self._pieces.append(piece)
        self._call_wake()
        return True

    def _call_wake(self) -> None:
        with self._changed:
            wake, self._wake = self._wake, None
        if wake is not None:
            wake()
