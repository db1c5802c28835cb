"""The outputs of a job's operators: how they are called, where their rows go, which columns they have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from flowsql_core.errors import BindError
from flowsql_core.graph.job import ExchangeEdge, JobGraph, OperatorNode, ShipStrategy
from flowsql_core.graph.specs import ScanSpec, SinkSpec
from flowsql_core.record import record
from flowsql_core.types.logical import Schema
from flowsql_runtime.sampling.tap import Place


@record
class Edge:
    """An output of an operator. ``ways``: ``chain`` or how an exchange deals rows out, and to which operator.

    ``tag``: of a side output. Columns of a side output are known by its rows alone.
    """

    node: int
    uid: str
    name: str
    tag: str | None
    ways: tuple[tuple[str, int], ...]
    columns: Schema

    @property
    def place(self) -> Place:
        """Where it is tapped."""
        return self.node, self.tag

    @property
    def title(self) -> str:
        """The operator's name; of a side output also what it is named by."""
        return self.name if self.tag is None else f"{self.name} (side output {self.node}:{self.tag})"


def edges_of(graph: JobGraph) -> tuple[Edge, ...]:
    """All outputs that lead somewhere, in the order of the plan."""
    nodes = {node.id: node for vertex in graph.vertices for node in vertex.operators}
    heads = {vertex.id: vertex.head for vertex in graph.vertices}
    ways: dict[Place, list[tuple[str, int]]] = {}
    for vertex in graph.vertices:
        for link in vertex.chain:
            ways.setdefault((link.source, link.tag), []).append(("chain", link.target))
    for edge in graph.edges:
        way = _exchange(edge, nodes[edge.source]), heads[edge.target_vertex].id
        ways.setdefault((edge.source, edge.tag), []).append(way)
    return tuple(
        Edge(node.id, node.uid, node.name, tag, tuple(found), node.output if tag is None else ())
        for node in nodes.values()
        for (source, tag), found in sorted(ways.items(), key=lambda one: (one[0][0], one[0][1] or ""))
        if source == node.id
    )


def _exchange(edge: ExchangeEdge, source: OperatorNode) -> str:
    strategy = edge.partitioning.strategy
    if strategy is not ShipStrategy.HASH:
        return str(strategy.value)
    return f"{strategy.value}[{', '.join(source.output[key].name for key in edge.partitioning.keys)}]"


def edges_named(graph: JobGraph, text: str) -> tuple[Edge, ...]:
    """The output that a text names, or those that feed the sink that it names.

    A text is an operator's number, its uid, its name, the table that it reads or writes, or a beginning of uid or name
    that fits one operator only; capitals and small letters are the same. ``:tag`` behind it means a side output.

    Raises:
        BindError: none or several fit; the hint lists those that could be meant.
    """
    edges = edges_of(graph)
    by_node: dict[int, tuple[Edge, ...]] = {}
    for edge in edges:
        by_node[edge.node] = (*by_node.get(edge.node, ()), edge)
    nodes = [node for vertex in graph.vertices for node in vertex.operators]
    found = _named(nodes, text)
    operator, colon, tag = text.rpartition(":")
    if not found and colon and len(found := _named(nodes, operator)) == 1:
        side = tuple(edge for edge in by_node.get(found[0].id, ()) if edge.tag == tag.strip())
        if side:
            return side
        found = []
    if len(found) != 1:
        what = "is not an operator of the job" if not found else "fits several operators of the job"
        raise BindError("no-such-edge", f"'{text}' {what}.", hint=_listed(found or nodes))
    node = found[0]
    # Of an operator with side outputs the main one, which is the first.
    return by_node[node.id][:1] if node.id in by_node else _feeding(graph, node, edges)


def edges_of_table(graph: JobGraph, text: str) -> tuple[Edge, ...]:
    """What the scans of a table give, or else what its sinks are given.

    Raises:
        BindError: the job neither reads nor writes the table, or reads it several times with different columns.
    """
    nodes = [node for vertex in graph.vertices for node in vertex.operators]
    parts = tuple(part.strip("`").lower() for part in text.split("."))
    edges = edges_of(graph)

    def fits(path: Sequence[str]) -> bool:
        return tuple(part.lower() for part in path[-len(parts) :]) == parts

    scans = [node for node in nodes if isinstance(node.spec, ScanSpec) and fits(node.spec.table.path)]
    sinks = [node for node in nodes if isinstance(node.spec, SinkSpec) and fits(node.spec.table.path)]
    if not scans and not sinks:
        tables = [node.spec.table.name for node in nodes if isinstance(node.spec, ScanSpec | SinkSpec)]
        names = ", ".join(sorted(set(tables))) or "none"
        raise BindError("no-such-table", f"The job neither reads nor writes a table '{text}'.", hint=f"it has {names}")
    found = tuple(edge for edge in edges if edge.node in {node.id for node in scans} and edge.tag is None)
    if not found:
        found = tuple(dict.fromkeys(edge for node in sinks for edge in _feeding(graph, node, edges)))
    if len({tuple((c.name, str(c.type)) for c in edge.columns) for edge in found}) > 1:
        raise BindError(
            "several-edges",
            f"The job has table '{text}' in several places with different columns.",
            hint="flowsql sample shows one of them: " + ", ".join(f"{edge.node} ({edge.name})" for edge in found),
        )
    return found


def _feeding(graph: JobGraph, node: OperatorNode, edges: Sequence[Edge]) -> tuple[Edge, ...]:
    """What an operator is given: of a sink, which has no output of its own."""
    places: set[Place] = set()
    for vertex in graph.vertices:
        places |= {(link.source, link.tag) for link in vertex.chain if link.target == node.id}
        if vertex.head.id == node.id:
            places |= {(edge.source, edge.tag) for edge in graph.edges if edge.target_vertex == vertex.id}
    found = tuple(edge for edge in edges if edge.place in places)
    if isinstance(node.spec, SinkSpec):
        # What comes to a table has the table's columns, whatever the query calls them.
        columns = node.spec.input
        found = tuple(replace(edge, columns=columns) if len(edge.columns) == len(columns) else edge for edge in found)
    return found


def _named(nodes: Sequence[OperatorNode], text: str) -> list[OperatorNode]:
    """Those that a text names as a whole, or else those that begin with it."""
    wanted = text.strip().lower()
    found = [node for node in nodes if wanted in (str(node.id), node.uid.lower(), node.name.lower(), _table(node))]
    return found or [node for node in nodes if wanted and _begins(node, wanted)]


def _table(node: OperatorNode) -> str | None:
    return node.spec.table.path[-1].lower() if isinstance(node.spec, ScanSpec | SinkSpec) else None


def _begins(node: OperatorNode, wanted: str) -> bool:
    return node.name.lower().startswith(wanted) or node.uid.lower().startswith(wanted)


def _listed(nodes: Sequence[OperatorNode]) -> str:
    return "one of " + ", ".join(f"{node.id} ({node.uid})" for node in nodes)
