"""Where checkpoints are kept, under the names of PyFlink's module: refused until there are checkpoints."""

from __future__ import annotations

from flowsql.common.refused import Refused

__all__ = [
    "CheckpointStorage",
    "CustomCheckpointStorage",
    "FileSystemCheckpointStorage",
    "JobManagerCheckpointStorage",
]


class CheckpointStorage(metaclass=Refused, construct="checkpoints"):
    """Base of storages."""


class JobManagerCheckpointStorage(CheckpointStorage, construct="checkpoints"):
    """In memory."""


class FileSystemCheckpointStorage(CheckpointStorage, construct="checkpoints"):
    """In files."""


class CustomCheckpointStorage(CheckpointStorage, construct="checkpoints"):
    """Elsewhere."""
