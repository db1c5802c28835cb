"""Where checkpoints are kept, under the names of PyFlink's module: ``CheckpointConfig.set_checkpoint_storage``.

The options ``execution.checkpointing.storage`` and ``execution.checkpointing.dir`` say the same.
"""

from __future__ import annotations

from collections.abc import Mapping

from flowsql.common.public_api import public_api
from flowsql.common.refused import Refused
from flowsql.configuration import warn_program
from flowsql_core.errors import NotSupportedYetError

__all__ = [
    "CheckpointStorage",
    "CustomCheckpointStorage",
    "FileSystemCheckpointStorage",
    "JobManagerCheckpointStorage",
]


class CheckpointStorage:
    """Base of storages. ``options``: what choosing the storage sets."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self.options = dict(options)

    def check_usable(self) -> None:
        """Raise where an environment cannot use the storage."""


@public_api
class JobManagerCheckpointStorage(CheckpointStorage):
    """In the memory of this process: gone with it, enough for restarts. There is no limit but the memory.

    Args:
        checkpoint_path: a path or URI for metadata; an environment refuses such a storage.
        max_state_size: bytes; kept, and without effect.

    Raises:
        ValueError: ``max_state_size`` is below 1.
    """

    #: PyFlink's limit; nothing is limited here.
    DEFAULT_MAX_STATE_SIZE = 5 * 1024 * 1024

    def __init__(self, checkpoint_path: str | None = None, max_state_size: int | None = None) -> None:
        if max_state_size is not None and max_state_size < 1:
            raise ValueError("maxStateSize must be > 0")
        super().__init__({"execution.checkpointing.storage": "jobmanager"})
        self._path = None if checkpoint_path is None else checkpoint_path.rstrip("/") or checkpoint_path
        self._max_state_size = self.DEFAULT_MAX_STATE_SIZE if max_state_size is None else max_state_size
        if max_state_size is not None:
            warn_program("max_state_size of JobManagerCheckpointStorage has no effect: state in memory is not limited.")

    def check_usable(self) -> None:
        """Refuse a path.

        Raises:
            NotSupportedYetError: metadata would be in files and state in memory.
        """
        if self._path is not None:
            raise NotSupportedYetError(
                "metadata of checkpoints in files and state in memory",
                hint="FileSystemCheckpointStorage(path) keeps both in files",
            )

    def get_checkpoint_path(self) -> str | None:
        """Return the folder of metadata; None without one."""
        return self._path

    def get_max_state_size(self) -> int:
        """Return the number of bytes that was given; nothing is limited here."""
        return self._max_state_size

    def get_savepoint_path(self) -> None:
        """None: ``execution.checkpointing.savepoint-dir`` says where savepoints go."""

    def __str__(self) -> str:
        return f"JobManagerCheckpointStorage (checkpoints to JobManager) ( maxStateSize: {self._max_state_size})"


class FileSystemCheckpointStorage(CheckpointStorage):
    """In files below a folder, ``<folder>/<job id>/chk-<n>``.

    Args:
        checkpoint_path: a path or URI.
        file_state_size_threshold: bytes up to which a subtask's state stands in the checkpoint's metadata instead of a
            file; None or -1: ``execution.checkpointing.data-inline-threshold``.
        write_buffer_size: bytes; kept, and without effect: files are written whole. -1: PyFlink's 4096.
    """

    #: Largest threshold, bytes.
    MAX_FILE_STATE_THRESHOLD = 1024 * 1024
    _DEFAULT_THRESHOLD = 20 << 10

    def __init__(
        self,
        checkpoint_path: str | None = None,
        file_state_size_threshold: int | None = None,
        write_buffer_size: int = -1,
    ) -> None:
        if checkpoint_path is None:
            raise ValueError("checkpoint_path must not be None")
        if write_buffer_size < -1:
            raise ValueError(
                "The write buffer size must be not less than '-1', where '-1' means to use the value from the "
                "deployment's configuration."
            )
        if write_buffer_size != -1:
            warn_program(
                "write_buffer_size of FileSystemCheckpointStorage has no effect: files of state are written whole."
            )
        threshold = -1 if file_state_size_threshold is None else file_state_size_threshold
        if not -1 <= threshold <= self.MAX_FILE_STATE_THRESHOLD:
            raise ValueError(
                "The threshold for file state size must be in [-1, 1048576], where '-1' means to use the value from "
                "the deployment's configuration."
            )
        options = {"execution.checkpointing.storage": "filesystem", "execution.checkpointing.dir": checkpoint_path}
        if threshold >= 0:
            options["execution.checkpointing.data-inline-threshold"] = f"{threshold} b"
        super().__init__(options)
        self._path = checkpoint_path.rstrip("/") or checkpoint_path
        self._threshold = threshold
        # Flink's buffer holds at least what may be in the metadata.
        self._write_buffer_size = max(4096 if write_buffer_size == -1 else write_buffer_size, threshold)

    def get_checkpoint_path(self) -> str:
        """The folder."""
        return self._path

    def get_savepoint_path(self) -> None:
        """None: ``execution.checkpointing.savepoint-dir`` says where savepoints go."""

    def get_write_buffer_size(self) -> int:
        """Return the number of bytes that was given."""
        return self._write_buffer_size

    def get_min_file_size_threshold(self) -> int:
        """Bytes up to which state stands in the metadata."""
        return self._threshold if self._threshold >= 0 else self._DEFAULT_THRESHOLD

    def __str__(self) -> str:
        return f"FileSystemCheckpointStorage (checkpoints: '{self._path}')"


class CustomCheckpointStorage(
    metaclass=Refused,
    construct="checkpoint storages of Java",
    hint="FileSystemCheckpointStorage writes to whatever Arrow or fsspec can open",
):
    """Elsewhere."""
