"""A server of MySQL or MariaDB: what it is, whether its log can be read, where the log stands."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cached_property
from typing import Final

from flowsql_connectors.cdc.mysql.gtid import GtidSet
from flowsql_connectors.cdc.mysql.position import Position
from flowsql_connectors.jdbc.database import Login
from flowsql_connectors.jdbc.mysql import MySqlDatabase, MySqlDialect, client
from flowsql_core.errors import ConnectorError

#: What the log must be for its rows to be read, and how a server is told so.
_WANTED: Final = (
    ("log_bin", ("ON", "1"), "it writes no binary log", "start it with --log-bin and --binlog-format=ROW"),
    ("binlog_format", ("ROW",), "its binary log has statements", "SET GLOBAL binlog_format = 'ROW'"),
    ("binlog_row_image", ("FULL",), "its binary log has parts of rows", "SET GLOBAL binlog_row_image = 'FULL'"),
)
_NAMES: Final = (
    "log_bin", "binlog_format", "binlog_row_image", "binlog_row_metadata", "binlog_checksum", "gtid_mode", "server_id",
)  # fmt: skip


class Server:
    """One connection to ask; one thread.

    Raises:
        ConnectorError: no connection.
    """

    def __init__(self, login: Login) -> None:
        self.login = login
        self.shown = login.address.shown.removeprefix("jdbc:")
        self.database = MySqlDatabase(MySqlDialect(), client(login), self.shown)

    @cached_property
    def variables(self) -> Mapping[str, str]:
        """Variables of the server that matter here."""
        names = ", ".join(f"'{name}'" for name in _NAMES)
        return dict(self.database.query(f"SHOW GLOBAL VARIABLES WHERE Variable_name IN ({names})"))

    @cached_property
    def is_mariadb(self) -> bool:
        """Whether it is MariaDB."""
        return "mariadb" in self.database.query("SELECT VERSION()")[0][0].lower()

    @property
    def has_gtids(self) -> bool:
        """Whether it is MySQL that numbers all transactions."""
        return self.variables.get("gtid_mode", "").upper() == "ON"

    @cached_property
    def charsets(self) -> Mapping[int, str]:
        """Character sets by the number of a collation."""
        query = "SELECT id, character_set_name FROM information_schema.{} WHERE id IS NOT NULL"
        # MariaDB has collations of several character sets since 10.10, which are not in the common table.
        tables = ("COLLATION_CHARACTER_SET_APPLICABILITY", "COLLATIONS") if self.is_mariadb else ("COLLATIONS",)
        try:
            rows = self.database.query(query.format(tables[0]))
        except ConnectorError:
            rows = self.database.query(query.format(tables[-1]))
        return {int(number): name for number, name in rows}

    def check(self) -> None:
        """Refuse a server whose log cannot be read.

        Raises:
            ConnectorError: it writes none, or not all of the rows.
        """
        for name, right, wrong, remedy in _WANTED:
            found = self.variables.get(name, right[0])
            if found.upper() not in right:
                raise ConnectorError(
                    "mysql-cdc-log",
                    f"Changes cannot be read from {self.shown}: {wrong} ({name} = {found}).",
                    hint=remedy,
                )

    def end_of_log(self) -> Position:
        """Where the log ends now."""
        try:
            rows = self._status()
        except ConnectorError as error:
            if "privilege" not in error.message:
                raise
            raise self.lacks("REPLICATION CLIENT", error) from error
        if not rows:
            self.check()
            raise ConnectorError("mysql-cdc-log", f"Changes cannot be read from {self.shown}: it writes no binary log.")
        return self.position(rows[0][0], int(rows[0][1]), rows[0][4] if len(rows[0]) > 4 else None)

    def position(self, file: str, place: int, gtids: str | None = None) -> Position:
        """A position of this server, with what was done before it where the server tells so."""
        done = str(GtidSet((gtids or "").replace("\n", ""))) if self.has_gtids else None
        return Position(file, place, done)

    def lacks(self, privilege: str, error: ConnectorError) -> ConnectorError:
        """The sentence for a privilege that the user does not have."""
        return ConnectorError(
            "mysql-cdc-privilege",
            f"User '{self.login.user}' may not read the binary log of {self.shown}: it needs the privilege {privilege} "
            f"({_reason(error)}).",
            hint=f"GRANT SELECT, REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO '{self.login.user}'",
        )

    def _status(self) -> list[tuple[str, ...]]:
        if self.is_mariadb:
            return self.database.query("SHOW MASTER STATUS")
        try:
            return self.database.query("SHOW BINARY LOG STATUS")
        except ConnectorError as error:
            # Before MySQL 8.2.
            if "syntax" not in error.message:
                raise
            return self.database.query("SHOW MASTER STATUS")

    def files(self) -> list[str]:
        """Files of the log, the oldest first."""
        try:
            rows = self.database.query("SHOW BINARY LOGS")
        except ConnectorError as error:
            if "privilege" not in error.message:
                raise
            raise self.lacks("REPLICATION CLIENT", error) from error
        return [row[0] for row in rows]

    def begin_snapshot(self) -> Position | None:
        """Begin a transaction whose reads show one moment; where the log stood then, None: the server does not tell."""
        self.database.query("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        self.database.query("START TRANSACTION WITH CONSISTENT SNAPSHOT")
        found = dict(self.database.query("SHOW STATUS LIKE 'binlog_snapshot_%'"))
        told = {key.lower(): value for key, value in found.items()}
        if not told.get("binlog_snapshot_file"):
            return None
        return Position(told["binlog_snapshot_file"], int(told["binlog_snapshot_position"]))

    def end_snapshot(self) -> None:
        """End that transaction."""
        self.database.query("COMMIT")

    def close(self) -> None:
        """Release the connection."""
        self.database.close()


def _reason(error: ConnectorError) -> str:
    return re.sub(r"^[^:]*:\d+: ", "", error.message).rstrip(".")
