"""``execution.checkpointing.*`` and ``execution.state-recovery.*``: Flink's options, and what a job makes of them.

Source: Flink 2.3, ``CheckpointingOptions`` and ``StateRecoveryOptions``.
"""

from __future__ import annotations

import enum
from typing import Final

from flowsql_core.config import (
    RUNTIME_MODE,
    Configuration,
    RuntimeMode,
    option,
    parse_bool,
    parse_duration_ms,
    parse_enum,
    parse_memory_bytes,
    parse_text,
)
from flowsql_core.errors import BindError
from flowsql_core.record import record


class CheckpointingMode(enum.Enum):
    """``execution.checkpointing.mode``."""

    EXACTLY_ONCE = "EXACTLY_ONCE"
    AT_LEAST_ONCE = "AT_LEAST_ONCE"


class Retention(enum.Enum):
    """``execution.checkpointing.externalized-checkpoint-retention``: what stays when the job has ended."""

    RETAIN = "RETAIN_ON_CANCELLATION"
    DELETE = "DELETE_ON_CANCELLATION"
    NONE = "NO_EXTERNALIZED_CHECKPOINTS"


class StorageKind(enum.Enum):
    """``execution.checkpointing.storage``."""

    MEMORY = "jobmanager"
    FILES = "filesystem"


class ChangedState(enum.Enum):
    """What a changed query may do with state that does not fit."""

    REFUSE = "refuse"
    MIGRATE = "migrate"
    REBUILD = "rebuild"


class ClaimMode(enum.Enum):
    """``execution.state-recovery.claim-mode``."""

    NO_CLAIM = "NO_CLAIM"
    CLAIM = "CLAIM"


INTERVAL_MS = option(
    "execution.checkpointing.interval", parse_duration_ms, 0, "A checkpoint so often; 0 (or no value): none."
)
MODE = option(
    "execution.checkpointing.mode",
    parse_enum(CheckpointingMode),
    CheckpointingMode.EXACTLY_ONCE,
    "EXACTLY_ONCE aligns barriers; AT_LEAST_ONCE lets rows pass them, which may count rows twice after a failure.",
)
TIMEOUT_MS = option(
    "execution.checkpointing.timeout", parse_duration_ms, 600_000, "A checkpoint that takes longer is given up."
)
MIN_PAUSE_MS = option(
    "execution.checkpointing.min-pause", parse_duration_ms, 0, "Time between the end of a checkpoint and the next."
)
MAX_CONCURRENT = option(
    "execution.checkpointing.max-concurrent-checkpoints", int, 1, "Checkpoints that may be under way at a time."
)
TOLERABLE_FAILURES = option(
    "execution.checkpointing.tolerable-failed-checkpoints",
    int,
    0,
    "Checkpoints in a row that may fail before the job does.",
)
NUM_RETAINED = option("execution.checkpointing.num-retained", int, 1, "Completed checkpoints that are kept.")
RETENTION = option(
    "execution.checkpointing.externalized-checkpoint-retention",
    parse_enum(Retention),
    Retention.NONE,
    "Whether checkpoints stay when the job ends: RETAIN_ON_CANCELLATION keeps them unless the job finished, "
    "DELETE_ON_CANCELLATION keeps them when it failed, NO_EXTERNALIZED_CHECKPOINTS never.",
)
STORAGE = option(
    "execution.checkpointing.storage",
    parse_enum(StorageKind),
    StorageKind.MEMORY,
    "Where checkpoints are kept: 'jobmanager' is this process's memory, 'filesystem' the folder of "
    "'execution.checkpointing.dir'. A value of that option alone means 'filesystem'.",
)
DIRECTORY = option(
    "execution.checkpointing.dir", parse_text, "", "Folder (path or URI) for checkpoints: <dir>/<job id>/chk-<n>."
)
SAVEPOINT_DIRECTORY = option(
    "execution.checkpointing.savepoint-dir", parse_text, "", "Folder for savepoints that name none."
)
CREATE_SUBDIRECTORY = option(
    "execution.checkpointing.create-subdir", parse_bool, True, "Whether the checkpoint folder has one below it a job."
)
COMPRESSION = option(
    "execution.checkpointing.snapshot-compression", parse_bool, False, "Compress the state in snapshots (LZ4)."
)
INLINE_BYTES = option(
    "execution.checkpointing.data-inline-threshold",
    parse_memory_bytes,
    20 << 10,
    "State of a subtask up to this size stands in the checkpoint's metadata instead of a file of its own.",
)
AFTER_TASKS_FINISH = option(
    "execution.checkpointing.checkpoints-after-tasks-finish",
    parse_bool,
    True,
    "Whether checkpoints go on when some tasks have finished.",
)
UNALIGNED = option(
    "execution.checkpointing.unaligned.enabled",
    parse_bool,
    False,
    "Whether barriers may overtake rows, which are then part of the checkpoint; with EXACTLY_ONCE only.",
)
ALIGNED_TIMEOUT_MS = option(
    "execution.checkpointing.aligned-checkpoint-timeout",
    parse_duration_ms,
    0,
    "With unaligned checkpoints: so long barriers wait for each other before they overtake rows.",
)
RECOVERY_PATH = option(
    "execution.state-recovery.path",
    parse_text,
    "",
    "Checkpoint or savepoint to start from: a folder with '_metadata', or a folder with several of them, of which the "
    "newest complete one is taken. 'latest': each job starts, or goes on from its newest snapshot, by itself, with "
    "'execution.checkpointing.dir' as the folder (docs/snapshots.md).",
)
#: The value of ``execution.state-recovery.path`` with which jobs go on by themselves.
LATEST: Final = "latest"
CLAIM_MODE = option(
    "execution.state-recovery.claim-mode",
    parse_enum(ClaimMode),
    ClaimMode.NO_CLAIM,
    "NO_CLAIM leaves the snapshot that a job starts from alone; CLAIM removes it like a checkpoint of the job.",
)
IGNORE_UNCLAIMED = option(
    "execution.state-recovery.ignore-unclaimed-state",
    parse_bool,
    False,
    "Whether state of the snapshot that no operator of the job takes may be dropped.",
)


