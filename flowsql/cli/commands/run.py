"""``flowsql run``: the statements of a project's files, in the order of their tables."""

from __future__ import annotations

import contextlib
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flowsql.cli.arguments.parser import (
    EXIT_FAILED,
    EXIT_INTERRUPTED,
    EXIT_OK,
    EXIT_TERMINATED,
    EXIT_USAGE,
    TerminatedError,
)
from flowsql.cli.arguments.run import RunInvocation
from flowsql.cli.expectations import tell_expectations
from flowsql.cli.losses import tell_losses
from flowsql.cli.progress import progress
from flowsql.cli.project import found_project, project_environment, require_sql
from flowsql.cli.restarts import restarts_told_here, tell_restart
from flowsql.pipeline.bound import BoundProject
from flowsql.pipeline.graph_forms import GRAPH_FORMS
from flowsql.pipeline.kept import Kept, alone
from flowsql.pipeline.outcome import Outcome, Status
from flowsql.pipeline.report import report_json, report_table
from flowsql.pipeline.run import Pipeline
from flowsql.pipeline.selection import selected
from flowsql.pipeline.stream import Streams
from flowsql_core.errors import FlowSqlError, InternalError
from flowsql_core.secrets.hidden import hidden
from flowsql_runtime.task.trigger import TRIGGER, Trigger

if TYPE_CHECKING:
    from flowsql.common.job_client import JobClient
    from flowsql.pipeline.folder import ProjectFolder
    from flowsql.table.session.environment import TableEnvironment
    from flowsql.table.table_result import TableResult
    from flowsql_core.span import Source


def run(invocation: RunInvocation) -> int:
    """Run what the command line asks for; the exit code."""
    report = None if invocation.report is None else Path(invocation.report).absolute()
    words = [("execution.batch.engine", invocation.engine)] if invocation.engine is not None else []
    if invocation.available_now:
        words.append((TRIGGER.key, Trigger.AVAILABLE_NOW.value))
    try:
        opened = found_project(invocation.project, invocation.profile)
        require_sql(opened, invocation.project)
        environment = project_environment(opened, (*words, *invocation.settings))
    except OSError as error:
        print(f"flowsql: error: {error}", file=sys.stderr)
        return EXIT_USAGE
    except FlowSqlError as error:
        print(f"flowsql: error: {error.render()}", file=sys.stderr)
        return EXIT_USAGE
    with opened.inside(), restarts_told_here():
        try:
            if invocation.dry_run:
                with _without_bytecode():
                    _show(opened, environment.tried_out(), invocation)
                return EXIT_OK
            with alone(opened):
                return _run(_planned(BoundProject(opened, environment), invocation), invocation, report)
        except (RecursionError, MemoryError):
            raise
        except Exception as error:
            known = error if isinstance(error, FlowSqlError) else InternalError(f"{type(error).__name__}: {error}")
            told = known.render()
            print(f"[ERROR] The project cannot run. Reason:\n{told}", file=sys.stderr)
            _write(report, {"status": "failed", "seconds": 0.0, "nodes": [], "error": told})
            return EXIT_FAILED


def _planned(bound: BoundProject, invocation: RunInvocation) -> Pipeline | Streams:
    nodes = selected(invocation.select, bound.order, bound.before, whole_tables=bound.is_batch)
    kind = Pipeline if bound.is_batch else Streams
    kept = Kept(bound.opened)
    bound.keys = kept.keys_of(bound.keys, bound.parts)
    return kind(bound, kept, full=invocation.full, nodes=nodes)


@contextlib.contextmanager
def _without_bytecode() -> Iterator[None]:
    """Modules of Python functions are imported without a ``__pycache__`` beside them."""
    before, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        yield
    finally:
        sys.dont_write_bytecode = before


def _show(opened: ProjectFolder, environment: TableEnvironment, invocation: RunInvocation) -> None:
    """Plan all nodes, and print the graph."""
    bound = BoundProject(opened, environment)
    planned = _planned(bound, invocation)
    for outcome in planned.outcomes:
        bound.plan(outcome.node)
    print(GRAPH_FORMS[invocation.format](bound, planned.outcomes))


def _run(planned: Pipeline | Streams, invocation: RunInvocation, report: Path | None) -> int:
    started = time.monotonic()
    try:
        if isinstance(planned, Pipeline):
            well = planned.run(_wait, _tell)
        else:
            well = planned.run(_tell_start, _tell_end, saves=invocation.saves)
        code = EXIT_OK if well else EXIT_FAILED
    except TerminatedError:
        code = EXIT_TERMINATED
    except KeyboardInterrupt:
        code = EXIT_INTERRUPTED
    print(f"\n{report_table(planned.outcomes)}", flush=True)
    _write(report, report_json(planned.outcomes, time.monotonic() - started))
    return code


def _write(report: Path | None, form: dict[str, Any]) -> None:
    if report is not None:
        report.write_text(hidden(json.dumps(form, ensure_ascii=False, indent=2)) + "\n", encoding="utf-8")


def _wait(result: TableResult, source: Source) -> None:
    job = result.get_job_client()
    assert job is not None
    job.on_restart(lambda restart: tell_restart(restart, source))
    with progress(result, sys.stderr):
        result.wait()
    tell_expectations(job)
    tell_losses(job)


def _tell_start(outcome: Outcome, job: JobClient) -> None:
    source = outcome.node.place.source
    job.on_restart(lambda restart: tell_restart(restart, source))
    print(f"{outcome.node.place} {outcome.node.title}: started {outcome.reason}, job {job.get_job_id()}", flush=True)


def _tell_end(outcome: Outcome, job: JobClient | None) -> None:
    if job is not None:
        tell_expectations(job)
        tell_losses(job)
    _tell(outcome)


def _tell(outcome: Outcome) -> None:
    """One line for each node as it ends; what failed is said at once."""
    node = f"{outcome.node.place} {outcome.node.title}"
    match outcome.status:
        case Status.DONE:
            rows = "1 row" if outcome.rows == 1 else f"{outcome.rows:,} rows"
            line = f"done, {rows} in {outcome.seconds:.1f} s ({outcome.reason})"
        case Status.SKIPPED:
            line = f"skipped: {outcome.reason}"
        case Status.STOPPED:
            line = f"stopped with {outcome.reason}"
        case _:
            line = outcome.status.value
    print(f"{node}: {line}", flush=True)
    if outcome.error is not None:
        print(
            f"[ERROR] Could not execute SQL statement. Reason:\n{outcome.error.render()}", file=sys.stderr, flush=True
        )
