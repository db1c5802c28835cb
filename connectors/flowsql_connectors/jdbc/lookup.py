"""Lookups: all keys of a request in one query, over connections that requests take turns with."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any, Final

from flowsql_connectors.jdbc.database import Database, Dialect, Login
from flowsql_connectors.jdbc.native import NativeColumn, matched
from flowsql_connectors.spi.lookup import FoundRows, TableLookup
from flowsql_core.errors import ConnectorError
from flowsql_core.types.logical import Schema

#: Connections of one subtask.
_CONNECTIONS: Final = 4
#: Keys for which a request of its own is worth a round trip.
_FEWEST_KEYS: Final = 1024


class DatabaseLookup(TableLookup):
    """Asks the database for the keys of each batch.

    Args:
        columns: what is wanted of a row. ``keys``: which of them are given.
        retries: how often a request that failed is sent again, each time after a second more.
    """

    fewest_keys: int = _FEWEST_KEYS

    def __init__(
        self, dialect: Dialect, login: Login, table: str, columns: Schema, keys: tuple[int, ...], retries: int
    ) -> None:
        self._dialect = dialect
        self._login = login
        self._table = table
        self._columns = columns
        self._keys = keys
        self._retries = retries
        self._turns = threading.Semaphore(_CONNECTIONS)
        self._idle: list[Database] = []
        self._closed = threading.Event()
        self._native: tuple[NativeColumn, ...] | None = None

    def find(self, keys: Sequence[Any]) -> FoundRows:
        """The rows of each key, by one query."""
        with self._turns:
            for attempt in range(self._retries + 1):
                try:
                    return self._find(keys)
                except ConnectorError as error:
                    if not error.retryable or attempt == self._retries or self._closed.wait(attempt + 1):
                        raise
        raise AssertionError("the last attempt answers or raises")

    def _find(self, keys: Sequence[Any]) -> FoundRows:
        database = self._taken()
        try:
            if self._native is None:
                there = database.columns(self._table)
                self._native = matched(self._table, there, self._columns, any_type=self._dialect.any_type)
            numbers, rows = database.find(self._table, self._native, self._columns, self._keys, keys)
        except BaseException:
            database.close()
            raise
        if self._closed.is_set():
            database.close()
        else:
            self._idle.append(database)
        return FoundRows(numbers, rows)

    def _taken(self) -> Database:
        try:
            return self._idle.pop()
        except IndexError:
            return self._dialect.connect(self._login)

    def close(self) -> None:
        """Close the connections; those in use are closed behind their request."""
        self._closed.set()
        while self._idle:
            self._idle.pop().close()
