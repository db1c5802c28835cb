"""Reading a database's changes: threads read chunks and then the log, polling cuts what they read into batches.

The state moves with polling alone: with the first rows of a chunk its mark, with each row of the log its place. What
the threads have read ahead is not in it and is read again by whoever goes on.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final

import pyarrow as pa

from flowsql_connectors.cdc.chunks import ChunkPlan
from flowsql_connectors.cdc.log import (
    CapturedTable,
    ChangeStream,
    Chunk,
    DatabaseLog,
    Int64s,
    Json,
    LogBatch,
    Place,
)
from flowsql_connectors.cdc.new_changes import NewChanges
from flowsql_connectors.cdc.options import INITIAL, SNAPSHOT, CdcSettings
from flowsql_connectors.cdc.reconnect import Reconnecting, StoppedError
from flowsql_connectors.cdc.rows import CdcRows
from flowsql_connectors.cdc.state import SPLIT_ID, Rest, ScanState, TableState
from flowsql_connectors.spi.source import ReaderContext, ReadStatus, SourceReader, Split, SplitBatch
from flowsql_core.batch import ChangelogBatch
from flowsql_core.errors import ConnectorError
from flowsql_core.record import record

logger = logging.getLogger(__name__)

#: Rows that may wait to be polled, in batches.
_BATCHES_AHEAD: Final = 2
#: How long reading the log waits before it looks whether there is something else to do, seconds.
_WAIT_S: Final = 0.1
#: How long it waits for room before it tells the database that it is still there, seconds.
_STAY_S: Final = 1.0
_MOST_PIECES: Final = 64


@record
class _ChunkPiece:
    """The rows of a chunk, or what is left of them."""

    table: str
    number: int
    mark: Json
    batch: ChangelogBatch


@record
class _LogPiece:
    """Rows of the log: ``batch`` has those that are ``lines`` of ``source``. None: nothing but that the log goes on."""

    batch: ChangelogBatch
    end: Place
    source: LogBatch | None = None
    lines: Int64s | None = None

    def place(self, row: int) -> Place:
        """Where reading goes on before a row of the batch, or behind the last one."""
        if self.source is None or self.lines is None or row == self.batch.num_rows:
            return self.end
        line = self.lines[row]
        transaction = self.source.transactions[int(self.source.transaction[line])]
        return Place(transaction.position, int(self.source.ordinal[line]))


class CdcReader(SourceReader):
    """Reads the tables of a scan, all of them in one subtask: chunks side by side, the log in its order.

    Args:
        open_log: opens the database's log; called in the reader's threads.
    """

    def __init__(
        self, open_log: Callable[[], DatabaseLog], settings: CdcSettings, rows: CdcRows, context: ReaderContext
    ) -> None:
        self._open_log = open_log
        self._settings = settings
        self._rows = rows
        self._batch_rows = context.batch_rows
        self._stops = context.available_now
        self._readers = max(1, min(context.parallelism, settings.readers))
        self._empty = rows.empty()
        self._changed = threading.Condition()
        self._stopped = threading.Event()
        #: None: this subtask has nothing to read.
        self._state: ScanState | None = None
        self._pieces: deque[_ChunkPiece | _LogPiece | None] = deque()
        self._failure: BaseException | None = None
        self._no_more = False
        self._wake: Callable[[], None] | None = None
        self._thread: threading.Thread | None = None
        #: The piece that polling is cutting into batches, and the first of its rows that was not polled.
        self._current: _ChunkPiece | _LogPiece | None = None
        self._at = 0
        #: Positions of complete checkpoints that the log was not told yet, and the one that it is to be told.
        self._durable: deque[Json] = deque()
        self._to_confirm: Json = None
        #: Of each thread.
        self._connections: list[Reconnecting] = []
        #: Where the log ended when the chunks were read, where the job stops there.
        self._end: Json = None
        #: To ask about positions, in the thread that polls; it makes no connection.
        self._positions: DatabaseLog | None = None
        #: The chunks with the marks of those that were read, polled or not.
        self._read_tables: dict[str, TableState] = {}

    def add_splits(self, splits: list[Split]) -> None:
        """Take the tables over and start to read."""
        for split in splits:
            self._state = ScanState.decode(split)
            self._give_rest(self._state)
            self._durable.extend(self._state.durable)
            # The checkpoint that the state is of is complete.
            self._now_durable(self._state)
            self._thread = threading.Thread(target=self._run, name="cdc", daemon=True)
            self._thread.start()

    def _give_rest(self, state: ScanState) -> None:
        rest = state.rest
        if rest is not None:
            assert state.tables is not None
            columns = tuple(column.combine_chunks() for column in pa.ipc.open_stream(rest.rows).read_all().columns)
            mark = state.tables[rest.table].marks[rest.number]
            batch = ChangelogBatch.of(columns, num_rows=rest.num_rows)
            self._current, self._at = _ChunkPiece(rest.table, rest.number, mark, batch), 0

    def no_more_splits(self) -> None:
        """END follows the last row."""
        with self._changed:
            self._no_more = True
        self._call_wake()

    def poll(self, max_rows: int) -> SplitBatch | ReadStatus:
        """The next rows; what went wrong in the threads is raised here."""
        while self._current is not None or self._take():
            if self._current is None:
                self._state = None
                return SplitBatch(SPLIT_ID, self._empty, finished=True)
            polled = self._cut(max_rows)
            if polled.num_rows:
                return SplitBatch(SPLIT_ID, polled)
        with self._changed:
            if self._failure is not None:
                raise self._failure
            return ReadStatus.END if self._no_more and self._state is None else ReadStatus.NOTHING_NOW

    def _take(self) -> bool:
        """Whether there is a next piece, which becomes the current one; of the last piece nothing is left."""
        with self._changed:
            if not self._pieces:
                return False
            self._current, self._at = self._pieces.popleft(), 0
            self._changed.notify_all()
            return True

    def _cut(self, max_rows: int) -> ChangelogBatch:
        piece, start, state = self._current, self._at, self._state
        assert piece is not None
        assert state is not None
        most = max_rows if isinstance(piece, _LogPiece) else min(max_rows, self._settings.fetch_rows)
        stop = min(start + most, piece.batch.num_rows)
        self._at = stop
        with self._changed:
            if isinstance(piece, _LogPiece):
                state.place = piece.place(stop)
            else:
                assert state.tables is not None
                state.tables[piece.table].marks[piece.number] = piece.mark
        if stop == piece.batch.num_rows:
            self._current = None
        return piece.batch.slice(start, stop)

    def wake_when_available(self, wake: Callable[[], None]) -> None:
        """Call ``wake`` once something can be polled."""
        with self._changed:
            ready = bool(self._pieces) or self._current is not None or self._failure is not None
            ready = ready or (self._no_more and self._state is None)
            self._wake = None if ready else wake
        if ready:
            wake()

    def snapshot(self) -> list[Split]:
        """The tables as far as they were polled."""
        with self._changed:
            if self._state is None:
                return []
            self._state.rest = self._left_of_chunk()
            self._state.durable = list(self._durable)
            return [self._state.encode()]

    def _left_of_chunk(self) -> Rest | None:
        piece = self._current
        if not isinstance(piece, _ChunkPiece):
            return None
        left = piece.batch.slice(self._at, piece.batch.num_rows)
        rows = left.to_record_batch([str(place) for place in range(len(left.columns))])
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, rows.schema) as writer:
            writer.write_batch(rows)
        return Rest(piece.table, piece.number, left.num_rows, sink.getvalue().to_pybytes())

    def positions_durable(self, splits: Sequence[Split]) -> None:
        """The thread tells the log, so many checkpoints later as the settings say."""
        for split in splits:
            self._now_durable(ScanState.decode(split))

    def _now_durable(self, state: ScanState) -> None:
        if state.place is None:
            return
        with self._changed:
            self._durable.append(state.place.position)
            while len(self._durable) > self._settings.confirm_delay:
                self._to_confirm = self._durable.popleft()

    def caught_up(self) -> bool:
        """Whether the log was polled up to where it ended when the chunks had been read, so that what was emitted is
        the tables as of one moment; a subtask without tables has nothing to read."""
        state = self._state
        if state is None:
            return True
        with self._changed:
            place, end = state.place, self._end
        if place is None or end is None:
            return False
        if self._positions is None:
            self._positions = self._open_log()
        return self._positions.reached(place.position, end)

    def close(self) -> None:
        """Stop the threads, which release their connections."""
        with self._changed:
            self._stopped.set()
            self._changed.notify_all()
            connections = list(self._connections)
        for connection in connections:
            connection.cancel()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(timeout=10)

    # -- the threads' side ------------------------------------------------------------------------------------------

    def _run(self) -> None:
        state = self._state
        assert state is not None
        connection = self._connect()
        try:
            tables = self._begin(connection, state)
            if self._settings.startup_mode in (INITIAL, SNAPSHOT):
                self._read_chunks(connection, tables, state)
            if self._settings.startup_mode == SNAPSHOT:
                self._put(None)
            else:
                self._follow(connection, tables, state)
        except StoppedError:
            pass
        except BaseException as error:  # raised again where it is polled
            self._fail(error)
        finally:
            if self._failure is None:
                with suppress(ConnectorError):
                    connection.log.finish()
            connection.close()

    def _fail(self, error: BaseException) -> None:
        with self._changed:
            if self._stopped.is_set():
                # Nobody asks any more, or another thread failed before.
                return
            self._failure = error
            self._stopped.set()
            self._changed.notify_all()
        self._call_wake()

    def _begin(self, connection: Reconnecting, state: ScanState) -> tuple[CapturedTable, ...]:
        """The tables; what a state that knows nothing needs to know."""
        tables = connection.ask(lambda log: log.tables())
        start = state.start
        if start is None:
            match self._settings.startup_mode:
                case "initial":
                    start = connection.ask(lambda log: log.prepare())
                case "snapshot":
                    pass
                case mode:
                    start = connection.ask(lambda log: log.start(mode))
        elif self._settings.new_tables:
            connection.ask(lambda log: log.prepare())
        with self._changed:
            known = {} if state.tables is None else state.tables
            if state.tables is None or self._settings.new_tables:
                known = {**{table.id: TableState() for table in tables}, **known}
            state.start, state.tables = start, known
            self._read_tables = {
                id_: TableState(table.bounds, table.complete, dict(table.marks)) for id_, table in known.items()
            }
        missing = [table.id for table in tables if table.id not in known]
        if missing:
            logger.warning(
                "Tables that were not there at the checkpoint are not read: %s ('scan.newly-added-table.enabled').",
                ", ".join(missing),
            )
        return tables

    def _read_chunks(self, connection: Reconnecting, tables: Sequence[CapturedTable], state: ScanState) -> None:
        """Read all chunks that are left, this thread and others side by side."""
        assert state.tables is not None
        with self._changed:
            known = state.tables
            plan = ChunkPlan(
                [(table, known[table.id]) for table in tables if table.id in known], self._settings, self._changed
            )
        helpers = [
            threading.Thread(target=self._help, args=(plan,), name=f"cdc-chunks-{number}", daemon=True)
            for number in range(1, self._readers)
        ]
        for helper in helpers:
            helper.start()
        try:
            self._work(connection, plan)
        finally:
            for helper in helpers:
                helper.join()
        if self._stopped.is_set():
            raise StoppedError

    def _connect(self) -> Reconnecting:
        made = Reconnecting(self._open_log, self._settings, self._stopped)
        with self._changed:
            self._connections.append(made)
        return made

    def _help(self, plan: ChunkPlan) -> None:
        connection = self._connect()
        try:
            self._work(connection, plan)
        except StoppedError:
            pass
        except BaseException as error:  # raised again where it is polled
            self._fail(error)
        finally:
            connection.close()

    def _work(self, connection: Reconnecting, plan: ChunkPlan) -> None:
        while (chunk := connection.ask(plan.next)) is not None:
            piece = connection.ask(lambda log, chunk=chunk: self._read(log, chunk))  # type: ignore[misc]
            self._put(piece)

    def _read(self, log: DatabaseLog, chunk: Chunk) -> _ChunkPiece:
        rows = log.read_chunk(chunk)
        return _ChunkPiece(chunk.table.id, chunk.number, rows.mark, self._rows.of_chunk(chunk.table, rows))

    def _follow(self, connection: Reconnecting, tables: Sequence[CapturedTable], state: ScanState) -> None:
        """Read the log, from wherever it was read to when the connection is lost."""
        place = state.place or Place(state.start)
        if self._stops:
            end = connection.ask(lambda log: log.end())
            with self._changed:
                self._end = end
        # From here on the state has a place, so that chunks are not asked for again.
        self._put(_LogPiece(self._empty, place))
        changes = NewChanges(tables, self._read_tables)
        while True:
            stream: ChangeStream | None = None
            try:
                stream = connection.log.stream(place.position)
                # Rows of the transaction there that were read by the stream before.
                behind = place
                while not self._stopped.is_set():
                    self._confirm(stream)
                    batch = stream.read(self._batch_rows, _WAIT_S)
                    connection.succeeded()
                    if batch is not None:
                        new = changes.of(connection.log, batch, behind)
                        rows, lines = self._rows.of_log(tables, batch, new)
                        place = behind if _is_before(batch.end, behind) else batch.end
                        self._put(_LogPiece(rows, place, batch, lines), stream.stay)
                raise StoppedError
            except ConnectorError as error:
                connection.failed(error)
            finally:
                if stream is not None:
                    stream.close()

    def _confirm(self, stream: ChangeStream) -> None:
        with self._changed:
            position, self._to_confirm = self._to_confirm, None
        if position is not None:
            stream.confirm(position)

    def _put(self, piece: _ChunkPiece | _LogPiece | None, stay: Callable[[], None] | None = None) -> None:
        """Hand rows over to polling, once there is room for them.

        Args:
            stay: called now and then while there is none.
        """
        with self._changed:
            if isinstance(piece, _ChunkPiece):
                self._read_tables[piece.table].marks[piece.number] = piece.mark
            while self._full() and not self._stopped.is_set():
                if not self._changed.wait(_STAY_S) and stay is not None:
                    stay()
            if self._stopped.is_set():
                raise StoppedError
            self._pieces.append(piece)
        self._call_wake()

    def _full(self) -> bool:
        waiting = sum(piece.batch.num_rows for piece in self._pieces if piece is not None)
        return waiting >= _BATCHES_AHEAD * self._batch_rows or len(self._pieces) >= _MOST_PIECES

    def _call_wake(self) -> None:
        with self._changed:
            wake, self._wake = self._wake, None
        if wake is not None:
            wake()


def _is_before(end: Place, behind: Place) -> bool:
    """Whether a batch of the transaction that a stream begins with ends before the rows that were read already."""
    return bool(end.position == behind.position and end.done < behind.done)
