"""What the source of changes asks of a database: a module a kind of database implements :class:`DatabaseLog`.

The source (``source.py``, ``reader.py``) reads the rows that are there in chunks, each at a moment of its own, and then
the log from before the first of these moments. A change of the log is left out where the chunk that its row belongs to
shows it already: so there is no gap and nothing double, whatever is written in the meantime and wherever a job stops.
That is the watermark algorithm of DBLog (Andreakis and Papapanagiotou, arXiv:2010.12597), as in Flink CDC's incremental
snapshots, with one difference: the database says which transactions a chunk has seen, so that nothing has to be read a
second time to bring a chunk up to date.

An implementation gives

- :class:`CapturedTable`: the tables, with the column that cuts them into chunks;
- :meth:`DatabaseLog.prepare`: a position of the log, from which on nothing is lost that a later chunk does not show;
- :meth:`DatabaseLog.read_chunk`: the rows of a chunk with a *mark*, what it has seen. PostgreSQL: the snapshot of the
  transaction that read it. A database that tells positions alone (MySQL): the position of the log at which the rows
  were read; if it cannot read rows and position at one moment, ``read_chunk`` itself reads the log between the
  positions before and after, and puts these changes into the rows, so that they are as of the position after;
- :meth:`DatabaseLog.stream`: transactions from a position on, whole and in the order of their commits, the same ones in
  the same order whenever it begins there again. Rows are counted in their transaction, so that a checkpoint may stand
  between any two of them.

Positions and marks are JSON values (they stand in checkpoints) that only the implementation reads. What is lost with a
connection is a :class:`ConnectorError` with ``retryable`` set: the source opens a new :class:`DatabaseLog` and goes on.
A connector is then a factory that checks its options (``options.py`` has the shared ones) and returns a
:class:`CdcSource` with a function that opens its log; ``cdc/postgres/factory.py`` is one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from flowsql_core.record import record

Int64s = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Int32s = npt.NDArray[np.int32]
Kinds = npt.NDArray[np.uint8]
#: Where the log stands, or what a chunk has seen: a JSON value.
Json: TypeAlias = Any


@record
class ChunkKey:
    """The column that cuts a table into chunks. ``integer``: its values are integers, as bounds and in Arrow arrays."""

    column: str
    integer: bool


@record
class CapturedTable:
    """A table whose changes are read.

    ``id``: its full name, by which checkpoints know it. ``metadata``: values of metadata columns that are the same for
    all of its rows, e.g. ``table_name``. ``key``: None where nothing cuts it: it is one chunk.
    """

    id: str
    metadata: Mapping[str, str]
    key: ChunkKey | None


@record
class Chunk:
    """Rows of a table with ``low <= key < high``; None: without bound. Without ``low`` also rows without a key."""

    table: CapturedTable
    number: int
    low: Json = None
    high: Json = None


@record
class ChunkRows:
    """All rows of a chunk at one moment.

    ``columns``: Arrow arrays of the scan's physical columns, in its order and types. ``mark``: what it has seen.
    """

    columns: Sequence[Any]
    num_rows: int
    mark: Json


@record
class Place:
    """Where reading the log goes on: at ``position``, without the ``done`` first rows of the transaction there."""

    position: Json
    done: int = 0


@record
class Transaction:
    """A transaction of the log. ``position``: a stream that begins there gives it first. ``id``: for :meth:`seen`."""

    position: Json
    id: Any = None


@record
class TableChanges:
    """Changes of one table, in their order.

    ``table``: its place in :meth:`DatabaseLog.tables`. ``columns``: Arrow arrays of the scan's physical columns.
    ``kinds``: uint8 (n,). ``keys``: Arrow array of the chunk key of each row, its own where an update changed it; None
    where the table has none. ``lines``: int64 (n,), rising: which rows of the batch they are.
    """

    table: int
    columns: Sequence[Any]
    kinds: Kinds
    keys: Any
    lines: Int64s


@record
class LogBatch:
    """Some changes of the log, of ``num_rows`` rows, and where reading goes on behind them.

    A transaction may go through several batches, as the first one of the later ones. ``transaction``: int32 (n,), the
    place of each row's in ``transactions``. ``ordinal``: int64 (n,), the number of each row in its transaction, counted
    from 0 over all tables. ``times_ms``: int64 (n,), when each was committed.
    An update is two rows, ``-U`` and ``+U``, or the latter alone where the source gives upserts (``-D`` may then have
    NULL but in the key); one that changes the primary key is ``-D`` and ``+I``.
    """

    end: Place
    transactions: Sequence[Transaction] = ()
    tables: Sequence[TableChanges] = ()
    num_rows: int = 0
    transaction: Int32s = field(default_factory=lambda: np.zeros(0, np.int32))
    ordinal: Int64s = field(default_factory=lambda: np.zeros(0, np.int64))
    times_ms: Int64s = field(default_factory=lambda: np.zeros(0, np.int64))


class ChangeStream(ABC):
    """Reads the log from a position on; one thread."""

    @abstractmethod
    def read(self, max_rows: int, timeout_s: float) -> LogBatch | None:
        """What comes next, None: nothing; about ``max_rows`` rows at most, waiting ``timeout_s`` for the first.

        A batch without rows tells that the log went on elsewhere, so that a checkpoint stands behind it.

        Raises:
            ConnectorError: ``retryable`` where the connection was lost.
        """

    @abstractmethod
    def confirm(self, position: Json) -> None:
        """Nobody asks for what is before this position any more: the database may drop it."""

    def stay(self) -> None:
        """Called now and then while there is no room for more rows: tell the database not to give the connection up."""

    @abstractmethod
    def close(self) -> None:
        """End reading; whatever state the connection is in."""


class DatabaseLog(ABC):
    """A database whose log is read, over connections of its own; one thread uses it, several of them may be open.

    What the database refuses is a :class:`ConnectorError` of one sentence, ``retryable`` where another try may help.
    """

    @abstractmethod
    def tables(self) -> tuple[CapturedTable, ...]:
        """The tables that the options name, sorted by id, each with the declared columns. Connects where not connected.

        Raises:
            ConnectorError: no connection, the login is refused, the log is not written or may not be read, there is no
                such table, a column is missing or of a type that does not fit, an option does not fit the table.
        """

    @abstractmethod
    def prepare(self) -> Json:
        """Make the log ready to be read, and give the position from which on it has every change that a chunk which is
        read later has not seen; again is no mistake."""

    @abstractmethod
    def start(self, mode: str) -> Json:
        """The position where a mode of ``scan.startup.mode`` without snapshot begins; the log is ready to be read."""

    @abstractmethod
    def end(self) -> Json:
        """Where the log ends now: whatever was committed is before, and a stream's position comes to be there also
        where nobody writes any more."""

    @abstractmethod
    def reached(self, position: Json, end: Json) -> bool:
        """Whether a stream that stands at a position has given all that is before an :meth:`end`."""

    @abstractmethod
    def extremes(self, table: CapturedTable) -> tuple[int, int, float] | None:
        """Least and greatest integer chunk key, and about how many rows there are; None: no row."""

    @abstractmethod
    def next_bound(self, table: CapturedTable, low: Json, rows: int) -> Json:
        """The bound of the chunk of about ``rows`` rows that begins at ``low`` (None: at the least key): a key above
        ``low`` with rows at or above it; None: the rest is one chunk."""

    @abstractmethod
    def read_chunk(self, chunk: Chunk) -> ChunkRows:
        """The rows of a chunk, as they are now."""

    @abstractmethod
    def places(self, table: CapturedTable, bounds: Sequence[Json], keys: Any) -> Int64s:
        """How many of the rising bounds are not above each key, by the order of the database; 0 for a key that is NULL.

        Asked of keys that are no integers alone.
        """

    @abstractmethod
    def seen(self, mark: Json, transactions: Sequence[Transaction]) -> Bools:
        """Of each transaction whether a chunk with this mark shows what it did, bool (m,)."""

    @abstractmethod
    def passed(self, mark: Json, position: Json) -> bool:
        """Whether a chunk with this mark has seen no transaction from this position on."""

    @abstractmethod
    def stream(self, position: Json) -> ChangeStream:
        """Transactions from a position on.

        Raises:
            ConnectorError: the log does not reach back so far any more, or somebody else reads it.
        """

    def cancel(self) -> None:
        """Give up what another thread waits for in one of the methods, which may fail then: nobody wants it."""

    def finish(self) -> None:
        """The job's source ends for good, and not by a failure: remove what shall not stay in the database."""

    @abstractmethod
    def close(self) -> None:
        """Release the connections."""
