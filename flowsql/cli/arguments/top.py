"""The words of ``flowsql top``."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass

from flowsql.cli.arguments.parser import FORMATS, Parser
from flowsql_core.config import parse_duration_ms


@dataclass(frozen=True, slots=True)
class TopInvocation:
    """``flowsql top``: ``job`` None shows all. ``once``: a table is printed instead of a screen."""

    job: str | None
    interval_ms: int
    once: bool
    format: str


def parse(words: Sequence[str]) -> TopInvocation:
    """Read the words behind ``flowsql top``, as :func:`.script.parse` does those of a script."""
    parser = Parser(
        prog="flowsql top",
        description="Watch the jobs that run in your other processes on this machine, or the operators of one job.",
        epilog="exit codes: 0 done, 1 there is no such job, or it failed or was cancelled meanwhile, 2 usage error, "
        "130 interrupted",
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("job", metavar="JOB", nargs="?", help="id, the beginning of one, or name, see 'flowsql job list'")
    add("--interval", metavar="TIME", type=_interval, default=1000, help="between two looks, as 500ms (default: 1s)")
    add("--once", action="store_true", help="look twice, print a table and end; so does output that is no terminal")
    add(
        "--format",
        choices=(*FORMATS, "json"),
        default=FORMATS[0],
        help="how the table is printed (default: %(default)s)",
    )
    found = parser.parse_args(list(words))
    return TopInvocation(found.job, found.interval, found.once, found.format)


def _interval(text: str) -> int:
    try:
        found = parse_duration_ms(text)
    except Exception:
        found = 0
    if found < 50:
        raise argparse.ArgumentTypeError(f"expected a time of 50 ms at least, such as 2s, got '{text}'")
    return found
