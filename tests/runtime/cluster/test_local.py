from __future__ import annotations

from flowsql_core.expr import Call, InputRef, Literal
from flowsql_core.graph.specs import CalcSpec
from flowsql_core.types.logical import BIGINT, BOOLEAN, STRING
from flowsql_runtime.cluster.job import JobStatus
from flowsql_runtime.cluster.local import run_job

from ..graphs import Collected, collect, edge, graph, values, vertex

N = InputRef(0, BIGINT)
NAME = InputRef(1, STRING)


def test_values_calc_collect_runs_in_the_calling_thread() -> None:
    out = Collected()
    keep = CalcSpec((N, NAME), Call(">", (N, Literal(1, BIGINT)), BOOLEAN))
    job = run_job(graph([vertex(1, values([(1, "a"), (2, "b"), (3, None)]), keep, collect())], out=out))
    assert job.status is JobStatus.FINISHED
    assert out.rows == [("+I", 2, "b"), ("+I", 3, None)]
    assert out.finished == 1
    assert len(job.id) == 32
    int(job.id, 16)
    assert job.metrics.total("numRecordsOut", "Values-1-0") == 3
    assert job.metrics.total("numRecordsIn", "CollectSink-1-2") == 2


def test_values_collect_with_and_without_a_thread() -> None:
    for parallel in (False, True):
        out = Collected()
        if parallel:
            source, sink = vertex(1, values([(1, "a"), (2, None)])), vertex(2, collect(), parallelism=1)
            job = run_job(graph([source, sink], [edge(source, sink)], out=out))
        else:
            job = run_job(graph([vertex(1, values([(1, "a"), (2, None)]), collect())], out=out))
        assert job.status is JobStatus.FINISHED
        assert out.rows == [("+I", 1, "a"), ("+I", 2, None)]
