"""The words of ``flowsql lineage``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from flowsql.cli.arguments.parser import Parser, add_form, add_session


@dataclass(frozen=True, slots=True)
class LineageInvocation:
    """``flowsql lineage``: ``path`` is a script, or the folder of a pipeline. ``output`` None: standard output."""

    path: str
    format: str
    output: str | None
    init: str | None
    settings: tuple[tuple[str, str], ...]


def parse(words: Sequence[str]) -> LineageInvocation:
    """Read the words behind ``flowsql lineage``, as :func:`.script.parse` does those of a script."""
    parser = Parser(
        prog="flowsql lineage",
        description="Show from which columns of which tables the INSERTs and queries of a script take theirs, and how. "
        "Definitions and SET take effect; no job runs.",
        epilog="exit codes: 0 done, 1 a statement failed, 2 usage error",
        allow_abbrev=False,
    )
    parser.add_argument("path", metavar="PATH", help="a script, or the folder of a pipeline")
    add_form(parser, "for people, for programs (OpenLineage's column lineage facet) or a chart")
    add_session(parser)
    found = parser.parse_args(list(words))
    return LineageInvocation(found.path, found.format, found.output, found.init, tuple(found.settings or ()))
