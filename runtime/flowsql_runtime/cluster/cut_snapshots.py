"""A job that is cut: who gathers the snapshots of its operators."""

from __future__ import annotations

from collections.abc import Mapping

from flowsql_core.element import CheckpointBarrier
from flowsql_runtime.cluster.job import Job
from flowsql_runtime.network.in_flight import InFlight
from flowsql_runtime.operators.base import OperatorSnapshot


class CutSnapshots:
    """Gathers the snapshots of a job that is cut."""

    def __init__(self, job: Job) -> None:
        self._job = job

    def task_started(self, task: tuple[int, int]) -> None:
        """Nothing waits for it."""

    def task_finished(self, task: tuple[int, int]) -> None:
        """Nothing waits for it."""

    def acknowledge(
        self,
        task: tuple[int, int],
        barrier: CheckpointBarrier,
        snapshots: Mapping[str, OperatorSnapshot],
        in_flight: InFlight | None = None,
    ) -> None:
        """Keep them."""
        self._job._add_snapshots(snapshots)

    def decline(self, task: tuple[int, int], checkpoint_id: int, error: BaseException) -> None:
        """A cut needs every snapshot."""
        self._job._fail(error)
