"""Connections to PostgreSQL: for queries, for rows of snapshots and for the log; what they refuse, in one sentence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import field
from typing import Any, Final

import psycopg
from psycopg import pq
from psycopg.conninfo import make_conninfo
from psycopg.pq.abc import PGconn

from flowsql_connectors.jdbc.address import Address
from flowsql_connectors.jdbc.database import Login
from flowsql_connectors.jdbc.postgres import PostgresDatabase, PostgresDialect
from flowsql_core.errors import ConnectorError
from flowsql_core.record import record

#: Texts of values are the same in rows of snapshots and in the log, whatever the settings of role and database.
_TEXTS: Final = " ".join(
    f"-c {name}={value}"
    for name, value in {
        "DateStyle": "ISO",
        "IntervalStyle": "postgres",
        "TimeZone": "UTC",
        "bytea_output": "hex",
        "extra_float_digits": "3",
    }.items()
)
#: Connections lost, servers that are about to end or begin, conflicts, a slot that is in use.
_PASSING: Final = ("08", "57P", "53", "40", "55P03", "55006")
#: What a server says for the time being when it refuses a connection, whose SQLSTATE libpq does not tell.
_PASSING_WORDS: Final = (
    "starting up",
    "not yet accepting connections",
    "shutting down",
    "recovery",
    "too many",
    "remaining connection slots",
)


@record
class Server:
    """Where the database is and who asks. ``tls``: libpq's ``ssl...`` by name."""

    host: str
    port: int
    database: str
    user: str
    password: str
    timeout_ms: int
    tls: Mapping[str, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"Server({self.shown})"

    @property
    def shown(self) -> str:
        """As messages name it."""
        return f"PostgreSQL at {self.host}:{self.port}"

    def queries(self) -> psycopg.Connection[tuple[Any, ...]]:
        """A connection for small queries, each a transaction of its own."""
        with said(f"No connection to {self.shown}", connecting=True):
            return psycopg.connect(self._conninfo(), autocommit=True)

    def rows(self) -> PostgresDatabase:
        """A connection whose answers are Arrow arrays."""
        parameters = {**self.tls, "options": _TEXTS, "ApplicationName": "flowsql"}
        address = Address("postgresql", self.database, self.host, self.port, parameters)
        made = PostgresDialect().connect(Login(address, self.user, self.password, self.timeout_ms))
        assert isinstance(made, PostgresDatabase)
        made.whole_seconds = False
        return made

    def replication(self) -> PGconn:
        """A connection that may be asked for the log."""
        connection = pq.PGconn.connect(self._conninfo(replication="database").encode())
        if connection.status != pq.ConnStatus.OK:
            text = connection.error_message.decode("utf-8", "replace")
            connection.finish()
            raise refused(f"No connection to {self.shown}", text, None, connecting=True)
        return connection

    def _conninfo(self, **more: str) -> str:
        return make_conninfo(
            "",
            host=self.host,
            port=self.port,
            dbname=self.database,
            user=self.user,
            password=self.password,
            connect_timeout=max(2, self.timeout_ms // 1000),
            application_name="flowsql",
            options=_TEXTS,
            keepalives_idle=30,
            **self.tls,
            **more,
        )


def asked(connection: psycopg.Connection[tuple[Any, ...]], query: str, *parameters: Any) -> list[tuple[Any, ...]]:
    """All rows of a small answer; none of a statement without one."""
    cursor = connection.execute(query, parameters or None)
    return cursor.fetchall() if cursor.description is not None else []


@contextmanager
def said(what: str, *, connecting: bool = False) -> Iterator[None]:
    """What PostgreSQL or libpq refuse, in one sentence.

    Args:
        what: the beginning of the sentence.
        connecting: there is no SQLSTATE yet.
    """
    try:
        yield
    except psycopg.Error as error:
        reason, detail = error.diag.message_primary, error.diag.message_detail
        text = str(error) if reason is None else reason + (f" ({detail.rstrip('.')})" if detail else "")
        raise refused(what, text, error.sqlstate, connecting=connecting) from error


def refused(what: str, text: str, state: str | None, *, connecting: bool = False) -> ConnectorError:
    """The error of a text of PostgreSQL or libpq.

    Args:
        state: SQLSTATE; None: of libpq, as the connection was lost or not made.
    """
    lines = [line.strip() for line in text.strip().splitlines() if line.strip()]
    # Of several addresses of a host each has a line.
    line = next((line for line in reversed(lines) if "failed:" in line or "FATAL:" in line), lines[0] if lines else "")
    by_server = "FATAL:" in line
    for mark in ("FATAL:", "ERROR:", "failed:"):
        line = line.rpartition(mark)[2]
    if state is not None:
        passing = state.startswith(_PASSING)
    else:
        passing = not (connecting and by_server) or any(word in line for word in _PASSING_WORDS)
    return ConnectorError("database", f"{what}: {line.strip().rstrip('.')}.", retryable=passing)
