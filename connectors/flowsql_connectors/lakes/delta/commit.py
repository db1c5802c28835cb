"""Versions of what writers prepared: one for each checkpoint that is complete, or for a whole INSERT. ADR 037."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError
from deltalake.transaction import AddAction, CommitProperties, RemoveAction, Transaction

from flowsql_connectors.lakes.delta.connection import Address, said
from flowsql_connectors.lakes.delta.partitions import texts
from flowsql_connectors.lakes.delta.writing import remove
from flowsql_connectors.lakes.prepared import Prepared, left_of, marks_of
from flowsql_connectors.spi.sink import Committable, Committer
from flowsql_core.errors import ConnectorError, FlowSqlError

#: In the log: by writer, as an application's transactions, the number of the newest checkpoint that is in the table.
_APPLICATION: Final = "flowsql-"
_LINEAGE: Final = "flowsqlLineage"
#: How often a commit is begun anew behind one of another writer; the library itself repeats what does not conflict.
_ATTEMPTS: Final = 5
_PAUSE_S: Final = 0.1


class DeltaCommitter(Committer):
    """Adds data files to a table.

    Args:
        address: of the table.
        overwrite: the files take the place of those in the same partitions.
        at_end_only: nothing is added before all is written.
    """

    def __init__(self, address: Address, overwrite: bool, at_end_only: bool) -> None:
        self._address = address
        self._overwrite = overwrite
        self._at_end_only = at_end_only or overwrite
        self._held: list[Prepared] = []

    def commit(self, committables: list[Committable], end_of_input: bool) -> None:
        """One version of all that no version holds yet.

        Raises:
            ConnectorError: the storage refuses, or others committed each time before this.
        """
        self._held += [Prepared.decode(committable) for committable in committables]
        if self._at_end_only and not end_of_input:
            return
        new, self._held = self._held, []
        if new or self._overwrite:
            self._add(new)

    def _add(self, new: Sequence[Prepared]) -> None:
        for attempt in range(1, _ATTEMPTS + 1):
            table = self._address.load()
            with said(f"Delta table '{self._address.uri}'"):
                done = {one.run: table.transaction_version(_APPLICATION + one.run) or 0 for one in new}
                left = left_of(new, done)
                if new and not left:
                    return
                marks = [Transaction(_APPLICATION + run, number) for run, number in marks_of(left).items()]
                metadata = {_LINEAGE: left[0].lineage} if left else None
                try:
                    self._version(table, left, CommitProperties(custom_metadata=metadata, app_transactions=marks))
                    return
                except CommitFailedError as error:
                    if attempt == _ATTEMPTS:
                        raise ConnectorError(
                            "lake-conflict",
                            f"Delta table '{self._address.uri}' was changed by others each of {attempt} times before "
                            f"this job's commit: {error}",
                            retryable=True,
                        ) from error
            time.sleep(_PAUSE_S * 2**attempt)

    def _version(self, table: DeltaTable, left: Sequence[Prepared], properties: CommitProperties) -> None:
        """Commit what is left, with its marks."""
        keys = list(table.metadata().partition_columns)
        files = [told for one in left for told in one.files]
        actions: list[Any] = [
            AddAction(told["path"], told["bytes"], told["partition"], told["modified_ms"], True, told["stats"])
            for told in files
        ]
        replaces_all = self._overwrite and not keys
        if self._overwrite and keys:
            wanted = {tuple(told["partition"][key] for key in keys) for told in files}
            actions += _removed(table, keys, wanted)
        table.create_write_transaction(
            actions, "overwrite" if replaces_all else "append", table.schema(), keys, commit_properties=properties
        )

    def abort(self, committables: list[Committable]) -> None:
        """Remove the files: no checkpoint counts on them."""
        prepared = [*(Prepared.decode(committable) for committable in committables), *self._held]
        self._held = []
        if not prepared:
            return
        try:
            with said(f"Delta table '{self._address.uri}'"):
                files = self._address.files()
        except FlowSqlError:
            return  # VACUUM removes them
        for one in prepared:
            for told in one.files:
                remove(files, told["path"])


def _removed(table: DeltaTable, keys: Sequence[str], partitions: set[tuple[str | None, ...]]) -> list[RemoveAction]:
    """The files of some partitions, to be taken out."""
    there = pa.table(table.get_add_actions(flatten=True))
    values = [texts(there.column(f"partition.{key}")) for key in keys]
    paths, sizes = there.column("path").to_pylist(), there.column("size_bytes").to_pylist()
    now_ms = int(time.time() * 1000)
    made = []
    for at, path in enumerate(paths):
        partition = tuple(column[at] for column in values)
        if partition in partitions:
            told = dict(zip(keys, partition, strict=True))
            made.append(RemoveAction(path, True, now_ms, sizes[at], told))
    return made
