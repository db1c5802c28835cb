"""Snapshots on disk of jobs that stop at known positions, with the manifest that a running job writes."""

from __future__ import annotations

from pathlib import Path

from flowsql_core.clock import Clock
from flowsql_core.element import CheckpointBarrier, SnapshotKind
from flowsql_core.graph.job import JobGraph
from flowsql_runtime.checkpoint.assemble import assemble
from flowsql_runtime.checkpoint.storage import LocalFolder
from flowsql_runtime.checkpoint.write import WrittenTask, write_task
from flowsql_runtime.cluster.local import LocalCluster
from flowsql_runtime.operators.registry import is_source


def write_snapshot(
    graph: JobGraph, rows: int, path: Path, clock: Clock | None = None, inline_bytes: int = -1, compress: bool = True
) -> str:
    """Run a job until each source subtask has emitted ``rows`` rows (or its last one), and save it; returns the path.

    The graph's collect resources are those of the test.
    """
    positions = {
        (node.uid, subtask): rows
        for vertex in graph.vertices
        for node in vertex.operators
        if is_source(node.spec)
        for subtask in range(vertex.parallelism)
    }
    saved = LocalCluster(clock, seed=1).run(graph, cut=positions).snapshot
    folder = LocalFolder(str(path))
    written: dict[tuple[int, int], WrittenTask] = {}
    for vertex in graph.vertices:
        for subtask in range(vertex.parallelism):
            found = {node.uid: saved[node.uid][subtask] for node in vertex.operators if node.uid in saved}
            name = f"{vertex.id}-{subtask}.state"
            written[vertex.id, subtask] = write_task(folder, name, subtask, found, compress, inline_bytes)
    barrier = CheckpointBarrier(1, 0, SnapshotKind.SAVEPOINT)
    _, metadata = assemble(barrier, "job", graph, written, set(), {}, {}, {}, "job", {})
    folder.publish(metadata)
    return str(path)
