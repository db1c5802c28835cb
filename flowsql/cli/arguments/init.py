"""The words of ``flowsql init``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from flowsql.cli.arguments.parser import Parser
from flowsql.pipeline.new_project import TEMPLATES


@dataclass(frozen=True, slots=True)
class InitInvocation:
    """``flowsql init``: the folder of a new project, and what it begins with."""

    folder: str
    template: str


def parse(words: Sequence[str]) -> InitInvocation:
    """Read the words behind ``flowsql init``, as :func:`.script.parse` does those of a script."""
    parser = Parser(
        prog="flowsql init",
        description="Make a project: a flowsql.toml, SQL files, some rows, and a test. It runs at once.",
        epilog="exit codes: 0 done, 1 a file is there already, and nothing was written, 2 usage error",
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("folder", metavar="DIR", nargs="?", default=".", help="its folder (default: .)")
    add("--template", choices=TEMPLATES, default=TEMPLATES[0], help="what it begins with (default: %(default)s)")
    found = parser.parse_args(list(words))
    return InitInvocation(found.folder, found.template)
