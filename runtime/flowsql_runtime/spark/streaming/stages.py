"""A streaming job cut into stages: which vertices run side by side in the tasks of one stage of Spark."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from flowsql_connectors import registry
from flowsql_core.graph.job import ExchangeEdge, JobGraph, JobVertex, OperatorNode, ShipStrategy
from flowsql_core.graph.specs import CollectSinkSpec, ScanSpec, SinkSpec, WatermarkAssignerSpec
from flowsql_core.record import record

#: Before the uid of a sink: resource that takes its rows on their way to the program.
TO_DRIVER: Final = "to-driver/"


@record
class Stage:
    """Vertices without an exchange between them; task ``n`` runs subtask ``n`` of each, one after the other."""

    vertices: tuple[JobVertex, ...]

    @property
    def tasks(self) -> int:
        """As many as the widest vertex has subtasks."""
        return max(vertex.parallelism for vertex in self.vertices)


def stages_of(graph: JobGraph) -> tuple[Stage, ...]:
    """The stages in order: a vertex stands behind all that send rows to it, as early as that allows."""
    depth: dict[int, int] = {}
    left = list(graph.vertices)
    while left:
        for vertex in left:
            senders = [edge.source_vertex for edge in graph.inputs_of(vertex.id)]
            if all(sender in depth for sender in senders):
                depth[vertex.id] = max((depth[sender] + 1 for sender in senders), default=0)
        left = [vertex for vertex in left if vertex.id not in depth]
    found = max(depth.values(), default=-1) + 1
    return tuple(Stage(tuple(v for v in graph.vertices if depth[v.id] == number)) for number in range(found))


def sources_of(graph: JobGraph) -> dict[str, tuple[JobVertex, ScanSpec]]:
    """The scans of a job by uid, with the vertices that they head."""
    return {
        node.uid: (vertex, node.spec)
        for vertex in graph.vertices
        for node in vertex.operators
        if isinstance(node.spec, ScanSpec)
    }


def sinks_of(graph: JobGraph) -> dict[str, SinkSpec]:
    """The tables that a job writes, by uid."""
    return {
        node.uid: node.spec for vertex in graph.vertices for node in vertex.operators if isinstance(node.spec, SinkSpec)
    }


def for_tasks(graph: JobGraph) -> JobGraph:
    """The job as tasks run it.

    A watermark leaves as soon as a row lifts it: the last row of a batch must not wait for a later one. Rows for sinks
    that write to the program go there.
    """
    parameters = dict(graph.configuration)

    def changed(node: OperatorNode) -> OperatorNode:
        spec = node.spec
        match spec:
            case WatermarkAssignerSpec():
                return replace(node, spec=replace(spec, interval_ms=0, idle_timeout_ms=0))
            case CollectSinkSpec():
                return replace(node, spec=replace(spec, resource=TO_DRIVER + node.uid))
            case SinkSpec() if not registry.create_sink(spec, parameters).writes_anywhere():
                return replace(node, spec=CollectSinkSpec(TO_DRIVER + node.uid, spec.input, spec.changelog_mode))
        return node

    vertices = tuple(replace(vertex, operators=tuple(map(changed, vertex.operators))) for vertex in graph.vertices)
    collected = {
        node.spec.resource for v in graph.vertices for node in v.operators if isinstance(node.spec, CollectSinkSpec)
    }
    resources = {name: thing for name, thing in graph.resources.items() if name not in collected}
    return replace(graph, vertices=vertices, resources=resources)


def explain_stages(graph: JobGraph) -> str:
    """The stages as EXPLAIN shows them."""
    lines: list[str] = []
    names = {vertex.id: vertex.name for vertex in graph.vertices}
    for number, stage in enumerate(stages_of(graph), 1):
        lines.append(f"Stage {number}, {_count(stage.tasks, 'task')}")
        for vertex in stage.vertices:
            lines.append(f"  {vertex.name}")
            for edge in graph.inputs_of(vertex.id):
                lines.append(f"    {_exchange(edge)} from {names[edge.source_vertex]}")
    return "\n".join(lines) + "\n"


def _exchange(edge: ExchangeEdge) -> str:
    keys = edge.partitioning.keys
    strategy = edge.partitioning.strategy
    if strategy is not ShipStrategy.HASH:
        return str(strategy.value)
    return f"{strategy.value} of {_count(len(keys), 'column')}"


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
