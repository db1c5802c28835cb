"""A job as it runs: chains of operators in tasks and exchanges between them, as text, JSON and a chart of Mermaid."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any, Final

from flowsql_core.graph.job import ExchangeEdge, JobGraph, JobVertex, OperatorNode, ResultPartitionType, ShipStrategy
from flowsql_core.record import record

JOB_TITLE: Final = "== Job Graph =="
_LONGEST: Final = 60


@record
class PlacedJob:
    """A job and where the statement stands that begins it: ``script.sql:12``."""

    place: str
    graph: JobGraph


def job_text(jobs: Sequence[PlacedJob]) -> str:
    """Tasks in topological order: their parallelism, their operators, and what they read."""
    return "\n\n".join(f"{JOB_TITLE} ({job.place})\n{_tasks(job.graph)}" for job in jobs)


def _tasks(graph: JobGraph) -> str:
    lines = []
    for vertex in graph.vertices:
        inputs = [f"{_arrow(graph, edge)} from task {edge.source_vertex}" for edge in graph.inputs_of(vertex.id)]
        reads = f", reads {'; '.join(inputs)}" if inputs else ""
        lines.append(f"task {vertex.id}, parallelism {vertex.parallelism}{reads}")
        lines += [f"  {node.name}" for node in vertex.operators]
    return "\n".join(lines)


def job_json(jobs: Sequence[PlacedJob]) -> str:
    """``[{"place", "name", "vertices": [{"id", "parallelism", "operators"}], "edges": [...]}]``."""
    return json.dumps([_as_json(job) for job in jobs], indent=2, ensure_ascii=False)


def _as_json(job: PlacedJob) -> dict[str, Any]:
    graph = job.graph
    return {
        "place": job.place,
        "name": graph.name,
        "vertices": [
            {
                "id": vertex.id,
                "name": vertex.name,
                "parallelism": vertex.parallelism,
                "operators": [{"id": node.id, "uid": node.uid, "name": node.name} for node in vertex.operators],
                "chain": [{"source": edge.source, "target": edge.target} for edge in vertex.chain],
            }
            for vertex in graph.vertices
        ],
        "edges": [
            {
                "source_vertex": edge.source_vertex,
                "source": edge.source,
                "target_vertex": edge.target_vertex,
                "input": edge.input_index,
                "ship_strategy": edge.partitioning.strategy.value,
                "keys": _keys(graph, edge),
                "partition_type": edge.partition_type.value,
            }
            for edge in graph.edges
        ],
    }


def job_mermaid(jobs: Sequence[PlacedJob]) -> str:
    """A flow chart: a box a task, the operators of its chain in it, and exchanges as arrows between them."""
    lines = ["flowchart LR"]
    for number, job in enumerate(jobs):
        for vertex in job.graph.vertices:
            lines += _box(f"j{number}", vertex)
        for edge in job.graph.edges:
            source, target = f"j{number}o{edge.source}", f"j{number}o{_head(job.graph, edge).id}"
            lines.append(f'  {source} ==>|"{_label(_arrow(job.graph, edge))}"| {target}')
    return "\n".join(lines)


def _box(job: str, vertex: JobVertex) -> list[str]:
    title = f"task {vertex.id}, parallelism {vertex.parallelism}"
    lines = [f'  subgraph {job}v{vertex.id}["{title}"]']
    lines += [f'    {job}o{node.id}["{_label(node.name)}"]' for node in vertex.operators]
    lines += [f"    {job}o{edge.source} --> {job}o{edge.target}" for edge in vertex.chain]
    return [*lines, "  end"]


def _arrow(graph: JobGraph, edge: ExchangeEdge) -> str:
    """``HASH[user_id]``; ``, blocking`` where the reader waits for the end of the writer."""
    keys = _keys(graph, edge)
    blocking = ", blocking" if edge.partition_type is ResultPartitionType.BLOCKING else ""
    return edge.partitioning.strategy.value + (f"[{', '.join(keys)}]" if keys else "") + blocking


def _keys(graph: JobGraph, edge: ExchangeEdge) -> list[str]:
    if edge.partitioning.strategy is not ShipStrategy.HASH:
        return []
    (source,) = [
        node
        for vertex in graph.vertices
        if vertex.id == edge.source_vertex
        for node in vertex.operators
        if node.id == edge.source
    ]
    return [source.output[key].name for key in edge.partitioning.keys]


def _head(graph: JobGraph, edge: ExchangeEdge) -> OperatorNode:
    return next(vertex.head for vertex in graph.vertices if vertex.id == edge.target_vertex)


def _label(text: str) -> str:
    """A text inside of Mermaid's quotes, cut where it is long."""
    short = text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."
    return re.sub(r'["<>#]', lambda found: f"#{ord(found[0])};", short)


FORMS: Final[dict[str, Callable[[Sequence[PlacedJob]], str]]] = {
    "text": job_text,
    "json": job_json,
    "mermaid": job_mermaid,
}
