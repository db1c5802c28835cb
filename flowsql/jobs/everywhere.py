"""Jobs of this process and of the user's other ones, as if they were one cluster."""

from __future__ import annotations

import os
from typing import Any

from flowsql.jobs.handlers import Answer, checked_id, handle, job_not_found
from flowsql.jobs.job_info import JobInfo
from flowsql.jobs.remote import RemoteProcess, processes, sweep
from flowsql.jobs.watch import JOBS, OTHERS_CAN_SEE
from flowsql_core.errors import ExecutionError, FlowSqlError
from flowsql_core.record import record


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
    if JOBS.find(wanted) is not None:
        return handle(JOBS, method, {"job": wanted, **arguments})
    troubles = []
    for process, jobs, trouble in _others():
        if any(info.id == wanted for info in jobs):
            return dict(process.ask(method, {"job": wanted, **arguments}))
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
