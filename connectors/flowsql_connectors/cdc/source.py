"""Scans of tables of databases whose log is read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from flowsql_connectors.cdc.log import DatabaseLog
from flowsql_connectors.cdc.options import SNAPSHOT, CdcSettings
from flowsql_connectors.cdc.reader import CdcReader
from flowsql_connectors.cdc.rows import METADATA, CdcRows
from flowsql_connectors.cdc.state import ScanState
from flowsql_connectors.spi.source import ReaderContext, SourceReader, Split, SplitEnumerator, TableSource
from flowsql_core.errors import BindError, did_you_mean
from flowsql_core.graph.specs import ScanSpec
from flowsql_core.row import ALL_CHANGES, INSERT_ONLY, ChangelogMode, RowKind
from flowsql_core.types.logical import LogicalType

#: Updates without ``-U``, deletes that may have the key alone.
_UPSERTS: Final = ChangelogMode(
    frozenset({RowKind.INSERT, RowKind.UPDATE_AFTER, RowKind.DELETE}), key_only_deletes=True
)


class CdcSource(TableSource):
    """A scan of tables and of what changes in them.

    Args:
        open_log: opens the database's log for this scan.
        metadata: types of the metadata columns that :class:`CapturedTable` tells.

    Raises:
        BindError: there is no such metadata column.
    """

    def __init__(
        self,
        scan: ScanSpec,
        settings: CdcSettings,
        open_log: Callable[[], DatabaseLog],
        metadata: Mapping[str, LogicalType],
    ) -> None:
        self._scan = scan
        self._settings = settings
        self._open_log = open_log
        self._metadata = {**metadata, **METADATA}
        for key in scan.metadata:
            if key not in self._metadata:
                raise BindError(
                    "no-such-metadata",
                    f"Invalid metadata key '{key}' of table '{scan.table.name}'.",
                    hint=did_you_mean(key, self._metadata) or "there are " + ", ".join(self._metadata),
                )

    @property
    def bounded(self) -> bool:
        """The snapshot alone ends."""
        return self._settings.startup_mode == SNAPSHOT

    @property
    def changelog_mode(self) -> ChangelogMode:
        """All changes, or what the settings make of them; the snapshot alone has none."""
        if self._settings.append_only or self.bounded:
            return INSERT_ONLY
        return _UPSERTS if self._settings.upserts else ALL_CHANGES

    def stays_here(self) -> str | None:
        """Chunks and log belong together, and to one reader."""
        return "FlowSQL reads the database's log and the rows that are as of it"

    @property
    def tells_backlog(self) -> bool:
        """The log's end is asked when the job starts, behind the snapshot."""
        return True

    def supports_projection(self) -> bool:
        """Only wanted columns are read and converted."""
        return True

    def metadata_columns(self) -> Mapping[str, LogicalType]:
        """Names of the table, time and kind of the change."""
        return self._metadata

    def create_enumerator(self) -> SplitEnumerator:
        """One split: all tables."""
        return _Tables(self._open_log)

    def create_reader(self, context: ReaderContext) -> SourceReader:
        """A reader with connections of its own."""
        rows = CdcRows(self._scan, self._settings.append_only)
        return CdcReader(self._open_log, self._settings, rows, context)


class _Tables(SplitEnumerator):
    """Looks once whether the tables can be read, so that what is wrong is said at once."""

    def __init__(self, open_log: Callable[[], DatabaseLog]) -> None:
        self._open_log = open_log

    def initial_splits(self, parallelism: int) -> list[list[Split]]:
        """All tables to the first subtask, which reads chunks in as many threads as the scan has subtasks."""
        log = self._open_log()
        try:
            log.tables()
        finally:
            log.close()
        return [[ScanState().encode()], *([] for _ in range(parallelism - 1))]
