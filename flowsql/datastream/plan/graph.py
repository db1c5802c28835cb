"""From recorded transformations to a ``JobGraph``: operators and edges, then chains, then vertices.

A union is an operator in front of each of its consumers, so that every edge into it is partitioned as the consumer
asks. Chaining is the planner's own decision; each edge keeps its reason.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from flowsql.datastream.plan.transformations import (
    JobSettings,
    OperatorTransformation,
    PartitionTransformation,
    Recorder,
    SideOutputTransformation,
    TableTransformation,
    Transformation,
    UnionTransformation,
    Wishes,
)
from flowsql_core.errors import InternalError, PlanError
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
from flowsql_core.graph.specs import OperatorSpec, UnionSpec
from flowsql_core.types.logical import Schema
from flowsql_planner.translate.chaining import ALIGNED, ChainDecision, EdgeFacts, decide, edges_of_aligned_sources


@dataclass(frozen=True, slots=True)
class PlannedOperator:
    """An operator with what decides about its vertex. ``kind``: Flink's ``pact`` in plans."""

    node: OperatorNode
    parallelism: int
    max_parallelism: int | None = None
    slot_sharing_group: str | None = None
    description: str | None = None
    kind: str = "Operator"


@dataclass(frozen=True, slots=True)
class PlannedEdge:
    """Between two operators."""

    source: int
    target: int
    input_index: int
    partitioning: Partitioning
    decision: ChainDecision
    tag: str | None = None
    buffer_timeout_ms: int | None = None


@dataclass(frozen=True, slots=True)
class _Origin:
    """Where the rows of an input come from: an operator, its output, and how the program wants them to travel."""

    operator: int
    partitioning: Partitioning | None = None
    tag: str | None = None


@dataclass(slots=True)
class StreamPlan:
    """Operators in topological order, the edges between them, and the objects that their specs name."""

    operators: dict[int, PlannedOperator] = field(default_factory=dict)
    edges: list[PlannedEdge] = field(default_factory=list)
    resources: dict[str, Any] = field(default_factory=dict)

    def chain_aligned_sources(self) -> None:
        """Sources that watermarks hold back share a task with these; once all operators are there."""
        specs = {number: found.node.spec for number, found in self.operators.items()}
        forced = edges_of_aligned_sources(self.edges, specs)
        self.edges = [
            replace(edge, decision=ALIGNED) if (edge.source, edge.target) in forced else edge for edge in self.edges
        ]


@dataclass(frozen=True, slots=True)
class PlanSettings:
    """What of an environment's configuration shapes the graph."""

    batch: bool
    watermark_interval_ms: int
    chaining: bool
    chain_single_partition: bool
    max_parallelism: int


