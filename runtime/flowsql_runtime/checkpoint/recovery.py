"""Starting from a snapshot: find it, check it byte by byte, deal it out to the subtasks of the new job."""

from __future__ import annotations

import logging
from collections.abc import Callable, Container, Mapping, Sequence
from typing import Any, TypeVar

import pyarrow as pa

from flowsql_core.errors import ConnectorError
from flowsql_runtime.checkpoint.completed import CompletedCheckpoint
from flowsql_runtime.checkpoint.encode import OperatorParts, decode_in_flight, decode_keyed, decode_operator
from flowsql_runtime.checkpoint.evolution import Change, OperatorMove, TableMove
from flowsql_runtime.checkpoint.in_flight import dealt_out, rows_of
from flowsql_runtime.checkpoint.manifest import (
    CorruptSnapshotError,
    NativeState,
    OperatorState,
    Part,
    decode_manifest,
    digest_of,
    parts_of,
)
from flowsql_runtime.checkpoint.storage import METADATA, SnapshotFolder, open_folder, open_storage
from flowsql_runtime.checkpoint.stored_native import StoredNative, check_shared
from flowsql_runtime.network.in_flight import InFlight
from flowsql_runtime.operators.base import OperatorSnapshot
from flowsql_runtime.task.restore import RestoredTask, TaskPlace

logger = logging.getLogger(__name__)


