"""Requests for live rows of a job: which outputs it has, and rows of one of them until somebody has enough.

Rows travel as Arrow IPC streams in base 64: a first column ``op`` with the kinds of change, then those of the output.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from flowsql.jobs.job_id import checked_id, job_not_found
from flowsql_core.errors import ExecutionError

if TYPE_CHECKING:
    from flowsql.jobs.registry import JobRegistry
    from flowsql_core.batch import ChangelogBatch
    from flowsql_core.types.logical import Schema
    from flowsql_runtime.cluster.job import Job
    from flowsql_runtime.sampling.edges import Edge
    from flowsql_runtime.sampling.tap import Tap

Answer: TypeAlias = dict[str, Any]

#: Seconds between two answers at most.
PERIOD_S: Final = 0.25
_OP: Final = "op"


def list_edges(jobs: JobRegistry, arguments: Mapping[str, Any]) -> Answer:
    """``edges`` of job ``job``: number, uid, name of the operator that writes each, where its rows go, its columns."""
    from flowsql_runtime.sampling.edges import edges_of

    job = _running(jobs, arguments["job"])
    if not job.graph.vertices:
        raise _elsewhere(job)
    return {
        "edges": [
            {
                "node": edge.node,
                "uid": edge.uid,
                "name": edge.title,
                "ways": [list(way) for way in edge.ways],
                "columns": _columns(edge.columns),
            }
            for edge in edges_of(job.graph)
        ]
    }


def sample(jobs: JobRegistry, arguments: Mapping[str, Any]) -> Iterator[Answer]:
    """Rows of job ``job`` at the output of ``operator``, or of table ``table``.

    The first answer, and no other one, has ``columns``: it comes as soon as they are known. All have ``passed`` and
    ``taken``: rows that went by and those of them that were taken, so far; some have ``rows``. The last one has
    ``status``, the job's when it ended.
    """
    from flowsql_runtime.sampling.edges import edges_named, edges_of_table
    from flowsql_runtime.sampling.tap import Tap

    job = _running(jobs, arguments["job"])
    if not job.graph.vertices:
        raise _elsewhere(job)
    operator = arguments.get("operator")
    edges = (
        edges_of_table(job.graph, str(arguments.get("table")))
        if operator is None
        else edges_named(job.graph, str(operator))
    )
    if not all(job.taps.has(edge.place) for edge in edges):
        raise _elsewhere(job)
    return _rows(job, edges, Tap())


def _rows(job: Job, edges: Sequence[Edge], tap: Tap) -> Iterator[Answer]:
    for edge in edges:
        job.taps.add(edge.place, tap)
    try:
        columns = edges[0].columns if edges else ()
        told = bool(columns)
        yield {"passed": 0, "taken": 0, **({"columns": _columns(columns)} if told else {})}
        while True:
            # Asked first: rows that come between the two questions are looked at once more.
            is_over = job.is_over()
            found = tap.read(0.0 if is_over else PERIOD_S)
            answer: Answer = {"passed": found.passed, "taken": found.taken}
            if found.batches:
                rows = _shown(found.batches, columns)
                if not told:
                    told = True
                    answer["columns"] = _columns(_schema_of(rows))
                answer["rows"] = _encoded(rows)
            if is_over:
                answer["status"] = job.status.value
            yield answer
            if is_over:
                return
    finally:
        for edge in edges:
            job.taps.remove(edge.place, tap)


def _elsewhere(job: Job) -> ExecutionError:
    return ExecutionError(
        "job-elsewhere", f"Rows of job {job.id} cannot be looked at: its tasks run in other processes, as on Spark."
    )


def _running(jobs: JobRegistry, job_id: object) -> Job:
    wanted = checked_id(job_id)
    job = jobs.alive(wanted)
    if job is not None:
        return job
    info = jobs.find(wanted)
    if info is None:
        raise job_not_found(wanted)
    raise ExecutionError("job-over", f"Job {wanted} is {info.status}: it has no rows to look at any more.")


def _columns(schema: Schema) -> list[list[str]]:
    return [[column.name, str(column.type)] for column in schema]


def _shown(batches: Sequence[ChangelogBatch], columns: Schema) -> Any:
    """The rows as an Arrow table; Python objects as their texts."""
    import pyarrow as pa

    from flowsql_core.batch import PyObjectColumn

    tables = []
    for batch in batches:
        arrays: list[Any] = [pa.array([0] * batch.num_rows if batch.kinds is None else batch.kinds, pa.uint8())]
        for column in batch.columns:
            is_object = isinstance(column, PyObjectColumn)
            arrays.append(pa.array(map(str, column.values), pa.string()) if is_object else column)
        names = [column.name for column in columns]
        if len(names) != len(batch.columns):
            names = [f"f{place}" for place in range(len(batch.columns))]
        tables.append(pa.table(arrays, [_OP, *names]))
    return pa.concat_tables(tables)


def _schema_of(rows: Any) -> Schema:
    """Columns of rows of which the plan does not say what they have."""
    from flowsql_core.types.arrow import from_arrow
    from flowsql_core.types.logical import Column

    return tuple(Column(field.name, from_arrow(field.type)) for field in list(rows.schema)[1:])


def _encoded(rows: Any) -> str:
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as stream:
        stream.write_table(rows)
    return base64.b64encode(sink.getvalue()).decode()


def decoded_columns(answer: Mapping[str, Any]) -> Schema:
    """The columns that an answer tells."""
    from flowsql_core.types.logical import Column
    from flowsql_core.types.text import parse_type

    return tuple(Column(name, parse_type(text)) for name, text in answer["columns"])


def decoded_rows(answer: Mapping[str, Any]) -> ChangelogBatch | None:
    """The rows that an answer brings; None: it has none."""
    import numpy as np
    import pyarrow as pa

    from flowsql_core.batch import ChangelogBatch

    if "rows" not in answer:
        return None
    table = pa.ipc.open_stream(pa.py_buffer(base64.b64decode(answer["rows"]))).read_all().combine_chunks()
    arrays = [_whole(column) for column in table.columns]
    return ChangelogBatch.of(arrays[1:], np.asarray(arrays[0], np.uint8), num_rows=table.num_rows)


def _whole(column: Any) -> Any:
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
