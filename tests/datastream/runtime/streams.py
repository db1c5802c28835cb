"""Batches of Python objects, one operator or a small job, for tests of DataStream operators."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from flowsql_core.batch import ChangelogBatch, WatermarkTrack
from flowsql_core.clock import ManualClock
from flowsql_core.element import Watermark
from flowsql_core.graph import job as g
from flowsql_core.graph import specs as s
from flowsql_core.graph import stream_specs as ss
from flowsql_core.graph.stream_specs import KEY
from flowsql_core.row import INSERT_ONLY
from flowsql_core.stream.window import MIN_LONG
from flowsql_runtime.stream.emitter import object_column, row_times
from flowsql_runtime.testing.harness import Emitted, OperatorHarness, RecordingOutput

#: (timestamp, value)
Stamped = tuple[int | None, Any]


def objects(
    values: Sequence[Any],
    keys: Sequence[Any] | None = None,
    times: Sequence[int] | None = None,
    track: Sequence[tuple[int, int]] = (),
) -> ChangelogBatch:
    """A batch; ``track``: (before which row, watermark)."""
    columns = [object_column(list(values))]
    if keys is not None:
        columns.append(object_column(list(keys)))
    marks = None
    if track:
        marks = WatermarkTrack(np.array([at for at, _ in track], np.int32), np.array([wm for _, wm in track], np.int64))
    return ChangelogBatch(tuple(columns), len(values), None, None if times is None else row_times(list(times)), marks)


def stamped(batches: Sequence[ChangelogBatch]) -> list[Stamped]:
    """Emitted elements with their timestamps."""
    found: list[Stamped] = []
    for batch in batches:
        times = batch.row_times
        for row, value in enumerate(batch.columns[0].to_pylist()):
            has = times is not None and (times.valid is None or times.valid[row])
            found.append((int(times.values_ms[row]) if times is not None and has else None, value))
    return found


def in_order(elements: Sequence[Emitted]) -> list[Any]:
    """Elements and watermarks as they follow each other, whatever the batches: ``value`` or ``"wm 5"``."""
    found: list[Any] = []
    for element in elements:
        match element:
            case Watermark():
                found.append(f"wm {element.timestamp_ms}")
            case ChangelogBatch():
                values = element.columns[0].to_pylist()
                at = 0
                if element.track is not None:
                    for offset, level_ms in zip(element.track.offsets, element.track.wm_ms, strict=True):
                        found += [*values[at:offset], f"wm {level_ms}"]
                        at = offset
                found += values[at:]
    return found


def values_of(batches: Sequence[ChangelogBatch]) -> list[Any]:
    """Emitted elements."""
    return [value for batch in batches for value in batch.columns[0].to_pylist()]


def operator(
    spec: s.OperatorSpec, parallelism: int = 1, clock: ManualClock | None = None, **resources: Any
) -> OperatorHarness[Any]:
    """A harness of one operator; rows are dealt out by their keys."""
    two = isinstance(spec, ss.CoFunctionSpec | ss.KeyedCoFunctionSpec)
    keys = ((KEY,), (KEY,)) if two else ((KEY,),)
    return OperatorHarness(spec, parallelism, keys=keys, clock=clock, resources=resources)


def side_values(output: RecordingOutput, tag: str) -> list[Stamped]:
    """Elements of a side output with their timestamps."""
    return stamped(output.side.get(tag, []))


def vertex(vertex_id: int, *specs: s.OperatorSpec, parallelism: int = 1) -> g.JobVertex:
    """A vertex of operators in one line."""
    nodes = tuple(
        g.OperatorNode(
            100 * vertex_id + position,
            f"u{100 * vertex_id + position}",
            f"{type(spec).__name__.removesuffix('Spec')}-{vertex_id}-{position}",
            spec,
            (),
            number_of_inputs=inputs_of(spec),
        )
        for position, spec in enumerate(specs)
    )
    links = tuple(g.ChainEdge(a.id, b.id) for a, b in itertools.pairwise(nodes))
    return g.JobVertex(vertex_id, f"v{vertex_id}", nodes, links, parallelism)


def inputs_of(spec: s.OperatorSpec) -> int:
    match spec:
        case ss.CollectionSourceSpec():
            return 0
        case ss.CoFunctionSpec() | ss.KeyedCoFunctionSpec():
            return 2
        case ss.BroadcastFunctionSpec() | ss.KeyedBroadcastFunctionSpec():
            return 2
    return 1


def edge(
    source: g.JobVertex, target: g.JobVertex, input_index: int = 0, strategy: g.ShipStrategy = g.ShipStrategy.HASH
) -> g.ExchangeEdge:
    keys = (KEY,) if strategy is g.ShipStrategy.HASH else ()
    return g.ExchangeEdge(source.id, source.operators[-1].id, target.id, input_index, g.Partitioning(strategy, keys))


def collect(resource: str = "out") -> s.CollectSinkSpec:
    return s.CollectSinkSpec(resource, (), INSERT_ONLY)


def graph(vertices: Sequence[g.JobVertex], edges: Sequence[g.ExchangeEdge], resources: dict[str, Any]) -> g.JobGraph:
    # 16 rows to a batch, so that a cut falls into a batch and there are batches on both sides.
    configuration = (("flowsql.network.batch-rows", "16"), ("flowsql.source.batch-rows", "16"))
    return g.JobGraph("test", tuple(vertices), tuple(edges), configuration, resources)


NO_TIME = MIN_LONG
