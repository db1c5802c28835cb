"""The words of ``flowsql lineage``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from flowsql.cli.arguments.parser import PROJECT_AROUND, Parser, add_form, add_profile, add_session


@dataclass(frozen=True, slots=True)
class LineageInvocation:
    """``flowsql lineage``: ``path`` is a script, or the folder of a project; None: the one around.

    ``output`` None: standard output.
    """

    path: str | None
    profile: str | None
    format: str
    output: str | None
    init: str | None
    settings: tuple[tuple[str, str], ...]


def parse(words: Sequence[str]) -> LineageInvocation:
    """Read the words behind ``flowsql lineage``, as :func:`.script.parse` does those of a script."""
    parser = Parser(
        prog="flowsql lineage",
        description="Show from which columns of which tables INSERTs and queries of a script or a project take theirs, "
        "and how. "
        "Definitions and SET take effect; no job runs.",
        epilog="exit codes: 0 done, 1 a statement failed, 2 usage error",
        allow_abbrev=False,
    )
    parser.add_argument("path", metavar="PATH", nargs="?", help=f"a script, or a folder; {PROJECT_AROUND}")
    add_profile(parser)
    add_form(parser, "for people, for programs (OpenLineage's column lineage facet) or a chart")
    add_session(parser)
    found = parser.parse_args(list(words))
    return LineageInvocation(
        found.path, found.profile, found.format, found.output, found.init, tuple(found.settings or ())
    )
