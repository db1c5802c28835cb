"""The front door of the ``flowsql`` command: words in, exit code out. The engine loads only when there is SQL."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from flowsql.cli.arguments import EXIT_INTERRUPTED, EXIT_USAGE, UsageError, parse_arguments


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; the exit code is 0, 1 (a statement failed), 2 (usage) or 130 (interrupted)."""
    try:
        invocation = parse_arguments(sys.argv[1:] if arguments is None else arguments)
    except UsageError as error:
        print(error, file=sys.stderr)
        return EXIT_USAGE
    try:
        from flowsql.cli import cold_start

        cold_start.spare_the_collector()
        cold_start.compute_alone()
        cold_start.keep_pandas_out()
        from flowsql.cli.script import run

        return run(invocation)
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
