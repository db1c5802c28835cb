"""The whole-graph cut: run to given source positions, drain, save every operator, go on at another parallelism."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from flowsql_core.batch import ChangelogBatch
from flowsql_core.clock import Clock
from flowsql_core.graph.job import JobGraph
from flowsql_core.graph.specs import CollectSinkSpec
from flowsql_core.record import record
from flowsql_runtime.checkpoint.layout import new_states
from flowsql_runtime.checkpoint.of_snapshots import reader_of
from flowsql_runtime.checkpoint.settings import RECOVERY_PATH
from flowsql_runtime.checkpoint.storage import LocalFolder
from flowsql_runtime.cluster.job import Job
from flowsql_runtime.cluster.local import LocalCluster
from flowsql_runtime.operators.registry import is_source
from flowsql_runtime.task.restore import JobSnapshot
from flowsql_runtime.testing.harness import batch_rows


class Recorder:
    """A collect receiver that keeps batches."""

    def __init__(self) -> None:
        self.batches: list[ChangelogBatch] = []

    def accept(self, batch: ChangelogBatch) -> None:
        """Keep."""
        self.batches.append(batch)  # appending is atomic: subtasks may share one receiver

    def finish(self) -> None:
        """Nothing to do."""


@record
class CutRun:
    """What came out before and after the cut, per collect resource, as rows of (kind, values ...)."""

    before: dict[str, list[tuple[Any, ...]]]
    after: dict[str, list[tuple[Any, ...]]]
    snapshot: JobSnapshot
    second: Job

    def rows(self, resource: str = "out") -> list[tuple[Any, ...]]:
        """Both parts, one behind the other."""
        return self.before[resource] + self.after[resource]


def run_cut(
    make_graph: Callable[[int], JobGraph],
    parallelism: tuple[int, int],
    stop_at: int | Callable[[str, int], int],
    clock: Clock | None = None,
    folder: Path | None = None,
) -> CutRun:
    """Run a graph at one parallelism up to a cut, and on at another.

    Args:
        make_graph: the same job at a given parallelism (same operator uids).
        parallelism: before and after the cut.
        stop_at: rows that each source subtask emits before the cut, or a function of (operator uid, subtask). A
            subtask with fewer rows stops at its end.
        clock: processing time of both runs.
        folder: the snapshot is written there, and the second run starts from it as a job of a user does
            (``execution.state-recovery.path``); None: through bytes in memory.
    """
    first = make_graph(parallelism[0])
    positions = {
        (node.uid, subtask): stop_at if isinstance(stop_at, int) else stop_at(node.uid, subtask)
        for vertex in first.vertices
        for node in vertex.operators
        if is_source(node.spec)
        for subtask in range(vertex.parallelism)
    }
    cluster = LocalCluster(clock, seed=1)
    first, before = _recording(first)
    job = cluster.run(first, cut=positions)
    second, after = _recording(make_graph(parallelism[1]))
    if folder is None:
        continued = cluster.run(second, restored=job.snapshot)
    else:
        groups = max(vertex.max_parallelism for vertex in first.vertices)
        layouts = {uid: state.layout for uid, state in new_states(first).items()}
        reader_of(job.snapshot, groups, LocalFolder(str(folder)), layouts)
        path = (RECOVERY_PATH.key, str(folder))
        continued = cluster.run(replace(second, configuration=(*second.configuration, path)))
    return CutRun(_rows(before), _rows(after), job.snapshot, continued)


def run_whole(graph: JobGraph, clock: Clock | None = None) -> dict[str, list[tuple[Any, ...]]]:
    """Run undisturbed: rows per collect resource."""
    recording, recorders = _recording(graph)
    LocalCluster(clock, seed=1).run(recording)
    return _rows(recorders)


def _recording(graph: JobGraph) -> tuple[JobGraph, dict[str, Recorder]]:
    recorders = {
        node.spec.resource: Recorder()
        for vertex in graph.vertices
        for node in vertex.operators
        if isinstance(node.spec, CollectSinkSpec)
    }
    return replace(graph, resources={**graph.resources, **recorders}), recorders


def _rows(recorders: dict[str, Recorder]) -> dict[str, list[tuple[Any, ...]]]:
    return {name: [row for batch in found.batches for row in batch_rows(batch)] for name, found in recorders.items()}