class SnapshotReader:
    """One snapshot's state. Every byte that is wanted is checked against its digest when the reader is made.

    Args:
        folder: of the snapshot.
        wanted: by operator uid the subtasks that will take back their own state, see ``TaskPlace.own``; None: whoever
            takes whatever.
        objects: whether rows on their way may be Python objects: loading those runs code.

    Raises:
        CorruptSnapshotError: a file is missing, cut or changed; it is named.
    """

    def __init__(
        self, folder: SnapshotFolder, wanted: Mapping[str, Container[int]] | None = None, objects: bool = False
    ) -> None:
        self.folder = folder
        self.objects = objects
        data = folder.read(METADATA)
        self.manifest, self._inline = decode_manifest(data, f"{folder.path}/{METADATA}")
        self._files: dict[str, memoryview] = {}
        natives: list[NativeState] = []
        for operator in self.manifest.operators.values():
            subtasks = None if wanted is None else wanted.get(operator.uid, ())
            for state in operator.subtasks:
                if subtasks is None or state.subtask in subtasks:
                    for part in parts_of(state):
                        self._check(part)
                    if state.native is not None:
                        natives.append(state.native)
                elif subtasks and state.operator is not None:
                    # Union and broadcast state is everyone's.
                    self._check(state.operator)
        check_shared(folder, natives)
        self._parts: dict[tuple[str, int], OperatorParts] = {}
        self._moves: dict[str, OperatorMove] = {}

    def _check(self, part: Part) -> None:
        path = f"{self.folder.path}/{part.file or METADATA}"
        data = self._bytes(part)
        if len(data) != part.length:
            raise CorruptSnapshotError(path, f"is cut: {part.length} bytes are missing from byte {part.offset} on")
        if digest_of(data) != part.digest:
            raise CorruptSnapshotError(
                path, f"is damaged: bytes {part.offset} to {part.offset + part.length} have another checksum"
            )

    def _bytes(self, part: Part) -> memoryview:
        if not part.file:
            return self._inline[part.offset : part.offset + part.length]
        if part.file not in self._files:
            try:
                self._files[part.file] = self.folder.read(part.file)
            except ConnectorError as error:
                if error.code == "snapshot-file-missing":
                    raise CorruptSnapshotError(f"{self.folder.path}/{part.file}", "is missing") from error
                raise
        return self._files[part.file][part.offset : part.offset + part.length]

    def evolve(self, changes: Sequence[Change]) -> None:
        """From now on hand state out as a changed query takes it (``evolution.compare``)."""
        self._moves = {one.uid: one.move for one in changes}

    # -- RestoredState

    def finished(self, uids: Sequence[str], subtask: int | None = None) -> bool:
        """Whether all of these operators had ended."""
        found = [self.manifest.operators.get(uid) for uid in uids]
        return all(
            one is not None and (one.is_finished if subtask is None else subtask in one.finished) for one in found
        )

    def max_parallelism(self, uid: str) -> int | None:
        """Of the operator's state."""
        found = self.manifest.operators.get(uid)
        return None if found is None else found.max_parallelism

    def operator_lists(self, uid: str, name: str, subtask: int | None = None) -> list[bytes] | None:
        """A list state of one old subtask, or over all."""
        found = self.manifest.operators.get(uid)
        if found is None:
            return None
        return [
            element
            for owner, parts in self._operator_parts(found)
            if subtask is None or owner == subtask
            for element in parts.lists.get(name, ())
        ]

    def task(self, uids: Sequence[str], place: TaskPlace) -> RestoredTask:
        """Keyed state of its key groups, the rest whole; lists by element, and watermarks as the minimum, or its own.

        Raises:
            BindError: rows that were on their way cannot be dealt out to another parallelism.
        """
        found = {}
        for uid in uids:
            state = self.manifest.operators.get(uid)
            if state is not None and state.subtasks and not self._starts_empty(uid):
                found[uid] = self._snapshot(state, place)
        head = None if self._starts_empty(uids[0]) else self.manifest.operators.get(uids[0])
        return RestoredTask(found, None if head is None else self._in_flight(head, place))

    def _starts_empty(self, uid: str) -> bool:
        move = self._moves.get(uid)
        return move is not None and move.starts_empty

    def _in_flight(self, head: OperatorState, place: TaskPlace) -> InFlight | None:
        parts = {one.subtask: one.in_flight for one in head.subtasks if one.in_flight is not None}
        if not parts:
            return None
        if place.parallelism == head.parallelism:
            mine = parts.get(place.subtask)
            if mine is None:
                return None
            found = decode_in_flight(self._bytes(mine), self.objects)
            # Only with its own splits is each producer where it was.
            return found if place.own else rows_of(found)
        whole = [decode_in_flight(self._bytes(part), self.objects) for _, part in sorted(parts.items())]
        return dealt_out([one for found in whole for one in found.elements], place, head.name)

    def _snapshot(self, state: OperatorState, place: TaskPlace) -> OperatorSnapshot:
        key_groups = place.key_groups
        move = self._moves.get(state.uid)
        tables = None if move is None else move.tables
        streams: dict[str, list[Any]] = {}
        for one in state.subtasks:
            if place.own and one.subtask != place.subtask:
                continue
            for name, parts in one.keyed.items():
                if tables is not None and name not in tables:
                    continue
                whole = tables is not None and tables[name].regroups
                wanted = streams.setdefault(name, [])
                wanted += [self._bytes(part) for part in parts if whole or _overlaps(part, key_groups)]
        keyed = {}
        for name, found in streams.items():
            if tables is None:
                keyed[name] = decode_keyed(found, key_groups)
                continue
            # Where keys stand in another order, a row may come from any key group; its operator takes its own.
            table = decode_keyed(found, range(state.max_parallelism) if tables[name].regroups else key_groups)
            keyed[tables[name].target] = None if table is None else tables[name].apply(table, state.max_parallelism)
        lists: dict[str, list[bytes]] = {}
        union: dict[str, list[bytes]] = {}
        broadcast: dict[str, bytes] = {}
        for owner, old in self._operator_parts(state):
            for name, elements in old.lists.items():
                if owner == place.subtask or not place.own:
                    lists.setdefault(name, []).extend(elements)
            for name, elements in old.union.items():
                union.setdefault(name, []).extend(elements)
            broadcast |= old.broadcast
        native: list[StoredNative] = []
        for one in state.subtasks:
            if one.native is None or (place.own and one.subtask != place.subtask):
                continue
            source = StoredNative(self.folder, one.native, self._bytes)
            moved = move is not None and not move.keeps_all(state.layout)
            regroups = moved and any(table.regroups for table in (tables or {}).values())
            first, last = one.native.groups
            if not regroups and (first >= key_groups.stop or last < key_groups.start):
                continue
            if moved:
                assert tables is not None
                _add_moved(keyed, source, tables, range(state.max_parallelism) if regroups else key_groups, state)
            else:
                native.append(source)
        levels = [
            one.watermarks_ms
            for one in state.subtasks
            if one.watermarks_ms and (one.subtask == place.subtask or not place.own)
        ]
        first, step = (0, 1) if place.own else (place.subtask, place.parallelism)
        return OperatorSnapshot(
            keyed={name: table for name, table in keyed.items() if table is not None},
            lists={name: tuple(elements[first::step]) for name, elements in lists.items()},
            union={name: tuple(elements) for name, elements in union.items()},
            broadcast=broadcast,
            watermarks_ms=tuple(min(column) for column in zip(*levels, strict=True)),
            native=tuple(native),
        )

    def _operator_parts(self, state: OperatorState) -> list[tuple[int, OperatorParts]]:
        """By subtask what stands beside its keyed state."""
        found = []
        for one in state.subtasks:
            if one.operator is None:
                continue
            key = (state.uid, one.subtask)
            if key not in self._parts:
                self._parts[key] = decode_operator(self._bytes(one.operator))
            found.append((one.subtask, self._parts[key]))
        return found


