"""Where checkpoints are kept, under the names of PyFlink's module: refused until there are checkpoints."""

from __future__ import annotations

from typing import Final

from flowsql.common.refused import Refused

_HINT: Final = "leave it out: a job that failed begins anew"

__all__ = [
    "CheckpointStorage",
    "CustomCheckpointStorage",
    "FileSystemCheckpointStorage",
    "JobManagerCheckpointStorage",
]


class CheckpointStorage(metaclass=Refused, construct="checkpoints", hint=_HINT):
    """Base of storages."""


class JobManagerCheckpointStorage(
    CheckpointStorage, construct="checkpoints", hint="leave it out: a job that failed begins anew"
):
    """In memory."""


class FileSystemCheckpointStorage(
    CheckpointStorage, construct="checkpoints", hint="leave it out: a job that failed begins anew"
):
    """In files."""


class CustomCheckpointStorage(
    CheckpointStorage, construct="checkpoints", hint="leave it out: a job that failed begins anew"
):
    """Elsewhere."""
