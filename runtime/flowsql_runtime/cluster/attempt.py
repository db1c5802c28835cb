"""One attempt to run a job: its tasks in threads of their own (or one in the caller's), until all have ended.

Tasks that ended may be exchanged for new ones while others run (``failover.py``).
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Sequence

from flowsql_runtime.cluster.deploy import Deployment
from flowsql_runtime.cluster.job import Job
from flowsql_runtime.network.partition import OutputFlusher, RecordWriter
from flowsql_runtime.task.mailbox import TaskCancelled
from flowsql_runtime.task.task import StreamTask, TaskKey

logger = logging.getLogger(__name__)


class Attempt:
    """Any thread.

    Args:
        job: what the submitter holds.
        deployment: whose tasks run.
        failed: hears of each failure, in the thread of the task, which has not ended yet.
        over: called once, behind the last task, in its thread.
    """

    def __init__(
        self,
        job: Job,
        deployment: Deployment,
        failed: Callable[[StreamTask, BaseException], None],
        over: Callable[[], None],
    ) -> None:
        self.deployment = deployment
        self._job = job
        self._failed = failed
        self._over = over
        try:
            self._tasks = {task.key: task for task in deployment.tasks()}
        except BaseException:
            deployment.release()
            raise
        self._flusher = OutputFlusher(_writers(self.tasks))
        self._changed = threading.Condition()
        #: Tasks that have not ended.
        self._running = set(self._tasks)
        self._holds = 0

    @property
    def tasks(self) -> list[StreamTask]:
        """Those that run, have run, or will run next; sources first."""
        return list(self._tasks.values())

    def start(self) -> None:
        """One thread per task."""
        self._flusher.start()
        tasks = self.tasks
        for task in tasks:
            self._start(task)
        if not tasks:
            self._over()

    def run_here(self) -> None:
        """The lone task in this thread. An interrupt cancels the job and is raised again."""
        (task,) = self.tasks
        self._run(task)

    def finish(self) -> None:
        """Behind the last task: give back what they shared."""
        self._flusher.stop()
        self.deployment.release()

    def _start(self, task: StreamTask) -> None:
        threading.Thread(target=self._run, args=(task,), name=f"{task.name[:40]}-{task.subtask}", daemon=True).start()

    def _run(self, task: StreamTask) -> None:
        try:
            task.run()
            self.deployment.let_go(task.key)
        except TaskCancelled:
            pass
        except KeyboardInterrupt:
            self._job.cancel()
            raise
        except BaseException as error:  # the job must hear of every end of a task
            logger.debug("job=%s task=%s subtask=%d failed", self._job.id, task.name, task.subtask, exc_info=True)
            self._failed(task, error)
        finally:
            self._less(task.key)

    def _less(self, task: TaskKey | None) -> None:
        with self._changed:
            if task is None:
                self._holds -= 1
            else:
                self._running.discard(task)
            self._changed.notify_all()
            last = not self._running and not self._holds
        if last:
            self._over()

    # -- exchanging tasks

    def hold(self) -> None:
        """The attempt is not over before :meth:`let_go`."""
        with self._changed:
            self._holds += 1

    def let_go(self) -> None:
        """Undo a :meth:`hold`; may end the attempt, in this thread."""
        self._less(None)

    def await_end(self, tasks: Collection[TaskKey]) -> None:
        """Wait until these have ended."""
        with self._changed:
            self._changed.wait_for(lambda: self._running.isdisjoint(tasks))

    def exchange(self, tasks: Sequence[StreamTask]) -> None:
        """New tasks in the place of those with the same keys, which have ended. One caller at a time."""
        old = [self._tasks[task.key] for task in tasks]
        self._tasks = {**self._tasks, **{task.key: task for task in tasks}}
        self._flusher.exchange(_writers(old), _writers(tasks))

    def start_again(self, tasks: Sequence[StreamTask]) -> None:
        """Threads for exchanged tasks."""
        with self._changed:
            self._running.update(task.key for task in tasks)
        for task in tasks:
            self._start(task)


def _writers(tasks: Sequence[StreamTask]) -> list[RecordWriter]:
    return [writer for task in tasks for writer in task.writers]
