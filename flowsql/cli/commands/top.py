"""``flowsql top``: running jobs on a screen, or as a table."""

from __future__ import annotations

import json
import sys
import time

from flowsql.cli.arguments.parser import EXIT_FAILED, EXIT_OK
from flowsql.cli.arguments.top import TopInvocation
from flowsql.cli.live.board import JobNow, Observer, jobs_table, operators_table
from flowsql.cli.render.base import Limits
from flowsql.cli.render.forms import FORMS
from flowsql.cli.start import use_utf8
from flowsql.jobs.everywhere import resolved_id
from flowsql_core.errors import FlowSqlError

#: Forms for programs have numbers where the others have texts.
_FOR_PROGRAMS = ("jsonl", "csv")


def run(invocation: TopInvocation) -> int:
    """Show what the words behind ``flowsql top`` ask for; the exit code."""
    use_utf8()
    try:
        job_id = None if invocation.job is None else resolved_id(invocation.job)
        if invocation.once or not (sys.stdin.isatty() and sys.stdout.isatty()):
            return _print(invocation, job_id)
        # The library of screens takes as long to load as a short script to run.
        from flowsql.cli.live.screen import show_top

        ended = show_top(job_id, invocation.interval_ms / 1000)
        return EXIT_OK if ended is None else _tell_end(ended)
    except FlowSqlError as error:
        sys.stdout.flush()
        print(f"flowsql top: error: {error.render()}", file=sys.stderr)
        return EXIT_FAILED


def _print(invocation: TopInvocation, job_id: str | None) -> int:
    observer = Observer(job_id)
    jobs = observer.look()
    if any(job.info.ended_ms is None for job in jobs):
        time.sleep(invocation.interval_ms / 1000)
        jobs = observer.look()
    for trouble in observer.troubles:
        print(f"[WARNING] Jobs are missing: {trouble}", file=sys.stderr)
    if job_id is not None and jobs[0].info.ended_ms is not None:
        return _tell_end(jobs[0])
    if invocation.format == "json":
        shown = [job.to_json() for job in jobs]
        print(json.dumps(shown if job_id is None else shown[0], indent=2, ensure_ascii=False), flush=True)
        return EXIT_OK
    for_people = invocation.format not in _FOR_PROGRAMS
    table = jobs_table(jobs, for_people) if job_id is None else operators_table(jobs[0], for_people)
    FORMS[invocation.format](sys.stdout, False).answer(table, Limits(), time.monotonic())
    return EXIT_OK


def _tell_end(job: JobNow) -> int:
    sys.stdout.flush()
    print(f"[INFO] Job {job.info.id} has ended: {job.info.status}.", file=sys.stderr)
    return EXIT_FAILED if job.info.status in ("FAILED", "CANCELED") else EXIT_OK
