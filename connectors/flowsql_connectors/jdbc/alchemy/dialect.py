"""Dialects of SQLAlchemy: which one a URL names, and connections through its driver."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.exc import ArgumentError, NoSuchModuleError
from sqlalchemy.pool import NullPool

from flowsql_connectors.jdbc.alchemy.database import AlchemyDatabase
from flowsql_connectors.jdbc.alchemy.errors import said
from flowsql_connectors.jdbc.alchemy.expressions import takes_over
from flowsql_connectors.jdbc.alchemy.kinds import ANY_TYPE, DIALECT_PACKAGES, DRIVER_PACKAGES, FILES, FIRST
from flowsql_connectors.jdbc.database import Database, Dialect, Login
from flowsql_connectors.jdbc.literals import posix_zone
from flowsql_core.errors import BindError, ConnectorError, did_you_mean
from flowsql_core.expr import Expr, InputRef, walk
from flowsql_core.secrets.shown import HIDDEN

_EXAMPLE: Final = "dialect+driver://host:port/database"
#: Databases of these are no files on this machine.
_ELSEWHERE: Final = ("file:", "md:")


class AlchemyDialect(Dialect):
    """A database that SQLAlchemy knows, whose dialect's name is ``kind``."""

    def __init__(self, login: Login) -> None:
        self._login = login
        self._engine = _engine(login)
        self.kind: str = self._engine.dialect.name
        self.any_type = self.kind in ANY_TYPE

    @classmethod
    def of(cls, login: Login) -> Dialect:
        """By the URL.

        Raises:
            BindError: it is none, or names no dialect of SQLAlchemy, or one that cannot be used.
            ConnectorError: the driver is not installed.
        """
        return cls(login)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._login,)

    def takes_over(self, filter_: Expr) -> bool:
        """Numbers; texts and moments where the kind of database is known to compare them in the same way."""
        types = {node.index: node.type for node in walk(filter_) if isinstance(node, InputRef)}
        return takes_over(filter_, types, self.kind)

    def connect(self, login: Login, auto_commit: bool = True) -> Database:
        """A connection of the driver."""
        shown = login.address.shown
        _check_file(self.kind, self._engine.url)
        connection = _Connecting(self._engine, shown).wait(login.timeout_ms)
        with said(shown):
            for statement in FIRST.get(self.kind, ()):
                if "{zone}" in statement and login.zone[:1] in "+-":
                    # DuckDB has zones of names alone.
                    continue
                connection.exec_driver_sql(statement.format(zone=login.zone, posix_zone=posix_zone(login.zone)))
            connection.commit()
        return AlchemyDatabase(self.kind, connection, auto_commit, shown, login.zone)


class _Connecting:
    """Connects in a thread, as drivers wait for hosts as long as they like."""

    def __init__(self, engine: Any, shown: str) -> None:
        self._engine = engine
        self._shown = shown
        self._lock = threading.Lock()
        self._done = threading.Event()
        self._late = False
        self._connection: Any = None
        self._error: Exception | None = None

    def wait(self, timeout_ms: int) -> Any:
        """The connection, or its error."""
        threading.Thread(target=self._run, name="jdbc-connect", daemon=True).start()
        self._done.wait(timeout_ms / 1000)
        with self._lock:
            self._late = not self._done.is_set()
        if self._late:
            raise ConnectorError("database", f"No connection to {self._shown} within {timeout_ms} ms.", retryable=True)
        if self._error is not None:
            raise self._error
        return self._connection

    def _run(self) -> None:
        try:
            with said(f"No connection to {self._shown}", connecting=True):
                self._connection = self._engine.connect()
        except ConnectorError as error:
            self._error = error
        except Exception as error:  # drivers check what is asked of them in their own ways
            reason = (str(error).strip() or type(error).__name__).partition("\n")[0].rstrip(".")
            self._error = ConnectorError("database", f"No connection to {self._shown}: {reason}.")
            self._error.__cause__ = error
        with self._lock:
            self._done.set()
            if self._late and self._connection is not None:
                self._connection.close()


def _engine(login: Login) -> Any:
    address = login.address
    try:
        url = sa.make_url(address.database)
    except (ArgumentError, ValueError):
        # What is raised may show the password.
        raise BindError("jdbc-address", f"'{address.shown}' is no URL of SQLAlchemy.", hint=_EXAMPLE) from None
    if login.user is not None:
        if url.username is not None:
            raise BindError(
                "jdbc-address",
                f"The URL {address.shown} names a user, and so does 'username'.",
                hint="take one of them",
            )
        url = url.set(username=login.user, password=login.password)
    try:
        kind = url.get_dialect().name
        if kind in FILES and (url.username is not None or url.host):
            raise BindError(
                "jdbc-address",
                f"{address.shown} is a file, which has no host and no users.",
                hint=f"leave 'username' and 'password' out, and write {url.drivername}:///PATH",
            )
        if kind in FILES and (not url.database or url.database == ":memory:"):
            raise BindError(
                "jdbc-address", f"'{address.shown}' names no file.", hint=f"{url.drivername}:///PATH of a database"
            )
        if url.get_dialect().is_async:
            raise BindError(
                "jdbc-address",
                f"The driver of {address.shown} is asynchronous, which this connector cannot use.",
                hint="take a synchronous one, postgresql+psycopg://, mysql+pymysql://",
            )
        options = {"connect_args": {"timeout": login.timeout_ms / 1000}} if kind == "sqlite" else {}
        return sa.create_engine(url, poolclass=NullPool, hide_parameters=True, **options)
    except NoSuchModuleError:
        raise _no_dialect(url, address.shown) from None
    except ImportError as error:
        module = (error.name or "").partition(".")[0]
        raise ConnectorError(
            "connector-not-installed",
            f"Tables at {address.shown} need the Python module '{error.name}', which is not installed.",
            hint=f"pip install '{DRIVER_PACKAGES.get(module, module)}'",
        ) from error
    except ArgumentError as error:
        reason = str(error).partition("\n")[0].rstrip(".")
        for text in (url.render_as_string(hide_password=False), url.password):
            reason = reason.replace(text, HIDDEN) if text else reason
        # What was raised may show the password.
        raise BindError("jdbc-address", f"{address.shown} cannot be used: {reason}.", hint=_EXAMPLE) from None


def _no_dialect(url: Any, shown: str) -> BindError:
    name, _, driver = url.drivername.partition("+")
    known = ("postgresql", "mysql", "mariadb", "sqlite", "oracle", "mssql")
    package = DIALECT_PACKAGES.get(name)
    if package is not None:
        hint = f"pip install '{package}'"
    elif name in known:
        hint = f"SQLAlchemy knows no driver '{driver}' for {name}; leave '+{driver}' out, or install what brings it"
    else:
        hint = did_you_mean(name, (*known, *DIALECT_PACKAGES)) or "install the package that brings the dialect"
    return BindError("jdbc-address", f"SQLAlchemy has no dialect '{url.drivername}' here ({shown}).", hint=hint)


def _check_file(kind: str, url: Any) -> None:
    """A file that is missing is not made."""
    if kind in FILES and not url.database.startswith(_ELSEWHERE) and not Path(url.database).exists():
        path = Path(url.database).absolute()
        raise ConnectorError("database", f"The database {path} cannot be opened: there is no such file.")
