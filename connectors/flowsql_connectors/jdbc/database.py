"""What scans, lookups and sinks ask of a database; one module a dialect implements it over a client library."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any, ClassVar, Final

from flowsql_connectors.jdbc.address import ALCHEMY, Address
from flowsql_connectors.jdbc.native import NativeColumn
from flowsql_connectors.jdbc.parts import Part
from flowsql_core.errors import ConnectorError
from flowsql_core.expr import Expr
from flowsql_core.record import record
from flowsql_core.types.logical import Schema

_DIALECTS: Final = {
    "postgresql": "flowsql_connectors.jdbc.postgres:PostgresDialect",
    "mysql": "flowsql_connectors.jdbc.mysql:MySqlDialect",
    "mariadb": "flowsql_connectors.jdbc.mysql:MySqlDialect",
    "sqlite": "flowsql_connectors.jdbc.sqlite:SqliteDialect",
    ALCHEMY: "flowsql_connectors.jdbc.alchemy.dialect:AlchemyDialect",
}


@record
class Login:
    """Where a database is and who asks. ``timeout_ms``: how long to wait for a connection. ``zone``: of the session; a
    TIMESTAMP that stands for a moment of the database is in it."""

    address: Address
    user: str | None = None
    password: str | None = None
    timeout_ms: int = 60_000
    zone: str = "UTC"

    def __repr__(self) -> str:
        return f"Login({self.address.shown})"


@record
class Changes:
    """Rows to be written in one transaction, at most one of each key where there is a key.

    ``rows``: Arrow arrays of the declared columns. ``deleted``: arrays of the key columns of rows that are to go.
    """

    rows: Sequence[Any]
    deleted: Sequence[Any] = ()

    @property
    def row_count(self) -> int:
        """Of rows to be written."""
        return len(self.rows[0]) if self.rows else 0

    @property
    def delete_count(self) -> int:
        """Of rows to be deleted."""
        return len(self.deleted[0]) if self.deleted else 0


@record
class Target:
    """A table that is written. ``native``: what the declared columns are there; ``keys``: places of the primary key."""

    table: str
    columns: Schema
    native: tuple[NativeColumn, ...]
    keys: tuple[int, ...]


@record
class Selection:
    """What a scan asks of a table.

    ``declared``: all columns of the declaration; ``projection``, ``filters`` and ``part`` name them by their places.
    ``native``: what they are there, as far as they are spoken of. ``output``: the declared columns of the projection;
    there may be none, and rows count all the same. ``limit``: rows that suffice.
    """

    table: str
    declared: Schema
    native: Mapping[int, NativeColumn]
    projection: tuple[int, ...]
    output: Schema
    filters: tuple[Expr, ...] = ()
    part: Part | None = None
    limit: int | None = None


class Database(ABC):
    """An open connection, used by one thread at a time. What the database refuses is a :class:`ConnectorError`, which
    is ``retryable`` where another try may help."""

    #: As messages name it.
    shown: str

    def columns(self, table: str) -> dict[str, NativeColumn]:
        """The columns of a table by name, in their order.

        Raises:
            ConnectorError: there is no such table.
        """
        found = self.find_columns(table)
        if not found:
            raise ConnectorError("database", f"Table '{table}' does not exist at {self.shown}.")
        return found

    @abstractmethod
    def find_columns(self, table: str) -> dict[str, NativeColumn]:
        """:meth:`columns`, or nothing where there is no such table."""

    @abstractmethod
    def tables(self) -> dict[str, dict[str, NativeColumn]]:
        """What Flink's catalog lists of the database, with its columns, by the names that :meth:`columns` takes."""

    @abstractmethod
    def databases(self) -> list[str]:
        """Databases of the server but its own, sorted."""

    @abstractmethod
    def table_bytes(self, table: str) -> int | None:
        """What a table takes where it is stored; None where nobody knows."""

    @abstractmethod
    def scan(self, wanted: Selection, batch_rows: int) -> Iterator[Sequence[Any]]:
        """The rows of a table as batches of Arrow arrays in the types of ``wanted.output``.

        Args:
            batch_rows: most rows of a batch, where the client library counts rows; 0: as many as come at once.
        """

    @abstractmethod
    def find(
        self, table: str, native: Sequence[NativeColumn], columns: Schema, keys: Sequence[int], values: Sequence[Any]
    ) -> tuple[Any, Sequence[Any]]:
        """Rows of a table by key.

        Args:
            table: its name. ``native``, ``columns``: what is wanted of it, as there and as declared.
            keys: which of them are given; ``values``: their Arrow arrays, of one length and without NULL.

        Returns:
            For each row found, which key it has, int32 and not falling; and Arrow arrays of the columns.
        """

    @abstractmethod
    def write(self, target: Target, changes: Changes) -> None:
        """Delete and write rows, all or none: insert where there is no key, else insert or replace by key."""

    @abstractmethod
    def close(self) -> None:
        """Release the connection."""


class Dialect(ABC):
    """One kind of database: how to connect to it, and what it can do."""

    #: Whether a column may hold values of any type, whatever it is declared as.
    any_type: bool = False
    #: Whether connections are ``TwoPhaseDatabase``s.
    two_phase: ClassVar[bool] = False
    #: Bytes of ``sink.transactional-id-prefix`` at most, where there are such.
    prefix_bytes: ClassVar[int] = 0

    @classmethod
    def of(cls, login: Login) -> Dialect:
        """The dialect at a place.

        Raises:
            BindError, ConnectorError: there is none, or it lacks a library.
        """
        return cls()

    @abstractmethod
    def connect(self, login: Login, auto_commit: bool = True) -> Database:
        """A connection.

        Args:
            auto_commit: False: everything that is read is one transaction.

        Raises:
            ConnectorError: the host is unknown or does not answer, the login is refused, there is no such database.
        """

    @abstractmethod
    def takes_over(self, filter_: Expr) -> bool:
        """Whether the database applies a condition over the declared columns of a table, as FlowSQL would."""


def dialect_of(login: Login) -> Dialect:
    """The dialect of an address.

    Raises:
        BindError, ConnectorError: there is none, or its client library is not installed.
    """
    scheme = login.address.scheme
    module, _, name = _DIALECTS[scheme].partition(":")
    try:
        kind = getattr(import_module(module), name)
    except ImportError as error:
        extra = {"postgresql": "postgres", "mariadb": "mysql", ALCHEMY: "jdbc"}.get(scheme, scheme)
        place = login.address.shown if scheme == ALCHEMY else f"jdbc:{scheme}"
        raise ConnectorError(
            "connector-not-installed",
            f"Tables at {place} need the Python module '{error.name}', which is not installed.",
            hint=f"pip install 'flowsql[{extra}]'",
        ) from error
    made = kind.of(login)
    assert isinstance(made, Dialect)
    return made
