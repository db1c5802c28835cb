"""The words of ``flowsql run``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from flowsql.cli.arguments.parser import Parser, add_profile, add_settings


@dataclass(frozen=True, slots=True)
class RunInvocation:
    """``flowsql run``: ``project`` is a folder; None: the one around.

    ``engine`` None leaves it to the configuration. ``saves``: an interrupt takes savepoints. ``available_now``: streams
    stop when they have caught up.
    """

    project: str | None
    profile: str | None
    engine: str | None
    dry_run: bool
    format: str
    full: bool
    saves: bool
    available_now: bool
    select: tuple[str, ...]
    report: str | None
    settings: tuple[tuple[str, str], ...]


def parse(words: Sequence[str]) -> RunInvocation:
    """Read the words behind ``flowsql run``, as :func:`.script.parse` does those of a script."""
    parser = Parser(
        prog="flowsql run",
        description="Run the SQL files of a project in the order of their tables. In batch mode what changed, and what "
        "failed before. In streaming mode all jobs, until they end or are stopped.",
        epilog="exit codes: 0 everything is up to date, or was stopped with savepoints, 1 a statement failed, 2 usage "
        "error, 130 interrupted, 143 terminated",
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("project", metavar="PROJECT", nargs="?", help="the folder (default: the one here or above with a flowsql.toml)")
    add_profile(parser)
    add("--engine", choices=("spark", "local", "auto"), help="sets execution.batch.engine")
    add("--dry-run", action="store_true", help="bind and plan all, print the order and why each would run, run none")
    add("--format", choices=("text", "json", "mermaid"), help="of --dry-run (default: text)")
    add(
        "--select",
        metavar="NODE",
        type=_nodes,
        action="extend",
        default=[],
        help="only the statements that write this table (or stand in this file); NODE+: and all behind it, +NODE: and "
        "all before it; several with commas between",
    )
    add("--full", action="store_true", help="run everything, whatever changed, and from no savepoint")
    add(
        "--stop-with-savepoint",
        dest="saves",
        action="store_true",
        help="in streaming mode Ctrl-C and SIGTERM stop the jobs with savepoints, from which the next run goes on",
    )
    add(
        "--available-now",
        action="store_true",
        help="in streaming mode each job takes what is there, stops with a savepoint, and goes on from it another time",
    )
    add("--report", metavar="FILE", help="write what became of each statement as JSON")
    add_settings(parser)
    found = parser.parse_args(list(words))
    if found.format is not None and not found.dry_run:
        parser.error("--format is of --dry-run; --report FILE writes what became of a run")
    return RunInvocation(
        found.project,
        found.profile,
        found.engine,
        found.dry_run,
        found.format or "text",
        found.full,
        found.saves,
        found.available_now,
        tuple(found.select),
        found.report,
        tuple(found.settings or ()),
    )


def _nodes(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]
