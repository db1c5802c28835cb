"""What a hop costs: per-batch overhead of a chained call, of an exchange between threads, and of a hash split.

``python benchmarks/micro/hops.py`` prints CPU microseconds per batch and hop; rows are few, so that only overhead
shows. CPU time, because a busy machine would otherwise be measured with it.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from flowsql_core.batch import ChangelogBatch, WatermarkTrack
from flowsql_core.graph import job as g
from flowsql_core.graph.specs import CollectSinkSpec, ExtensionSpec
from flowsql_core.row import ALL_CHANGES
from flowsql_core.types.logical import BIGINT, Column
from flowsql_runtime.cluster.local import LocalCluster
from flowsql_runtime.operators.base import Operator, SourceOperator, SourceStatus

SCHEMA = (Column("n", BIGINT),)


class Repeat(SourceOperator[Any]):
    def __init__(self, batches: int, batch: ChangelogBatch) -> None:
        super().__init__(None)
        self._left = batches
        self._batch = batch

    def emit_next(self) -> SourceStatus:
        if not self._left:
            return SourceStatus.END
        self._left -= 1
        self.output.collect(self._batch)
        return SourceStatus.MORE

    def wake_when_available(self, wake: Callable[[], None]) -> None:
        wake()


class Pass(Operator[Any]):
    def process_batch(self, input_index: int, batch: ChangelogBatch) -> None:
        self.output.collect(batch)


class Nothing:
    def accept(self, batch: ChangelogBatch) -> None:
        pass

    def finish(self) -> None:
        pass


def vertex(number: int, specs: list[Any], parallelism: int = 1) -> g.JobVertex:
    nodes = tuple(
        g.OperatorNode(100 * number + i, f"u{number}-{i}", f"o{number}-{i}", spec, SCHEMA, int(spec != SOURCE))
        for i, spec in enumerate(specs)
    )
    links = tuple(g.ChainEdge(nodes[i].id, nodes[i + 1].id) for i in range(len(nodes) - 1))
    return g.JobVertex(number, f"v{number}", nodes, links, parallelism)


SOURCE = ExtensionSpec("source", "source")
PASS = ExtensionSpec("plain", "pass")
SINK = CollectSinkSpec("out", SCHEMA, ALL_CHANGES)


def run(vertices: list[g.JobVertex], partitioning: g.Partitioning, batches: int, batch: ChangelogBatch) -> float:
    edges = tuple(
        g.ExchangeEdge(a.id, a.operators[-1].id, b.id, 0, partitioning) for a, b in itertools.pairwise(vertices)
    )
    resources = {"source": lambda spec: Repeat(batches, batch), "pass": Pass, "out": Nothing()}
    configuration = (("execution.buffer-timeout.interval", "0 ms"),)
    graph = g.JobGraph("bench", tuple(vertices), edges, configuration, resources)
    began = time.process_time()
    LocalCluster(seed=1).run(graph)
    return (time.process_time() - began) / batches * 1e6


def best(measure: Callable[[], float]) -> float:
    return min(measure() for _ in range(3))


def hops(name: str, batch: ChangelogBatch, n: int) -> None:
    chain1 = best(lambda: run([vertex(1, [SOURCE, SINK])], g.FORWARD, n, batch))
    chain5 = best(lambda: run([vertex(1, [SOURCE, PASS, PASS, PASS, PASS, SINK])], g.FORWARD, n, batch))
    print(f"{name} track: chained hop {(chain5 - chain1) / 4:.2f} us; source loop {chain1:.2f} us")
    two = best(lambda: run([vertex(1, [SOURCE]), vertex(2, [SINK])], g.FORWARD, n, batch))
    three = best(lambda: run([vertex(1, [SOURCE]), vertex(2, [PASS]), vertex(3, [SINK])], g.FORWARD, n, batch))
    print(f"{name} track: exchange hop {two - chain1:.1f} us; a further one {three - two:.1f} us")


def main() -> None:
    small = ChangelogBatch.of([pa.array(np.arange(100))])
    tracked = small.with_track(WatermarkTrack(np.array([50], np.int32), np.array([1], np.int64)))
    n = 10_000
    hashed = g.Partitioning(g.ShipStrategy.HASH, (0,))
    for name, batch in (("without", small), ("with", tracked)):
        hops(name, batch, n)
    wide = ChangelogBatch.of([pa.array(np.arange(65_536) * 7919), pa.array(np.arange(65_536.0))] * 3)
    split = best(lambda: run([vertex(1, [SOURCE]), vertex(2, [SINK], 2)], hashed, 200, wide))
    print(f"hash split of 65,536 rows, 6 columns, to 2 channels: {split:.0f} us, {65_536 / split:.0f} M rows/s")


if __name__ == "__main__":
    main()
