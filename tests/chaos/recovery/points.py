"""Places where a job kills itself: in the middle of writing a snapshot, of a commit, of a restore.

``CHAOS_POINT=name:number`` kills the process the number-th time it comes by after its first checkpoint (in a restore:
since its start). The place is in the real code: a method is wrapped, and SIGKILL comes before, after, or after half of
its work.
"""

from __future__ import annotations

import functools
import os
import signal
from collections.abc import Callable
from typing import Any, Final

from flowsql_connectors.filesystem import commit, compact
from flowsql_runtime.checkpoint import recovery, storage
from flowsql_runtime.task.services import JobServices


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _half_written(self: storage.LocalFolder, name: str, chunks: Any) -> None:
    """A file of a snapshot of which only a part reached the disk."""
    data = b"".join(bytes(memoryview(chunk)) for chunk in chunks)
    _write(self, name, [data[: len(data) // 2]])
    _die()


_write = storage.LocalFolder.write

#: Point -> the class (or module) and the name of the callable, and when it kills.
POINTS: Final[dict[str, tuple[Any, str, str]]] = {
    "before-state-file": (storage.LocalFolder, "write", "before"),
    "half-state-file": (storage.LocalFolder, "write", "half"),
    "after-state-file": (storage.LocalFolder, "write", "after"),
    "before-metadata": (storage.LocalFolder, "publish", "before"),
    "after-metadata": (storage.LocalFolder, "publish", "after"),
    "before-commit": (JobServices, "commit", "before"),
    "between-files-of-a-commit": (commit.FileCommitter, "_show_one", "after"),
    "after-commit": (JobServices, "commit", "after"),
    "in-the-last-commit": (JobServices, "commit_all", "after"),
    "in-a-restore": (recovery.SnapshotReader, "__init__", "after"),
    "in-the-commit-of-a-restore": (JobServices, "commit_again", "after"),
}
#: The same place in another class: files that are merged before they are shown.
ELSEWHERE: Final[dict[str, tuple[Any, str, str]]] = {
    "between-files-of-a-commit": (compact.Compactor, "_merge", "after"),
}
#: Those that a job passes before it runs; they need a checkpoint to start from.
OF_A_RESTORE: Final = ("in-a-restore", "in-the-commit-of-a-restore")
#: Those that it passes once, at its end.
OF_THE_END: Final = ("in-the-last-commit",)


def install(text: str) -> None:
    """Arm the point that ``CHAOS_POINT`` names."""
    name, _, number = text.partition(":")
    left = int(number)
    armed = name in (*OF_A_RESTORE, *OF_THE_END)

    def wrap(owner: Any, attribute: str, when: str) -> None:
        original: Callable[..., Any] = getattr(owner, attribute)

        @functools.wraps(original)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            nonlocal left
            left -= armed
            strikes = armed and left == 0
            if strikes and when == "before":
                _die()
            if strikes and when == "half":
                _half_written(*args, **kwargs)
            found = original(*args, **kwargs)
            if strikes:
                _die()
            return found

        setattr(owner, attribute, wrapped)

    for place in (POINTS[name], *([ELSEWHERE[name]] if name in ELSEWHERE else [])):
        wrap(*place)
    publish = storage.LocalFolder.publish

    def arming(self: storage.LocalFolder, metadata: bytes) -> None:
        nonlocal armed
        publish(self, metadata)
        armed = True

    storage.LocalFolder.publish = arming  # type: ignore[method-assign]
