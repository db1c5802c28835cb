"""Reading messages: each split has a thread that connects, receives, decodes and waits for room.

The position of a split is that of its feed behind the last message whose rows were all polled, and how many rows of the
next one were. A feed that does not replay has no positions: the count of its messages tells what to acknowledge.
"""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence, Set
from typing import Any, Final

import numpy as np
import orjson
import pyarrow as pa

from flowsql_connectors.formats.format import Columns
from flowsql_connectors.messages.backoff import Backoff
from flowsql_connectors.messages.feed import Arrived, MessageFeed
from flowsql_connectors.messages.rows import Int64s, MessageDecoding, as_array
from flowsql_connectors.spi.counters import BYTES_READ
from flowsql_connectors.spi.source import ReadStatus, SourceReader, Split, SplitBatch
from flowsql_core.batch import ChangelogBatch
from flowsql_core.errors import ConnectorError, FlowSqlError
from flowsql_core.record import record

logger = logging.getLogger(__name__)

#: Decoded rows that may wait, in batches.
_BATCHES_AHEAD: Final = 2
#: Pieces of decoded rows that may wait, however small.
_PIECES_AHEAD: Final = 1_000
#: Bytes of messages that are decoded at once at most, and that may wait.
_BYTES: Final = 8 << 20
#: How long a feed waits for messages before it is seen what else there is to do, seconds.
_WAIT_S: Final = 0.1
#: A connection that lived so long was made well: the next pause is the first one again, seconds.
_WELL_S: Final = 10.0
#: How long ``close`` waits for the thread of a split, seconds.
_PATIENCE_S: Final = 5.0


@record
class Position:
    """``value``: the feed's, behind the last message that is done. ``rows``: of the next message that are done.

    ``count``: messages that are done, of those that the feed of ``reader`` gave.
    """

    value: Any = None
    rows: int = 0
    count: int = 0
    reader: str = ""

    def encode(self, split_id: str) -> Split:
        """As a checkpoint keeps it."""
        return Split(split_id, orjson.dumps([self.value, self.rows, self.count, self.reader]))

    @staticmethod
    def decode(split: Split) -> Position:
        """Of a checkpoint; of a split that nobody read yet the start."""
        return Position(*orjson.loads(split.data)) if split.data else Position()


@record
class _Piece:
    """Decoded rows. ``lines``: of each row, the index of its message. ``first``: number of the first message.

    ``skip``: rows that were polled before the split was restored. ``ends``: the split has no more.
    """

    columns: Columns
    lines: Int64s
    first: int
    messages: int
    positions: Sequence[Any] | None
    bytes: int
    skip: int
    ends: bool


