"""``JobGraph``: vertices of chained operators and the exchange edges between them. Written by the planner (and later by
the DataStream API), read by the runtime.

``JobGraph`` is plain data plus a resource table: Python objects by id, so that local mode pickles nothing.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import field
from typing import Any

from flowsql_core.graph.lineage import Lineage
from flowsql_core.graph.specs import OperatorSpec
from flowsql_core.record import record
from flowsql_core.types.logical import Schema


class ShipStrategy(enum.Enum):
    """How rows choose their channel; values are Flink's names in plans."""

    FORWARD = "FORWARD"
    REBALANCE = "REBALANCE"
    RESCALE = "RESCALE"
    SHUFFLE = "SHUFFLE"
    HASH = "HASH"
    BROADCAST = "BROADCAST"
    GLOBAL = "GLOBAL"
    CUSTOM = "CUSTOM"


@record
class Partitioning:
    """A ship strategy with its key columns (HASH) or resource (CUSTOM: ``(batch, channels) -> int32 (n,)``)."""

    strategy: ShipStrategy
    keys: tuple[int, ...] = ()
    resource: str | None = None


FORWARD = Partitioning(ShipStrategy.FORWARD)


class ChainingStrategy(enum.Enum):
    """Whether an operator may be chained to its input (Flink's names)."""

    ALWAYS = "ALWAYS"
    HEAD = "HEAD"
    NEVER = "NEVER"


class ResultPartitionType(enum.Enum):
    """When consumers may read: at the first buffer, or when the producer ended."""

    PIPELINED = "PIPELINED_BOUNDED"
    BLOCKING = "BLOCKING"


@record
class OperatorNode:
    """One operator of the plan.

    ``id`` is unique in the job; ``uid`` is the stable identity across edits of the query; ``name`` is Flink's
    description (``Calc(select=[...])``); ``number_of_inputs`` 0 for sources. ``lineage``: of the plan node's inputs, as
    far as a planner knows them (of an aggregate in two phases, of the rows that the first one reads). ``predicates``:
    canonical texts of the operator's own conditions (of a join: what its keys do not say). ``arriving``: the columns of
    the same inputs as ``lineage``.
    """

    id: int
    uid: str
    name: str
    spec: OperatorSpec
    output: Schema
    number_of_inputs: int = 1
    chaining: ChainingStrategy = ChainingStrategy.ALWAYS
    buffer_timeout_ms: int | None = None
    lineage: tuple[Lineage, ...] = ()
    predicates: tuple[str, ...] = ()
    arriving: tuple[Schema, ...] = ()


@record
class ChainEdge:
    """Inside a vertex: a direct call. ``tag`` names a side output; None is the main output."""

    source: int
    target: int
    input_index: int = 0
    tag: str | None = None


@record
class JobVertex:
    """Operators that run in one task, in topological order; the first is the head and takes the vertex's inputs."""

    id: int
    name: str
    operators: tuple[OperatorNode, ...]
    chain: tuple[ChainEdge, ...]
    parallelism: int
    max_parallelism: int = 128

    @property
    def head(self) -> OperatorNode:
        """The operator that reads the input gates (or the source)."""
        return self.operators[0]


@record
class ExchangeEdge:
    """Between vertices: from operator ``source`` of one to the head of another, through partitions and gates."""

    source_vertex: int
    source: int
    target_vertex: int
    input_index: int
    partitioning: Partitioning
    partition_type: ResultPartitionType = ResultPartitionType.PIPELINED
    tag: str | None = None
    buffer_timeout_ms: int | None = None


@record
class JobGraph:
    """A whole job. ``configuration`` is the flat key -> text view that the job was planned under."""

    name: str
    vertices: tuple[JobVertex, ...]
    edges: tuple[ExchangeEdge, ...]
    configuration: tuple[tuple[str, str], ...] = ()
    #: Python objects by id: collect sinks, functions, frames. Never part of equality or of the encoded bytes.
    resources: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)

    def inputs_of(self, vertex: int) -> tuple[ExchangeEdge, ...]:
        """Edges into a vertex, by input index."""
        return tuple(sorted((e for e in self.edges if e.target_vertex == vertex), key=lambda e: e.input_index))
