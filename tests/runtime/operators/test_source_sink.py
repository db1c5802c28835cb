from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from flowsql_core.batch import ChangelogBatch
from flowsql_core.config import Configuration
from flowsql_core.errors import ConnectorError, ExecutionError
from flowsql_core.expr import Call, InputRef, Literal
from flowsql_core.graph.constraints import NotNull, Place, constraints_of
from flowsql_core.graph.job import JobGraph, JobVertex, ShipStrategy
from flowsql_core.graph.specs import (
    CalcSpec,
    ConstraintEnforcerSpec,
    LimitSpec,
    ScanSpec,
    SinkSpec,
    TableSpec,
    WatermarkAssignerSpec,
)
from flowsql_core.row import ALL_CHANGES
from flowsql_core.types.logical import BIGINT, STRING, TimestampType
from flowsql_runtime.cluster.job import JobStatus
from flowsql_runtime.cluster.local import LocalCluster
from flowsql_runtime.testing.cut import run_cut, run_whole
from flowsql_runtime.testing.harness import OperatorHarness

from ..fake_connector import FakeStore, install
from ..graphs import NUMBERS, Collected, collect, edge, graph, schema, values, vertex

TABLE = TableSpec(("c", "d", "t"), NUMBERS, (("connector", "fake"),))


def scan() -> ScanSpec:
    return ScanSpec(TABLE, (0, 1), NUMBERS)


def sink() -> SinkSpec:
    return SinkSpec(TABLE, NUMBERS, ALL_CHANGES)


def not_null(*columns: int, drops: bool = False) -> ConstraintEnforcerSpec:
    return ConstraintEnforcerSpec(NUMBERS, (NotNull(tuple(Place(at, NUMBERS[at].name) for at in columns), drops),))


def rows(first: int, count: int) -> list[tuple[int, str]]:
    return [(number, f"r{number}") for number in range(first, first + count)]


def test_a_sink_commits_once_when_the_job_succeeded(monkeypatch: pytest.MonkeyPatch) -> None:
    store = install(monkeypatch, FakeStore({"a": rows(0, 5), "b": rows(5, 5), "c": rows(10, 5)}))
    source, target = vertex(1, scan(), parallelism=2), vertex(2, sink(), parallelism=2)
    job = LocalCluster().run(graph([source, target], [edge(source, target)]))
    assert job.status is JobStatus.FINISHED
    assert sorted(row[1] for row in store.written) == list(range(15))
    assert store.committed == ["end=True"]
    assert store.aborted == []
    assert store.closed == 4
    assert store.watermarks == [2**63 - 1] * 2


def test_a_failure_of_any_task_leaves_nothing_visible(monkeypatch: pytest.MonkeyPatch) -> None:
    store = install(monkeypatch, FakeStore({"a": rows(0, 5)}))
    broken = CalcSpec((Call("/", (InputRef(0, BIGINT), Literal(0, BIGINT)), BIGINT), InputRef(1, STRING)))
    good = vertex(1, values([(1, "x")]), sink())
    bad = vertex(2, scan(), broken, collect())
    with pytest.raises(ExecutionError):
        LocalCluster().run(graph([good, bad], out=Collected()))
    assert store.written == []
    assert store.committed == []


def test_an_error_of_the_connector_is_the_jobs_error(monkeypatch: pytest.MonkeyPatch) -> None:
    store = install(monkeypatch, FakeStore({"a": rows(0, 5)}, fail_on_write=True))
    with pytest.raises(ConnectorError, match="no space left") as raised:
        LocalCluster().run(graph([vertex(1, scan(), sink())]))
    assert raised.value.operator == "Sink-1-1"
    assert store.closed == 2


def test_not_null_columns_fail_or_drop(monkeypatch: pytest.MonkeyPatch) -> None:
    store = install(monkeypatch, FakeStore())
    source = values([(1, "a"), (None, "b"), (3, None)])
    message = (
        "Column 'n' is NOT NULL, however, a null value is being written into it. You can set job configuration "
        "'table.exec.sink.not-null-enforcer'='DROP' to suppress this exception and drop such records silently."
    )
    with pytest.raises(ExecutionError) as raised:
        LocalCluster().run(graph([vertex(1, source, not_null(0), sink())]))
    assert raised.value.message == message
    LocalCluster().run(graph([vertex(1, source, not_null(0, 1, drops=True), sink())]))
    assert store.written == [("+I", 1, "a")]


