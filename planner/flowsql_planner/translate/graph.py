"""Physical plan -> JobGraph: operators with parallelism, edges, chains, vertices.

Exchanges become edges; assigners of mini-batches for which no operator waits vanish.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from flowsql_core.errors import InternalError
from flowsql_core.graph.job import (
    FORWARD,
    ChainEdge,
    ChainingStrategy,
    ExchangeEdge,
    JobGraph,
    JobVertex,
    OperatorNode,
    Partitioning,
    ShipStrategy,
)
from flowsql_core.graph.specs import ConstraintEnforcerSpec, OperatorSpec, SinkSpec
from flowsql_core.record import record
from flowsql_core.types.logical import Schema
from flowsql_planner.physical.context import PlanContext
from flowsql_planner.physical.nodes import (
    Exchange,
    GroupAggregate,
    JobContext,
    Physical,
    SinkNode,
    TableSourceScan,
    ValuesNode,
    walk,
)
from flowsql_planner.physical.nodes.bounded import BoundedAggregate
from flowsql_planner.physical.passes.mini_batches import idle_assigners
from flowsql_planner.translate import exchange
from flowsql_planner.translate.chaining import ALIGNED, ChainDecision, EdgeFacts, decide, edges_of_aligned_sources
from flowsql_planner.translate.options import (
    CHAIN_SINGLE_PARTITION,
    MAX_PARALLELISM,
    OPERATOR_CHAINING,
    sql_parallelism,
)
from flowsql_planner.translate.together import run_together
from flowsql_planner.translate.uid import UidAssigner


@record
class StreamEdge:
    """Between two operators of the stream graph."""

    source: int
    target: int
    input_index: int
    partitioning: Partitioning
    decision: ChainDecision


@record
class StreamNode:
    """An operator with its parallelism, and the plan node it came from."""

    operator: OperatorNode
    parallelism: int
    physical: Physical


@dataclass(slots=True)
class StreamGraph:
    """Operators in topological order with their edges: what EXPLAIN lists and what vertices are cut from."""

    nodes: dict[int, StreamNode] = field(default_factory=dict)
    edges: list[StreamEdge] = field(default_factory=list)
    _inputs: dict[int, list[StreamEdge]] = field(default_factory=dict)

    def connect(self, edge: StreamEdge) -> None:
        """Add an edge; those into one operator come by input index."""
        self.edges.append(edge)
        self._inputs.setdefault(edge.target, []).append(edge)

    def chain_aligned_sources(self) -> None:
        """Sources that watermarks hold back share a task with these."""
        specs = {number: node.operator.spec for number, node in self.nodes.items()}
        forced = edges_of_aligned_sources(self.edges, specs)
        self.edges = [
            replace(edge, decision=ALIGNED) if (edge.source, edge.target) in forced else edge for edge in self.edges
        ]
        self._inputs = {}
        for edge in self.edges:
            self._inputs.setdefault(edge.target, []).append(edge)

    def inputs_of(self, operator: int) -> Sequence[StreamEdge]:
        """Edges into an operator, by input index."""
        return self._inputs.get(operator, ())


def default_max_parallelism(parallelism: int) -> int:
    """Flink's rule: 1.5 times the parallelism rounded up to a power of two, between 128 and 32768."""
    wanted = parallelism + parallelism // 2
    return min(max(1 << max(wanted - 1, 0).bit_length(), 128), 1 << 15)


def build_stream_graph(
    roots: Sequence[Physical], context: PlanContext, collect_resources: Mapping[str, str]
) -> StreamGraph:
    """All operators of a plan. A node shared by several consumers is one operator.

    Raises:
        NotSupportedYetError: the plan holds a node without an operator.
    """
    return _Builder(context, dict(collect_resources)).build(roots)


