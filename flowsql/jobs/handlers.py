"""What can be asked of the jobs of a process, apart from who asks and how: data in, data out.

A request is a method's name and its arguments, an answer is what JSON can say. Errors are FlowSqlErrors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from flowsql.jobs.job_id import checked_id, job_not_found
from flowsql.jobs.job_info import JobInfo
from flowsql.jobs.sampling import list_edges, sample
from flowsql_core.errors import ExecutionError

if TYPE_CHECKING:
    from flowsql.jobs.registry import JobRegistry
    from flowsql_runtime.cluster.job import Job

Arguments: TypeAlias = Mapping[str, Any]
Answer: TypeAlias = dict[str, Any]


def list_jobs(jobs: JobRegistry, arguments: Arguments) -> Answer:
    """``jobs``: all that are known, the newest first."""
    return {"jobs": [info.to_json() for info in jobs.infos()]}


def cancel_job(jobs: JobRegistry, arguments: Arguments) -> Answer:
    """Ask job ``job`` to end; the answer does not wait for its end."""
    job_id = checked_id(arguments["job"])
    job = jobs.alive(job_id)
    if job is not None:
        job.cancel()
        return {}
    info = jobs.find(job_id)
    if info is None:
        raise job_not_found(job_id)
    if info.status != "CANCELED":
        raise ExecutionError("job-over", f"Flink job ({job_id}) was not canceled, but instead {info.status}.")
    return {}


def take_savepoint(jobs: JobRegistry, arguments: Arguments) -> Answer:
    """``path`` of a savepoint of job ``job`` below ``directory`` (None: the job's own option); the job goes on."""
    from flowsql_core.element import SnapshotKind
    from flowsql_runtime.cluster.job import path_of

    job = _savable(jobs, arguments["job"])
    return {"path": path_of(job.savepoint(arguments.get("directory"), SnapshotKind.SAVEPOINT))}


def stop_job(jobs: JobRegistry, arguments: Arguments) -> Answer:
    """As :func:`take_savepoint`, and the job ends; with ``drain`` it sends the last watermark before that."""
    from flowsql_core.element import SnapshotKind
    from flowsql_runtime.cluster.job import path_of

    job = _savable(jobs, arguments["job"])
    kind = SnapshotKind.DRAIN if arguments.get("drain") else SnapshotKind.SUSPEND
    path = path_of(job.savepoint(arguments.get("directory"), kind))
    # What its sinks hold is committed on the way out; a failure there is the stop's failure.
    job.wait()
    return {"path": path}


def read_metrics(jobs: JobRegistry, arguments: Arguments) -> Answer:
    """``jobs``: what is known of each job that runs (``info``), and what its tasks count (``reading``).

    ``job``: of this one alone; then also of one that has ended, which counts nothing any more.
    """
    from flowsql_runtime.metrics.readings import reading_of

    if arguments.get("job") is None:
        alive = [job for info in jobs.infos() if (job := jobs.alive(info.id)) is not None]
        return {"jobs": [{"info": JobInfo.of(job).to_json(), "reading": reading_of(job).to_json()} for job in alive]}
    job_id = checked_id(arguments["job"])
    job = jobs.alive(job_id)
    if job is not None:
        return {"jobs": [{"info": JobInfo.of(job).to_json(), "reading": reading_of(job).to_json()}]}
    info = jobs.find(job_id)
    if info is None:
        raise job_not_found(job_id)
    return {"jobs": [{"info": info.to_json(), "reading": None}]}


METHODS: Final[Mapping[str, Callable[[JobRegistry, Arguments], Answer]]] = {
    "list": list_jobs,
    "savepoint": take_savepoint,
    "stop": stop_job,
    "cancel": cancel_job,
    "metrics": read_metrics,
    "edges": list_edges,
}

#: What is answered piece by piece until somebody has enough, or the job ends.
STREAMS: Final[Mapping[str, Callable[[JobRegistry, Arguments], Iterator[Answer]]]] = {"sample": sample}


def handle(jobs: JobRegistry, method: str, arguments: Arguments) -> Answer:
    """The answer to a request.

    Raises:
        FlowSqlError: what went wrong.
    """
    action = METHODS.get(method)
    if action is None:
        names = ", ".join((*METHODS, *STREAMS))
        raise ExecutionError("control-method", f"There is no method '{method}'.", hint=f"one of {names}")
    return action(jobs, arguments)


def follow(jobs: JobRegistry, method: str, arguments: Arguments) -> Iterator[Answer] | None:
    """The answers to a request that has many; None: it has one.

    An answer comes every half second at least, also where there is nothing new. Whoever has enough closes the iterator.
    """
    begin = STREAMS.get(method)
    return None if begin is None else begin(jobs, arguments)


def _savable(jobs: JobRegistry, job_id: object) -> Job:
    wanted = checked_id(job_id)
    job = jobs.alive(wanted)
    if job is not None:
        return job
    info = jobs.find(wanted)
    if info is None:
        raise job_not_found(wanted)
    raise ExecutionError("job-over", f"Job {wanted} is {info.status}: there is nothing to save.")
