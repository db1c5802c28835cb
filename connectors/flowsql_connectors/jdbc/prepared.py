"""Appends exactly once: rows of a checkpoint are a transaction, prepared with it and committed when it is complete.

Source: PostgreSQL's documentation of PREPARE TRANSACTION, MySQL's and MariaDB's of XA; Flink's ``JdbcXaSinkFunction``
for what a restart does.
"""

from __future__ import annotations

import re
import secrets
import time
from abc import abstractmethod
from collections.abc import Sequence
from typing import Final

from flowsql_connectors.jdbc.database import Changes, Dialect, Login, Target
from flowsql_connectors.jdbc.options import SINK_RETRIES, TRANSACTION_PREFIX
from flowsql_connectors.jdbc.sql import SqlDatabase
from flowsql_connectors.jdbc.writer import JdbcWriter
from flowsql_connectors.options import OptionValues
from flowsql_connectors.spi.sink import Committable, Committer, WriterContext
from flowsql_core.errors import BindError, ConnectorError
from flowsql_core.graph.specs import SinkSpec

_TOKEN_BYTES: Final = 8
#: Behind the prefix: the subtask, and a token.
_TAIL: Final = re.compile(r":(\d+):[0-9a-f]{16}")
#: Transactions that writers of this process have prepared, and nobody has finished.
_PENDING: Final[set[str]] = set()
#: Those of them whose writers went back to a checkpoint while the job went on: rolled back behind the next commit, as a
#: checkpoint that was given up may still count on them.
_TAKEN_BACK: Final[set[str]] = set()


class TwoPhaseDatabase(SqlDatabase):
    """A connection to a database that can prepare transactions."""

    @abstractmethod
    def check_two_phase(self, table: str) -> None:
        """Raises ConnectorError where the server prepares none, or none that hold rows of a table."""

    @abstractmethod
    def append(self, target: Target, changes: Changes, name: str) -> None:
        """Insert rows in the transaction that is open, or begins and will be prepared by this name; nothing is
        committed."""

    @abstractmethod
    def prepare(self, name: str) -> None:
        """End the first phase of the open transaction, which began by this name. It survives the connection and the
        server."""

    @abstractmethod
    def prepared(self, prefix: str) -> list[str]:
        """Names of the database's prepared transactions that begin so."""

    @abstractmethod
    def finish(self, name: str, commit: bool) -> None:
        """Commit a prepared transaction or roll it back; nothing where there is none, as it was finished before. The
        connection commits by itself."""


def checked_prefix(values: OptionValues, table: str, longest: int) -> str:
    """``sink.transactional-id-prefix``, of so many bytes at most.

    Raises:
        BindError: it is missing or too long.
    """
    prefix = values.get(TRANSACTION_PREFIX)
    if prefix is None:
        raise BindError(
            "missing-option",
            f"'sink.delivery-guarantee' = 'exactly-once' needs '{TRANSACTION_PREFIX.key}'.",
            hint=f"add '{TRANSACTION_PREFIX.key}' to the WITH clause of {table}: a name that no other running job has",
        )
    if not 0 < len(prefix.encode()) <= longest:
        raise BindError(
            "invalid-option-value", f"'{TRANSACTION_PREFIX.key}' has 1 to {longest} bytes, not {len(prefix.encode())}."
        )
    return prefix


class PreparedWriter(JdbcWriter):
    """Inserts in one transaction from barrier to barrier.

    What a writer of a dead process had prepared beyond the last checkpoint is rolled back when one of its number opens
    again; what belongs to the checkpoint has been committed by then.
    """

    def __init__(
        self, sink: SinkSpec, dialect: Dialect, login: Login, values: OptionValues, context: WriterContext, prefix: str
    ) -> None:
        super().__init__(sink, dialect, login, values, context)
        self._prefix = prefix
        #: Name of the open transaction; None while no row is in it.
        self._open: str | None = None
        with _Connection(dialect, login) as database:
            database.check_two_phase(self._table)
            for name in database.prepared(f"{prefix}:"):
                tail = _TAIL.fullmatch(name.removeprefix(prefix))
                if tail is None or int(tail[1]) % context.parallelism != context.subtask:
                    continue
                if name in _PENDING:
                    _TAKEN_BACK.add(name)
                else:
                    database.finish(name, commit=False)

    def _write(self, changes: Changes) -> None:
        database, target = self._opened()
        assert isinstance(database, TwoPhaseDatabase)
        name = self._open or f"{self._prefix}:{self._context.subtask}:{secrets.token_hex(_TOKEN_BYTES)}"
        database.append(target, changes, name)
        self._open = name

    def _may_repeat(self) -> bool:
        # With the connection the rows before are lost, too: the job goes back to its checkpoint.
        return self._open is None

    def prepare_commit(self) -> list[Committable]:
        """The transaction since the last barrier."""
        name = self._open
        if name is None:
            return []
        database, _ = self._opened()
        assert isinstance(database, TwoPhaseDatabase)
        _PENDING.add(name)
        database.prepare(name)
        self._open = None
        return [Committable(name.encode())]


class PreparedCommitter(Committer):
    """Commits prepared transactions; one that is gone was committed before."""

    def __init__(self, dialect: Dialect, login: Login, values: OptionValues, prefix: str) -> None:
        self._dialect = dialect
        self._login = login
        self._retries = values.get(SINK_RETRIES)
        self._prefix = prefix

    def commit(self, committables: list[Committable], end_of_input: bool) -> None:
        """All of them; what was taken back before is rolled back."""
        names = [one.data.decode() for one in committables]
        self._finish(names, commit=True)
        left = {name for name in tuple(_TAKEN_BACK) if name.startswith(f"{self._prefix}:")}
        self._finish(sorted(left - set(names)), commit=False)

    def abort(self, committables: list[Committable]) -> None:
        """Roll them back."""
        self._finish([one.data.decode() for one in committables], commit=False)

    def _finish(self, names: Sequence[str], commit: bool) -> None:
        if not names:
            return
        for attempt in range(self._retries + 1):
            try:
                with _Connection(self._dialect, self._login) as database:
                    for name in names:
                        database.finish(name, commit)
                _PENDING.difference_update(names)
                _TAKEN_BACK.difference_update(names)
                return
            except ConnectorError as error:
                if not error.retryable or attempt == self._retries:
                    raise
                time.sleep(attempt + 1)


class _Connection:
    """A connection for a moment."""

    def __init__(self, dialect: Dialect, login: Login) -> None:
        self._dialect = dialect
        self._login = login

    def __enter__(self) -> TwoPhaseDatabase:
        database = self._dialect.connect(self._login)
        assert isinstance(database, TwoPhaseDatabase)
        self._database = database
        return database

    def __exit__(self, *failure: object) -> None:
        self._database.close()
