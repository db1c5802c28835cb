"""INSERT INTO tables of databases: appends, upserts by key, and appends exactly once."""

from __future__ import annotations

from collections.abc import Mapping

from flowsql_connectors.jdbc.address import ALCHEMY, is_query
from flowsql_connectors.jdbc.database import dialect_of
from flowsql_connectors.jdbc.options import GUARANTEE, TABLE, checked
from flowsql_connectors.jdbc.prepared import PreparedCommitter, PreparedWriter, checked_prefix
from flowsql_connectors.jdbc.source import login_of
from flowsql_connectors.jdbc.writer import JdbcWriter
from flowsql_connectors.options import SINK_PARALLELISM
from flowsql_connectors.spi.sink import Committer, SinkWriter, TableSink, WriterContext
from flowsql_core.errors import BindError
from flowsql_core.graph.specs import SinkSpec
from flowsql_core.row import INSERT_ONLY, UPSERT, ChangelogMode
from flowsql_core.types.logical import ArrayType


class JdbcSink(TableSink):
    """Appends to a table, or with a primary key inserts, updates and deletes by it."""

    def __init__(self, sink: SinkSpec, configuration: Mapping[str, str]) -> None:
        self._sink = sink
        self._values = checked(sink.table)
        self._login = login_of(self._values, configuration)
        if is_query(self._values.get(TABLE)):
            raise BindError(
                "invalid-option-value",
                f"Rows cannot be written into a query, which '{TABLE.key}' of {sink.table.name} is.",
                hint="name the table",
            )
        self._dialect = dialect_of(self._login)
        self._prefix: str | None = None
        if self._values.get(GUARANTEE) == "exactly-once":
            self._prefix = self._checked_prefix()

    def _checked_prefix(self) -> str:
        table = self._sink.table
        if not self._dialect.two_phase:
            others = "jdbc:postgresql, jdbc:mysql and jdbc:mariadb have"
            address = self._login.address
            place = address.shown if address.scheme == ALCHEMY else f"jdbc:{address.scheme}"
            raise _refused(f"{place} has no prepared transactions here, {others}")
        if table.primary_key:
            raise _refused("what is written by a primary key is there once in any case: leave the option out")
        arrays = next((column.name for column in table.columns if isinstance(column.type, ArrayType)), None)
        if arrays is not None:
            raise _refused(f"column '{arrays}' is an ARRAY")
        return checked_prefix(self._values, table.name, self._dialect.prefix_bytes)

    def accepts(self, wanted: ChangelogMode) -> ChangelogMode:
        """All changes by key; insertions alone without one."""
        return UPSERT if self._sink.table.primary_key else INSERT_ONLY

    def parallelism(self) -> int | None:
        """``sink.parallelism``."""
        return self._values.get(SINK_PARALLELISM)

    def create_committer(self) -> Committer | None:
        """Who commits what writers prepared."""
        if self._prefix is None:
            return None
        return PreparedCommitter(self._dialect, self._login, self._values, self._prefix)

    def create_writer(self, context: WriterContext) -> SinkWriter:
        """A writer with a connection of its own."""
        if self._prefix is None:
            return JdbcWriter(self._sink, self._dialect, self._login, self._values, context)
        return PreparedWriter(self._sink, self._dialect, self._login, self._values, context, self._prefix)


def _refused(why: str) -> BindError:
    return BindError("invalid-option-value", f"'{GUARANTEE.key}' = 'exactly-once' cannot be used: {why}.")
