"""What can be asked of the jobs of a process, apart from who asks and how: data in, data out.

A request is a method's name and its arguments, an answer is what JSON can say. Errors are FlowSqlErrors.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from flowsql_core.errors import BindError, ExecutionError

if TYPE_CHECKING:
    from flowsql.jobs.registry import JobRegistry
    from flowsql_runtime.cluster.job import Job

Arguments: TypeAlias = Mapping[str, Any]
Answer: TypeAlias = dict[str, Any]

_JOB_ID = re.compile(r"[0-9a-fA-F]{32}")


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


METHODS: Final[Mapping[str, Callable[[JobRegistry, Arguments], Answer]]] = {
    "list": list_jobs,
    "savepoint": take_savepoint,
    "stop": stop_job,
    "cancel": cancel_job,
}


def handle(jobs: JobRegistry, method: str, arguments: Arguments) -> Answer:
    """The answer to a request.

    Raises:
        FlowSqlError: what went wrong.
    """
    action = METHODS.get(method)
    if action is None:
        raise ExecutionError("control-method", f"There is no method '{method}'.", hint=f"one of {', '.join(METHODS)}")
    return action(jobs, arguments)


def checked_id(text: object) -> str:
    """A job's id in its one spelling.

    Raises:
        BindError: it is none.
    """
    if not isinstance(text, str) or _JOB_ID.fullmatch(text) is None:
        raise BindError(
            "bad-job-id",
            f'Cannot parse JobID from "{text}". The expected format is [0-9a-fA-F]{{32}}, e.g. '
            "fd72014d4c864993a2e5a9287b4a9c5d.",
        )
    return text.lower()


def job_not_found(job_id: str) -> ExecutionError:
    """No process knows the job."""
    return ExecutionError(
        "job-not-found", f"Could not find Flink job ({job_id})", hint="SHOW JOBS and 'flowsql job list' name them"
    )


def _savable(jobs: JobRegistry, job_id: object) -> Job:
    wanted = checked_id(job_id)
    job = jobs.alive(wanted)
    if job is not None:
        return job
    info = jobs.find(wanted)
    if info is None:
        raise job_not_found(wanted)
    raise ExecutionError("job-over", f"Job {wanted} is {info.status}: there is nothing to save.")
