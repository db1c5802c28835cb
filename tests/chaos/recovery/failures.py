"""Each operator of a job fails once, in the middle of its work: the job restarts in its process, again and again.

An operator fails when it gets its next rows after a checkpoint that completed since the last failure, so that every
restart has something to go back to. The file that :func:`install` names tells which ones there are and which failed.
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

from flowsql_core.errors import ExecutionError
from flowsql_runtime.checkpoint import storage
from flowsql_runtime.cluster import deploy
from flowsql_runtime.operators.base import SourceOperator


class Failures:
    """Which operators exist, which have failed."""

    def __init__(self, told: Path) -> None:
        self._told = told
        self._lock = threading.Lock()
        self._ready = False
        self._failed: set[str] = set()

    def note(self, what: str, name: str) -> None:
        """Append a line to the file."""
        with self._lock, self._told.open("a", encoding="utf-8") as file:
            file.write(f"{what} {name}\n")

    def checkpoint_completed(self) -> None:
        """The next operator may fail."""
        self._ready = True

    def strike(self, name: str) -> None:
        """Fail, if it is this operator's turn."""
        with self._lock:
            if not self._ready or name in self._failed:
                return
            self._ready = False
            self._failed.add(name)
        self.note("failed", name)
        raise ExecutionError("struck", f"{name} was struck")


def install(told: Path) -> None:
    """Wrap what deployments make."""
    failures = Failures(told)
    make, publish = deploy.make_operator, storage.LocalFolder.publish

    def making(spec: Any, resources: Any) -> Any:
        operator = make(spec, resources)
        name = f"{type(operator).__name__} {hash(repr(spec)):x}"
        failures.note("made", name)
        method = "emit_next" if isinstance(operator, SourceOperator) else "process_batch"
        work = getattr(operator, method)

        def struck(*args: Any) -> Any:
            failures.strike(name)
            return work(*args)

        setattr(operator, method, struck)
        return operator

    def publishing(self: storage.LocalFolder, metadata: bytes) -> None:
        publish(self, metadata)
        failures.checkpoint_completed()

    deploy.make_operator = making
    storage.LocalFolder.publish = publishing  # type: ignore[method-assign]
