"""Runs a script: statements one after the other, each to its end, until one fails."""

from __future__ import annotations

import sys

from flowsql.cli.arguments.parser import (
    EXIT_FAILED,
    EXIT_INTERRUPTED,
    EXIT_OK,
    EXIT_TERMINATED,
    EXIT_USAGE,
    TerminatedError,
)
from flowsql.cli.arguments.script import Invocation
from flowsql.cli.restarts import restarts_told_here
from flowsql.cli.resuming import holds
from flowsql.cli.session import Session, StatementFailedError
from flowsql.cli.start import begin
from flowsql.table.session.environment import TableEnvironment


def run(invocation: Invocation) -> int:
    """Run what the command line asks for; the exit code."""
    begun = begin(invocation)
    if begun is None:
        return EXIT_USAGE
    sources, configuration, out = begun
    if invocation.resume is not None and not holds(invocation.resume):
        return EXIT_FAILED
    session = Session(
        TableEnvironment.of_configuration(configuration),
        out,
        invocation.format,
        invocation.max_rows,
        invocation.timeout_s,
        # Statements given on the command line stand there to be read already.
        echoes=invocation.file is not None,
        resume=invocation.resume,
    )
    try:
        with restarts_told_here():
            for source, is_init in sources:
                session.run(source, is_init)
    except StatementFailedError:
        return EXIT_FAILED
    except TerminatedError:
        return EXIT_TERMINATED
    except KeyboardInterrupt:
        print("[INFO] Result retrieval cancelled.", file=sys.stderr)
        return EXIT_INTERRUPTED
    finally:
        if out is not sys.stdout:
            out.close()
    return EXIT_OK
