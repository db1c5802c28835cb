"""The front door of the ``flowsql`` command: words in, exit code out. The engine loads only when there is SQL."""

from __future__ import annotations

import contextlib
import signal
import sys
from collections.abc import Sequence
from typing import NoReturn

from flowsql.cli.arguments import (
    EXIT_INTERRUPTED,
    EXIT_TERMINATED,
    EXIT_USAGE,
    Invocation,
    LineageInvocation,
    PlanInvocation,
    RunInvocation,
    TerminatedError,
    UsageError,
    parse_arguments,
    parse_job_arguments,
    parse_lineage_arguments,
    parse_plan_arguments,
    parse_run_arguments,
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; the exit code is 0, 1 (a statement failed), 2 (usage), 130 (Ctrl-C) or 143 (SIGTERM).

    ``plan`` also ends with 3: the changed script would lose state.
    """
    words = sys.argv[1:] if arguments is None else list(arguments)
    invocation: Invocation | LineageInvocation | PlanInvocation | RunInvocation
    try:
        if words[:1] == ["job"]:
            from flowsql.cli.job import run_job_command

            return run_job_command(parse_job_arguments(words[1:]))
        if words[:1] == ["plan"]:
            invocation = parse_plan_arguments(words[1:])
        elif words[:1] == ["run"]:
            invocation = parse_run_arguments(words[1:])
        elif words[:1] == ["lineage"]:
            invocation = parse_lineage_arguments(words[1:])
        else:
            invocation = parse_arguments(words)
    except UsageError as error:
        print(error, file=sys.stderr)
        return EXIT_USAGE
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    try:
        # SIGTERM stops as Ctrl-C does: the job is cancelled and leaves nothing behind.
        with contextlib.suppress(ValueError):  # in a thread of a program, which handles its own signals
            signal.signal(signal.SIGTERM, _terminate)
        from flowsql.cli import cold_start

        cold_start.spare_the_collector()
        cold_start.compute_alone()
        cold_start.keep_pandas_out()
        if isinstance(invocation, PlanInvocation):
            from flowsql.cli.plan import run_plan

            return run_plan(invocation)
        if isinstance(invocation, RunInvocation):
            from flowsql.cli.pipeline import run_project

            return run_project(invocation)
        if isinstance(invocation, LineageInvocation):
            from flowsql.cli.lineage import run_lineage

            return run_lineage(invocation)
        from flowsql.cli.script import run

        return run(invocation)
    except TerminatedError:
        return EXIT_TERMINATED
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    finally:
        with contextlib.suppress(ValueError):
            signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _terminate(number: int, frame: object) -> NoReturn:
    raise TerminatedError
