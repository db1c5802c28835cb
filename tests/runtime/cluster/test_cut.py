"""Stateful graphs over a hash exchange, cut in the middle and restored at another parallelism: the same answers."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa
import pytest

from flowsql_compute.functions.aggregate import resolve_aggregate
from flowsql_core.errors import ExecutionError
from flowsql_core.expr import AggregateCall, InputRef
from flowsql_core.graph.job import JobGraph, ShipStrategy
from flowsql_core.graph.specs import (
    GroupAggregateSpec,
    ScanSpec,
    TableSpec,
    WatermarkAssignerSpec,
    WindowAggregateSpec,
    WindowKind,
    WindowProperty,
    WindowSpec,
)
from flowsql_core.types.logical import STRING, Column, TimestampType
from flowsql_runtime.cluster.local import LocalCluster
from flowsql_runtime.testing.cut import run_cut, run_whole

from ..fake_connector import FakeStore, install
from ..graphs import Collected, collect, edge, graph, schema, vertex

each_backend = pytest.mark.usefixtures("each_backend")

MS = TimestampType(precision=3)
TIMED = schema(ts=MS, name=STRING)
SCAN = ScanSpec(TableSpec(("c", "d", "t"), TIMED, ()), (0, 1), TIMED)


def count() -> AggregateCall:
    found = resolve_aggregate("COUNT", (), False, None, filtered=False)
    return AggregateCall(found.name, (), found.result_type, "n")


COUNTED = (TIMED[1], Column("n", count().type))
GROUP = GroupAggregateSpec((1,), (count(),), TIMED, COUNTED, input_retracts=False, emit_update_before=True)
WINDOWED = (*COUNTED, Column("window_start", MS), Column("window_end", MS))
WINDOW = WindowAggregateSpec(
    (1,),
    (count(),),
    WindowSpec(WindowKind.TUMBLE, 10_000, 10_000, time_index=0),
    (WindowProperty.START, WindowProperty.END),
    TIMED,
    WINDOWED,
    input_retracts=False,
)


def store() -> FakeStore:
    """Three splits over the same span of time; names 0 to 12."""
    splits = {
        f"s{split}": [(1000 + 500 * row, f"k{(row * 7 + split) % 13}") for row in range(120)] for split in range(3)
    }
    return FakeStore(splits, types=(pa.timestamp("ms"), pa.string()))


def make(spec: Any, output: Any, parallelism: int) -> JobGraph:
    assigner = WatermarkAssignerSpec(0, "ts", InputRef(0, MS))
    source = vertex(1, SCAN, assigner, parallelism=parallelism, output=TIMED)
    aggregate = vertex(2, spec, parallelism=parallelism, output=output)
    sink = vertex(3, collect(output))
    edges = [edge(source, aggregate, ShipStrategy.HASH, keys=(1,)), edge(aggregate, sink, ShipStrategy.GLOBAL)]
    return graph([source, aggregate, sink], edges, {"flowsql.source.batch-rows": "16"})


def folded(rows: list[tuple[Any, ...]]) -> Counter[tuple[Any, ...]]:
    found: Counter[tuple[Any, ...]] = Counter()
    for kind, *values in rows:
        found[tuple(values)] += 1 if kind in ("+I", "+U") else -1
        assert found[tuple(values)] in (0, 1), "a row was taken back that was not there"
    return +found


@each_backend
@pytest.mark.parametrize("parallelism", [(1, 1), (1, 3), (2, 3), (3, 2)])
@pytest.mark.parametrize("stop_at", [0, 17, 100])
def test_a_group_aggregate_survives_the_cut(
    monkeypatch: pytest.MonkeyPatch, parallelism: tuple[int, int], stop_at: int
) -> None:
    install(monkeypatch, store())
    cut = run_cut(lambda p: make(GROUP, COUNTED, p), parallelism, stop_at)
    whole = run_whole(make(GROUP, COUNTED, 1))["out"]
    assert folded(cut.rows()) == folded(whole)
    assert len(cut.rows()) == len(whole)


@each_backend
@pytest.mark.parametrize("parallelism", [(1, 1), (1, 3), (2, 3), (3, 2)])
@pytest.mark.parametrize("stop_at", [17, 50, 100])
def test_a_window_aggregate_survives_the_cut(
    monkeypatch: pytest.MonkeyPatch, parallelism: tuple[int, int], stop_at: int
) -> None:
    install(monkeypatch, store())
    whole = run_whole(make(WINDOW, WINDOWED, 1))["out"]
    assert sum(row[2] for row in whole) == 360
    cut = run_cut(lambda p: make(WINDOW, WINDOWED, p), parallelism, stop_at)
    assert Counter(cut.rows()) == Counter(whole)
    if parallelism[0] == 3 and stop_at == 100:
        assert cut.before["out"], "windows close before the cut too"


@each_backend
@pytest.mark.parametrize("stop_at", [0, 60])
def test_a_source_subtask_without_splits_holds_no_watermark_back_before_the_cut(
    monkeypatch: pytest.MonkeyPatch, stop_at: int
) -> None:
    one_split = store()
    del one_split.splits["s1"], one_split.splits["s2"]
    install(monkeypatch, one_split)
    whole = run_whole(make(WINDOW, WINDOWED, 1))["out"]
    cut = run_cut(lambda p: make(WINDOW, WINDOWED, p), (3, 2), stop_at)
    assert Counter(cut.rows()) == Counter(whole)
    # 60 rows span 30 seconds: two windows of 10 s have closed where two of three subtasks never had a split.
    assert bool(cut.before["out"]) == (stop_at > 0)


def test_state_beyond_the_budget_is_refused_with_operator_and_option(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [(1000, f"key number {row}") for row in range(60_000)]
    install(monkeypatch, FakeStore({"a": rows}, types=(pa.timestamp("ms"), pa.string())))
    cluster = LocalCluster(memory_bytes=1 << 20)
    found = make(GROUP, COUNTED, 1)
    configuration = {"flowsql.source.batch-rows": "1000", "flowsql.network.batch-rows": "1000"}
    job = cluster.submit(graph(found.vertices, found.edges, configuration, out=Collected()))
    with pytest.raises(ExecutionError, match=r"'GroupAggregate-2-0'.*flowsql.memory") as raised:
        job.wait(30)
    assert raised.value.operator == "GroupAggregate-2-0"
    assert cluster.budget is not None
    assert cluster.budget.reserved_bytes == 0


def test_a_reader_beyond_the_budget_is_refused_with_operator_and_option(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [(1000, "a long text " * 10) for _ in range(20_000)]
    install(monkeypatch, FakeStore({"a": rows}, types=(pa.timestamp("ms"), pa.string())))
    cluster = LocalCluster(memory_bytes=4 << 20)
    job = cluster.submit(graph([vertex(1, SCAN, collect(TIMED), output=TIMED)], out=Collected()))
    with pytest.raises(ExecutionError, match=r"'Scan-1-0'.*flowsql.memory") as raised:
        job.wait(30)
    assert raised.value.code == "memory-exceeded"
    assert cluster.budget is not None
    assert cluster.budget.reserved_bytes == 0
