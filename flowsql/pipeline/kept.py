"""What a project keeps of its runs, in ``.flowsql``: of each node what it was when it last ran to its end."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from flowsql.pipeline.project import OWN_FOLDER
from flowsql_core.errors import ExecutionError

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


class Kept:
    """The record of a project. Every change is on disk when the call returns, whole or not at all."""

    def __init__(self, project: Path) -> None:
        self._path = project / OWN_FOLDER / "state.json"
        self.done: dict[str, Done] = {}
        with contextlib.suppress(FileNotFoundError):
            try:
                form = json.loads(self._path.read_text(encoding="utf-8"))
                if form["version"] == _VERSION:
                    self.done = {key: Done(**each) for key, each in form["nodes"].items()}
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                raise ExecutionError(
                    "pipeline-state", f"'{self._path}' is damaged: {error}", hint="remove it: everything runs again"
                ) from None

    def forget(self, key: str) -> None:
        """The node begins: until it has ended, its table holds nobody knows what."""
        if self.done.pop(key, None) is not None:
            self._save()

    def note(self, key: str, done: Done) -> None:
        """The node ended well."""
        self.done[key] = done
        self._save()

    def keep_only(self, keys: set[str]) -> None:
        """Nodes that are no more are forgotten."""
        if not keys.issuperset(self.done):
            self.done = {key: each for key, each in self.done.items() if key in keys}
            self._save()

    def _save(self) -> None:
        self._path.parent.mkdir(exist_ok=True)
        form = {"version": _VERSION, "nodes": {key: asdict(each) for key, each in self.done.items()}}
        new = self._path.with_suffix(".new")
        with new.open("w", encoding="utf-8") as file:
            json.dump(form, file, indent=1)
            file.flush()
            os.fsync(file.fileno())
        new.replace(self._path)


@contextlib.contextmanager
def alone(project: Path) -> Iterator[None]:
    """Hold the project for one run.

    Raises:
        ExecutionError: another process runs it.
    """
    folder = project / OWN_FOLDER
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ExecutionError("pipeline-runs", f"Another process runs the project '{project}'.") from None
        yield
