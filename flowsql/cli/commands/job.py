"""``flowsql job``: what the user's other processes run, and savepoints and the end of it."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterable

from flowsql.cli.arguments.job import RUNNING, SCHEDULED, TERMINATED, JobInvocation
from flowsql.cli.arguments.parser import EXIT_FAILED, EXIT_OK
from flowsql.jobs.everywhere import Known, act_on, known_jobs
from flowsql.jobs.job_info import JobInfo
from flowsql_core.errors import FlowSqlError

#: Flink's titles.
_TITLES = {
    RUNNING: "------------------ Running/Restarting Jobs -------------------",
    SCHEDULED: "----------------------- Scheduled Jobs -----------------------",
    TERMINATED: "---------------------- Terminated Jobs -----------------------",
}
_NONE = {RUNNING: "No running jobs.", SCHEDULED: "No scheduled jobs.", TERMINATED: "No terminated jobs."}
_LINE = "-" * 62


def run(invocation: JobInvocation) -> int:
    """Do what the words behind ``flowsql job`` ask for; the exit code."""
    try:
        if invocation.action == "list":
            _list(invocation, known_jobs())
        else:
            assert invocation.job_id is not None
            _act(invocation, invocation.job_id)
    except FlowSqlError as error:
        sys.stdout.flush()
        print(f"flowsql job: error: {error.render()}", file=sys.stderr)
        return EXIT_FAILED
    return EXIT_OK


def _act(invocation: JobInvocation, job_id: str) -> None:
    match invocation.action:
        case "cancel":
            _say(f"Cancelling job {job_id}.")
            act_on("cancel", job_id)
            _say(f"Cancelled job {job_id}.")
            return
        case "savepoint":
            _say(f"Triggering savepoint for job {job_id}.")
            answer = act_on("savepoint", job_id, directory=invocation.directory)
        case _:
            how = "Draining" if invocation.drain else "Suspending"
            _say(f'{how} job "{job_id}" with a CANONICAL savepoint.')
            answer = act_on("stop", job_id, directory=invocation.directory, drain=invocation.drain)
    _say(f"Savepoint completed. Path: {answer['path']}")
    if not invocation.drain:
        _say(f"A script goes on from it with: flowsql -s {answer['path']} -f SCRIPT")


def _list(invocation: JobInvocation, known: Known) -> None:
    now_ms = time.time_ns() // 1_000_000
    groups = {group: [job for job in known.jobs if _group(job) == group] for group in _TITLES}
    if invocation.format == "jsonl":
        for job in (job for job in known.jobs if _group(job) in invocation.statuses):
            _say(json.dumps({**job.to_json(), "duration_ms": job.duration_ms(now_ms)}, ensure_ascii=False))
    else:
        for group, jobs in groups.items():
            if group in invocation.statuses:
                _print_group(group, jobs, now_ms)
    for trouble in known.troubles:
        sys.stdout.flush()
        print(f"[WARNING] Jobs are missing: {trouble}", file=sys.stderr)


def _group(job: JobInfo) -> str:
    if job.is_running:
        return RUNNING
    return SCHEDULED if job.is_scheduled else TERMINATED


def _print_group(group: str, jobs: Iterable[JobInfo], now_ms: int) -> None:
    lines = [_line_of(job, now_ms) for job in jobs]
    _say("\n".join([_TITLES[group], *lines, _LINE]) if lines else _NONE[group])


def _line_of(job: JobInfo, now_ms: int) -> str:
    """Flink's line, and what else is known behind it."""
    began = time.strftime("%d.%m.%Y %H:%M:%S", time.localtime(job.started_ms / 1000))
    facts = [job.status, f"{job.duration_ms(now_ms) / 1000:.0f} s"]
    if job.restarts:
        facts.append(f"{job.restarts} restart{'s' if job.restarts > 1 else ''}")
    if job.last_checkpoint is not None:
        facts.append(f"last checkpoint {job.last_checkpoint}")
    if job.failure is not None:
        facts.append(job.failure)
    return f"{began} : {job.id} : {job.name} ({', '.join([*facts, f'process {job.process}'])})"


def _say(text: str) -> None:
    print(text, flush=True)
