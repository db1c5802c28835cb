"""One snapshot, part by part: a part is read, and checked against its digest, when somebody wants it.

Restoring checks every byte first (``checkpoint/recovery.py``); a query reads what it needs, also of a checkpoint that
a running job may remove meanwhile.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from flowsql_core.errors import BindError, ConnectorError, did_you_mean
from flowsql_runtime.checkpoint.encode import OperatorParts, decode_operator
from flowsql_runtime.checkpoint.manifest import CorruptSnapshotError, OperatorState, Part, decode_manifest, digest_of
from flowsql_runtime.checkpoint.recovery import find_snapshot
from flowsql_runtime.checkpoint.storage import METADATA, SnapshotFolder, open_folder
from flowsql_runtime.checkpoint.stored_native import StoredNative


class SnapshotParts:
    """The parts of one snapshot. One thread at a time.

    Raises:
        ConnectorError: ``snapshot-file-missing`` without ``_metadata``; CorruptSnapshotError where it is damaged.
    """

    def __init__(self, folder: SnapshotFolder) -> None:
        self._folder = folder
        self.manifest, self._inline = decode_manifest(folder.read(METADATA), f"{folder.path}/{METADATA}")
        self._file: tuple[str, memoryview] = ("", self._inline)

    @property
    def path(self) -> str:
        """The snapshot's own folder."""
        return self._folder.path

    def read(self, part: Part) -> memoryview:
        """The bytes of a part.

        Raises:
            CorruptSnapshotError: they are not those that were written.
            ConnectorError: the snapshot is not there any more.
        """
        data = self._whole(part.file)[part.offset : part.offset + part.length]
        path = f"{self.path}/{part.file or METADATA}"
        if len(data) != part.length:
            raise CorruptSnapshotError(path, f"is cut: {part.length} bytes are missing from byte {part.offset} on")
        if digest_of(data) != part.digest:
            raise CorruptSnapshotError(
                path, f"is damaged: bytes {part.offset} to {part.offset + part.length} have another checksum"
            )
        return data

    def schema(self, part: Part) -> Any:
        """Arrow schema of a part's stream."""
        return pa.ipc.open_stream(pa.py_buffer(self.read(part))).schema

    def operator_parts(self, operator: OperatorState) -> list[tuple[int, OperatorParts]]:
        """State without keys, by subtask."""
        return [
            (one.subtask, decode_operator(self.read(one.operator)))
            for one in operator.subtasks
            if one.operator is not None
        ]

    def natives(self, operator: OperatorState) -> list[tuple[int, StoredNative]]:
        """State that is in files of a backend, by subtask."""
        return [
            (one.subtask, StoredNative(self._folder, one.native, self.read))
            for one in operator.subtasks
            if one.native is not None
        ]

    def native_tables(self, native: StoredNative, key_groups: range) -> Iterator[tuple[str, Any]]:
        """The rows of some key groups in such files: names of states and pieces of their tables.

        Raises:
            CorruptSnapshotError: a file is damaged or missing.
            ConnectorError: the snapshot is not there any more.
        """
        try:
            native.check()
            yield from native.tables(key_groups)
        except CorruptSnapshotError:
            if not self._is_there():
                raise _gone(self.path) from None
            raise

    def find(self, named: str) -> OperatorState:
        """The operator with an id, or with a name that only one has.

        Raises:
            BindError: there is none, or there are several.
        """
        operators = self.manifest.operators
        if named in operators:
            return operators[named]
        found = [one for one in operators.values() if one.name == named]
        if len(found) == 1:
            return found[0]
        show = f"SHOW OPERATORS IN '{self.path}' lists them"
        if found:
            ids = ", ".join(one.uid for one in found)
            raise BindError("ambiguous-operator", f"Operators {ids} of '{self.path}' are named '{named}'.", hint=show)
        near = did_you_mean(named, [*operators, *(one.name for one in operators.values())])
        raise BindError(
            "operator-not-found", f"The snapshot '{self.path}' has no operator '{named}'.", hint=near or show
        )

    def _whole(self, name: str) -> memoryview:
        if not name:
            return self._inline
        if self._file[0] != name:
            try:
                self._file = (name, self._folder.read(name))
            except ConnectorError as error:
                if error.code != "snapshot-file-missing":
                    raise
                if not self._is_there():
                    raise _gone(self.path) from error
                raise CorruptSnapshotError(f"{self.path}/{name}", "is missing") from error
        return self._file[1]

    def _is_there(self) -> bool:
        try:
            self._folder.read(METADATA)
        except ConnectorError:
            return False
        return True


def find_parts(location: str) -> SnapshotParts:
    """The snapshot at a path: its own folder, or a folder with several, of which the newest readable one is taken.

    Raises:
        ConnectorError: there is no such folder or no snapshot in it; CorruptSnapshotError: none can be read.
    """
    try:
        return find_snapshot(location, SnapshotParts)
    except ConnectorError as error:
        path = os.path.abspath(os.path.expanduser(location.removeprefix("file:")))
        if error.code != "no-snapshot" or "://" in location or os.path.isdir(path):
            raise
        raise ConnectorError(
            "no-snapshot", f"There is no folder '{location}'.", hint="name the folder of a checkpoint or savepoint"
        ) from error


def reopen_parts(path: str) -> SnapshotParts:
    """A snapshot that was there when the query was planned.

    Raises:
        ConnectorError: it is not there any more.
    """
    try:
        return SnapshotParts(open_folder(path))
    except ConnectorError as error:
        if error.code != "snapshot-file-missing":
            raise
        raise _gone(path) from error


def _gone(path: str) -> ConnectorError:
    return ConnectorError(
        "snapshot-gone",
        f"The snapshot '{path}' was removed before it was read.",
        hint="a job removes its older checkpoints: raise 'execution.checkpointing.num-retained', or read a savepoint",
    )
