"""The head of a task whose state is partly outside memory is told of the batches that wait, once each."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from flowsql_core.batch import ChangelogBatch
from flowsql_core.graph import job as g
from flowsql_core.graph.specs import ExtensionSpec
from flowsql_core.types.logical import BIGINT, Column
from flowsql_runtime.cluster.local import LocalCluster
from flowsql_runtime.operators.base import Operator, OperatorContext, SourceOperator, SourceStatus
from flowsql_runtime.state.stores import StoredColumn

ROW = (Column("k", BIGINT),)
BATCH, BATCHES = 500, 60


class Numbers(SourceOperator[Any]):
    """Batches of keys, which come again: all at once, so that they wait."""

    def emit_next(self) -> SourceStatus:
        rng = np.random.default_rng(1)
        for _ in range(BATCHES):
            self.output.collect(ChangelogBatch.of([pa.array(rng.integers(0, 60 * BATCH, BATCH))]))
        return SourceStatus.END

    def wake_when_available(self, wake: Any) -> None:
        return


class Counting(Operator[Any]):
    """Counts each key, and notes of which batches it was told."""

    told: list[int]
    counted: dict[int, int]
    order: list[str]

    def open(self, ctx: OperatorContext) -> None:
        self.index = ctx.state.key_index([pa.int64()])
        self.counts = ctx.state.column_store("n", self.index, [StoredColumn("n", pa.int64(), False)])

    def expect(self, input_index: int, batches: Sequence[ChangelogBatch]) -> None:
        self.told.append(len(batches))
        self.order.append("told")
        self.index.expect([pa.concat_arrays([batch.columns[0] for batch in batches])], BATCH * len(batches))

    def process_batch(self, input_index: int, batch: ChangelogBatch) -> None:
        self.order.append("batch")
        keys, times = np.unique(batch.columns[0].to_numpy(), return_counts=True)
        slots, _ = self.index.find_or_insert(self.index.encode([pa.array(keys)]))
        before = self.counts.gather(slots)[0].to_numpy(zero_copy_only=False)
        self.counts.scatter(slots, [pa.array(before + times)])
        self.counted.update(zip(keys.tolist(), (before + times).tolist(), strict=True))


def run(options: dict[str, str]) -> Counting:
    """The operator after all batches."""
    told: list[int] = []
    counted: dict[int, int] = {}
    order: list[str] = []
    last: list[Counting] = []

    def counting(spec: Any) -> Counting:
        made = Counting(spec)
        made.told, made.counted, made.order = told, counted, order
        last.append(made)
        return made

    nodes = (
        g.OperatorNode(1, "source", "source", ExtensionSpec("source", "source"), ROW, 0),
        g.OperatorNode(2, "count", "count", ExtensionSpec("keyed", "count"), ROW),
    )
    vertices = (g.JobVertex(1, "source", nodes[:1], (), 1), g.JobVertex(2, "count", nodes[1:], (), 1))
    edge = g.ExchangeEdge(1, 1, 2, 0, g.Partitioning(g.ShipStrategy.HASH, (0,)))
    registry = {"source": lambda spec: Numbers(spec), "count": counting}
    # Batches are not put together on their way.
    options = {**options, "execution.buffer-timeout.interval": "0 ms"}
    LocalCluster(seed=1).run(g.JobGraph("look ahead", vertices, (edge,), tuple(sorted(options.items())), registry))
    return last[-1]


def test_batches_that_wait_are_told_once_and_counts_stay_exact(tmp_path: Path) -> None:
    rocksdb = {
        "state.backend.type": "rocksdb",
        "state.backend.rocksdb.memory.fixed-per-slot": "1200 kb",
        "io.tmp.dirs": str(tmp_path),
    }
    ours, theirs = run(rocksdb), run({})
    assert ours.counted == theirs.counted
    assert theirs.told == []
    assert max(ours.told) > 1
    # Of no batch it is told again before those that it knows were dealt with.
    since = "".join("t" if step == "told" else "b" for step in ours.order).split("t")[1:]
    assert [len(batches) for batches in since[:-1]] == ours.told[:-1]