def _add_moved(
    keyed: dict[str, Any],
    source: StoredNative,
    tables: Mapping[str, TableMove],
    key_groups: range,
    state: OperatorState,
) -> None:
    """Add what files hold of some key groups to the tables of a changed query."""
    pieces: dict[str, list[Any]] = {}
    for name, table in source.tables(key_groups):
        if name in tables:
            pieces.setdefault(tables[name].target, []).append(tables[name].apply(table, state.max_parallelism))
    for target, found in pieces.items():
        before = [] if keyed.get(target) is None else [keyed[target]]
        keyed[target] = pa.concat_tables([*before, *found])


def _overlaps(part: Part, key_groups: range) -> bool:
    return part.groups is None or (part.groups[0] < key_groups.stop and part.groups[1] >= key_groups.start)


def open_snapshot(location: str, settings: Mapping[str, str] | None = None) -> SnapshotReader:
    """The snapshot at a path: its own folder, or a folder with several, of which the newest readable one is taken.

    Raises:
        ConnectorError: there is none, or none can be read (:class:`CorruptSnapshotError` names the file).
    """
    return find_snapshot(location, SnapshotReader, settings)


R = TypeVar("R")


def find_snapshot(location: str, read: Callable[[SnapshotFolder], R], settings: Mapping[str, str] | None = None) -> R:
    """What ``read`` makes of the snapshot at a path; see :func:`open_snapshot`.

    Args:
        location: a path or URI.
        settings: a job's configuration, for the ``s3.*`` in it.
        read: raises ``snapshot-file-missing`` where a folder has no ``_metadata``, CorruptSnapshotError for a bad one.
    """
    folder = open_folder(location, settings)
    try:
        return read(folder)
    except ConnectorError as error:
        if error.code != "snapshot-file-missing":
            raise
        missing = error
    storage = open_storage(location, settings=settings)
    damaged: ConnectorError | None = None
    for name in reversed(storage.snapshots()):
        try:
            return read(storage.folder(name))
        except CorruptSnapshotError as error:
            logger.warning("%s The next older snapshot is tried.", error)
            damaged = damaged or error
        except ConnectorError as error:
            # A running job removed it after the folders were listed.
            if error.code != "snapshot-file-missing":
                raise
    if damaged is not None:
        raise damaged
    raise ConnectorError(
        "no-snapshot",
        f"There is no checkpoint or savepoint in '{location}'.",
        hint="name a folder with a '_metadata' file, or one that holds such folders",
    ) from missing


def newest_readable(
    found: Sequence[CompletedCheckpoint], objects: bool = False
) -> tuple[CompletedCheckpoint, SnapshotReader] | None:
    """The first of these (newest first) that is whole; damaged ones are named in the log. ``objects``: as the reader's.

    Raises:
        ConnectorError: the storage cannot be reached, which says nothing about what is there.
    """
    for one in found:
        try:
            return one, SnapshotReader(one.folder, objects=objects)
        except ConnectorError as error:
            if not isinstance(error, CorruptSnapshotError) and error.code != "snapshot-file-missing":
                raise
            logger.warning("%s The next older checkpoint is used.", error)
    return None
