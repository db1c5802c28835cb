"""The jobs of this process: those that run, and the last ones that ended."""

from __future__ import annotations

import threading
from collections import deque
from typing import TYPE_CHECKING

from flowsql.jobs.job_info import JobInfo

if TYPE_CHECKING:
    from flowsql_runtime.cluster.job import Job

#: Ended jobs that are remembered.
ENDED_KEPT = 100


class JobRegistry:
    """Jobs by id. Any thread.

    An ended job is remembered as data; the job itself, with its metrics, is let go.
    """

    def __init__(self) -> None:
        self._alive: dict[str, Job] = {}
        self._ended: deque[JobInfo] = deque(maxlen=ENDED_KEPT)
        self._lock = threading.Lock()

    def add(self, job: Job) -> None:
        """A job is about to run, or runs."""
        with self._lock:
            self._alive[job.id] = job
        job.on_end(lambda: self._end(job))

    def _end(self, job: Job) -> None:
        info = JobInfo.of(job)
        with self._lock:
            if self._alive.pop(job.id, None) is not None:
                self._ended.append(info)

    def alive(self, job_id: str) -> Job | None:
        """A job that is not over."""
        with self._lock:
            return self._alive.get(job_id)

    def oldest_alive_ms(self) -> int | None:
        """When the job began that runs longest, epoch milliseconds; None when none runs."""
        with self._lock:
            return min((job.submitted_ms for job in self._alive.values()), default=None)

    def infos(self) -> list[JobInfo]:
        """All that are known, the newest first."""
        with self._lock:
            alive, ended = list(self._alive.values()), list(self._ended)
        # A job that ends meanwhile may be in both.
        found = {info.id: info for info in [*map(JobInfo.of, alive), *ended]}
        return sorted(found.values(), key=lambda info: info.started_ms, reverse=True)

    def find(self, job_id: str) -> JobInfo | None:
        """One of them."""
        return next((info for info in self.infos() if info.id == job_id), None)
