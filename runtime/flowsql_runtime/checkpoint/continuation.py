"""What is kept of a job beyond its process, so that the next process goes on where the last one was.

The record is written before anything becomes visible that it does not know of: before the first commit, before the
commits of a savepoint that ends the job, and after the last commit. Whatever ends the process, the next one finds the
newest complete snapshot, or is refused with the reason.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

from flowsql_core.config import Configuration
from flowsql_core.element import SnapshotKind
from flowsql_core.errors import BindError, ConnectorError, FlowSqlError
from flowsql_runtime.checkpoint.manifest import CorruptSnapshotError, Manifest, decode_manifest
from flowsql_runtime.checkpoint.settings import CREATE_SUBDIRECTORY, RETENTION, Retention
from flowsql_runtime.checkpoint.storage import (
    CHECKPOINT_PREFIX,
    METADATA,
    SnapshotFolder,
    open_folder,
    open_storage,
)

#: Where checkpoints in the memory of a process are.
MEMORY: Final = ""
#: Number of a snapshot that a job started from and did not write: all of its own are newer.
FOREIGN: Final = -1
_NONE: Final = -2


@dataclass(frozen=True, slots=True)
class JobRecord:
    """What is known of a job.

    Attributes:
        job_id: The same in all its processes.
        folders: Where its checkpoints are, as paths or URIs, the newest last; ``MEMORY``: of a process.
        committed: Something of it became visible, or may have.
        savepoint: Path of its newest savepoint, or of what it started from.
        savepoint_id: Number of that snapshot among its checkpoints.
        stops: The savepoint committed what it covers, as one does that ends the job.
        stopped: The job was stopped with that savepoint and has not started since.
        finished: The job ran to its end.
        lost: Why nothing is left to go on from, though something became visible.
    """

    job_id: str
    folders: tuple[str, ...] = ()
    committed: bool = False
    savepoint: str = ""
    savepoint_id: int = 0
    stops: bool = False
    stopped: bool = False
    finished: bool = False
    lost: str = ""

    def form(self) -> dict[str, Any]:
        """The record as JSON takes it."""
        return asdict(self)

    @staticmethod
    def of(form: Mapping[str, Any]) -> JobRecord:
        """The inverse of :meth:`form`. Raises TypeError, KeyError for another form."""
        return JobRecord(**{**form, "folders": tuple(form["folders"])})


class Continuation:
    """A job that goes on from process to process. Any thread.

    Args:
        record: what is known so far.
        save: makes a record durable; when it returns, the record survives the process.
        start_over: what starts the job from its beginning, for hints.
        belongs: what holds the job, for messages: ``'folder'`` or ``project node``.
    """

    def __init__(self, record: JobRecord, save: Callable[[JobRecord], None], *, start_over: str, belongs: str) -> None:
        self._record = record
        self._save = save
        self._start_over = start_over
        self._belongs = belongs
        self._lock = threading.Lock()
        #: Whether this process runs the job.
        self.runs = False

    @property
    def job_id(self) -> str:
        """Of the job, in all its processes."""
        return self._record.job_id

    @property
    def finished(self) -> bool:
        """Whether the job ran to its end."""
        return self._record.finished

    @property
    def ran_before(self) -> bool:
        """Whether a process began to run the job."""
        return bool(self._record.folders)

    def _note(self, record: JobRecord) -> None:
        """With the lock."""
        if record != self._record:
            self._save(record)
            self._record = record

    # -- what the job tells

    def begin(self, location: str) -> None:
        """A process runs the job; its checkpoints go to ``location``."""
        self.runs = True
        with self._lock:
            folders = (*(each for each in self._record.folders if each != location), location)
            self._note(replace(self._record, folders=folders, stopped=False))

    def before_commit(self, kind: SnapshotKind, number: int, path: str) -> None:
        """A snapshot is complete, and nothing of it is committed yet."""
        with self._lock:
            record = self._record
            if kind.is_savepoint:
                stops = kind.stops
                record = replace(record, savepoint=path, savepoint_id=number, stops=stops, stopped=stops)
            if kind is not SnapshotKind.SAVEPOINT:
                record = replace(record, committed=True)
            self._note(record)

    def finish(self) -> None:
        """All results are visible."""
        with self._lock:
            self._note(replace(self._record, finished=True))

    def ends(self, configuration: Configuration, *, failed: bool) -> Retention:
        """The job was cancelled, or it failed: what becomes of its checkpoints.

        They stay, unless the user says otherwise; then the record says that they are gone.
        """
        told = configuration.text(RETENTION.key)
        retention = Retention.RETAIN if told is None else configuration.get(RETENTION)
        if retention is Retention.RETAIN or (retention is Retention.DELETE and failed):
            return Retention.RETAIN
        with self._lock:
            if self._record.committed:
                what = "failed" if failed else "was cancelled"
                why = f"it {what}, and its checkpoints were removed, as '{RETENTION.key}' = '{told}' says"
                self._note(replace(self._record, lost=why))
        return Retention.NONE

    def over(self) -> None:
        """This process runs the job no more."""
        self.runs = False

    # -- what the job starts from

    def newest(self, settings: Mapping[str, str]) -> SnapshotFolder | None:
        """The newest complete snapshot; None where the job starts from its beginning.

        Raises:
            BindError: there was one, and it is gone; or an option keeps jobs from having folders of their own.
            ConnectorError: the storage cannot be reached.
        """
        check_resumable(Configuration(values=dict(settings)))
        record = self._record
        if record.lost:
            raise self._refused(record.lost)
        found: list[tuple[int, SnapshotFolder]] = []
        for location in record.folders:
            if location != MEMORY:
                storage = open_storage(location, settings=settings)
                found += [(number, storage.folder(name)) for number, name in _checkpoints(storage.snapshots())]
        newest: SnapshotFolder | None
        number, newest = max(found, key=lambda one: one[0], default=(_NONE, None))
        if record.savepoint and record.savepoint_id > number:
            folder = open_folder(record.savepoint, settings)
            if _exists(folder):
                return folder
            if record.stops:
                raise self._refused(f"its savepoint '{record.savepoint}' is gone")
        if newest is None and record.committed:
            if MEMORY in record.folders:
                raise self._refused("its checkpoints were in the memory of a process that has ended")
            raise self._refused(f"its checkpoints in '{record.folders[-1]}' are gone")
        return newest

    def older(self, newest: SnapshotFolder, settings: Mapping[str, str]) -> list[tuple[SnapshotFolder, Manifest]]:
        """The job's other complete checkpoints, the oldest first; those that cannot be read are left out."""
        found = []
        for location in (each for each in self._record.folders if each != MEMORY):
            storage = open_storage(location, settings=settings)
            for number, name in _checkpoints(storage.snapshots()):
                folder = storage.folder(name)
                manifest = None if folder.path == newest.path else _manifest_of(folder)
                if manifest is not None:
                    found.append((number, folder, manifest))
        return [(folder, manifest) for _, folder, manifest in sorted(found, key=lambda one: one[0])]

    def _refused(self, why: str) -> FlowSqlError:
        return BindError(
            "cannot-go-on",
            f"The job cannot go on: {why}. From its beginning it would write once more what is visible already.",
            hint=self._start_over,
        )

    def damaged(self, error: CorruptSnapshotError, folder: SnapshotFolder) -> FlowSqlError:
        """The newest snapshot cannot be read: an older one would commit rows a second time."""
        return ConnectorError(
            error.code,
            error.message,
            hint=f"it is the newest snapshot of the job: without '{folder.path}' the job goes on from the one before, "
            "and writes once more what was committed since",
        )

    def other_query(self, error: FlowSqlError) -> FlowSqlError:
        """The snapshot does not fit the job."""
        return BindError(
            error.code,
            f"What {self._belongs} holds belongs to another query. {error.message}",
            error.at,
            hint=f"{error.hint}; {self._start_over}" if error.hint else self._start_over,
        )


def check_resumable(configuration: Configuration) -> None:
    """Refuse options under which the checkpoints of a job are not told apart from those of others.

    Raises:
        BindError: it names the option.
    """
    if not configuration.get(CREATE_SUBDIRECTORY):
        raise BindError(
            "conflicting-options",
            f"A job that goes on by itself needs a folder of its own: '{CREATE_SUBDIRECTORY.key}' is 'false'.",
            hint="leave it out",
        )


def _checkpoints(names: Iterable[str]) -> list[tuple[int, str]]:
    numbers = ((name.removeprefix(CHECKPOINT_PREFIX), name) for name in names if name.startswith(CHECKPOINT_PREFIX))
    return [(int(number), name) for number, name in numbers if number.isdigit()]


def _manifest_of(folder: SnapshotFolder) -> Manifest | None:
    try:
        return decode_manifest(folder.read(METADATA), f"{folder.path}/{METADATA}")[0]
    except ConnectorError:
        return None


def _exists(folder: SnapshotFolder) -> bool:
    try:
        folder.read(METADATA)
    except ConnectorError as error:
        if error.code == "snapshot-file-missing":
            return False
        raise
    return True
