"""Runs a project in streaming mode: a job a node, side by side, until all have ended or somebody stops them."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Collection
from secrets import token_hex
from typing import TYPE_CHECKING, Final

from flowsql.pipeline.bound import BoundProject
from flowsql.pipeline.kept import OWN_FOLDER, Done, Kept
from flowsql.pipeline.outcome import BROKEN, Outcome, Status
from flowsql.pipeline.project import Node
from flowsql.pipeline.rerun import leave_folder
from flowsql_connectors import registry
from flowsql_core.errors import FlowSqlError
from flowsql_core.graph.spark import EXECUTION_TARGET, streams_on_spark
from flowsql_core.graph.specs import ScanSpec
from flowsql_core.secrets.hidden import hidden
from flowsql_planner.logical.nodes import Scan
from flowsql_planner.logical.rewrite import walk
from flowsql_runtime.checkpoint.settings import DIRECTORY, SAVEPOINT_DIRECTORY, STORAGE
from flowsql_runtime.task.trigger import reads_what_is_there

if TYPE_CHECKING:
    from flowsql.common.job_client import JobClient
    from flowsql.table.table_result import TableResult

#: How often it is looked which jobs have ended.
_PERIOD_S: Final = 0.05

#: Hears of a job that was started.
Began = Callable[[Outcome, "JobClient"], None]
#: Hears of a node that is over; the job is None where none was started.
Told = Callable[[Outcome, "JobClient | None"], None]


class Streams:
    """The jobs of a project; none was started.

    Args:
        bound: the project, in streaming mode.
        kept: what is known of its last runs.
        full: jobs start from the beginning, and those that ended run again.
        nodes: those that this run is about.

    Raises:
        FlowSqlError: a job would wait for ever.
    """

    def __init__(self, bound: BoundProject, kept: Kept, *, full: bool, nodes: Collection[Node]) -> None:
        self._bound = bound
        self._kept = kept
        self._full = full
        order = [node for node in bound.order if node in nodes]
        if streams_on_spark(bound.environment.configuration):
            raise order[0].place.error(
                "streams-on-spark",
                f"The streams of a project run in FlowSQL's own runtime, and '{EXECUTION_TARGET.key}' is 'spark'",
                "flowsql -f runs a stream on Spark",
            )
        bounded = {node: _bounded(bound, node) for node in bound.order}
        #: Jobs stop when they have caught up: those that read what others write come behind them.
        self._takes_turns = reads_what_is_there(dict(bound.environment.configuration.items()))
        #: Nodes whose tables a node reads to their end: it starts when they have ended.
        self._waits = {node: self._awaited(node, bounded, nodes) for node in order}
        #: What becomes of jobs behind which no other one starts.
        self._halts = () if self._takes_turns else (Status.STOPPED,)
        self.outcomes = [Outcome(node, self._reason(node)) for node in order]
        self._running: dict[Node, tuple[Outcome, TableResult, JobClient, float]] = {}

    def _awaited(
        self, node: Node, bounded: dict[Node, dict[tuple[str, ...], bool]], nodes: Collection[Node]
    ) -> list[Node]:
        found = []
        for writer in self._bound.before[node]:
            read = bounded[node]
            shared = [path for path in writer.tables if path.parts in read and (read[path.parts] or self._takes_turns)]
            if not shared or writer not in nodes:
                continue
            if not self._takes_turns and not all(bounded[writer].values()):
                raise node.place.error(
                    "endless-writer",
                    f"This job reads '{shared[0].name}' to its end, and {writer.place}, which writes it, never ends",
                    "'source.monitor-interval' = '1 s' follows new files of a filesystem table",
                )
            found.append(writer)
        return found

    def _reason(self, node: Node) -> str:
        """What the node starts from; empty where it has ended and nothing changed."""
        key = self._bound.keys[node]
        if self._full:
            return "from the beginning (--full)"
        done = self._kept.done.get(key)
        newest = self._newest(node)
        if newest is not None:
            return hidden(f"from {newest}")
        if done is not None and dict(done.parts) == self._bound.parts[node]:
            return ""
        waits = self._waits[node]
        return f"when {waits[0].place} has ended" if waits else "from the beginning"

    def _newest(self, node: Node) -> str | None:
        """The snapshot that the node goes on from.

        Raises:
            FlowSqlError: something that was visible would be written once more; at the node.
        """
        try:
            folder = self._kept.continuation(self._bound.keys[node]).newest(node.settings)
        except FlowSqlError as error:
            raise node.place.located(error) from None
        return None if folder is None else folder.path

    # Running

    def run(self, began: Began, told: Told, *, saves: bool) -> bool:
        """Run until all jobs have ended; whether all went well.

        Args:
            began: hears of each job.
            told: hears of each node when it is over.
            saves: an interrupt stops the jobs with a savepoint each, from which the next run goes on.

        Raises:
            KeyboardInterrupt: the jobs were stopped or cancelled; with ``saves`` only if a job could not be saved.
        """
        self._kept.keep_only(set(self._bound.keys.values()))
        for inserts in self._bound.inserts.values():
            for insert in inserts:
                leave_folder(insert)
        waiting = list(self.outcomes)
        try:
            while waiting or self._running:
                waiting = [outcome for outcome in waiting if not self._begin(outcome, began, told)]
                for node in [node for node, each in self._running.items() if each[2].is_over()]:
                    self._end(node, told)
                time.sleep(_PERIOD_S)
        except KeyboardInterrupt:
            if not saves or not self._save(told):
                self._cancel(told)
                raise
        return not any(outcome.status in BROKEN for outcome in self.outcomes)

    def _begin(self, outcome: Outcome, began: Began, told: Told) -> bool:
        """Start a node, if its time has come; whether it waits no longer."""
        states = {each.node: each.status for each in self.outcomes}
        earlier = [(node, states[node]) for node in self._waits[outcome.node] if node in states]
        broken = next(((node, state) for node, state in earlier if state in (*BROKEN, *self._halts)), None)
        if broken is not None:
            outcome.status = Status.SKIPPED
            outcome.reason = f"{broken[0].place} {broken[1].value}"
        elif not outcome.reason and all(state is Status.UNCHANGED for _, state in earlier):
            outcome.status = Status.UNCHANGED
        elif not all(state in (Status.DONE, Status.UNCHANGED, Status.STOPPED) for _, state in earlier):
            return False
        else:
            outcome.reason = outcome.reason or f"as {earlier[0][0].place} ran"
            self._start(outcome, began, told)
            return True
        told(outcome, None)
        return True

    def _start(self, outcome: Outcome, began: Began, told: Told) -> None:
        node = outcome.node
        bound, key = self._bound, self._bound.keys[outcome.node]
        configuration = bound.environment.configuration
        if self._full:
            self._kept.start_over(key)
        self._kept.forget(key)
        bound.hold(node)
        own = bound.opened.folder / OWN_FOLDER
        if not configuration.get(SAVEPOINT_DIRECTORY):
            configuration.set(SAVEPOINT_DIRECTORY.key, str(own / "savepoints"))
        if not configuration.get(DIRECTORY) and configuration.text(STORAGE.key) is None:
            # In memory they would go with the process, and what they committed would come again.
            configuration.set(DIRECTORY.key, str(own / "checkpoints"))
        started = time.monotonic()
        try:
            going_on = self._kept.continuation(key, bound.parts[node])
            result = bound.start(node, bound.inserts[node], going_on)
        except FlowSqlError as error:
            outcome.fail(error)
            told(outcome, None)
            return
        job = result.get_job_client()
        assert job is not None
        self._running[node] = outcome, result, job, started
        began(outcome, job)

    def _end(self, node: Node, told: Told) -> None:
        outcome, _, job, started = self._running.pop(node)
        outcome.seconds = time.monotonic() - started
        key, parts = self._bound.keys[node], self._bound.parts[node]
        try:
            job.wait()
            job.check_not_cancelled()
            outcome.count(job)
            path = job.stopped_with()
            if path is None:
                outcome.status = Status.DONE
                self._kept.note(key, Done(parts, token_hex(8), outcome.rows or 0))
            else:
                outcome.status = Status.STOPPED
                outcome.reason = hidden(path)
        except FlowSqlError as error:
            outcome.fail(error)
        told(outcome, job)

    def _save(self, told: Told) -> bool:
        """Stop all jobs with a savepoint each; whether none is left."""
        try:
            futures = {}
            for node, (_, _, job, _) in self._running.items():
                with contextlib.suppress(FlowSqlError):  # it has ended, or is about to start again
                    futures[node] = job.stop_with_savepoint(False)
            for node, future in futures.items():
                try:
                    future.result()
                except FlowSqlError as error:
                    self._running[node][0].error = error
            for node in [node for node, each in self._running.items() if each[2].is_over()]:
                self._end(node, told)
        except KeyboardInterrupt:
            return False
        return not self._running

    def _cancel(self, told: Told) -> None:
        for node in list(self._running):
            outcome, result, job, started = self._running.pop(node)
            result.cancel()
            outcome.status, outcome.seconds = Status.CANCELLED, time.monotonic() - started
            outcome.count(job)
            told(outcome, job)


def _bounded(bound: BoundProject, node: Node) -> dict[tuple[str, ...], bool]:
    """Of each table that a node reads whether its rows end."""
    scans = (each for insert in bound.inserts[node] for each in walk(insert.rel) if isinstance(each, Scan))
    return {scan.table.path: registry.create_source(ScanSpec(scan.table, (), ()), {}).bounded for scan in scans}
