"""What a project keeps of its runs, in ``.flowsql``: what each node was when it last ran to its end, or was stopped."""

from __future__ import annotations

import contextlib
import fcntl
import json
import threading
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from secrets import token_hex
from typing import Any, Final

from flowsql.pipeline.folder import ProjectFolder
from flowsql.pipeline.project import Node
from flowsql_core.errors import ExecutionError
from flowsql_runtime.checkpoint.continuation import FOREIGN, Continuation, JobRecord
from flowsql_runtime.checkpoint.resume_folder import replace_durably

#: What the runner keeps of a project, inside of it.
OWN_FOLDER: Final = ".flowsql"
_VERSION = 1


@dataclass(frozen=True, slots=True)
class Done:
    """A node that ran to its end.

    ``parts``: fingerprints of what its rows hang on. ``run``: of the run, made anew each time. ``before``: the runs of
    the nodes before it, by key. ``rows``: how many it wrote.
    """

    parts: Mapping[str, str]
    run: str
    rows: int
    before: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Started:
    """A streaming job that has not ended: what it hangs on, and what its next process goes on from."""

    parts: Mapping[str, str]
    job: JobRecord


class Kept:
    """The record of a project and a profile. Every change is on disk when the call returns, whole or not at all.

    Any thread: jobs note how far they are.
    """

    def __init__(self, opened: ProjectFolder) -> None:
        self._path = opened.folder / OWN_FOLDER / f"state{_suffix(opened)}.json"
        self._lock = threading.RLock()
        self.done: dict[str, Done] = {}
        self.jobs: dict[str, Started] = {}
        with contextlib.suppress(FileNotFoundError):
            try:
                form = json.loads(self._path.read_text(encoding="utf-8"))
                if form["version"] != _VERSION:
                    raise ExecutionError(
                        "pipeline-state",
                        f"'{self._path}' has version {form['version']}; this FlowSQL reads {_VERSION}.",
                        hint="run the project with the version that wrote it",
                    )
                self._read(form)
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                raise ExecutionError(
                    "pipeline-state",
                    f"'{self._path}' is damaged: {error}",
                    hint="restore it; without it everything runs again from the beginning, and streaming jobs append",
                ) from None

    def _read(self, form: Mapping[str, Any]) -> None:
        self.done = {key: Done(**each) for key, each in form["nodes"].items()}
        for key, each in form.get("jobs", {}).items():
            started = Started(each["parts"], JobRecord.of(each["job"]))
            if started.job.finished:
                # The process died before it could say so.
                self.done[key] = Done(started.parts, token_hex(8), 0)
            else:
                self.jobs[key] = started
        for key, each in form.get("stopped", {}).items():
            # An older version knew savepoints alone.
            if key not in self.jobs and key not in form.get("jobs", {}):
                job = JobRecord(
                    token_hex(16), committed=True, savepoint=each["savepoint"], savepoint_id=FOREIGN,
                    stops=True, stopped=True,
                )  # fmt: skip
                self.jobs[key] = Started(each["parts"], job)

    @property
    def keys(self) -> list[str]:
        """Of all nodes that are known."""
        return sorted({*self.done, *self.jobs})

    def keys_of(self, nodes: Mapping[Node, str], parts: Mapping[Node, Mapping[str, str]]) -> dict[Node, str]:
        """What nodes are known by, where several write the same tables: an equal statement is the same node.

        Args:
            nodes: with the keys by their order.
            parts: fingerprints of the nodes.
        """
        known: dict[str, Mapping[str, str]] = {key: each.parts for key, each in self.done.items()}
        known |= {key: each.parts for key, each in self.jobs.items()}
        found: dict[Node, str] = {}
        free = set(nodes.values()) | set(known)
        for node, key in nodes.items():
            tables = key.rpartition("#")[0]
            same = (
                one
                for one in sorted(free, key=_place)
                if one.rpartition("#")[0] == tables
                and one in known
                and known[one].get("statement") == parts[node]["statement"]
            )
            chosen = next(same, None)
            if chosen is not None:
                found[node] = chosen
                free.discard(chosen)
        for node, key in nodes.items():
            if node not in found:
                tables = key.rpartition("#")[0]
                found[node] = min((one for one in free if one.rpartition("#")[0] == tables), key=_place)
                free.discard(found[node])
        return {node: found[node] for node in nodes}

    def forget(self, key: str) -> None:
        """The node begins: until it has ended, its table holds nobody knows what."""
        with self._lock:
            if self.done.pop(key, None) is not None:
                self._save()

    def note(self, key: str, done: Done) -> None:
        """The node ended well."""
        with self._lock:
            self.done[key] = done
            self.jobs.pop(key, None)
            self._save()

    def continuation(self, key: str, parts: Mapping[str, str] | None = None) -> Continuation:
        """How the job of a node goes on.

        Args:
            key: of the node.
            parts: what a job hangs on that is about to start; None: nothing starts, and nothing is noted.
        """
        started = self.jobs.get(key)
        record = JobRecord(token_hex(16)) if started is None else started.job

        def save(changed: JobRecord) -> None:
            assert parts is not None
            with self._lock:
                self.jobs[key] = Started(parts, changed)
                self._save()

        hint = "--full starts it from its beginning"
        return Continuation(record, save, start_over=hint, belongs="the record of this node")

    def start_over(self, key: str) -> None:
        """The job of the node does not go on from where it was."""
        with self._lock:
            if self.jobs.pop(key, None) is not None:
                self._save()

    def keep_only(self, keys: set[str]) -> None:
        """Nodes that are no more are forgotten, but for streaming jobs: should one come back, it goes on."""
        with self._lock:
            if not keys.issuperset(self.done):
                self.done = {key: each for key, each in self.done.items() if key in keys}
                self._save()

    def _save(self) -> None:
        self._path.parent.mkdir(exist_ok=True)
        form = {
            "version": _VERSION,
            "nodes": {key: asdict(each) for key, each in self.done.items()},
            "jobs": {key: {"parts": each.parts, "job": each.job.form()} for key, each in self.jobs.items()},
            "stopped": {
                key: {"parts": each.parts, "savepoint": each.job.savepoint}
                for key, each in self.jobs.items()
                if each.job.stopped
            },
        }
        replace_durably(self._path, json.dumps(form, indent=1))


def _place(key: str) -> int:
    return int(key.rpartition("#")[2])


def _suffix(opened: ProjectFolder) -> str:
    """Profiles write other tables: what is known of one says nothing of another."""
    return "" if opened.profile is None else f"-{opened.profile.name}"


@contextlib.contextmanager
def alone(opened: ProjectFolder) -> Iterator[None]:
    """Hold the project, with its profile, for one run.

    Raises:
        ExecutionError: another process runs it.
    """
    folder = opened.folder / OWN_FOLDER
    folder.mkdir(exist_ok=True)
    with (folder / f"lock{_suffix(opened)}").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ExecutionError("pipeline-runs", f"Another process runs the project '{opened.folder}'.") from None
        yield
