"""What is known of a job, as data that can leave the process."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

from flowsql_core.record import record

if TYPE_CHECKING:
    from flowsql_runtime.cluster.job import Job

_RUNNING = frozenset({"RUNNING", "RESTARTING", "FAILING", "CANCELLING"})
_SCHEDULED = frozenset({"INITIALIZING", "CREATED"})


@record
class JobInfo:
    """One job at one moment; times in epoch milliseconds.

    ``ended_ms``: None while it runs. ``last_checkpoint``: path of the newest complete snapshot that a restart would
    begin with. ``failure``: first line of what made it fail. ``process``: the process that runs it.
    """

    id: str
    name: str
    status: str
    started_ms: int
    ended_ms: int | None = None
    restarts: int = 0
    last_checkpoint: str | None = None
    failure: str | None = None
    process: int = 0

    @property
    def is_running(self) -> bool:
        """Running, or on the way to a restart or an end."""
        return self.status in _RUNNING

    @property
    def is_scheduled(self) -> bool:
        """Not running yet."""
        return self.status in _SCHEDULED

    def duration_ms(self, now_ms: int) -> int:
        """How long it ran, up to its end or to now."""
        return max(0, (now_ms if self.ended_ms is None else self.ended_ms) - self.started_ms)

    @classmethod
    def of(cls, job: Job) -> Self:
        """As the job stands."""
        failure = job.exception
        return cls(
            id=job.id,
            name=job.name,
            status=job.status.value,
            started_ms=job.submitted_ms,
            ended_ms=job.ended_ms,
            restarts=len(job.restarts),
            last_checkpoint=job.last_checkpoint,
            failure=None if failure is None else failure.message.partition("\n")[0],
            process=os.getpid(),
        )

    def to_json(self) -> dict[str, Any]:
        """Every field under its name."""
        return {name: getattr(self, name) for name in _FIELDS}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Self:
        """What :meth:`to_json` gave; fields that a later version adds are left out."""
        return cls(**{name: values[name] for name in _FIELDS if name in values})


_FIELDS = ("id", "name", "status", "started_ms", "ended_ms", "restarts", "last_checkpoint", "failure", "process")