class PlanBuilder:
    """Makes one job. Each transformation becomes one operator however many streams lead on from it."""

    def __init__(self, recorder: Recorder, settings: PlanSettings) -> None:
        self.plan = StreamPlan()
        self.settings = settings
        #: Options of the tables in the job; those of the environment win.
        self.configuration: dict[str, str] = {}
        self._recorder = recorder
        self._origins: dict[int, tuple[_Origin, ...]] = {}
        self._uids: dict[str, int] = {}

    def add(self, number: int) -> tuple[_Origin, ...]:
        """The origins of a transformation's rows; what stands before it is added first."""
        if number not in self._origins:
            for before in _chain_before(self._recorder, number, self._origins):
                self._origins[before] = self._made(self._recorder[before])
        return self._origins[number]

    def _made(self, found: Transformation) -> tuple[_Origin, ...]:
        match found:
            case OperatorTransformation():
                return (_Origin(self._operator(found)),)
            case TableTransformation():
                return (_Origin(found.part.embed(self, found.wishes)),)
            case PartitionTransformation():
                self.plan.resources.update(found.resources)
                origins = self._origins[found.input]
                return tuple(_Origin(origin.operator, found.partitioning, origin.tag) for origin in origins)
            case UnionTransformation():
                return tuple(origin for before in found.inputs for origin in self._origins[before])
            case SideOutputTransformation():
                return tuple(_Origin(origin.operator, None, found.tag) for origin in self._origins[found.input])
            case _:
                raise InternalError(f"no operator for {type(found).__name__}")

    def _operator(self, found: OperatorTransformation) -> int:
        inputs = [self._origins[number] for number in found.inputs]
        wishes = found.wishes
        # What adds keys runs beside what makes the values.
        parallelism = wishes.parallelism or self.plan.operators[inputs[0][0].operator].parallelism
        merged = [self.merge(origins, parallelism) for origins in inputs]
        wishes = self._inherited(wishes, [self.plan.operators[origin.operator] for origin in merged])
        uid = wishes.uid or self._uid(found.name, merged)
        if wishes.uid is not None and self.own_uid(uid) != uid:
            raise PlanError(
                "uid-taken",
                f"Hash collision on user-specified ID '{uid}'. Most likely cause is a non-unique ID. Please check that "
                "all IDs specified via `uid(String)` are unique.",
            )
        made = found.make_spec(JobSettings(self.settings.batch, self.settings.watermark_interval_ms, uid))
        self.plan.resources.update(made.resources)
        kind = "Data Sink" if found.sink else "Operator" if found.inputs else "Data Source"
        number = self.operator(made.spec, found.name, uid, parallelism, len(inputs), wishes=wishes, kind=kind)
        for index, origin in enumerate(merged):
            self.connect(origin, number, index)
        return number

    @staticmethod
    def _inherited(wishes: Wishes, before: Sequence[PlannedOperator]) -> Wishes:
        """A slot sharing group goes on to what follows; what adds keys speaks for what makes the values."""
        if wishes.slot_sharing_group is None:
            groups = {found.slot_sharing_group for found in before}
            wishes = wishes.with_(slot_sharing_group=groups.pop() if len(groups) == 1 else None)
        if wishes.parallelism is None:
            wishes = wishes.with_(buffer_timeout_ms=before[0].node.buffer_timeout_ms)
        return wishes

    def merge(self, origins: Sequence[_Origin], parallelism: int) -> _Origin:
        """One origin of several: a union of the consumer's parallelism."""
        if len(origins) == 1:
            return origins[0]
        uid = self._uid("Union", origins)
        union = self.operator(UnionSpec(len(origins)), "Union", uid, parallelism, len(origins))
        for index, origin in enumerate(origins):
            self.connect(origin, union, index)
        return _Origin(union, FORWARD)

    def operator(
        self,
        spec: OperatorSpec,
        name: str,
        uid: str,
        parallelism: int,
        inputs: int,
        *,
        output: Schema = (),
        wishes: Wishes | None = None,
        kind: str = "Operator",
    ) -> int:
        """Add an operator; its number."""
        wanted = wishes or Wishes()
        number = len(self.plan.operators) + 1
        chaining = wanted.chaining
        if chaining is ChainingStrategy.ALWAYS and not inputs:
            chaining = ChainingStrategy.HEAD
        node = OperatorNode(number, uid, name, spec, output, inputs, chaining, wanted.buffer_timeout_ms)
        self.plan.operators[number] = PlannedOperator(
            node, parallelism, wanted.max_parallelism, wanted.slot_sharing_group, wanted.description, kind
        )
        return number

    def connect(self, origin: _Origin, target: int, input_index: int) -> None:
        """An edge, partitioned as the program said; forward, or in turn where the parallelism changes."""
        before, behind = self.plan.operators[origin.operator], self.plan.operators[target]
        partitioning = origin.partitioning
        same = before.parallelism == behind.parallelism
        if partitioning is None:
            partitioning = FORWARD if same else Partitioning(ShipStrategy.REBALANCE)
        elif partitioning.strategy is ShipStrategy.FORWARD and not same:
            raise PlanError(
                "forward-changes-parallelism",
                f"Forward partitioning does not allow change of parallelism. Upstream operation: {before.node.name} "
                f"parallelism: {before.parallelism}, downstream operation: {behind.node.name} parallelism: "
                f"{behind.parallelism} You must use another partitioning strategy, such as broadcast, rebalance, "
                "shuffle or global.",
            )
        decision = self._decide(before, behind, partitioning)
        timeout = before.node.buffer_timeout_ms
        self.plan.edges.append(
            PlannedEdge(origin.operator, target, input_index, partitioning, decision, origin.tag, timeout)
        )

    def origin(self, operator: int, partitioning: Partitioning | None = None, tag: str | None = None) -> _Origin:
        """An output of an operator."""
        return _Origin(operator, partitioning, tag)

    def own_uid(self, uid: str) -> str:
        """The id, or one like it when several parts of the job bear it."""
        ordinal = self._uids.get(uid, 0)
        self._uids[uid] = ordinal + 1
        return f"{uid}-{ordinal}" if ordinal else uid

    def _decide(self, before: PlannedOperator, behind: PlannedOperator, partitioning: Partitioning) -> ChainDecision:
        facts = EdgeFacts(
            partitioning,
            before.parallelism,
            behind.parallelism,
            behind.node.number_of_inputs,
            before.node.chaining,
            behind.node.chaining,
        )
        decision = decide(facts, self.settings.chaining, self.settings.chain_single_partition)
        if not decision.chained:
            return decision
        if before.slot_sharing_group != behind.slot_sharing_group:
            return ChainDecision(False, "the operators are of different slot sharing groups")
        if behind.max_parallelism is not None and behind.max_parallelism != before.max_parallelism:
            return ChainDecision(False, f"a maximum parallelism of its own: {behind.max_parallelism}")
        return decision

    def _uid(self, name: str, origins: Sequence[_Origin]) -> str:
        """Stable while what stands before the operator stays: its name, its inputs, and a number among equals."""
        import hashlib

        lineage = "|".join([name, *(self.plan.operators[origin.operator].node.uid for origin in origins)])
        ordinal = self._uids.get(lineage, 0)
        self._uids[lineage] = ordinal + 1
        digest = hashlib.sha256(f"{lineage}|{ordinal}".encode()).hexdigest()[:12]
        return f"{name.replace(' ', '')}-{digest}"


