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
from flowsql.cli.restarts import restarts_told_here, tell_restart
from flowsql.configuration import command_line_configuration
from flowsql.pipeline.kept import alone
from flowsql.pipeline.project import sql_files
from flowsql.pipeline.report import plan_table, report_json, report_table
from flowsql.pipeline.run import Outcome, Pipeline, Status
from flowsql.table.session.environment import TableEnvironment
from flowsql_core.errors import FlowSqlError, InternalError

if TYPE_CHECKING:
    from flowsql.table.table_result import TableResult
    from flowsql_core.span import Source


def run(invocation: RunInvocation) -> int:
    """Run what the command line asks for; the exit code."""
    folder = Path(invocation.project).absolute()
    if not folder.is_dir() or not sql_files(folder):
        what = "holds no *.sql file" if folder.is_dir() else "is no folder"
        print(f"flowsql: error: '{invocation.project}' {what}", file=sys.stderr)
        return EXIT_USAGE
    report = None if invocation.report is None else Path(invocation.report).absolute()
    settings = [("execution.runtime-mode", "batch")]
    if invocation.engine is not None:
        settings.append(("execution.batch.engine", invocation.engine))
    try:
        configuration = command_line_configuration((*settings, *invocation.settings), "tableau", _warn)
    except FlowSqlError as error:
        print(f"flowsql: error: {error.render()}", file=sys.stderr)
        return EXIT_USAGE
    if (configuration.text("execution.runtime-mode") or "").lower() != "batch":
        print("flowsql: error: a pipeline runs in batch mode: leave execution.runtime-mode out", file=sys.stderr)
        return EXIT_USAGE
    with inside(folder), restarts_told_here():
        try:
            with alone(folder):
                environment = TableEnvironment.of_configuration(configuration)
                pipeline = Pipeline(folder, environment, full=invocation.full)
                if invocation.dry_run:
                    print(plan_table(pipeline.outcomes))
                    return EXIT_OK
                return _run(pipeline, report)
        except (RecursionError, MemoryError):
            raise
        except Exception as error:
            known = error if isinstance(error, FlowSqlError) else InternalError(f"{type(error).__name__}: {error}")
            told = known.render()
            print(f"[ERROR] The project cannot run. Reason:\n{told}", file=sys.stderr)
            _write(report, {"status": "failed", "seconds": 0.0, "nodes": [], "error": told})
            return EXIT_FAILED


def _run(pipeline: Pipeline, report: Path | None) -> int:
    started = time.monotonic()
    try:
        code = EXIT_OK if pipeline.run(_wait, _tell) else EXIT_FAILED
    except TerminatedError:
        code = EXIT_TERMINATED
    except KeyboardInterrupt:
        code = EXIT_INTERRUPTED
    print(f"\n{report_table(pipeline.outcomes)}", flush=True)
    _write(report, report_json(pipeline.outcomes, time.monotonic() - started))
    return code


def _write(report: Path | None, form: dict[str, Any]) -> None:
    if report is not None:
        report.write_text(json.dumps(form, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")


def _wait(result: TableResult, source: Source) -> None:
    job = result.get_job_client()
    assert job is not None
    job.on_restart(lambda restart: tell_restart(restart, source))
    with progress(result, sys.stderr):
        result.wait()
    tell_expectations(job)
    tell_losses(job)


def _tell(outcome: Outcome) -> None:
    """One line for each node as it ends; what failed is said at once."""
    node = f"{outcome.node.place} {outcome.node.title}"
    match outcome.status:
        case Status.DONE:
            rows = "1 row" if outcome.rows == 1 else f"{outcome.rows:,} rows"
            line = f"done, {rows} in {outcome.seconds:.1f} s ({outcome.reason})"
        case Status.SKIPPED:
            line = f"skipped: {outcome.reason}"
        case _:
            line = outcome.status.value
    print(f"{node}: {line}", flush=True)
    if outcome.error is not None:
        print(
            f"[ERROR] Could not execute SQL statement. Reason:\n{outcome.error.render()}", file=sys.stderr, flush=True
        )


@contextlib.contextmanager
def inside(folder: Path) -> Iterator[None]:
    """Relative paths, and modules of Python functions, are those of the project."""
    path = str(folder)
    sys.path.insert(0, path)
    try:
        with contextlib.chdir(folder):
            yield
    finally:
        sys.path.remove(path)


def _warn(text: str) -> None:
    print(f"[WARNING] {text}", file=sys.stderr)
