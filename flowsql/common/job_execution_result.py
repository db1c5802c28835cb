"""``JobExecutionResult``: what ``execute`` answers when the job has ended."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flowsql.common.job_id import JobID


class JobExecutionResult:
    """A finished job: its id, how long it ran, and its sums."""

    def __init__(self, job_id: str, runtime_ms: int, accumulators: Mapping[str, Any]) -> None:
        self._job_id = JobID(job_id)
        self._runtime_ms = runtime_ms
        self._accumulators = dict(accumulators)

    def get_job_id(self) -> JobID:
        """The id of the run."""
        return self._job_id

    def get_net_runtime(self) -> int:
        """Milliseconds from the start of the tasks to their end."""
        return self._runtime_ms

    def get_accumulator_result(self, accumulator_name: str) -> Any:
        """One sum, or None."""
        return self._accumulators.get(accumulator_name)

    def get_all_accumulator_results(self) -> dict[str, Any]:
        """All sums by name."""
        return dict(self._accumulators)

    def __str__(self) -> str:
        lines = [
            "Program execution finished",
            f"Job with JobID {self._job_id} has finished.",
            f"Job Runtime: {self._runtime_ms} ms",
        ]
        if self._accumulators:
            lines.append("Accumulator Results: ")
            lines += [f"- {name} ({type(value).__name__}): {value}" for name, value in self._accumulators.items()]
        return "\n".join(lines)