class _SplitThread:
    """Reads one split; ``take`` hands out what has come.

    Args:
        wake: called, from the thread, when there is something to take.
    """

    def __init__(
        self,
        split: Split,
        make_feed: Callable[[str], MessageFeed],
        make_rows: Callable[[str], MessageDecoding],
        backoff: Backoff,
        batch_rows: int,
        count: Callable[[str, int], None],
        wake: Callable[[], None],
    ) -> None:
        self.id = split.id
        self._name = secrets.token_urlsafe(6)
        given = Position.decode(split)
        self._feed = make_feed(split.id)
        skip = given.rows if self._feed.replays else 0
        #: What was polled.
        self._polled = Position(given.value if self._feed.replays else None, skip, 0, self._name)
        self._skip = skip
        self._make_rows = make_rows
        self._backoff = backoff
        self._batch_rows = batch_rows
        self._count = count
        self._wake = wake
        self._changed = threading.Condition()
        self._pieces: deque[_Piece] = deque()
        self._at = 0
        #: Messages that a checkpoint holds, and those that the feed knows of.
        self._durable = self._told = 0
        self._closing = False
        self._over = False
        self._caught_up = False
        self._failure: BaseException | None = None
        #: The thread's: behind what it received, and how many messages that were.
        self._received: Any = self._polled.value
        self._numbers = 0
        self._connected = False
        self._since = 0.0
        self._failures = 0
        #: What broke the connection, to be dealt with.
        self._broken: ConnectorError | None = None
        self._thread = threading.Thread(target=self._run, name=f"read-{split.id}", daemon=True)
        self._thread.start()

    # -- the task's side

    def has_something(self) -> bool:
        """Whether rows, the end or a failure can be taken."""
        with self._changed:
            return bool(self._pieces) or self._over

    def has_caught_up(self) -> bool:
        """Whether all was taken that was there when the feed was opened."""
        with self._changed:
            return self._caught_up and not self._pieces

    def take(self, most: int, empty: ChangelogBatch) -> SplitBatch | None:
        """The next rows; None where none wait.

        Raises:
            FlowSqlError: the feed failed, or a message is bad; behind the rows that came before.
        """
        with self._changed:
            if not self._pieces:
                if self._failure is not None:
                    raise self._failure
                return None
            piece = self._pieces[0]
        start = max(self._at, piece.skip)
        stop = min(start + most, piece.columns.num_rows)
        whole = stop == piece.columns.num_rows
        self._polled = self._behind(piece, stop)
        self._at = 0 if whole else stop
        if whole:
            with self._changed:
                self._pieces.popleft()
                self._changed.notify_all()
        if start >= stop:
            return SplitBatch(self.id, empty, piece.ends and whole)
        part = piece.columns.slice(start, stop)
        batch = ChangelogBatch.of(part.arrays, part.kinds, num_rows=stop - start)
        return SplitBatch(self.id, batch, piece.ends and whole)

    def _behind(self, piece: _Piece, stop: int) -> Position:
        whole = stop == piece.columns.num_rows
        done = piece.messages if whole else int(piece.lines[stop])
        rows = 0 if whole else stop - int(np.searchsorted(piece.lines, done))
        value = piece.positions[done - 1] if piece.positions is not None and done else self._polled.value
        return Position(value, rows, piece.first + done, self._name)

    def split(self) -> Split:
        """The split behind the last row that was taken."""
        return self._polled.encode(self.id)

    def durable(self, split: Split) -> None:
        """A complete checkpoint holds this state of the split."""
        position = Position.decode(split)
        if position.reader != self._name:
            return
        with self._changed:
            self._durable = max(self._durable, position.count)

    def close(self) -> None:
        """End the thread, and with it the connection."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        self._thread.join(_PATIENCE_S)

    # -- the thread's side

    def _run(self) -> None:
        try:
            rows = self._make_rows(self.id)
            while not self._closing:
                arrived = self._gathered()
                if arrived is not None:
                    self._put(arrived, rows)
                    if arrived.ends:
                        break
                if not self._caught_up and self._feed.caught_up():
                    self._caught_up = True
                    self._wake()
        except BaseException as error:  # raised again where it is polled
            self._failure = error if isinstance(error, FlowSqlError) else _unforeseen(self.id, error)
        finally:
            self._feed.close()
            with self._changed:
                self._over = True
            self._wake()

    def _gathered(self) -> Arrived | None:
        """Messages of several calls, for one decoding; connects where there is no connection."""
        if self._broken is not None:
            error, self._broken = self._broken, None
            self._lost(error)
        if not self._connected and not self._connect():
            return None
        parts: list[Arrived] = []
        size = count = 0
        try:
            self._acknowledge()
            if self._is_full():
                self._feed.keep_alive()
                self._wait_for_room()
                return None
            while count < self._batch_rows and size < _BYTES:
                found = self._feed.receive(0.0 if parts else _WAIT_S)
                if found is None:
                    break
                parts.append(found)
                count += len(found.values)
                size += _bytes(found)
                if found.ends or not self._feed.gathers:
                    break
        except ConnectorError as error:
            # What came before it is handed out first.
            self._broken = error
        if not parts:
            return None
        self._failures = 0
        self._count(BYTES_READ, size)
        return _joined(parts)

    def _connect(self) -> bool:
        try:
            self._feed.open(self._received)
        except ConnectorError as error:
            self._broken = error
            return False
        self._connected = True
        self._since = time.monotonic()
        return True

    def _lost(self, error: ConnectorError) -> None:
        """Wait before the next try.

        Raises:
            ConnectorError: there is none.
        """
        if self._connected and time.monotonic() - self._since > _WELL_S:
            self._failures = 0
        self._connected = False
        self._failures += 1
        pause_s = self._backoff.pause_s(self._failures) if error.retryable else None
        if self._closing:
            return
        if pause_s is None:
            raise error
        self._feed.close()
        if self._failures == 1:
            logger.warning("%s It is tried again.", error.message)
        with self._changed:
            self._changed.wait_for(lambda: self._closing, pause_s)

    def _acknowledge(self) -> None:
        with self._changed:
            durable = self._durable
        if durable > self._told:
            self._feed.kept(durable)
            self._told = durable

    def _is_full(self) -> bool:
        with self._changed:
            rows = sum(piece.columns.num_rows for piece in self._pieces)
            size = sum(piece.bytes for piece in self._pieces)
            return rows >= _BATCHES_AHEAD * self._batch_rows or size >= _BYTES or len(self._pieces) >= _PIECES_AHEAD

    def _wait_for_room(self) -> None:
        with self._changed:
            self._changed.wait(_WAIT_S)

    def _put(self, arrived: Arrived, rows: MessageDecoding) -> None:
        first = self._numbers
        columns, lines = rows.decode(arrived, lambda index: self._feed.place(first + index))
        messages = len(arrived.values)
        self._numbers += messages
        if arrived.positions:
            self._received = arrived.positions[-1]
        skip = 0
        if messages and self._skip:
            skip = min(self._skip, int(np.searchsorted(lines, 1)))
            self._skip = 0
        size = _bytes(arrived)
        with self._changed:
            self._pieces.append(_Piece(columns, lines, first, messages, arrived.positions, size, skip, arrived.ends))
        self._wake()


class MessageReader(SourceReader):
    """Reads its splits side by side.

    Args:
        make_feed: makes the feed of a split, by its name.
        make_rows: makes the decoder of a split, by its name.
        empty: no rows, with the columns of the scan.
    """

    def __init__(
        self,
        make_feed: Callable[[str], MessageFeed],
        make_rows: Callable[[str], MessageDecoding],
        backoff: Backoff,
        batch_rows: int,
        count: Callable[[str, int], None],
        empty: ChangelogBatch,
    ) -> None:
        self._make_feed = make_feed
        self._make_rows = make_rows
        self._backoff = backoff
        self._batch_rows = batch_rows
        self._count = count
        self._empty = empty
        self._threads: dict[str, _SplitThread] = {}
        self._turns: deque[str] = deque()
        self._no_more = False
        self._paused: Set[str] = frozenset()
        self._wake: Callable[[], None] | None = None

    def add_splits(self, splits: list[Split]) -> None:
        """Begin to read them."""
        for split in splits:
            self._threads[split.id] = _SplitThread(
                split, self._make_feed, self._make_rows, self._backoff, self._batch_rows, self._count, self._woken
            )
            self._turns.append(split.id)

    def no_more_splits(self) -> None:
        """END follows the last row."""
        self._no_more = True
        self._woken()

    def poll(self, max_rows: int) -> SplitBatch | ReadStatus:
        """Rows of the next split that has some."""
        if not self._threads:
            return ReadStatus.END if self._no_more else ReadStatus.NOTHING_NOW
        for _ in range(len(self._turns)):
            split_id = self._turns[0]
            self._turns.rotate(-1)
            if split_id in self._paused:
                continue
            while (taken := self._threads[split_id].take(max_rows, self._empty)) is not None:
                if taken.finished:
                    self._turns.remove(split_id)
                    self._threads.pop(split_id).close()
                if taken.finished or taken.batch.num_rows:
                    return taken
        return ReadStatus.NOTHING_NOW

    def wake_when_available(self, wake: Callable[[], None]) -> None:
        """Wake with the next rows, the end or a failure of a split."""
        self._wake = wake
        if any(thread.has_something() for name, thread in self._threads.items() if name not in self._paused):
            self._woken()

    def _woken(self) -> None:
        wake, self._wake = self._wake, None
        if wake is not None:
            wake()

    def pause_splits(self, paused: Set[str]) -> bool:
        """Rows of paused splits wait in their queues."""
        self._paused = frozenset(paused)
        return True

    def snapshot(self) -> list[Split]:
        """The splits that are left, behind the rows that were polled last."""
        return [thread.split() for thread in self._threads.values()]

    def caught_up(self) -> bool:
        """Whether all splits are."""
        return all(thread.has_caught_up() for thread in self._threads.values())

    def positions_durable(self, splits: Sequence[Split]) -> None:
        """Feeds acknowledge what a checkpoint holds."""
        for split in splits:
            if split.id in self._threads:
                self._threads[split.id].durable(split)

    def close(self) -> None:
        """End the threads; what is not acknowledged comes again."""
        for thread in self._threads.values():
            thread.close()


def _bytes(arrived: Arrived) -> int:
    if isinstance(arrived.values, pa.Array):
        return int(arrived.values.nbytes)
    return sum(len(value) for value in arrived.values if value is not None)


def _joined(parts: list[Arrived]) -> Arrived:
    if len(parts) == 1:
        return parts[0]
    keys = {key for part in parts for key in part.metadata}
    missing = [[None] * len(part.values) for part in parts]
    positions: list[Any] | None = None
    if any(part.positions is not None for part in parts):
        positions = [position for part in parts for position in part.positions or ()]
    values: Any
    if any(isinstance(part.values, pa.Array) for part in parts):
        values = pa.concat_arrays([as_array(part.values) for part in parts])
    else:
        values = [value for part in parts for value in part.values]
    return Arrived(
        values,
        {
            key: [one for part, none in zip(parts, missing, strict=True) for one in part.metadata.get(key, none)]
            for key in keys
        },
        positions,
        parts[-1].ends,
    )


def _unforeseen(split_id: str, error: BaseException) -> ConnectorError:
    made = ConnectorError("source-failed", f"Reading '{split_id}' failed: {type(error).__name__}: {error}.")
    made.__cause__ = error
    return made