CHANGED_STATE = option(
    "flowsql.state-recovery.changed-state",
    parse_enum(ChangedState),
    ChangedState.REFUSE,
    "What may become of state that does not fit a changed query. 'refuse': the job does not start; 'migrate': results "
    "that the snapshot does not know count from the restore on; 'rebuild': operators whose state does not fit start "
    "empty, too.",
)


@record
class CheckpointSettings:
    """The options of one job, checked against each other. ``interval_ms`` 0: no periodic checkpoints."""

    interval_ms: int
    exactly_once: bool
    timeout_ms: int
    min_pause_ms: int
    max_concurrent: int
    tolerable_failures: int
    num_retained: int
    retention: Retention
    #: "" keeps checkpoints in memory.
    directory: str
    savepoint_directory: str
    create_subdirectory: bool
    compression: bool
    inline_bytes: int
    after_tasks_finish: bool
    #: How long a barrier waits before it overtakes rows; None: for ever.
    unaligned_after_ms: int | None

    @property
    def periodic(self) -> bool:
        """Whether checkpoints are taken."""
        return self.interval_ms > 0

    @staticmethod
    def of(configuration: Configuration) -> CheckpointSettings:
        """Read and check.

        Raises:
            BindError: a value that is out of range, or options that exclude each other.
        """
        directory = configuration.get(DIRECTORY)
        named = configuration.text(STORAGE.key)
        storage = configuration.get(STORAGE) if named is not None else None
        if storage is StorageKind.FILES and not directory:
            raise BindError(
                "missing-option",
                f"'{STORAGE.key}' is 'filesystem' and '{DIRECTORY.key}' is not set.",
                hint=f"name a folder in '{DIRECTORY.key}'",
            )
        batch = configuration.get(RUNTIME_MODE) is RuntimeMode.BATCH
        interval_ms = 0 if batch else configuration.get(INTERVAL_MS)
        pause_ms = configuration.get(MIN_PAUSE_MS)
        concurrent = _at_least(configuration.get(MAX_CONCURRENT), 1, MAX_CONCURRENT.key)
        return CheckpointSettings(
            interval_ms=interval_ms,
            exactly_once=configuration.get(MODE) is CheckpointingMode.EXACTLY_ONCE,
            timeout_ms=_at_least(configuration.get(TIMEOUT_MS), 10, TIMEOUT_MS.key),
            min_pause_ms=pause_ms,
            # A pause counts from the end of the one before: there is no second one at a time.
            max_concurrent=1 if pause_ms else concurrent,
            tolerable_failures=_at_least(configuration.get(TOLERABLE_FAILURES), 0, TOLERABLE_FAILURES.key),
            num_retained=_at_least(configuration.get(NUM_RETAINED), 1, NUM_RETAINED.key),
            retention=configuration.get(RETENTION),
            directory="" if storage is StorageKind.MEMORY else directory,
            savepoint_directory=configuration.get(SAVEPOINT_DIRECTORY),
            create_subdirectory=configuration.get(CREATE_SUBDIRECTORY),
            compression=configuration.get(COMPRESSION),
            inline_bytes=configuration.get(INLINE_BYTES),
            after_tasks_finish=configuration.get(AFTER_TASKS_FINISH),
            unaligned_after_ms=_unaligned_after_ms(configuration),
        )


@record
class RecoverySettings:
    """What a job starts from; ``path`` "" is nothing."""

    path: str
    claim: bool
    ignore_unclaimed: bool
    changed_state: ChangedState

    @staticmethod
    def of(configuration: Configuration) -> RecoverySettings:
        """Read."""
        return RecoverySettings(
            configuration.get(RECOVERY_PATH),
            configuration.get(CLAIM_MODE) is ClaimMode.CLAIM,
            configuration.get(IGNORE_UNCLAIMED),
            configuration.get(CHANGED_STATE),
        )


def _unaligned_after_ms(configuration: Configuration) -> int | None:
    if not configuration.get(UNALIGNED):
        return None
    if configuration.get(MODE) is not CheckpointingMode.EXACTLY_ONCE:
        raise BindError(
            "conflicting-options",
            f"'{UNALIGNED.key}' needs '{MODE.key}' = 'EXACTLY_ONCE': with AT_LEAST_ONCE no barrier waits.",
            hint="set one of them otherwise",
        )
    return configuration.get(ALIGNED_TIMEOUT_MS)


def _at_least(value: int, least: int, key: str) -> int:
    if value < least:
        raise BindError(
            "invalid-option-value", f"Could not parse value '{value}' for key '{key}'.", hint=f"at least {least}"
        )
    return value
