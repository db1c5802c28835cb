"""``execution.state-recovery.path`` = ``latest``: jobs that start, or go on, by themselves from what a folder holds.

The folder is that of ``execution.checkpointing.dir``, on a disk of this machine. One process at a time has it, by a
lock that the operating system takes back however the process ends. A job is known by the tables that it writes and by
the how many-th of the process it is that writes these; DataStream programs by the names of their sinks.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import secrets
import threading
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Final

from flowsql_connectors import registry
from flowsql_core.config import RUNTIME_MODE, Configuration, RuntimeMode
from flowsql_core.errors import BindError, ConnectorError, ExecutionError
from flowsql_core.graph.job import JobGraph, OperatorNode
from flowsql_core.graph.specs import CollectSinkSpec, ScanSpec, SinkSpec
from flowsql_runtime.checkpoint.continuation import FOREIGN, Continuation, JobRecord
from flowsql_runtime.checkpoint.manifest import Manifest, decode_manifest
from flowsql_runtime.checkpoint.settings import DIRECTORY, LATEST, RECOVERY_PATH
from flowsql_runtime.checkpoint.storage import CHECKPOINT_PREFIX, METADATA, open_folder

#: The folder inside of the user's that holds records and the lock.
RECORDS: Final = ".flowsql"
_VERSION: Final = 1


def continuation_of(graph: JobGraph) -> Continuation | None:
    """How a job goes on from its last process, where its options ask for that.

    Raises:
        BindError: it cannot, or the folder belongs to other jobs.
        ExecutionError: another process has the folder.
    """
    configuration = Configuration(values=dict(graph.configuration))
    if configuration.get(RECOVERY_PATH) != LATEST:
        return None
    operators = [node for vertex in graph.vertices for node in vertex.operators]
    if any(isinstance(node.spec, CollectSinkSpec) for node in operators):
        _check_ends(operators, dict(configuration.items()))
        return None
    check_streaming(configuration)
    return ResumeFolder.hold(configuration.get(DIRECTORY)).continuation(graph)


def check_streaming(configuration: Configuration) -> None:
    """Refuse an INSERT of batch mode, which would write its rows again where it was killed.

    Raises:
        BindError: ``latest`` is asked for in batch mode.
    """
    if configuration.get(RECOVERY_PATH) == LATEST and configuration.get(RUNTIME_MODE) is RuntimeMode.BATCH:
        raise BindError(
            "batch-state",
            f"A job of batch mode keeps no state to go on from ('{RECOVERY_PATH.key}' = '{LATEST}').",
            hint="run it in streaming mode, or as a project ('flowsql run')",
        )


def _check_ends(operators: list[OperatorNode], parameters: Mapping[str, str]) -> None:
    """A query that ends begins anew each time; one that does not would show its rows once more."""
    for node in operators:
        if isinstance(node.spec, ScanSpec) and not registry.create_source(node.spec, parameters).bounded:
            raise BindError(
                "query-cannot-go-on",
                f"The rows of an endless query are shown, not committed: with '{RECOVERY_PATH.key}' = '{LATEST}' "
                "they would be shown once more.",
                hint="INSERT them INTO a table",
            )


@dataclass(frozen=True, slots=True)
class _Known:
    """A job of the folder.

    ``tables``: what it writes. ``number``: which of those that write these. ``query``: a digest of its operators.
    """

    record: JobRecord
    tables: tuple[str, ...]
    number: int
    query: str


class ResumeFolder:
    """One folder that this process has. Any thread.

    Raises:
        BindError: it is no folder of this machine.
        ExecutionError: another process has it, or a record in it is damaged.
    """

    _held: ClassVar[dict[Path, ResumeFolder]] = {}
    _holding: ClassVar = threading.Lock()

    @classmethod
    def hold(cls, location: str) -> ResumeFolder:
        """The folder at a path, which this process has from now on until it ends."""
        if not location:
            raise BindError(
                "missing-option",
                f"'{RECOVERY_PATH.key}' is '{LATEST}', and '{DIRECTORY.key}' is not set.",
                hint=f"name the folder of the checkpoints in '{DIRECTORY.key}', or use --resume DIR",
            )
        path = location.removeprefix("file://") if location.startswith("file:///") else location
        if "://" in path:
            raise BindError(
                "remote-resume-folder",
                f"'{location}' cannot be locked: jobs go on by themselves from a folder of this machine.",
                hint="name a local folder, or start from a snapshot there with -s PATH",
            )
        folder = Path(os.path.realpath(os.path.expanduser(path)))
        with cls._holding:
            if folder not in cls._held:
                cls._held[folder] = cls(folder)
            return cls._held[folder]

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._records = folder / RECORDS
        try:
            self._records.mkdir(parents=True, exist_ok=True)
            # Children that are started do not get the file, so the lock ends with this process alone.
            self._lock_file = open(self._records / "lock", "a", encoding="utf-8")  # noqa: SIM115
        except OSError as error:
            raise ConnectorError("snapshot-storage", f"Cannot write to '{folder}': {error.strerror}.") from error
        try:
            fcntl.flock(self._lock_file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self._lock_file.close()
            if not isinstance(error, BlockingIOError):
                raise ConnectorError("snapshot-storage", f"Cannot lock '{folder}': {error.strerror}.") from error
            raise ExecutionError(
                "already-runs",
                f"Another process goes on from '{folder}'.",
                hint="two would write each row twice; wait until it has ended, or give this one a folder of its own",
            ) from None
        self._using = threading.Lock()
        self._known = {one.record.job_id: one for one in self._read()}
        #: Jobs that this process has begun, and how far they are.
        self._begun: dict[str, Continuation] = {}

    def release(self) -> None:
        """Let go of the folder, in which this process runs nothing any more."""
        with self._holding:
            self._held.pop(self._folder, None)
        self._lock_file.close()

    # -- records

    def _read(self) -> list[_Known]:
        found = []
        for path in sorted(self._records.glob("*.json")):
            try:
                form = json.loads(path.read_text(encoding="utf-8"))
                if form["version"] != _VERSION:
                    raise ExecutionError(
                        "resume-record", f"'{path}' has version {form['version']}; this FlowSQL reads {_VERSION}."
                    )
                record = JobRecord.of(form["job"])
                found.append(_Known(record, tuple(form["tables"]), form["number"], form["query"]))
            except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
                raise ExecutionError(
                    "resume-record",
                    f"'{path}' is damaged: {error}",
                    hint="it says how far a job is: restore it, or start from a snapshot with -s PATH",
                ) from None
        return found

    def _save(self, known: _Known) -> None:
        form: dict[str, Any] = {
            "version": _VERSION,
            "tables": list(known.tables),
            "number": known.number,
            "query": known.query,
            "job": known.record.form(),
        }
        replace_durably(self._records / f"{known.record.job_id}.json", json.dumps(form, indent=1))
        self._known[known.record.job_id] = known

    # -- jobs

    def continuation(self, graph: JobGraph) -> Continuation:
        """How a job goes on, that is about to start.

        Raises:
            BindError: what the folder holds belongs to other jobs.
        """
        tables, query = _tables_of(graph), _digest_of(graph)
        with self._using:
            # One that was stopped, cancelled or failed here goes on; one that runs or ended is another job.
            mine = [one for one in self._known.values() if one.tables == tables]
            free = sorted((one for one in mine if self._is_free(one)), key=lambda one: one.number)
            known = next((one for one in free if one.query == query), None) or next(iter(free), None)
            if known is None:
                known = self._new(tables, query, len(mine) + 1)
            elif known.record.finished and known.query != query:
                raise self._other(known, "has ended, and its query was another one")
            started = replace(known, query=query)

            def save(record: JobRecord) -> None:
                self._save(replace(started, record=record))

            hint = f"it starts from its beginning in an empty folder, or when '{self._folder}' was removed"
            found = Continuation(known.record, save, start_over=hint, belongs=f"'{self._folder}'")
            self._begun[known.record.job_id] = found
            return found

    def _is_free(self, known: _Known) -> bool:
        begun = self._begun.get(known.record.job_id)
        return begun is None or (not begun.runs and not begun.finished)

    def _new(self, tables: tuple[str, ...], query: str, number: int) -> _Known:
        others = [one for one in self._known.values() if one.tables != tables and one.record.job_id not in self._begun]
        if others:
            raise self._other(others[0], "has not been started by this process")
        started_from = self._foreign(tables)
        record = JobRecord(secrets.token_hex(16))
        if started_from is not None:
            record = replace(record, savepoint=started_from, savepoint_id=FOREIGN, stops=True, committed=True)
        return _Known(record, tables, number, query)

    def _other(self, known: _Known, why: str) -> BindError:
        written = ", ".join(known.tables)
        return BindError(
            "other-job",
            f"What '{self._folder}' holds belongs to another query: the job that writes {written} {why}.",
            hint="give this one a folder of its own; new INSERTs of a script come after those that were there; "
            f"'{self._records / known.record.job_id}.json' and '{self._folder / known.record.job_id}' removed forget "
            "that job",
        )

    def _foreign(self, tables: tuple[str, ...]) -> str | None:
        """The newest snapshot in the folder that a job wrote which does not go on by itself.

        Raises:
            BindError: there are some, and all write other tables.
        """
        found: list[tuple[int, str, Manifest]] = []
        patterns = (f"*/{CHECKPOINT_PREFIX}*/{METADATA}", f"{CHECKPOINT_PREFIX}*/{METADATA}", f"savepoint-*/{METADATA}")
        for pattern in patterns:
            for path in self._folder.glob(pattern):
                folder = open_folder(str(path.parent))
                manifest, _ = decode_manifest(folder.read(METADATA), str(path))
                if manifest.job_id not in self._known:
                    found.append((manifest.timestamp_ms, folder.path, manifest))
        mine = [one for one in found if _tables_in(one[2]) == tables]
        if mine:
            return max(mine, key=lambda one: one[0])[1]
        if found:
            _, other, manifest = max(found, key=lambda one: one[0])
            raise BindError(
                "other-job",
                f"What '{self._folder}' holds belongs to another query: '{other}' is of '{manifest.job_name}', which "
                f"writes {', '.join(_tables_in(manifest)) or 'other sinks'}.",
                hint="give this one a folder of its own",
            )
        return None


def replace_durably(path: Path, text: str) -> None:
    """Let a file have a new content: after a crash it has the old one or the new one, whole."""
    new = path.with_name(f"{path.name}.new")
    with new.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _tables_of(graph: JobGraph) -> tuple[str, ...]:
    """What a job writes, sorted; of DataStream sinks their operators."""
    nodes = [node for vertex in graph.vertices for node in vertex.operators]
    return tuple(sorted(_sink_name(node.name) for node in nodes if _is_sink(graph, node)))


def _tables_in(manifest: Manifest) -> tuple[str, ...]:
    return tuple(sorted(_sink_name(one.name) for one in manifest.operators.values() if one.kind == "Sink"))


def _is_sink(graph: JobGraph, node: OperatorNode) -> bool:
    if isinstance(node.spec, SinkSpec):
        return True
    read = {edge.source for vertex in graph.vertices for edge in vertex.chain} | {edge.source for edge in graph.edges}
    return node.id not in read


def _sink_name(name: str) -> str:
    """``Sink(table=[c.d.t], fields=[a, b])`` is ``c.d.t``: columns may change."""
    _, mark, rest = name.partition("table=[")
    return rest.partition("]")[0] if mark else name


def _digest_of(graph: JobGraph) -> str:
    nodes = sorted(f"{node.uid} {node.name}" for vertex in graph.vertices for node in vertex.operators)
    return hashlib.sha256("\0".join(nodes).encode()).hexdigest()[:32]
