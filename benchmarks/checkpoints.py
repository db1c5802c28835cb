"""What checkpoints cost: throughput beside a run without them, the longest gap between emitted batches, recovery.

python benchmarks/checkpoints.py [--rows N] [--megabytes N] [--rounds N]

A group aggregate (COUNT, SUM) of random keys, parallelism 2, checkpoints into a folder. Runs with and without them
alternate; ratios are medians over pairs.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from flowsql_core.batch import ChangelogBatch
from flowsql_core.element import SnapshotKind
from flowsql_core.expr import AggregateCall, InputRef
from flowsql_core.graph import job as g
from flowsql_core.graph.specs import ExtensionSpec, GroupAggregateSpec
from flowsql_core.types.logical import BIGINT, Column
from flowsql_runtime.cluster.local import LocalCluster
from flowsql_runtime.operators.base import Operator, SourceOperator, SourceStatus

BATCH_ROWS = 65_536
PAIRS = (Column("k", BIGINT), Column("n", BIGINT))


class Random(SourceOperator[Any]):
    """Rows of random keys, each key once at first so that the state has its size."""

    def __init__(self, rows: int, keys: int, ends: bool = True) -> None:
        super().__init__(None)
        self._left = rows
        self._keys = keys
        self._ends = ends

    def open(self, ctx: Any) -> None:
        rng = np.random.default_rng(ctx.subtask)
        self._next = 0
        self._rng = rng

    def emit_next(self) -> SourceStatus:
        if self._left <= 0:
            return SourceStatus.END if self._ends else SourceStatus.NOTHING_NOW
        if self._next < self._keys:
            keys = np.arange(self._next, min(self._next + BATCH_ROWS, self._keys))
            self._next += BATCH_ROWS
        else:
            keys = self._rng.integers(0, self._keys, BATCH_ROWS)
        self._left -= len(keys)
        self.output.collect(ChangelogBatch.of([pa.array(keys), pa.array(keys)]))
        return SourceStatus.MORE

    def wake_when_available(self, wake: Callable[[], None]) -> None:
        return


class Times(Operator[Any]):
    """Notes when batches come."""

    at: list[float]

    def process_batch(self, input_index: int, batch: ChangelogBatch) -> None:
        self.at.append(time.perf_counter())


def graph(source: Callable[[], Random], options: dict[str, str], at: list[float], parallelism: int = 2) -> g.JobGraph:
    """source -> hash -> aggregate -> times."""
    calls = (
        AggregateCall("COUNT", (), BIGINT, "c"),
        AggregateCall("SUM", (InputRef(1, BIGINT),), BIGINT, "s"),
    )
    out = (Column("k", BIGINT), Column("c", BIGINT), Column("s", BIGINT))
    aggregate = GroupAggregateSpec(
        (0,), calls, PAIRS, out, input_retracts=False, emit_update_before=False, consolidate=True
    )
    nodes = (
        g.OperatorNode(1, "source", "source", ExtensionSpec("source", "source"), PAIRS, 0),
        g.OperatorNode(2, "aggregate", "aggregate", aggregate, out),
        g.OperatorNode(3, "times", "times", ExtensionSpec("plain", "times"), out),
    )

    def times(spec: Any) -> Times:
        made = Times(spec)
        made.at = at
        return made

    return g.JobGraph(
        "bench",
        (
            g.JobVertex(1, "source", nodes[:1], (), parallelism),
            g.JobVertex(2, "aggregate", nodes[1:], (g.ChainEdge(2, 3),), parallelism),
        ),
        (g.ExchangeEdge(1, 1, 2, 0, g.Partitioning(g.ShipStrategy.HASH, (0,))),),
        tuple(sorted(options.items())),
        {"source": lambda spec: source(), "times": times},
    )


def throughput(rows: int, keys: int, rounds: int, folder: Path) -> None:
    """With a checkpoint every second against none."""
    ratios, counts = [], []
    for number in range(rounds):
        seconds = {}
        for name in ("without", "with") if number % 2 else ("with", "without"):
            options = {}
            if name == "with":
                options = {
                    "execution.checkpointing.interval": "1 s",
                    "execution.checkpointing.dir": str(folder / "throughput"),
                }
            began = time.perf_counter()
            job = LocalCluster(seed=1).run(graph(lambda: Random(rows // 2, keys), options, []))
            seconds[name] = time.perf_counter() - began
            if name == "with" and job.master is not None:
                counts.append(next(job.master._ids) - 1)  # type: ignore[attr-defined]
        ratios.append(seconds["without"] / seconds["with"])
        print(
            f"  without {seconds['without']:.2f} s, with {seconds['with']:.2f} s, {counts[-1]} checkpoints", flush=True
        )
    print(f"throughput with a checkpoint every second: {statistics.median(ratios):.0%} of that without")


def gaps(megabytes: int, folder: Path) -> None:
    """The longest time between two batches, with nothing under way and in the seconds after a barrier; recovery."""
    at: list[float] = []
    keys = megabytes * (1 << 20) // 63 // 2 * 2
    options = {"execution.checkpointing.savepoint-dir": str(folder / "saved"), "flowsql.memory": "16 gb"}
    job = LocalCluster(seed=1).submit(graph(lambda: Random(1 << 40, keys), options, at))
    while not at or job.metrics.total("numRecordsIn", "aggregate") < 3 * keys:
        time.sleep(0.2)
    state = sum(ctx.state.nbytes for task in job._tasks for ctx in task._stateful)  # type: ignore[union-attr]
    mark = len(at)
    time.sleep(5)
    alone = _longest(at[mark:])
    mark, began = len(at), time.perf_counter()
    path = job.savepoint(kind=SnapshotKind.SAVEPOINT)
    time.sleep(5)
    during = _longest(at[mark:])
    path.result(600)
    took = time.perf_counter() - began
    job.cancel_and_wait()
    print(
        f"state {state / (1 << 20):.0f} MB: longest gap {during * 1000:.0f} ms in the 5 s after the barrier, "
        f"{alone * 1000:.0f} ms alone; snapshot complete after {took:.1f} s"
    )
    again: list[float] = []
    restored = graph(
        lambda: Random(2 * BATCH_ROWS, 1), {**options, "execution.state-recovery.path": path.result()}, again
    )
    began = time.perf_counter()
    LocalCluster(seed=1).run(restored)
    print(f"recovery of it: {again[0] - began:.2f} s to the first result")


def _longest(at: list[float]) -> float:
    found = np.diff(np.sort(np.array(at)))
    return float(np.quantile(found, 0.999)) if len(found) else 0.0


def main() -> None:
    """Measure and tell."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=60_000_000)
    parser.add_argument("--keys", type=int, default=1_000_000)
    parser.add_argument("--megabytes", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        throughput(chosen.rows, chosen.keys, chosen.rounds, Path(folder))
        gaps(chosen.megabytes, Path(folder))


if __name__ == "__main__":
    main()
