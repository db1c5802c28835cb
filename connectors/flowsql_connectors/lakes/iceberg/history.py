"""Snapshots of a table: which one is read, and which files each of them appended."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime

from pyiceberg.expressions import BooleanExpression
from pyiceberg.table import FileScanTask, ManifestGroupPlanner, Table
from pyiceberg.table.snapshots import Operation, Snapshot, ancestors_of

from flowsql_connectors.lakes.iceberg.connection import Address, said
from flowsql_connectors.lakes.iceberg.files import task_told
from flowsql_connectors.lakes.iceberg.options import (
    AS_OF_MS,
    BRANCH,
    END_SNAPSHOT,
    END_TAG,
    PLANNED_SNAPSHOTS,
    SNAPSHOT,
    START_MS,
    START_SNAPSHOT,
    START_TAG,
    STRATEGY,
    TAG,
)
from flowsql_connectors.lakes.splits import FilePart, LakeHistory
from flowsql_connectors.options import ConnectorOption, OptionValues
from flowsql_core.errors import BindError, ConnectorError

#: The position of a table that has no snapshot.
_NONE = ""


class IcebergHistory(LakeHistory):
    """See the base.

    Args:
        address: of the table.
        values: of its options.
        row_filter: what wanted rows fulfil, by the schema of a table.
    """

    def __init__(
        self, address: Address, values: OptionValues, row_filter: Callable[[Table], BooleanExpression]
    ) -> None:
        self._address = address
        self._values = values
        self._row_filter = row_filter

    def files(self) -> list[FilePart]:
        """Of the snapshot that the options name; or what was appended between two."""
        table = self._address.load()
        with said(f"Iceberg table '{self._address.shown}'"):
            if any(self._values.has(option) for option in (START_SNAPSHOT, START_TAG, END_SNAPSHOT, END_TAG)):
                return self._between(table)
            return self._whole(table, self.snapshot(table))

    def snapshot(self, table: Table) -> Snapshot | None:
        """The snapshot that is read; None of a table that has none.

        Raises:
            BindError: there is none of this id, name or time.
        """
        values = self._values
        wanted, at_ms = values.get(SNAPSHOT), values.get(AS_OF_MS)
        if wanted is not None:
            return self._of_id(table, wanted, SNAPSHOT)
        if at_ms is not None:
            found = table.snapshot_as_of_timestamp(at_ms)
            if found is None:
                raise BindError(
                    "lake-snapshot",
                    f"Iceberg table '{self._address.shown}' had no snapshot at {_shown_ms(at_ms)} "
                    f"('{AS_OF_MS.key}' = '{at_ms}').",
                    hint=_oldest(table),
                )
            return found
        for option in (BRANCH, TAG):
            name = values.get(option)
            if name is not None:
                return self._of_name(table, name, option)
        return table.current_snapshot()

    def _of_id(self, table: Table, wanted: int, option: ConnectorOption[int | None]) -> Snapshot:
        found = table.snapshot_by_id(wanted)
        if found is None:
            raise BindError(
                "lake-snapshot",
                f"Iceberg table '{self._address.shown}' has no snapshot {wanted} ('{option.key}').",
                hint=_oldest(table),
            )
        return found

    def _of_name(self, table: Table, name: str, option: ConnectorOption[str | None]) -> Snapshot:
        found = table.snapshot_by_name(name) if name in table.refs() else None
        if found is None:
            raise BindError(
                "lake-snapshot",
                f"Iceberg table '{self._address.shown}' has no {option.key.rpartition('-')[2]} '{name}'.",
                hint="it has " + (", ".join(sorted(table.refs())) or "none"),
            )
        return found

    def _whole(self, table: Table, snapshot: Snapshot | None) -> list[FilePart]:
        if snapshot is None:
            return []
        planner = ManifestGroupPlanner(table.metadata, table.io, self._row_filter(table))
        # Snapshots name their newest manifests first.
        return self._parts(table, planner.plan_files(snapshot.manifests(table.io)[::-1]))

    def _between(self, table: Table) -> list[FilePart]:
        start, end = self._bound(table, START_SNAPSHOT, START_TAG), self._bound(table, END_SNAPSHOT, END_TAG)
        last = table.current_snapshot() if end is None else end
        if last is None:
            return []
        chain = self._chain(table, last)
        if start is not None:
            ids = [snapshot.snapshot_id for snapshot in chain]
            if start.snapshot_id not in ids:
                raise BindError(
                    "lake-snapshot",
                    f"Snapshot {start.snapshot_id} of Iceberg table '{self._address.shown}' is no ancestor of "
                    f"snapshot {last.snapshot_id}.",
                )
            chain = chain[ids.index(start.snapshot_id) + 1 :]
        return [part for snapshot in chain for part in self._appended(table, snapshot)]

    def _bound(
        self, table: Table, by_id: ConnectorOption[int | None], by_tag: ConnectorOption[str | None]
    ) -> Snapshot | None:
        wanted, name = self._values.get(by_id), self._values.get(by_tag)
        if wanted is not None:
            return self._of_id(table, wanted, by_id)
        return None if name is None else self._of_name(table, name, by_tag)

    # -- following

    def start(self) -> tuple[list[FilePart], str]:
        """By ``starting-strategy``."""
        table = self._address.load()
        with said(f"Iceberg table '{self._address.shown}'"):
            head = self._head(table)
            strategy = self._values.get(STRATEGY)
            if strategy == "TABLE_SCAN_THEN_INCREMENTAL":
                return self._whole(table, head), _position(head)
            chain = [] if head is None else self._chain(table, head)
            first = self._first(table, chain, strategy)
            parts = [part for snapshot in chain[first:] for part in self._appended(table, snapshot)]
            return parts, _position(head)

    def _first(self, table: Table, chain: list[Snapshot], strategy: str) -> int:
        """The place of the first snapshot whose rows are read."""
        match strategy:
            case "INCREMENTAL_FROM_LATEST_SNAPSHOT":
                return max(0, len(chain) - 1)
            case "INCREMENTAL_FROM_LATEST_SNAPSHOT_EXCLUSIVE":
                return len(chain)
            case "INCREMENTAL_FROM_SNAPSHOT_ID":
                wanted = self._values.get(START_SNAPSHOT)
                assert wanted is not None
                found = self._of_id(table, wanted, START_SNAPSHOT)
                ids = [snapshot.snapshot_id for snapshot in chain]
                if found.snapshot_id not in ids:
                    raise self._lost(str(wanted))
                return ids.index(found.snapshot_id)
            case "INCREMENTAL_FROM_SNAPSHOT_TIMESTAMP":
                at_ms = self._values.get(START_MS)
                assert at_ms is not None
                later = (at for at, snapshot in enumerate(chain) if snapshot.timestamp_ms >= at_ms)
                return next(later, len(chain))
        return 0

    def since(self, position: str) -> tuple[list[FilePart], str]:
        """Of the snapshots that were added. Overwrites, deletes and rewrites of files are passed over, as in Flink."""
        table = self._address.load()
        with said(f"Iceberg table '{self._address.shown}'"):
            head = self._head(table)
            if _position(head) == position:
                return [], position
            chain = [] if head is None else self._chain(table, head, until=position)
            added = chain[: self._values.get(PLANNED_SNAPSHOTS)]
            parts = [part for snapshot in added for part in self._appended(table, snapshot)]
            return parts, _position(added[-1]) if added else position

    def _head(self, table: Table) -> Snapshot | None:
        name = self._values.get(BRANCH)
        return table.current_snapshot() if name is None else self._of_name(table, name, BRANCH)

    def _chain(self, table: Table, last: Snapshot, until: str | None = None) -> list[Snapshot]:
        """A snapshot and those that it follows, the oldest first; behind the one of a position."""
        found: list[Snapshot] = []
        for snapshot in ancestors_of(last, table.metadata):
            if until and _position(snapshot) == until:
                return found[::-1]
            found.append(snapshot)
        if until:
            raise self._lost(until)
        return found[::-1]

    def _lost(self, position: str) -> ConnectorError:
        return ConnectorError(
            "lake-history",
            f"Snapshot {position} of Iceberg table '{self._address.shown}', behind which this scan goes on, is no part "
            "of its history any more: it was expired or rolled back.",
            hint="start the job anew; 'starting-strategy' says with which rows",
        )

    def _appended(self, table: Table, snapshot: Snapshot) -> list[FilePart]:
        if snapshot.summary is None or snapshot.summary.operation is not Operation.APPEND:
            return []
        scan = table.incremental_append_scan(
            row_filter=self._row_filter(table),
            from_snapshot_id_exclusive=snapshot.parent_snapshot_id,
            to_snapshot_id_inclusive=snapshot.snapshot_id,
        )
        return self._parts(table, scan.plan_files())

    def _parts(self, table: Table, tasks: Iterable[FileScanTask]) -> list[FilePart]:
        metadata = table.metadata
        return [
            FilePart(task.file.file_path, task_told(task, metadata), task.file.file_size_in_bytes) for task in tasks
        ]


def _position(snapshot: Snapshot | None) -> str:
    return _NONE if snapshot is None else str(snapshot.snapshot_id)


def _shown_ms(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(" ", "milliseconds")


def _oldest(table: Table) -> str:
    snapshots = table.snapshots()
    if not snapshots:
        return "it has none"
    oldest, newest = snapshots[0], snapshots[-1]
    return (
        f"the oldest is {oldest.snapshot_id} of {_shown_ms(oldest.timestamp_ms)}, the newest {newest.snapshot_id} of "
        f"{_shown_ms(newest.timestamp_ms)}"
    )
