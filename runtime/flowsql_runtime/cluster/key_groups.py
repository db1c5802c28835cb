"""The key groups of a job that starts from a snapshot: those by which its state was dealt out."""

from __future__ import annotations

from dataclasses import replace

from flowsql_core.errors import ExecutionError
from flowsql_core.graph.job import JobGraph
from flowsql_runtime.task.restore import RestoredState


def with_restored_key_groups(graph: JobGraph, restored: RestoredState) -> JobGraph:
    """The graph with the numbers of key groups that its state was dealt out by.

    Raises:
        ExecutionError: more subtasks than there are key groups.
    """
    vertices = []
    for vertex in graph.vertices:
        found = (restored.max_parallelism(node.uid) for node in vertex.operators)
        groups = max((number for number in found if number is not None), default=vertex.max_parallelism)
        if vertex.parallelism > groups:
            raise ExecutionError(
                "parallelism-too-high",
                f"Operator '{vertex.name}' has parallelism {vertex.parallelism}, and its state was dealt out to "
                f"{groups} key groups.",
                hint=f"a parallelism of at most {groups}",
            )
        vertices.append(replace(vertex, max_parallelism=groups))
    return replace(graph, vertices=tuple(vertices))