class _Builder:
    def __init__(self, context: PlanContext, collect_resources: dict[str, str]) -> None:
        self._context = context
        self._job = JobContext(context.configuration, context.mini_batch, context.resources, collect_resources)
        self._uids = UidAssigner()
        self._graph = StreamGraph()
        self._ids: dict[int, int] = {}
        configuration = context.configuration
        self._parallelism = sql_parallelism(configuration)
        self._chaining = configuration.get(OPERATOR_CHAINING)
        self._chain_single = configuration.get(CHAIN_SINGLE_PARTITION)

    def build(self, roots: Sequence[Physical]) -> StreamGraph:
        roots = run_together(roots, self._parallelism)
        self._idle = idle_assigners(roots)
        for root in roots:
            for node in walk(root):
                if not isinstance(node, Exchange) and not self._skipped(node) and id(node) not in self._ids:
                    self._add(node)
        self._graph.chain_aligned_sources()
        return self._graph

    def _skipped(self, node: Physical) -> bool:
        return id(node) in self._idle

    def _producer(self, node: Physical) -> tuple[Physical, Exchange | None]:
        """The operator node behind an input, and the exchange on the way."""
        planned: Exchange | None = None
        while isinstance(node, Exchange) or self._skipped(node):
            if isinstance(node, Exchange):
                planned = node
            node = node.inputs[0]
        return node, planned

    def _add(self, node: Physical) -> None:
        parallelism = self._parallelism_of(node)
        if isinstance(node, GroupAggregate | BoundedAggregate) and node.runs_in_phases(self._parallelism):
            self._add_phases(node)
            return
        if isinstance(node, SinkNode):
            self._add_sink(node, parallelism)
            return
        name = node.describe(infix=True)
        if isinstance(node, TableSourceScan):
            name = f"Source: {node.table.path[-1]}[{len(self._graph.nodes) + 1}]"
        number = self._operator(node, self._uids.assign(node), name, node.spec(self._job), node.schema, parallelism)
        self._ids[id(node)] = number
        for index, child in enumerate(node.inputs):
            producer, planned = self._producer(child)
            source = self._graph.nodes[self._ids[id(producer)]]
            own_keys = node.partitioned_by()
            if planned is not None:
                partitioning = exchange.of_exchange(planned)
            elif own_keys:
                partitioning = Partitioning(ShipStrategy.HASH, own_keys)
            else:
                partitioning = exchange.between(producer, node, source.parallelism, parallelism)
            self._connect(source, number, index, partitioning)

    def _add_sink(self, node: SinkNode, parallelism: int) -> None:
        """A sink, behind what keeps its table's constraints in the producer's task, and what makes one row a key."""
        uid = self._uids.assign(node)
        producer, planned = self._producer(node.inputs[0])
        before = self._graph.nodes[self._ids[id(producer)]]
        enforcer = node.enforcer(self._job)
        if enforcer is not None:
            demanded = (*enforcer.constraints, *enforcer.expectations)
            name = f"ConstraintEnforcer[{', '.join(map(str, demanded))}]"
            number = self._operator(node, f"Enforcer{uid}", name, enforcer, producer.schema, before.parallelism)
            self._connect(before, number, 0, FORWARD)
            before = self._graph.nodes[number]
        materializer = node.materializer(self._job)
        if materializer is not None:
            keys = ", ".join(materializer.input[key].name for key in materializer.keys)
            name = f"SinkMaterializer(pk=[{keys}])"
            number = self._operator(node, f"Materializer{uid}", name, materializer, producer.schema, parallelism)
            self._connect(before, number, 0, Partitioning(ShipStrategy.HASH, materializer.keys))
            before = self._graph.nodes[number]
        number = self._operator(node, uid, node.describe(infix=True), node.spec(self._job), node.schema, parallelism)
        self._ids[id(node)] = number
        if planned is not None and materializer is None:
            partitioning = exchange.of_exchange(planned)
        else:
            partitioning = exchange.between(producer, node, before.parallelism, parallelism)
        self._connect(before, number, 0, partitioning)

    def _add_phases(self, node: GroupAggregate | BoundedAggregate) -> None:
        """Rows are folded before they travel: the first phase runs in the producer's task."""
        producer, _ = self._producer(node.inputs[0])
        before = self._graph.nodes[self._ids[id(producer)]]
        uid = self._uids.assign(node)
        for phase in node.phases(self._job):
            parallelism = self._parallelism
            partitioning = FORWARD
            if phase.keys is None:
                parallelism = before.parallelism
            elif phase.keys:
                partitioning = Partitioning(ShipStrategy.HASH, phase.keys)
            else:
                parallelism, partitioning = 1, exchange.GLOBAL
            number = self._operator(node, f"{phase.prefix}{uid}", phase.name, phase.spec, phase.output, parallelism)
            self._connect(before, number, 0, partitioning)
            before = self._graph.nodes[number]
        self._ids[id(node)] = before.operator.id

    def _operator(
        self, node: Physical, uid: str, name: str, spec: OperatorSpec, output: Schema, parallelism: int
    ) -> int:
        number = len(self._graph.nodes) + 1
        operator = OperatorNode(
            id=number,
            uid=uid,
            name=name,
            spec=spec,
            output=output,
            number_of_inputs=len(node.inputs),
            chaining=ChainingStrategy.ALWAYS if node.inputs else ChainingStrategy.HEAD,
            lineage=self._uids.arriving(node),
            predicates=node.predicates(self._uids.arriving(node)),
            arriving=tuple(child.schema for child in node.inputs),
        )
        self._graph.nodes[number] = StreamNode(operator, parallelism, node)
        return number

    def _connect(self, source: StreamNode, number: int, index: int, partitioning: Partitioning) -> None:
        target = self._graph.nodes[number]
        facts = EdgeFacts(
            partitioning,
            source.parallelism,
            target.parallelism,
            target.operator.number_of_inputs,
            source.operator.chaining,
            target.operator.chaining,
        )
        decision = decide(facts, self._chaining, self._chain_single)
        self._graph.connect(StreamEdge(source.operator.id, number, index, partitioning, decision))

    def _parallelism_of(self, node: Physical) -> int:
        match node:
            case ValuesNode():
                return 1
            case TableSourceScan():
                own = node.table.option("scan.parallelism")
                return int(own) if own is not None else self._parallelism
            case SinkNode():
                return self._sink_parallelism(node)
        # What every subtask gets does not say how many there are.
        own_inputs = [child for child in node.inputs if not (isinstance(child, Exchange) and child.broadcast)]
        exchanges = [child for child in own_inputs if isinstance(child, Exchange)]
        if exchanges:
            return self._parallelism if all(planned.keys for planned in exchanges) else 1
        return max(self._graph.nodes[self._ids[id(self._producer(child)[0])]].parallelism for child in own_inputs)

    def _sink_parallelism(self, node: SinkNode) -> int:
        if node.table is None:
            return 1
        producer = self._graph.nodes[self._ids[id(self._producer(node.inputs[0])[0])]]
        spec = node.spec(self._job)
        if not isinstance(spec, SinkSpec):
            raise InternalError("a table sink without a sink spec")
        own = self._context.sink(spec, node.span).parallelism()
        if own is None and isinstance(node.inputs[0], Exchange):
            return self._parallelism
        return producer.parallelism if own is None else own


