"""Addresses of JDBC and of SQLAlchemy: which database one names, and whether FlowSQL's own runtime reads it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field
from typing import Final
from urllib.parse import parse_qsl, unquote, urlsplit

from flowsql_core.errors import BindError, did_you_mean
from flowsql_core.record import record

#: Drivers by the word behind ``jdbc:``; the first is what Spark is told. Java itself sees none of jars of a session.
DRIVERS: Final[dict[str, tuple[str, ...]]] = {
    "postgresql": ("org.postgresql.Driver",),
    "mysql": ("com.mysql.cj.jdbc.Driver", "com.mysql.jdbc.Driver"),
    "mariadb": ("org.mariadb.jdbc.Driver",),
    "sqlite": ("org.sqlite.JDBC",),
    "oracle": ("oracle.jdbc.OracleDriver",),
    "sqlserver": ("com.microsoft.sqlserver.jdbc.SQLServerDriver",),
    "db2": ("com.ibm.db2.jcc.DB2Driver",),
    "derby": ("org.apache.derby.iapi.jdbc.AutoloadedDriver",),
    "duckdb": ("org.duckdb.DuckDBDriver",),
    "h2": ("org.h2.Driver",),
}
#: Those that FlowSQL's own runtime reads and writes.
OWN: Final = ("postgresql", "mysql", "mariadb", "sqlite")
#: What :class:`Address` has as the scheme of URLs of SQLAlchemy.
ALCHEMY: Final = "sqlalchemy"
_PORTS: Final = {"postgresql": 5432, "mysql": 3306, "mariadb": 3306}
_ALCHEMY_URL: Final = re.compile(r"[A-Za-z]\w*(\+\w+)?://")


@record
class Address:
    """A database. ``scheme``: one of :data:`OWN`; of ``sqlite`` the database is a path and nothing else is set. Or
    :data:`ALCHEMY`, and the database is the whole URL."""

    scheme: str
    database: str
    host: str = ""
    port: int = 0
    parameters: Mapping[str, str] = field(default_factory=dict)

    @property
    def shown(self) -> str:
        """As messages name it: without users, passwords and parameters."""
        if self.scheme == ALCHEMY:
            return _without_login(self.database)
        return f"jdbc:sqlite:{self.database}" if not self.host else f"jdbc:{self.scheme}://{self.host}:{self.port}"


def scheme_of(url: str) -> str:
    """The word behind ``jdbc:``; empty where there is none."""
    head, _, rest = url.partition(":")
    return rest.partition(":")[0].lower() if head == "jdbc" else ""


def is_alchemy(url: str) -> bool:
    """Whether an address is a URL of SQLAlchemy, ``dialect+driver://...``.

    >>> [is_alchemy(url) for url in ("duckdb:///shop.db", "jdbc:postgresql://host/shop")]
    [True, False]
    """
    return _ALCHEMY_URL.match(url) is not None


def is_own(url: str) -> bool:
    """Whether FlowSQL's own runtime reads and writes tables at an address."""
    return scheme_of(url) in OWN or is_alchemy(url)


def parse_address(url: str, driver: str | None = None) -> Address:
    """The database that an address names.

    Raises:
        BindError: the address is none, or of a database that FlowSQL does not know, or the driver is another one's.
    """
    if is_alchemy(url):
        if driver is not None:
            raise BindError(
                "jdbc-driver",
                f"The driver '{driver}' is one of JDBC, and {_without_login(url)} is no address of JDBC.",
                hint="leave 'driver' out; the URL names the driver, dialect+driver://",
            )
        return Address(ALCHEMY, url)
    scheme = scheme_of(url)
    if scheme not in OWN:
        raise BindError(
            "jdbc-address",
            f"FlowSQL's own runtime has no driver for '{_without_secrets(url)}'.",
            hint=did_you_mean(scheme, OWN)
            or f"it reads and writes {', '.join(map(_example, OWN))}, and URLs of SQLAlchemy, dialect+driver://...",
        )
    if driver is not None and driver not in DRIVERS[scheme]:
        raise BindError(
            "jdbc-driver",
            f"The driver '{driver}' is not for jdbc:{scheme}.",
            hint=f"leave 'driver' out, or take '{DRIVERS[scheme][0]}'",
        )
    if scheme == "sqlite":
        path = url.split(":", 2)[2].partition("?")[0]
        if not path or path == ":memory:":
            raise BindError(
                "jdbc-address", f"'{url}' names no file.", hint="jdbc:sqlite:PATH of a database that exists"
            )
        return Address("sqlite", path)
    try:
        parts = urlsplit(url.removeprefix("jdbc:"))
        port = parts.port or _PORTS[scheme]
    except ValueError as error:
        raise _unreadable(url, scheme, str(error)) from None
    if not url.removeprefix("jdbc:").startswith(f"{scheme}://"):
        raise _unreadable(url, scheme, "there is no //host")
    if parts.username is not None:
        raise _unreadable(url, scheme, "the user belongs into 'username' and 'password'")
    database = unquote(parts.path.removeprefix("/"))
    return Address(scheme, database, parts.hostname or "localhost", port, dict(parse_qsl(parts.query)))


def _example(scheme: str) -> str:
    return "jdbc:sqlite:PATH" if scheme == "sqlite" else f"jdbc:{scheme}://HOST:PORT/DATABASE"


def _unreadable(url: str, scheme: str, reason: str) -> BindError:
    return BindError(
        "jdbc-address", f"'{_without_secrets(url)}' is no address of a database: {reason}.", hint=_example(scheme)
    )


def _without_login(url: str) -> str:
    """A URL of SQLAlchemy with no more than its place."""
    head, _, rest = url.partition("://")
    place = rest if rest.startswith("/") else rest.rpartition("@")[2]
    return f"{head}://{place.partition('?')[0]}"


def _without_secrets(url: str) -> str:
    head, at, tail = url.partition("?")[0].rpartition("@")
    return f"{head.partition('//')[0]}//{tail}" if at else tail


def is_query(table: str) -> bool:
    """Whether ``table-name`` is a query in parentheses with an alias, ``(SELECT ...) AS t``."""
    return table.lstrip().startswith("(")
