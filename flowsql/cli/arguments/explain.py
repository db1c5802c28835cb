"""The words of ``flowsql explain``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from flowsql.cli.arguments.parser import PROJECT_AROUND, Parser, add_form, add_profile, add_session


@dataclass(frozen=True, slots=True)
class ExplainInvocation:
    """``flowsql explain``: ``path`` is a script, ``-`` standard input, or the folder of a project.

    ``path`` None: the project around. ``output`` None: standard output.
    """

    path: str | None
    profile: str | None
    format: str
    output: str | None
    init: str | None
    settings: tuple[tuple[str, str], ...]


def parse(words: Sequence[str]) -> ExplainInvocation:
    """Read the words behind ``flowsql explain``, as :func:`.script.parse` does those of a script."""
    parser = Parser(
        prog="flowsql explain",
        description="Show the plans of INSERTs and queries of a script or a project, and the tasks that would run. "
        "Definitions and SET take effect; no job runs.",
        epilog="exit codes: 0 done, 1 a statement failed, 2 usage error",
        allow_abbrev=False,
    )
    parser.add_argument(
        "path", metavar="PATH", nargs="?", help=f"a script, - for standard input, or a folder; {PROJECT_AROUND}"
    )
    add_profile(parser)
    add_form(parser, "EXPLAIN and the tasks, the tasks for programs, or as a chart")
    add_session(parser)
    found = parser.parse_args(list(words))
    return ExplainInvocation(
        found.path, found.profile, found.format, found.output, found.init, tuple(found.settings or ())
    )
