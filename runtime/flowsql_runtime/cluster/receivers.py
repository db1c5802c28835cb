"""Who gets the rows that a job hands to the program."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flowsql_core.graph.job import JobGraph
from flowsql_core.graph.specs import CollectSinkSpec


def collect_resources(graph: JobGraph) -> Sequence[Any]:
    """The receivers of a graph's collect sinks."""
    return [
        graph.resources[node.spec.resource]
        for vertex in graph.vertices
        for node in vertex.operators
        if isinstance(node.spec, CollectSinkSpec)
    ]
