"""The replication slot of a scan and the publication that it reads: made where they are missing, looked at, dropped."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any, Final

from flowsql_connectors.cdc.postgres.catalog import SourceTable
from flowsql_connectors.cdc.postgres.settings import PostgresSettings
from flowsql_connectors.jdbc.literals import sql_text
from flowsql_connectors.jdbc.postgres import PostgresDialect
from flowsql_core.errors import ConnectorError
from flowsql_core.record import record

logger = logging.getLogger(__name__)

_DIALECT: Final = PostgresDialect()
_SLOT: Final = """
SELECT plugin, database, active_pid, (confirmed_flush_lsn - '0/0')::int8, restart_lsn IS NULL
FROM pg_replication_slots WHERE slot_name = %s
"""
_PUBLISHED: Final = "SELECT schemaname || '.' || tablename FROM pg_publication_tables WHERE pubname = %s"

Ask = Callable[..., list[tuple[Any, ...]]]


@record
class SlotState:
    """``confirmed``: the LSN from which on the slot has the log. ``lost``: it has nothing any more."""

    active_pid: int | None
    confirmed: int
    lost: bool


class Slot:
    """The slot of a scan.

    Args:
        ask: runs a query with parameters.
    """

    def __init__(self, settings: PostgresSettings, ask: Ask) -> None:
        self._settings = settings
        self._ask = ask
        self._name = settings.slot

    def made(self, tables: Sequence[SourceTable]) -> int:
        """The LSN from which on the slot has the log, which is made if it is not there; likewise the publication.

        Raises:
            ConnectorError: neither is there, and may not be made; or the slot is another one's.
        """
        # What the slot decodes is decided by the publication that was there when it was written.
        self._publish(tables)
        found = self.state()
        if found is None:
            logger.info("Replication slot '%s' is made.", self._name)
            self._ask("SELECT pg_create_logical_replication_slot(%s, 'pgoutput')", self._name)
            found = self._there()
        return self.usable(found).confirmed

    def existing(self) -> int:
        """:meth:`made` of a slot that is there.

        Raises:
            ConnectorError: it is not.
        """
        return self.usable(self._there()).confirmed

    def _there(self) -> SlotState:
        found = self.state()
        if found is None:
            raise ConnectorError(
                "no-replication-slot",
                f"Replication slot '{self._name}' does not exist at {self._settings.server.shown}.",
                hint="without it the log before now is gone: begin anew with 'scan.startup.mode' = 'initial'",
            )
        return found

    def state(self) -> SlotState | None:
        """How the slot is; None: there is none.

        Raises:
            ConnectorError: it is of another plug-in or database.
        """
        rows = self._ask(_SLOT, self._name)
        if not rows:
            return None
        plugin, database, pid, confirmed, lost = rows[0]
        if plugin != "pgoutput" or database != self._settings.server.database:
            raise ConnectorError(
                "foreign-replication-slot",
                f"Replication slot '{self._name}' is of plug-in '{plugin}' and database '{database}', not of pgoutput "
                f"and '{self._settings.server.database}'.",
                hint="take another 'slot.name'",
            )
        return SlotState(pid, confirmed or 0, lost)

    def usable(self, state: SlotState) -> SlotState:
        """The state.

        Raises:
            ConnectorError: somebody else reads the slot, or the server has given it up.
        """
        if state.lost:
            raise ConnectorError(
                "lost-replication-slot",
                f"Replication slot '{self._name}' has lost its place in the log, which grew above "
                "'max_slot_wal_keep_size'.",
                hint="drop the slot and begin anew",
            )
        if state.active_pid is not None:
            raise ConnectorError(
                "replication-slot-in-use",
                f"Replication slot '{self._name}' is read by another client (PID {state.active_pid}).",
                hint="each table has a 'slot.name' of its own",
                retryable=True,
            )
        return state

    def check(self, position: int) -> None:
        """See that the slot has the log from a position on.

        Raises:
            ConnectorError: it has not.
        """
        found = self.usable(self._there())
        if found.confirmed > position:
            raise ConnectorError(
                "log-is-gone",
                f"Replication slot '{self._name}' does not reach back to where the job goes on: later changes were "
                "confirmed already.",
                hint="go on from a newer checkpoint, or begin anew; 'scan.lsn-commit.checkpoints-num-delay' keeps the "
                "log of so many checkpoints",
            )

    def _publish(self, tables: Sequence[SourceTable]) -> None:
        name, mode = self._settings.publication, self._settings.autocreate
        quoted = _DIALECT.quote(name)
        listed = ", ".join(table.quoted for table in tables)
        if not self._ask("SELECT 1 FROM pg_publication WHERE pubname = %s", name):
            if mode == "disabled":
                raise ConnectorError(
                    "no-publication",
                    f"Publication '{name}' does not exist at {self._settings.server.shown}.",
                    hint=f"CREATE PUBLICATION {quoted} FOR TABLE {listed}",
                )
            root = " WITH (publish_via_partition_root = true)" if self._settings.partitioned else ""
            try:
                self._ask(
                    f"CREATE PUBLICATION {quoted} FOR "
                    + ("ALL TABLES" if mode == "all_tables" else f"TABLE {listed}")
                    + root
                )
            except ConnectorError as error:
                if not self._ask("SELECT 1 FROM pg_publication WHERE pubname = %s", name):
                    raise _not_published(error, name, f"FOR TABLE {listed}") from error
        there = {id_ for (id_,) in self._ask(_PUBLISHED, name)}
        missing = [table for table in tables if table.id not in there]
        if not missing:
            return
        listed = ", ".join(table.quoted for table in missing)
        if mode != "filtered":
            raise ConnectorError(
                "not-published",
                f"Publication '{name}' does not have table '{missing[0].id}'.",
                hint=f"ALTER PUBLICATION {quoted} ADD TABLE {listed}",
            )
        try:
            self._ask(f"ALTER PUBLICATION {quoted} ADD TABLE {listed}")
        except ConnectorError as error:
            raise _not_published(error, name, f"with {listed}") from error

    def drop(self) -> None:
        """Remove the slot, if nobody reads it.

        Raises:
            ConnectorError: somebody does.
        """
        found = self.state()
        if found is not None:
            self._ask(f"SELECT pg_drop_replication_slot({sql_text(self._name)})")


def _not_published(error: ConnectorError, name: str, what: str) -> ConnectorError:
    return ConnectorError(
        "no-publication",
        f"Publication '{name}' cannot be made: {error.message}",
        hint=f"let its owner make it {what}; or 'debezium.publication.autocreate.mode' = 'filtered' makes one of these "
        "tables alone, which owners of tables may",
        retryable=error.retryable,
    )
