"""What scans, lookups and sinks ask of a database; one module a dialect implements it over a client library."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Any, ClassVar, Final

from flowsql_connectors.jdbc.address import Address
from flowsql_connectors.jdbc.native import NativeColumn
from flowsql_core.errors import ConnectorError
from flowsql_core.record import record
from flowsql_core.types.logical import LogicalType, Schema

_DIALECTS: Final = {
    "postgresql": "flowsql_connectors.jdbc.postgres:PostgresDialect",
    "mysql": "flowsql_connectors.jdbc.mysql:MySqlDialect",
    "mariadb": "flowsql_connectors.jdbc.mysql:MySqlDialect",
    "sqlite": "flowsql_connectors.jdbc.sqlite:SqliteDialect",
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
    def read(self, query: str, columns: Schema, batch_rows: int) -> Iterator[Sequence[Any]]:
        """The rows of a query as batches of Arrow arrays in the types of ``columns``.

        Args:
            batch_rows: most rows of a batch, where the client library counts rows.
        """

    @abstractmethod
    def find(
        self, source: str, native: Sequence[NativeColumn], columns: Schema, keys: Sequence[int], values: Sequence[Any]
    ) -> tuple[Any, Sequence[Any]]:
        """Rows of a table by key.

        Args:
            source: the quoted table. ``native``, ``columns``: what is wanted of it, as there and as declared.
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
    """SQL of one kind of database, and how to connect to it."""

    #: Whether a column may hold values of any type, whatever it is declared as.
    any_type: ClassVar[bool] = False
    #: Whether connections are ``TwoPhaseDatabase``s.
    two_phase: ClassVar[bool] = False
    #: Bytes of ``sink.transactional-id-prefix`` at most, where there are such.
    prefix_bytes: ClassVar[int] = 0

    @abstractmethod
    def connect(self, login: Login, auto_commit: bool = True) -> Database:
        """A connection.

        Args:
            auto_commit: False: everything that is read is one transaction.

        Raises:
            ConnectorError: the host is unknown or does not answer, the login is refused, there is no such database.
        """

    def quote(self, name: str) -> str:
        """An identifier."""
        return '"' + name.replace('"', '""') + '"'

    def table(self, name: str) -> str:
        """A table, maybe behind its schema and a dot."""
        return ".".join(map(self.quote, name.split(".")))

    @abstractmethod
    def expression(self, native: NativeColumn, type_: LogicalType, table: str = "") -> str:
        """The SQL that gives a column's value as a declared type: rounded, widened.

        Args:
            table: alias of the table with a dot behind it, if any.
        """

    def read(self, native: NativeColumn, type_: LogicalType, table: str = "") -> str:
        """:meth:`expression` in the form in which it travels."""
        return self.expression(native, type_, table)

    @abstractmethod
    def compared(self, column: str, operator: str, literal: Any, type_: LogicalType) -> str | None:
        """A comparison (``=``, ``<>``, ``<``, ``<=``, ``>``, ``>=``, ``LIKE``) of a column with a constant that is not
        NULL; None where the database's answer may be another one."""

    @abstractmethod
    def number(self, value: int, type_: LogicalType) -> str:
        """A bound of a part of a scan as SQL: an integer; days of a DATE; microseconds of a TIMESTAMP."""


def dialect_of(scheme: str) -> Dialect:
    """The dialect of an address.

    Raises:
        ConnectorError: its client library is not installed.
    """
    module, _, name = _DIALECTS[scheme].partition(":")
    try:
        made = getattr(import_module(module), name)()
    except ImportError as error:
        extra = {"postgresql": "postgres", "mariadb": "mysql"}.get(scheme, scheme)
        raise ConnectorError(
            "connector-not-installed",
            f"Tables at jdbc:{scheme} need the Python module '{error.name}', which is not installed.",
            hint=f"pip install 'flowsql[{extra}]'",
        ) from error
    assert isinstance(made, Dialect)
    return made