def to_job_graph(graph: StreamGraph, name: str, context: PlanContext, resources: Mapping[str, Any]) -> JobGraph:
    """Cut the stream graph into vertices along the edges that are not chained."""
    heads = {number: number for number in graph.nodes}
    for number in graph.nodes:
        for edge in graph.inputs_of(number):
            if edge.decision.chained:
                heads[number] = heads[edge.source]
    members: dict[int, list[int]] = {}
    for number, head in heads.items():
        members.setdefault(head, []).append(number)
    vertex_of = {number: index for index, (_, own) in enumerate(members.items(), 1) for number in own}
    configured = context.configuration.get(MAX_PARALLELISM)
    vertices = []
    chains: dict[int, list[ChainEdge]] = {}
    for edge in graph.edges:
        if edge.decision.chained:
            made = ChainEdge(edge.source, edge.target, edge.input_index)
            chains.setdefault(vertex_of[edge.target], []).append(made)
    for own in members.values():
        parallelism = graph.nodes[own[0]].parallelism
        operators = tuple(graph.nodes[number].operator for number in own)
        vertices.append(
            JobVertex(
                vertex_of[own[0]],
                " -> ".join(_title(operator) for operator in operators),
                operators,
                tuple(chains.get(vertex_of[own[0]], ())),
                parallelism,
                configured if configured > 0 else default_max_parallelism(parallelism),
            )
        )
    edges = tuple(
        ExchangeEdge(vertex_of[edge.source], edge.source, vertex_of[edge.target], edge.input_index, edge.partitioning)
        for edge in graph.edges
        if not edge.decision.chained
    )
    return JobGraph(
        name, tuple(vertices), edges, tuple(context.configuration.items()), {**context.resources, **resources}
    )


def _title(operator: OperatorNode) -> str:
    """An operator's name without its attributes."""
    if isinstance(operator.spec, ConstraintEnforcerSpec):
        return operator.name.partition("[")[0]
    return operator.name.partition("(")[0]
