"""The words of ``flowsql run``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from flowsql.cli.arguments.parser import Parser, add_settings


@dataclass(frozen=True, slots=True)
class RunInvocation:
    """``flowsql run``: ``project`` is a folder. ``engine`` None leaves it to the configuration."""

    project: str
    engine: str | None
    dry_run: bool
    full: bool
    report: str | None
    settings: tuple[tuple[str, str], ...]


def parse(words: Sequence[str]) -> RunInvocation:
    """Read the words behind ``flowsql run``, as :func:`.script.parse` does those of a script."""
    parser = Parser(
        prog="flowsql run",
        description="Run the SQL files of a folder in the order of their tables, in batch mode: what changed, and what "
        "failed before.",
        epilog="exit codes: 0 everything is up to date, 1 a statement failed, 2 usage error, 130 interrupted, "
        "143 terminated",
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("project", metavar="PROJECT", help="the folder; its *.sql files, those of sub-folders too, are read in order")
    add("--engine", choices=("spark", "local", "auto"), help="sets execution.batch.engine")
    add("--dry-run", action="store_true", help="print the order and why each statement would run, and run none")
    add("--full", action="store_true", help="run everything, whatever changed")
    add("--report", metavar="FILE", help="write what became of each statement as JSON")
    add_settings(parser)
    found = parser.parse_args(list(words))
    return RunInvocation(
        found.project, found.engine, found.dry_run, found.full, found.report, tuple(found.settings or ())
    )
