"""Snapshots of what writers prepared: one for each checkpoint that is complete, or for a whole INSERT. ADR 037."""

from __future__ import annotations

import random
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

import orjson
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.manifest import DataFile
from pyiceberg.table import Table, TableProperties, Transaction
from pyiceberg.table.refs import MAIN_BRANCH
from pyiceberg.table.snapshots import ancestors_of
from pyiceberg.utils.properties import property_as_bool, property_as_int

from flowsql_connectors.lakes.iceberg.connection import Address, said
from flowsql_connectors.lakes.iceberg.files import file_of
from flowsql_connectors.lakes.iceberg.library import without_retries
from flowsql_connectors.lakes.iceberg.writing import remove
from flowsql_connectors.lakes.prepared import Prepared, left_of, marks_of
from flowsql_connectors.spi.sink import Committable, Committer
from flowsql_core.errors import ConnectorError, FlowSqlError

#: In the summaries of snapshots: the INSERT, and by writer the number of the newest checkpoint that is in the table.
LINEAGE: Final = "flowsql.lineage"
COMMITTED: Final = "flowsql.committed"


class IcebergCommitter(Committer):
    """Adds data files to a table.

    Args:
        address: of the table.
        branch: that takes them.
        properties: of the snapshots.
        overwrite: the files take the place of those in the same partitions.
        at_end_only: nothing is added before all is written.
    """

    def __init__(
        self, address: Address, branch: str | None, properties: Mapping[str, str], overwrite: bool, at_end_only: bool
    ) -> None:
        self._address = address
        self._branch = branch or MAIN_BRANCH
        self._properties = dict(properties)
        self._overwrite = overwrite
        self._at_end_only = at_end_only or overwrite
        self._held: list[Prepared] = []
        #: What snapshots say that is committed, up to the one that was looked at last.
        self._done: dict[str, int] = {}
        self._looked_at: int | None = None

    def commit(self, committables: list[Committable], end_of_input: bool) -> None:
        """One snapshot of all that no snapshot holds yet.

        Raises:
            ConnectorError: the catalog refuses, or others committed each time before this.
        """
        self._held += [Prepared.decode(committable) for committable in committables]
        if self._at_end_only and not end_of_input:
            return
        new, self._held = self._held, []
        if new or self._overwrite:
            with said(f"Iceberg table '{self._address.shown}'"):
                self._add(new)

    def _add(self, new: Sequence[Prepared]) -> None:
        attempt = 0
        while True:
            table = self._address.load()
            properties = dict(table.metadata.properties)
            self._look(table)
            left = left_of(new, self._done)
            if new and not left:
                return
            try:
                self._snapshot(without_retries(table), left)
                return
            except CommitFailedException as error:
                attempt += 1
                if attempt > _number(properties, TableProperties.COMMIT_NUM_RETRIES, 4):
                    raise ConnectorError(
                        "lake-conflict",
                        f"Iceberg table '{self._address.shown}' was changed by others each of {attempt} times before "
                        "this job's commit.",
                        retryable=True,
                        hint=f"the table's property '{TableProperties.COMMIT_NUM_RETRIES}' lets it try more often",
                    ) from error
                least = _number(properties, TableProperties.COMMIT_MIN_RETRY_WAIT_MS, 100)
                most = _number(properties, TableProperties.COMMIT_MAX_RETRY_WAIT_MS, 60_000)
                time.sleep(min(least * 2**attempt, most) / 1000 * random.uniform(0.5, 1))

    def _look(self, table: Table) -> None:
        """Read what snapshots say that is committed, the newest first."""
        head = table.metadata.snapshot_by_name(self._branch)
        for snapshot in ancestors_of(head, table.metadata):
            if snapshot.snapshot_id == self._looked_at:
                break
            told = None if snapshot.summary is None else snapshot.summary.get(COMMITTED)
            for run, number in orjson.loads(told).items() if told else ():
                self._done[run] = max(number, self._done.get(run, 0))
        self._looked_at = None if head is None else head.snapshot_id

    def _snapshot(self, table: Table, left: Sequence[Prepared]) -> None:
        metadata, spec = table.metadata, table.spec()
        files = [file_of(told, metadata) for one in left for told in one.files]
        strange = next((file for file in files if file.spec_id != spec.spec_id), None)
        if strange is not None:
            raise ConnectorError(
                "lake-conflict",
                f"The partitioning of Iceberg table '{self._address.shown}' was changed while rows were written: "
                f"{strange.file_path} is of partition spec {strange.spec_id}, the table has {spec.spec_id}.",
                hint="start the job anew, without its last checkpoint",
            )
        self._make_branch(table)
        transaction = table.transaction()
        told = dict(self._properties)
        if left:
            told[LINEAGE] = left[0].lineage
            told[COMMITTED] = orjson.dumps(marks_of(left)).decode()
        with self._producer(transaction, told) as producer:
            if self._overwrite:
                for file in self._replaced(table, files):
                    producer.delete_data_file(file)
            for file in files:
                producer.append_data_file(file)
        transaction.commit_transaction()

    def _producer(self, transaction: Transaction, told: dict[str, str]) -> Any:
        update = transaction.update_snapshot(snapshot_properties=told, branch=self._branch)
        if self._overwrite:
            return update.overwrite()
        # As writers in Java do unless the table says otherwise: else every commit leaves a manifest for ever.
        merges = property_as_bool(
            transaction.table_metadata.properties, TableProperties.MANIFEST_MERGE_ENABLED, default=True
        )
        return update.merge_append() if merges else update.fast_append()

    def _make_branch(self, table: Table) -> None:
        current = table.current_snapshot()
        if self._branch not in table.refs() and current is not None and self._branch != MAIN_BRANCH:
            with table.manage_snapshots() as refs:
                refs.create_branch(current.snapshot_id, self._branch)

    def _replaced(self, table: Table, files: Sequence[DataFile]) -> list[DataFile]:
        """The files of the partitions that get rows; all of a table without partitions."""
        head = table.metadata.snapshot_by_name(self._branch)
        if head is None:
            return []
        there = [task.file for task in table.scan(snapshot_id=head.snapshot_id).plan_files()]
        spec = table.spec()
        if spec.is_unpartitioned():
            return there
        older = next((file for file in there if file.spec_id != spec.spec_id), None)
        if older is not None:
            raise ConnectorError(
                "lake-overwrite",
                f"Iceberg table '{self._address.shown}' has files of an older partitioning ({older.file_path}), of "
                "which it is not known whether they are of the partitions that are overwritten.",
            )
        partitions = {file.partition for file in files}
        return [file for file in there if file.partition in partitions]

    def abort(self, committables: list[Committable]) -> None:
        """Remove the files: no checkpoint counts on them."""
        prepared = [*(Prepared.decode(committable) for committable in committables), *self._held]
        self._held = []
        if not prepared:
            return
        try:
            io = self._address.load().io
        except FlowSqlError:
            return  # orphans are seen by nobody
        for one in prepared:
            for told in one.files:
                remove(io, told["path"])


def _number(properties: dict[str, str], key: str, default: int) -> int:
    found = property_as_int(properties, key, default)
    return default if found is None else max(0, found)
