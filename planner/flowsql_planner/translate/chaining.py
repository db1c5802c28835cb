"""Which operators run in one task: the predicate over one edge, and the reason of each refusal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, Protocol

from flowsql_core.graph.job import ChainingStrategy, Partitioning, ShipStrategy
from flowsql_core.graph.specs import OperatorSpec, WatermarkAssignerSpec
from flowsql_core.graph.stream_specs import AssignTimestampsSpec
from flowsql_core.record import record


@record
class ChainDecision:
    """Whether an edge is a direct call; ``reason`` says why not (or why, where that is not obvious)."""

    chained: bool
    reason: str


@record
class EdgeFacts:
    """What the predicate looks at."""

    partitioning: Partitioning
    from_parallelism: int
    to_parallelism: int
    inputs_of_target: int
    source_strategy: ChainingStrategy
    target_strategy: ChainingStrategy


def decide(edge: EdgeFacts, enabled: bool, chain_single_partition: bool) -> ChainDecision:
    """The chaining predicate. Flink's rules, and one more: an exchange from one subtask to one moves nothing."""
    if not enabled:
        return ChainDecision(False, "pipeline.operator-chaining.enabled is false")
    if edge.inputs_of_target != 1:
        return ChainDecision(False, f"the target has {edge.inputs_of_target} inputs")
    if edge.from_parallelism != edge.to_parallelism:
        return ChainDecision(False, f"parallelism {edge.from_parallelism} against {edge.to_parallelism}")
    if edge.source_strategy is ChainingStrategy.NEVER or edge.target_strategy is not ChainingStrategy.ALWAYS:
        return ChainDecision(False, "an operator starts a chain of its own")
    strategy = edge.partitioning.strategy
    if strategy is ShipStrategy.FORWARD:
        return ChainDecision(True, "forward")
    if edge.from_parallelism == 1 and strategy in (ShipStrategy.HASH, ShipStrategy.GLOBAL):
        if chain_single_partition:
            return ChainDecision(True, f"{strategy.value.lower()} exchange of one subtask to one")
        return ChainDecision(False, "flowsql.chain-single-partition is false")
    return ChainDecision(False, f"{strategy.value.lower()} exchange")


class Edge(Protocol):
    """An edge of a job that is being made, between numbers of operators."""

    @property
    def source(self) -> int:
        """Where rows come from."""
        ...

    @property
    def target(self) -> int:
        """Where they go."""
        ...

    @property
    def partitioning(self) -> Partitioning:
        """How they go."""
        ...


#: What :func:`edges_of_aligned_sources` decides.
ALIGNED: Final = ChainDecision(True, "watermark alignment: a source and its watermarks share a task")


def edges_of_aligned_sources(edges: Iterable[Edge], specs: Mapping[int, OperatorSpec]) -> set[tuple[int, int]]:
    """The edges, as (source, target), between sources and the watermarks that hold them back.

    They are chained whatever else is wished: in Flink the source itself makes these watermarks.
    """
    inputs: dict[int, list[Edge]] = {}
    for edge in edges:
        inputs.setdefault(edge.target, []).append(edge)
    found: set[tuple[int, int]] = set()
    for number, spec in specs.items():
        if not isinstance(spec, WatermarkAssignerSpec | AssignTimestampsSpec) or spec.alignment is None:
            continue
        path: list[tuple[int, int]] = []
        while len(into := inputs.get(number, [])) == 1 and into[0].partitioning.strategy is ShipStrategy.FORWARD:
            path.append((into[0].source, number))
            number = into[0].source
        if not into:
            found.update(path)
    return found