def test_collected_rows_are_enforced_too() -> None:
    strict = schema(n=BIGINT.as_nullable(False), name=STRING)
    out = Collected()

    def job(mode: str) -> list[JobVertex]:
        demanded = constraints_of(strict, Configuration(values={"table.exec.sink.not-null-enforcer": mode}))
        return [vertex(1, values([(None, "b"), (2, "c")]), replace(collect(strict), constraints=demanded))]

    with pytest.raises(ExecutionError, match="Column 'n' is NOT NULL"):
        LocalCluster().run(graph(job("ERROR"), out=Collected()))
    LocalCluster().run(graph(job("DROP"), out=out))
    assert out.rows == [("+I", 2, "c")]


@pytest.mark.parametrize("parallelism", [(1, 1), (2, 3), (3, 1)])
@pytest.mark.parametrize("stop_at", [0, 3, 7, 100])
def test_a_cut_at_any_position_loses_and_repeats_nothing(
    monkeypatch: pytest.MonkeyPatch, parallelism: tuple[int, int], stop_at: int
) -> None:
    install(monkeypatch, FakeStore({"a": rows(0, 10), "b": rows(10, 4), "c": rows(14, 6)}))

    def make(p: int) -> JobGraph:
        source, target = vertex(1, scan(), parallelism=p), vertex(2, LimitSpec(0, 15), collect())
        return graph([source, target], [edge(source, target, ShipStrategy.GLOBAL)])

    cut = run_cut(make, parallelism, stop_at)
    assert len(cut.before["out"]) <= stop_at * parallelism[0]
    found = cut.rows()
    assert len(found) == 15
    assert len(set(found)) == 15
    if parallelism == (1, 1):
        assert found == run_whole(make(1))["out"]


def test_values_and_committed_sinks_are_cut_too(monkeypatch: pytest.MonkeyPatch) -> None:
    store = install(monkeypatch, FakeStore())

    def make(p: int) -> JobGraph:
        source, target = vertex(1, values(rows(0, 10)), parallelism=p), vertex(2, sink(), parallelism=p)
        return graph([source, target], [edge(source, target)])

    run_cut(make, (1, 2), 4)
    assert [row[1] for row in store.written] == list(range(10))
    assert store.committed == ["end=True"] * 2


MS = TimestampType(precision=3)
TIMED = schema(ts=MS, name=STRING)


def test_files_read_one_behind_another_lose_no_rows_as_late(monkeypatch: pytest.MonkeyPatch) -> None:
    early, late = [(t * 1000, "a") for t in range(1, 6)], [(t * 1000, "b") for t in range(1, 6)]
    store = install(monkeypatch, FakeStore({"a": early, "b": late}, types=(pa.timestamp("ms"), pa.string())))
    assigner = WatermarkAssignerSpec(0, "ts", InputRef(0, MS))
    found = [vertex(1, ScanSpec(TABLE, (0, 1), TIMED), assigner, sink(), output=TIMED)]
    LocalCluster().run(graph(found, configuration={"flowsql.source.batch-rows": "2"}))
    # Nothing while the second file has not begun; then its own time; then the end.
    assert store.watermarks == [2000, 4000, 5000, 2**63 - 1]


def test_rows_that_a_sink_cannot_flush_at_a_barrier_fail_the_task_and_not_the_checkpoint(tmp_path: Path) -> None:
    """A snapshot that fails is given up and the job goes on: without the rows that were to be flushed."""
    path = tmp_path / "out"
    options = (("connector", "filesystem"), ("format", "csv"), ("path", str(path)))
    harness = OperatorHarness(SinkSpec(TableSpec(("c", "d", "t"), NUMBERS, options), NUMBERS, ALL_CHANGES))
    (operator,) = harness.operators
    columns = [pa.nulls(2, kind) for kind in (pa.int64(), pa.string())]
    operator.process_batch(0, ChangelogBatch.of(columns[: len(NUMBERS)]))
    path.write_text("no folder")
    with pytest.raises(ConnectorError, match="cannot be written"):
        operator.prepare_snapshot_pre_barrier(1)
