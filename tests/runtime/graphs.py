"""Small job graphs for tests: a vertex a line, rows in and rows out as tuples."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterable, Sequence
from typing import Any

from flowsql_core.batch import ChangelogBatch
from flowsql_core.expr import Literal
from flowsql_core.graph import job as g
from flowsql_core.graph import specs as s
from flowsql_core.row import ALL_CHANGES, SHORT_STRINGS
from flowsql_core.types.logical import BIGINT, STRING, Column, LogicalType, Schema


class Collected:
    """A collect receiver that keeps everything."""

    def __init__(self) -> None:
        self.batches: list[ChangelogBatch] = []
        self.finished = 0
        self._lock = threading.Lock()

    def accept(self, batch: ChangelogBatch) -> None:
        with self._lock:
            self.batches.append(batch)

    def finish(self) -> None:
        self.finished += 1

    @property
    def rows(self) -> list[tuple[Any, ...]]:
        return [row for batch in self.batches for row in rows_of(batch)]


def rows_of(batch: ChangelogBatch) -> list[tuple[Any, ...]]:
    """Kind, then values, a tuple per row."""
    kinds = ["+I"] * batch.num_rows if batch.kinds is None else [SHORT_STRINGS[kind] for kind in batch.kinds]
    columns = [column.to_pylist() for column in batch.columns]
    return list(zip(kinds, *columns, strict=True))


def schema(**types: LogicalType) -> Schema:
    return tuple(Column(name, type_) for name, type_ in types.items())


NUMBERS = schema(n=BIGINT, name=STRING)


def values(rows: Iterable[Sequence[Any]], output: Schema = NUMBERS) -> s.ValuesSpec:
    return s.ValuesSpec(
        tuple(tuple(Literal(v, c.type) for v, c in zip(row, output, strict=True)) for row in rows), output
    )


def collect(input_: Schema = NUMBERS, resource: str = "out") -> s.CollectSinkSpec:
    return s.CollectSinkSpec(resource, input_, ALL_CHANGES)


def _inputs(spec: s.OperatorSpec) -> int:
    match spec:
        case s.UnionSpec(inputs=inputs):
            return inputs
        case s.ScanSpec() | s.ValuesSpec() | s.ExtensionSpec(kind="source"):
            return 0
    return 1


def vertex(
    vertex_id: int, *specs: s.OperatorSpec, parallelism: int = 1, inputs: int | None = None, output: Schema = NUMBERS
) -> g.JobVertex:
    """A vertex of operators in one line; operator ids are ``100 * vertex_id + position``."""
    nodes = tuple(
        g.OperatorNode(
            100 * vertex_id + position,
            f"u{100 * vertex_id + position}",
            f"{type(spec).__name__.removesuffix('Spec')}-{vertex_id}-{position}",
            spec,
            output,
            number_of_inputs=inputs if position == 0 and inputs is not None else _inputs(spec),
        )
        for position, spec in enumerate(specs)
    )
    links = tuple(g.ChainEdge(a.id, b.id) for a, b in itertools.pairwise(nodes))
    return g.JobVertex(vertex_id, f"v{vertex_id}", nodes, links, parallelism)


def edge(
    source: g.JobVertex,
    target: g.JobVertex,
    strategy: g.ShipStrategy = g.ShipStrategy.FORWARD,
    keys: tuple[int, ...] = (),
    input_index: int = 0,
    resource: str | None = None,
    partition_type: g.ResultPartitionType = g.ResultPartitionType.PIPELINED,
    tag: str | None = None,
) -> g.ExchangeEdge:
    return g.ExchangeEdge(
        source.id,
        source.operators[-1].id,
        target.id,
        input_index,
        g.Partitioning(strategy, keys, resource),
        partition_type,
        tag,
    )


def graph(
    vertices: Sequence[g.JobVertex],
    edges: Sequence[g.ExchangeEdge] = (),
    configuration: dict[str, str] | None = None,
    **resources: Any,
) -> g.JobGraph:
    return g.JobGraph("test", tuple(vertices), tuple(edges), tuple(sorted((configuration or {}).items())), resources)
