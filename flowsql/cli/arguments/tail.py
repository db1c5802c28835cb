"""The words of ``flowsql tail``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from flowsql.cli.arguments.parser import Parser, add_live_rows, add_session, count

#: Rows that are shown where nobody says how many, as of ``tail``.
LAST_ROWS = 10


@dataclass(frozen=True, slots=True)
class TailInvocation:
    """``flowsql tail``: ``table`` is its name or a file; ``job``: of a running job. ``last`` None: nobody said."""

    table: str
    job: str | None
    last: int | None
    follow: bool
    format: str
    rows: int | None
    timeout_s: float | None
    init: str | None
    settings: tuple[tuple[str, str], ...]


def parse(words: Sequence[str]) -> TailInvocation:
    """Read the words behind ``flowsql tail``, as :func:`.script.parse` does those of a script."""
    parser = Parser(
        prog="flowsql tail",
        description="Show the newest rows of a table that a script declares, of a file, or of a table that a running "
        "job reads or writes.",
        epilog="exit codes: 0 done, 1 there is no such table or job, or reading failed, 2 usage error, 130 interrupted",
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("table", metavar="TABLE", help="a table's name, or the path of a file")
    add("-n", "--lines", dest="last", metavar="N", type=count, help=f"the last N rows (default: {LAST_ROWS})")
    add("-f", "--follow", action="store_true", help="go on with rows that are added")
    add("--job", metavar="JOB", help="a table of this running job: its rows from now on")
    add_live_rows(parser)
    add_session(parser)
    found = parser.parse_args(list(words))
    if found.job is not None and (found.init is not None or found.settings):
        parser.error("a job's tables are known: --job takes neither -i nor -D")
    if found.job is not None and found.last is not None:
        parser.error("rows of a job are shown from now on, so that -n has no meaning; --rows ends after so many")
    return TailInvocation(
        found.table,
        found.job,
        found.last,
        found.follow,
        found.format,
        found.rows,
        found.timeout,
        found.init,
        tuple(found.settings or ()),
    )
