"""The words of ``flowsql sample``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from flowsql.cli.arguments.parser import Parser, add_live_rows


@dataclass(frozen=True, slots=True)
class SampleInvocation:
    """``flowsql sample``: ``job`` is an id, a beginning of one, or a name. ``edge`` None lists the job's edges."""

    job: str
    edge: str | None
    format: str
    rows: int | None
    timeout_s: float | None


def parse(words: Sequence[str]) -> SampleInvocation:
    """Read the words behind ``flowsql sample``, as :func:`.script.parse` does those of a script."""
    parser = Parser(
        prog="flowsql sample",
        description="Show live rows of a running job, with their kinds of change, as they leave one of its operators. "
        "The job is not slowed down: rows that come faster than they are read are left out and counted.",
        epilog="exit codes: 0 done, 1 there is no such job or operator, or the job failed or was cancelled meanwhile, "
        "2 usage error, 130 interrupted",
        allow_abbrev=False,
    )
    parser.add_argument("job", metavar="JOB", help="id, the beginning of one, or name, see 'flowsql job list'")
    parser.add_argument(
        "edge",
        metavar="OPERATOR",
        nargs="?",
        help="whose rows: number, uid, name or the beginning of one, or a table; without it the operators are listed",
    )
    add_live_rows(parser)
    found = parser.parse_args(list(words))
    return SampleInvocation(found.job, found.edge, found.format, found.rows, found.timeout)
