"""``CheckpointConfig``: how checkpoints are taken. A view: what is set here is set for the environment."""

from __future__ import annotations

from typing import Self

from flowsql.common.public_api import public_api
from flowsql.configuration import set_option
from flowsql.datastream.checkpoint_storage import CheckpointStorage, FileSystemCheckpointStorage
from flowsql.datastream.checkpointing_mode import CheckpointingMode
from flowsql.datastream.externalized_checkpoint_retention import ExternalizedCheckpointRetention
from flowsql_core.config import Configuration
from flowsql_core.stream.time import Duration
from flowsql_runtime.checkpoint import settings

__all__ = ["CheckpointConfig"]

#: Java's largest int, which PyFlink writes for "any number".
_ANY_NUMBER = 2**31 - 1


@public_api
class CheckpointConfig:
    """The options ``execution.checkpointing.*`` of an environment under PyFlink's names.

    Setters raise ValueError, with Flink's text, for what is out of range. Times are milliseconds.
    """

    def __init__(self, configuration: Configuration) -> None:
        self._configuration = configuration
        self._forced_unaligned = False

    def is_checkpointing_enabled(self) -> bool:
        """Whether checkpoints are taken: an interval is set."""
        return self._configuration.get(settings.INTERVAL_MS) > 0

    def get_checkpointing_mode(self) -> CheckpointingMode:
        """What checkpoints promise; AT_LEAST_ONCE, as in Flink, while none are taken."""
        if not self.is_checkpointing_enabled():
            return CheckpointingMode.AT_LEAST_ONCE
        return CheckpointingMode[self._configuration.get(settings.MODE).name]

    def set_checkpointing_mode(self, checkpointing_mode: CheckpointingMode) -> Self:
        """Whether each row counts exactly once after a failure, or at least once."""
        return self._set(settings.MODE.key, checkpointing_mode.name)

    def get_checkpoint_interval(self) -> int:
        """Time between the beginnings of two checkpoints; -1 when none are taken."""
        return self._configuration.get(settings.INTERVAL_MS) or -1

    def set_checkpoint_interval(self, checkpoint_interval: int) -> Self:
        """Take a checkpoint so often, at least every 10 ms."""
        if checkpoint_interval < 10:
            raise ValueError("Checkpoint interval must be larger than or equal to 10 ms")
        return self._set(settings.INTERVAL_MS.key, f"{checkpoint_interval} ms")

    def get_checkpoint_timeout(self) -> int:
        """After this time a checkpoint is given up."""
        return self._configuration.get(settings.TIMEOUT_MS)

    def set_checkpoint_timeout(self, checkpoint_timeout: int) -> Self:
        """Give a checkpoint up after this time."""
        if checkpoint_timeout < 10:
            raise ValueError("Checkpoint timeout must be larger than or equal to 10 ms")
        return self._set(settings.TIMEOUT_MS.key, f"{checkpoint_timeout} ms")

    def get_min_pause_between_checkpoints(self) -> int:
        """Least time between the end of a checkpoint and the next."""
        return self._configuration.get(settings.MIN_PAUSE_MS)

    def set_min_pause_between_checkpoints(self, min_pause_between_checkpoints: int) -> Self:
        """Wait so long between the end of a checkpoint and the next; then one at a time is taken."""
        if min_pause_between_checkpoints < 0:
            raise ValueError("Pause value must be zero or positive")
        return self._set(settings.MIN_PAUSE_MS.key, f"{min_pause_between_checkpoints} ms")

    def get_max_concurrent_checkpoints(self) -> int:
        """Checkpoints that may be under way at a time."""
        return self._configuration.get(settings.MAX_CONCURRENT)

    def set_max_concurrent_checkpoints(self, max_concurrent_checkpoints: int) -> Self:
        """Let so many checkpoints be under way at a time."""
        if max_concurrent_checkpoints < 1:
            raise ValueError("The maximum number of concurrent attempts must be at least one.")
        return self._set(settings.MAX_CONCURRENT.key, str(max_concurrent_checkpoints))

    def is_fail_on_checkpointing_errors(self) -> bool:
        """Whether the first checkpoint that fails makes the job fail."""
        return self.get_tolerable_checkpoint_failure_number() == 0

    def set_fail_on_checkpointing_errors(self, fail_on_checkpointing_errors: bool) -> Self:
        """Whether the first checkpoint that fails makes the job fail; else none does."""
        return self.set_tolerable_checkpoint_failure_number(0 if fail_on_checkpointing_errors else _ANY_NUMBER)

    def get_tolerable_checkpoint_failure_number(self) -> int:
        """Checkpoints in a row that may fail before the job does."""
        return self._configuration.get(settings.TOLERABLE_FAILURES)

    def set_tolerable_checkpoint_failure_number(self, tolerable_checkpoint_failure_number: int) -> Self:
        """Let so many checkpoints in a row fail before the job does."""
        if tolerable_checkpoint_failure_number < 0:
            raise ValueError("The tolerable failure checkpoint number must be non-negative.")
        return self._set(settings.TOLERABLE_FAILURES.key, str(tolerable_checkpoint_failure_number))

    def set_externalized_checkpoint_retention(self, retention_mode: ExternalizedCheckpointRetention) -> Self:
        """What becomes of checkpoints when the job ends."""
        return self._set(settings.RETENTION.key, retention_mode.name)

    def get_externalized_checkpoint_retention(self) -> ExternalizedCheckpointRetention:
        """What becomes of checkpoints when the job ends."""
        return ExternalizedCheckpointRetention[self._configuration.get(settings.RETENTION).value]

    def is_externalized_checkpoints_enabled(self) -> bool:
        """Whether a checkpoint may stay when the job has ended."""
        return (
            self.get_externalized_checkpoint_retention()
            is not ExternalizedCheckpointRetention.NO_EXTERNALIZED_CHECKPOINTS
        )

    def set_checkpoint_storage(self, storage: CheckpointStorage) -> Self:
        """Where checkpoints are kept: PyFlink 1's way to say ``execution.checkpointing.storage`` and ``.dir``."""
        storage.check_usable()
        for key, value in storage.options.items():
            self._set(key, value)
        return self

    def set_checkpoint_storage_dir(self, checkpoint_path: str) -> Self:
        """Keep checkpoints below a folder (path or URI)."""
        return self.set_checkpoint_storage(FileSystemCheckpointStorage(checkpoint_path))

    def is_unaligned_checkpoints_enabled(self) -> bool:
        """Whether barriers may overtake rows; with EXACTLY_ONCE only."""
        return self._configuration.get(settings.UNALIGNED) and (
            self.get_checkpointing_mode() is CheckpointingMode.EXACTLY_ONCE
        )

    def enable_unaligned_checkpoints(self, enabled: bool = True) -> Self:
        """Let barriers overtake rows, which are then part of the checkpoint: full queues do not delay it."""
        return self._set(settings.UNALIGNED.key, str(bool(enabled)).lower())

    def disable_unaligned_checkpoints(self) -> Self:
        """Let barriers wait for each other (the default)."""
        return self.enable_unaligned_checkpoints(False)

    def set_aligned_checkpoint_timeout(self, alignment_timeout: Duration) -> Self:
        """With unaligned checkpoints: so long barriers wait for each other before they overtake rows; 0: not at all."""
        return self._set(settings.ALIGNED_TIMEOUT_MS.key, f"{alignment_timeout.to_milliseconds()} ms")

    def get_aligned_checkpoint_timeout(self) -> Duration:
        """See :meth:`set_aligned_checkpoint_timeout`."""
        return Duration.of_millis(self._configuration.get(settings.ALIGNED_TIMEOUT_MS))

    def set_alignment_timeout(self, alignment_timeout: Duration) -> Self:
        """The old name of :meth:`set_aligned_checkpoint_timeout`."""
        return self.set_aligned_checkpoint_timeout(alignment_timeout)

    def get_alignment_timeout(self) -> Duration:
        """The old name of :meth:`get_aligned_checkpoint_timeout`."""
        return self.get_aligned_checkpoint_timeout()

    def set_force_unaligned_checkpoints(self, force_unaligned_checkpoints: bool = True) -> Self:
        """Leave no exchange out of unaligned checkpoints. None ever is, whatever is set here."""
        self._forced_unaligned = force_unaligned_checkpoints
        return self

    def is_force_unaligned_checkpoints(self) -> bool:
        """True if it was asked for."""
        return self._forced_unaligned

    def _set(self, key: str, value: str) -> Self:
        set_option(self._configuration, key, value)
        return self
