"""What is known of a job's checkpoints: how many there were, and how long the last one took. Names are Flink's."""

from __future__ import annotations

from flowsql_core.record import record


@record
class CompletedStats:
    """A checkpoint or savepoint that completed.

    ``size_bytes``: all of its state. ``written_bytes``: what was written for it; the rest is in files of older ones.
    """

    id: int
    triggered_ms: int
    duration_ms: int
    size_bytes: int
    written_bytes: int
    is_savepoint: bool
    path: str


class CheckpointMetrics:
    """Counts over all attempts of a job. Written by its coordinator only, read by anyone."""

    __slots__ = ("completed", "failed", "in_progress", "last")

    def __init__(self) -> None:
        self.completed = 0
        self.failed = 0
        self.in_progress = 0
        #: The newest one; None: there is none yet.
        self.last: CompletedStats | None = None

    def values(self) -> dict[str, int | str]:
        """All by name; those of the last checkpoint once there is one."""
        found: dict[str, int | str] = {
            "numberOfCompletedCheckpoints": self.completed,
            "numberOfFailedCheckpoints": self.failed,
            "numberOfInProgressCheckpoints": self.in_progress,
        }
        last = self.last
        if last is not None:
            found |= {
                "lastCompletedCheckpointId": last.id,
                "lastCheckpointDuration": last.duration_ms,
                "lastCheckpointSize": last.written_bytes,
                "lastCheckpointFullSize": last.size_bytes,
                "lastCheckpointExternalPath": last.path,
            }
        return found
