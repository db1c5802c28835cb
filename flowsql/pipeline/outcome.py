"""What becomes of a node in a run."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from flowsql.pipeline.project import Node
from flowsql_core.errors import FlowSqlError, InternalError

if TYPE_CHECKING:
    from flowsql.common.job_client import JobClient
    from flowsql_core.graph.expectation import ExpectationCounts
    from flowsql_runtime.diagnosis.lost import LostRows
    from flowsql_runtime.metrics.volumes import Volumes


class Status(enum.Enum):
    """What became of a node."""

    WAITING = "waiting"
    DONE = "done"
    UNCHANGED = "unchanged"
    FAILED = "failed"
    SKIPPED = "skipped"
    CANCELLED = "cancelled"
    #: A streaming job, with a savepoint.
    STOPPED = "stopped"


#: Behind these nothing runs.
BROKEN: Final = (Status.FAILED, Status.SKIPPED)


@dataclass(slots=True)
class Outcome:
    """A node of a run. ``reason``: why it runs, or is skipped; empty where it does not run as nothing changed."""

    node: Node
    reason: str
    status: Status = Status.WAITING
    rows: int | None = None
    seconds: float | None = None
    expectations: list[ExpectationCounts] = field(default_factory=list)
    lost: list[LostRows] = field(default_factory=list)
    volumes: Volumes | None = None
    error: FlowSqlError | None = None

    def count(self, job: JobClient) -> None:
        """Take down what the job has done."""
        self.rows, self.expectations = job.records_written(), job.expectations()
        self.lost = job.lost_rows()
        self.volumes = job.get_volumes()

    def fail(self, error: Exception) -> None:
        """Take down why the node failed."""
        source = self.node.place.source
        if isinstance(error, FlowSqlError):
            self.error = error.within(source)
        else:
            self.error = InternalError(f"{type(error).__name__}: {error}").within(source)
            self.error.__cause__ = error
        self.status = Status.FAILED
