"""What a project keeps of its runs, in ``.flowsql``: what each node was when it last ran to its end, or was stopped."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Final

from flowsql.pipeline.folder import ProjectFolder
from flowsql_core.errors import ExecutionError

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
class Stopped:
    """A streaming job that was stopped: what it hung on, and the savepoint from which it goes on."""

    parts: Mapping[str, str]
    savepoint: str


class Kept:
    """The record of a project and a profile. Every change is on disk when the call returns, whole or not at all."""

    def __init__(self, opened: ProjectFolder) -> None:
        self._path = opened.folder / OWN_FOLDER / f"state{_suffix(opened)}.json"
        self.done: dict[str, Done] = {}
        self.stopped: dict[str, Stopped] = {}
        with contextlib.suppress(FileNotFoundError):
            try:
                form = json.loads(self._path.read_text(encoding="utf-8"))
                if form["version"] == _VERSION:
                    self.done = {key: Done(**each) for key, each in form["nodes"].items()}
                    self.stopped = {key: Stopped(**each) for key, each in form.get("stopped", {}).items()}
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                raise ExecutionError(
                    "pipeline-state", f"'{self._path}' is damaged: {error}", hint="remove it: everything runs again"
                ) from None

    @property
    def keys(self) -> list[str]:
        """Of all nodes that are known."""
        return sorted({*self.done, *self.stopped})

    def forget(self, key: str) -> None:
        """The node begins: until it has ended, its table holds nobody knows what."""
        if self.done.pop(key, None) is not None:
            self._save()

    def note(self, key: str, done: Done) -> None:
        """The node ended well."""
        self.done[key] = done
        self.stopped.pop(key, None)
        self._save()

    def stop(self, key: str, stopped: Stopped) -> None:
        """The job of the node was stopped with a savepoint."""
        self.stopped[key] = stopped
        self._save()

    def start_over(self, key: str) -> None:
        """The job of the node does not go on from its savepoint."""
        if self.stopped.pop(key, None) is not None:
            self._save()

    def keep_only(self, keys: set[str]) -> None:
        """Nodes that are no more are forgotten."""
        if not keys.issuperset(self.keys):
            self.done = {key: each for key, each in self.done.items() if key in keys}
            self.stopped = {key: each for key, each in self.stopped.items() if key in keys}
            self._save()

    def _save(self) -> None:
        self._path.parent.mkdir(exist_ok=True)
        form = {
            "version": _VERSION,
            "nodes": {key: asdict(each) for key, each in self.done.items()},
            "stopped": {key: asdict(each) for key, each in self.stopped.items()},
        }
        new = self._path.with_suffix(".new")
        with new.open("w", encoding="utf-8") as file:
            json.dump(form, file, indent=1)
            file.flush()
            os.fsync(file.fileno())
        new.replace(self._path)


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
