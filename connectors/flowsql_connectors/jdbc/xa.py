"""Names and servers of MySQL's XA transactions, which outlive the connection that prepared them.

Source: MySQL's and MariaDB's documentation of XA transactions.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable
from typing import Any, Final

from flowsql_core.errors import ConnectorError
from flowsql_core.record import record

#: Bytes of the first part of an XA transaction's name; the second one may have as many.
LONGEST_PREFIX: Final = 64
#: MySQL began to detach prepared transactions from their connections, MariaDB to keep them when those end.
_OLDEST: Final = {"MySQL": (8, 0, 29), "MariaDB": (10, 5, 0)}
_TAIL: Final = re.compile(rb"([0-9a-f]{8}):(\d+:[0-9a-f]{16})")


@record
class Xid:
    """Name of an XA transaction: ``gtrid`` is the prefix of the job, ``bqual`` database, subtask and token. XA RECOVER
    tells those of the whole server, and the same prefix may be in use in another database."""

    gtrid: bytes
    bqual: bytes

    @classmethod
    def of(cls, name: str, database: str) -> Xid:
        """That of ``prefix:subtask:token`` in a database."""
        prefix, subtask, token = name.rsplit(":", 2)
        return cls(prefix.encode(), f"{_mark(database)}:{subtask}:{token}".encode())

    def name(self, database: str) -> str | None:
        """The other way round; None of a transaction of others, or in another database."""
        tail = _TAIL.fullmatch(self.bqual)
        if tail is None or tail[1].decode() != _mark(database):
            return None
        try:
            return f"{self.gtrid.decode()}:{tail[2].decode()}"
        except UnicodeDecodeError:
            return None

    @property
    def sql(self) -> str:
        """As statements name it; in digits, as the prefix may hold any character."""
        return f"X'{self.gtrid.hex()}', X'{self.bqual.hex()}'"


def _mark(database: str) -> str:
    return f"{zlib.crc32(database.encode()):08x}"


def names_of(rows: Iterable[tuple[Any, ...]], database: str) -> list[str]:
    """Names of transactions of a database in the answer of XA RECOVER.

    Args:
        rows: format, lengths of both parts, and the parts as bytes or as text in latin1.
    """
    found = []
    for _, first, second, data in rows:
        both = data.encode("latin1") if isinstance(data, str) else data
        length = int(first)
        name = Xid(both[:length], both[length : length + int(second)]).name(database)
        if name is not None:
            found.append(name)
    return found


def check_version(version: str, shown: str) -> None:
    """Whether prepared transactions of a server outlive their connection.

    Args:
        version: what ``VERSION()`` answers.

    Raises:
        ConnectorError: the server is too old.
    """
    kind = "MariaDB" if "mariadb" in version.lower() else "MySQL"
    numbers = tuple(int(part) for part in re.findall(r"\d+", version.partition("-")[0])[:3])
    oldest = _OLDEST[kind]
    if numbers < oldest:
        raise ConnectorError(
            "database",
            f"{shown} is {kind} {version}, whose prepared transactions end with their connection: "
            f"'sink.delivery-guarantee' = 'exactly-once' needs {kind} {'.'.join(map(str, oldest))} or newer.",
        )
