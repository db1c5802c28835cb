"""Jobs of this process and of the user's other ones, as if they were one cluster."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from flowsql.jobs import handlers
from flowsql.jobs.handlers import Answer, handle
from flowsql.jobs.job_id import checked_id, job_not_found
from flowsql.jobs.job_info import JobInfo
from flowsql.jobs.remote import QUICK_S, RemoteProcess, processes, sweep
from flowsql.jobs.watch import JOBS, OTHERS_CAN_SEE
from flowsql_core.errors import ExecutionError, FlowSqlError
from flowsql_core.record import record

if TYPE_CHECKING:
    from flowsql_runtime.metrics.readings import JobReading


@record
class Known:
    """The jobs that are known, the newest first, and what kept some processes from answering."""

    jobs: tuple[JobInfo, ...]
    troubles: tuple[FlowSqlError, ...]


def known_jobs() -> Known:
    """Those of this process and of every other one that answers."""
    found, troubles = list(JOBS.infos()), []
    for _, jobs, trouble in _others():
        found += jobs
        if trouble is not None:
            troubles.append(trouble)
    return Known(tuple(sorted(found, key=lambda info: info.started_ms, reverse=True)), tuple(troubles))


def act_on(method: str, job_id: str, **arguments: Any) -> Answer:
    """Ask the process that runs a job; see ``handlers.py`` for methods, arguments and answers.

    A folder without a scheme is one of this process: relative paths begin where it works.

    Raises:
        FlowSqlError: nobody knows the job, or what went wrong with it.
    """
    wanted = checked_id(job_id)
    folder = arguments.get("directory")
    if folder and "://" not in folder and not folder.startswith("file:"):
        arguments["directory"] = os.path.abspath(os.path.expanduser(folder))
    process = _process_of(wanted)
    if process is None:
        return handle(JOBS, method, {"job": wanted, **arguments})
    return dict(process.ask(method, {"job": wanted, **arguments}))


def follow(method: str, job_id: str, **arguments: Any) -> Iterator[Mapping[str, Any]]:
    """Ask for many answers, see ``handlers.STREAMS``; closing the iterator ends the request.

    Raises:
        FlowSqlError: as :func:`act_on`, some of it with the first answer.
    """
    wanted = checked_id(job_id)
    process = _process_of(wanted)
    if process is not None:
        return process.follow(method, {"job": wanted, **arguments})
    answers = handlers.follow(JOBS, method, {"job": wanted, **arguments})
    assert answers is not None
    return answers


def resolved_id(text: str) -> str:
    """The id of the running job that a text means: its id, the beginning of it, or its name.

    Raises:
        ExecutionError: no job runs, none fits, or several do; the hint lists those that run.
    """
    known = known_jobs().jobs
    jobs = [info for info in known if info.is_running or info.is_scheduled]
    wanted = text.strip().lower()
    if any(info.id == wanted for info in known):
        # It may have ended: whoever ran it says how.
        return wanted
    found = [info for info in jobs if wanted and (info.id.startswith(wanted) or info.name.lower() == wanted)]
    if len(found) == 1:
        return found[0].id
    listed = ", ".join(f"{info.id} ({info.name})" for info in found or jobs)
    if not jobs:
        raise ExecutionError(
            "no-jobs",
            f"No job '{text}': none of your jobs is running on this machine.",
            hint="a job is seen once it has been running for a second",
        )
    what = "fits several running jobs" if found else "is not a running job"
    raise ExecutionError("job-not-found", f"'{text}' {what}.", hint=f"running: {listed}")


@record
class Observed:
    """A job with what its tasks count; None where it has ended, or its process tells nothing."""

    info: JobInfo
    reading: JobReading | None


def observed_jobs(job_id: str | None = None) -> tuple[list[Observed], list[FlowSqlError]]:
    """All running jobs, the newest first, or one, and what kept processes from answering.

    Raises:
        FlowSqlError: nobody knows the one job.
    """
    if job_id is not None:
        return _observed(act_on("metrics", job_id)["jobs"]), []
    found = _observed(handle(JOBS, "metrics", {})["jobs"])
    troubles = []
    for process, jobs, trouble in _others():
        if trouble is not None:
            troubles.append(trouble)
        if not any(info.is_running or info.is_scheduled for info in jobs):
            continue
        try:
            found += _observed(process.ask("metrics", {}, QUICK_S)["jobs"])
        except ExecutionError as error:
            if error.code != "process-gone":
                troubles.append(error)
    return sorted(found, key=lambda one: one.info.started_ms, reverse=True), troubles


def _observed(answers: list[Mapping[str, Any]]) -> list[Observed]:
    from flowsql_runtime.metrics.readings import JobReading

    try:
        return [
            Observed(
                JobInfo.from_json(one["info"]),
                None if one["reading"] is None else JobReading.from_json(one["reading"]),
            )
            for one in answers
        ]
    except (KeyError, TypeError) as error:
        raise ExecutionError(
            "control-version",
            "A process tells the metrics of its jobs in another form.",
            hint="both processes need the same release of FlowSQL",
        ) from error


def _process_of(wanted: str) -> RemoteProcess | None:
    """The process that runs a job, or did; None: this one.

    Raises:
        ExecutionError: nobody knows the job.
    """
    if JOBS.find(wanted) is not None:
        return None
    troubles = []
    for process, jobs, trouble in _others():
        if any(info.id == wanted for info in jobs):
            return process
        if trouble is not None:
            troubles.append(str(trouble))
    missing = job_not_found(wanted)
    if troubles:
        missing.hint = f"it may be in one that was not asked: {' '.join(troubles)}"
    raise missing


def _others() -> list[tuple[RemoteProcess, list[JobInfo], FlowSqlError | None]]:
    if not OTHERS_CAN_SEE:
        return []
    answers: list[tuple[RemoteProcess, list[JobInfo], FlowSqlError | None]] = []
    stale = False
    for process in processes():
        try:
            answers.append((process, process.jobs(), None))
        except ExecutionError as error:
            # Its socket is still there, and nobody listens: that of a process that was killed.
            stale = stale or error.code == "process-gone"
            if error.code != "process-gone":
                answers.append((process, [], error))
    if stale:
        sweep()
    return answers
