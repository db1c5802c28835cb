"""``flowsql.trigger`` = ``available-now``: a stream takes what is there, stops with a savepoint, and goes on later.

Source: Spark's ``Trigger.AvailableNow``. Other than there the job is an ordinary stream: state, watermarks and open
windows stand in the savepoint, and what came while it ran may be read, too.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from flowsql_connectors import registry
from flowsql_core.config import Configuration
from flowsql_core.element import SnapshotKind
from flowsql_core.errors import BindError, ExecutionError, FlowSqlError
from flowsql_core.graph.job import JobGraph
from flowsql_core.graph.specs import ScanSpec
from flowsql_runtime.checkpoint.settings import SAVEPOINT_DIRECTORY
from flowsql_runtime.metrics.told import Answer, Backlog, answers
from flowsql_runtime.task.trigger import TRIGGER, Trigger

if TYPE_CHECKING:
    from flowsql_runtime.cluster.job import Job

logger = logging.getLogger(__name__)


#: How often it is asked whether the job has caught up, seconds.
_PERIOD_S: Final = 0.05
#: How long a task is waited for that is in the middle of a batch, seconds.
_PATIENCE_S: Final = 1.0


def check_can_stop(graph: JobGraph, configuration: Configuration) -> None:
    """Raise what would keep the job from stopping, before it reads anything.

    Raises:
        BindError: a table never tells that all of it was read.
        ExecutionError: no folder for the savepoint is known.
    """
    parameters = dict(configuration.items())
    for vertex in graph.vertices:
        for node in vertex.operators:
            if not isinstance(node.spec, ScanSpec):
                continue
            source = registry.create_source(node.spec, parameters)
            if not source.bounded and not source.tells_backlog:
                table = node.spec.table
                raise BindError(
                    "endless-backlog",
                    f"Table '{table.name}' cannot be read with '{TRIGGER.key}' = '{Trigger.AVAILABLE_NOW.value}': the "
                    f"connector '{table.option('connector')}' cannot tell when all that was there has been read.",
                )
    if not configuration.get(SAVEPOINT_DIRECTORY):
        raise ExecutionError(
            "no-savepoint-directory",
            f"A job with '{TRIGGER.key}' = '{Trigger.AVAILABLE_NOW.value}' stops with a savepoint, and no folder for "
            "it is known.",
            hint=f"SET '{SAVEPOINT_DIRECTORY.key}'",
        )


class AvailableNow:
    """Stops a job once its sources have caught up."""

    def __init__(self, job: Job) -> None:
        self._job = job

    def start(self) -> None:
        """Watch from a thread of its own until the job is over."""
        threading.Thread(target=self._watch, name=f"available-now-{self._job.name[:40]}", daemon=True).start()

    def _watch(self) -> None:
        over = threading.Event()
        self._job.on_end(over.set)
        while not over.wait(_PERIOD_S):
            if self._caught_up():
                try:
                    self._job.savepoint(None, SnapshotKind.SUSPEND).result()
                except FlowSqlError as error:
                    # The job ended by itself, or starts again from a checkpoint and has to catch up once more.
                    logger.info("job=%s is not stopped yet: %s", self._job.id, error.render())

    def _caught_up(self) -> bool:
        """Whether no source has anything left; one whose task has ended has not."""
        asking: list[Mapping[type, Callable[[], Answer]]] = [
            {Backlog: operator.told[Backlog]}
            for task in list(self._job.metrics.tasks)
            if not task.stopped_ns
            for operator in list(task.operators)
            if Backlog in operator.told
        ]
        return bool(asking) and all(told == (Backlog(caught_up=True),) for told in answers(asking, _PATIENCE_S))