def _chain_before(recorder: Recorder, number: int, known: Mapping[int, object]) -> list[int]:
    """Transformations that are not known yet, each behind those that it reads. Without recursion: streams are long."""
    order: list[int] = []
    seen = set(known)
    stack = [(number, False)]
    while stack:
        current, ready = stack.pop()
        if ready:
            order.append(current)
        elif current not in seen:
            seen.add(current)
            stack.append((current, True))
            stack += [(before, False) for before in reversed(_inputs(recorder[current]))]
    return order


def _inputs(found: Transformation) -> tuple[int, ...]:
    match found:
        case OperatorTransformation(inputs=inputs) | UnionTransformation(inputs=inputs):
            return inputs
        case PartitionTransformation(input=single) | SideOutputTransformation(input=single):
            return (single,)
        case TableTransformation(part=part):
            return part.streams
        case _:
            raise InternalError(f"no inputs of {type(found).__name__}")


def default_max_parallelism(parallelism: int) -> int:
    """Flink's rule: 1.5 times the parallelism rounded up to a power of two, between 128 and 32768."""
    wanted = parallelism + parallelism // 2
    return min(max(1 << max(wanted - 1, 0).bit_length(), 128), 1 << 15)


def to_job_graph(
    plan: StreamPlan, name: str, settings: PlanSettings, configuration: Sequence[tuple[str, str]]
) -> JobGraph:
    """Cut a plan into vertices along the edges that are not chained."""
    heads = {number: number for number in plan.operators}
    inputs: dict[int, list[PlannedEdge]] = {}
    plan.chain_aligned_sources()
    for edge in plan.edges:
        inputs.setdefault(edge.target, []).append(edge)
    members: dict[int, list[int]] = {}
    for number in plan.operators:
        for edge in inputs.get(number, ()):
            if edge.decision.chained:
                heads[number] = heads[edge.source]
        members.setdefault(heads[number], []).append(number)
    vertex_of = {number: index for index, own in enumerate(members.values(), 1) for number in own}
    vertices = []
    for own in members.values():
        vertex = vertex_of[own[0]]
        chain = tuple(
            ChainEdge(edge.source, edge.target, edge.input_index, edge.tag)
            for number in own
            for edge in inputs.get(number, ())
            if edge.decision.chained
        )
        parallelism = plan.operators[own[0]].parallelism
        wished = [wish for number in own if (wish := plan.operators[number].max_parallelism) is not None]
        configured = settings.max_parallelism if settings.max_parallelism > 0 else default_max_parallelism(parallelism)
        max_parallelism = max(wished) if wished else configured
        if max_parallelism < parallelism:
            raise PlanError(
                "max-parallelism",
                f"The maximum parallelism {max_parallelism} of {plan.operators[own[0]].node.name} is below its "
                f"parallelism {parallelism}.",
            )
        nodes = tuple(plan.operators[number].node for number in own)
        vertices.append(
            JobVertex(vertex, " -> ".join(node.name for node in nodes), nodes, chain, parallelism, max_parallelism)
        )
    edges = tuple(
        ExchangeEdge(
            vertex_of[edge.source],
            edge.source,
            vertex_of[edge.target],
            edge.input_index,
            edge.partitioning,
            tag=edge.tag,
            buffer_timeout_ms=edge.buffer_timeout_ms,
        )
        for edge in plan.edges
        if not edge.decision.chained
    )
    return JobGraph(name, tuple(vertices), edges, tuple(configuration), dict(plan.resources))


def json_plan(plan: StreamPlan) -> str:
    """Flink's JSON of a job's operators; each predecessor also says whether the edge is chained, and why."""
    import json

    unions = {number for number, found in plan.operators.items() if isinstance(found.node.spec, UnionSpec)}
    into: dict[int, list[PlannedEdge]] = {}
    plan.chain_aligned_sources()
    for edge in plan.edges:
        into.setdefault(edge.target, []).append(edge)
    nodes = []
    for number, found in plan.operators.items():
        if number in unions:
            continue
        title = {"Data Source": "Source: ", "Data Sink": "Sink: "}.get(found.kind, "") + found.node.name
        entry: dict[str, Any] = {
            "id": number,
            "type": title,
            "pact": found.kind,
            "contents": found.description or title,
            "parallelism": found.parallelism,
        }
        real = [
            deep for edge in into.get(number, ()) for deep in (into[edge.source] if edge.source in unions else (edge,))
        ]
        if real:
            entry["predecessors"] = [
                {
                    "id": edge.source,
                    "ship_strategy": edge.partitioning.strategy.value,
                    "side": "second",
                    "chaining": f"{'chained' if edge.decision.chained else 'not chained'} ({edge.decision.reason})",
                }
                for edge in real
            ]
        nodes.append(entry)
    return json.dumps({"nodes": nodes}, indent=2, ensure_ascii=False)
