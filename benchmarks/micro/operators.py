"""Rows per second of the stateful operators, by batch size and threads.

python benchmarks/micro/operators.py [NAME]
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from flowsql_compute.functions.aggregate import resolve_aggregate
from flowsql_core.batch import ChangelogBatch, single_watermark
from flowsql_core.expr import AggregateCall, InputRef
from flowsql_core.graph.specs import (
    GroupAggregateSpec,
    JoinKind,
    JoinSpec,
    WindowAggregateSpec,
    WindowKind,
    WindowProperty,
    WindowSpec,
)
from flowsql_core.types.logical import BIGINT, STRING, BooleanType, Column, TimestampType
from flowsql_runtime.testing.harness import OperatorHarness

TS = TimestampType(precision=3, nullable=False)
INPUT = (
    Column("k", BIGINT), Column("v", BIGINT), Column("ts", TS), Column("s", STRING),
    Column("f", BooleanType()), Column("g", BooleanType()),
)  # fmt: skip
ROWS = 4_000_000
Feed = Callable[[Any, list[ChangelogBatch]], None]


def call(name: str, *columns: int, distinct: bool = False, where: int | None = None) -> AggregateCall:
    resolved = resolve_aggregate(name, tuple(INPUT[c].type for c in columns), distinct, None)
    args = tuple(InputRef(c, INPUT[c].type) for c in columns)
    return AggregateCall(resolved.name, args, resolved.result_type, name, distinct, where)


def rows(keys: int, size: int, seed: int, n: int = ROWS) -> list[ChangelogBatch]:
    rng = np.random.default_rng(seed)
    k = rng.integers(0, keys, n)
    v = rng.integers(0, 100_000, n)
    ts = np.arange(n) // 10
    texts = pa.array([f"channel-{i}" for i in range(1000)]).take(pa.array(v % 1000))
    times = pa.array(ts).cast(pa.timestamp("ms"))
    columns = [pa.array(k), pa.array(v), times, texts, pa.array(v < 50_000), pa.array(v < 10_000)]
    found = []
    for start in range(0, n, size):
        part = [column.slice(start, size) for column in columns]
        end = min(n, start + size)
        found.append(ChangelogBatch.of(part, None, single_watermark(end - start, int(ts[end - 1]) - 4000)))
    return found


class _Nowhere:
    def collect(self, batch: ChangelogBatch) -> None: ...
    def collect_side(self, tag: str, batch: ChangelogBatch) -> None: ...
    def emit_watermark(self, watermark: Any) -> None: ...
    def emit_watermark_status(self, status: Any) -> None: ...
    def emit_latency_marker(self, marker: Any) -> None: ...


def group(calls: list[AggregateCall], **changes: Any) -> GroupAggregateSpec:
    output = (INPUT[0], *(Column(c.name, c.type) for c in calls))
    fields: dict[str, Any] = {"input_retracts": False, "emit_update_before": True, "consolidate": True}
    return GroupAggregateSpec((0,), tuple(calls), INPUT, output, **(fields | changes))


def window(kind: WindowKind, size: int, step: int) -> WindowAggregateSpec:
    calls = (call("COUNT"), call("SUM", 1))
    output = (INPUT[0], *(Column(c.name, c.type) for c in calls), Column("ws", TS), Column("we", TS))
    return WindowAggregateSpec(
        (0,),
        calls,
        WindowSpec(kind, size, step, 0, 2),
        (WindowProperty.START, WindowProperty.END),
        INPUT,
        output,
        False,
    )


def join(kind: JoinKind = JoinKind.INNER) -> JoinSpec:
    side = (INPUT[0], INPUT[1])
    output = side if kind in (JoinKind.SEMI, JoinKind.ANTI) else side + side
    return JoinSpec(kind, (0,), (0,), (False,), None, side, side, False, False, output, True)


Q15 = [call("COUNT"), call("COUNT", where=4), call("COUNT", where=5)] + [
    call("COUNT", 1, distinct=True, where=w) for w in (None, 4, 5)
]
CASES: dict[str, tuple[Any, int]] = {
    "sum+count, 1 k keys": (group([call("COUNT"), call("SUM", 1)]), 1_000),
    "sum+count, 100 k keys": (group([call("COUNT"), call("SUM", 1)]), 100_000),
    "sum+count, 1 M keys": (group([call("COUNT"), call("SUM", 1)]), 1_000_000),
    "sum+count, every change": (group([call("COUNT"), call("SUM", 1)], consolidate=False), 100_000),
    "q17-like, 100 k keys": (
        group([call("COUNT"), call("COUNT", where=4), call("MIN", 1), call("MAX", 1), call("AVG", 1), call("SUM", 1)]),
        100_000,
    ),
    "max of strings": (group([call("MAX", 3)]), 1_000),
    "q15-like distinct": (group(Q15), 10),
    "tumble": (window(WindowKind.TUMBLE, 10_000, 10_000), 10_000),
    "hop": (window(WindowKind.HOP, 10_000, 2_000), 10_000),
}


def feed_one(harness: OperatorHarness[Any], batches: list[ChangelogBatch]) -> None:
    for batch in batches:
        harness.batch(batch)


def feed_join(harness: OperatorHarness[Any], batches: list[ChangelogBatch]) -> None:
    for number, batch in enumerate(batches):
        harness.batch(batch.with_columns(batch.columns[:2]), number & 1)


def measure(spec: Any, keys: int, size: int, threads: int, feed: Feed) -> float:
    inputs = [rows(keys, size, seed, ROWS // threads) for seed in range(threads)]
    harnesses = [OperatorHarness(spec, output=_Nowhere()) for _ in range(threads)]
    workers = [
        threading.Thread(target=feed, args=(harness, batches))
        for harness, batches in zip(harnesses, inputs, strict=True)
    ]
    start = time.perf_counter()
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return ROWS / (time.perf_counter() - start) / 1e6


def main() -> None:
    wanted = sys.argv[1] if len(sys.argv) > 1 else ""
    sys.setswitchinterval(1e-4)
    cases: dict[str, tuple[Any, int, Feed]] = {name: (*case, feed_one) for name, case in CASES.items()}
    cases["join, 2 results a row"] = (join(), ROWS // 8, feed_join)
    for kind in (JoinKind.LEFT, JoinKind.FULL, JoinKind.SEMI, JoinKind.ANTI):
        cases[f"{kind.value}, as many partners"] = (join(kind), ROWS // 8, feed_join)
    for name, (spec, keys, feed) in cases.items():
        if wanted in name:
            measure(spec, keys, 65_536, 1, feed)
            shown = [
                f"{measure(spec, keys, size, threads, feed):7.1f}"
                for threads in (1, 2)
                for size in (1_024, 16_384, 65_536)
            ]
            print(f"{name:<26} 1 thread {' '.join(shown[:3])}   2 threads {' '.join(shown[3:])}  M rows/s", flush=True)


if __name__ == "__main__":
    main()
