"""The words of ``flowsql fmt``."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass

from flowsql.cli.arguments.parser import PROJECT_AROUND, Parser

STANDARD_INPUT = "-"
_DEFAULT_WIDTH = 100
_LEAST_WIDTH = 20


@dataclass(frozen=True, slots=True)
class FmtInvocation:
    """``flowsql fmt``: ``paths`` are files and folders, or :data:`STANDARD_INPUT` alone; none: the project around.

    ``check`` and ``diff`` only tell what would change.
    """

    paths: tuple[str, ...]
    check: bool
    diff: bool
    width: int


def parse(words: Sequence[str]) -> FmtInvocation:
    """Read the words behind ``flowsql fmt``, as :func:`.script.parse` does those of a run."""
    parser = Parser(
        prog="flowsql fmt",
        description="Lay SQL files out: keywords in capitals, clauses on lines of their own, comments as they are. "
        "What the statements mean never changes.",
        epilog="exit codes: 0 done, 1 a file is not SQL, or --check or --diff found something to change, 2 usage error",
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("paths", metavar="PATH", nargs="*", help=f"files, folders, '-' (standard input to output); {PROJECT_AROUND}")
    add("--check", action="store_true", help="write nothing, list the files that would change")
    add("--diff", action="store_true", help="write nothing, show what would change")
    add(
        "-w",
        "--width",
        metavar="N",
        type=_width,
        default=_DEFAULT_WIDTH,
        help="columns of a line where it can be broken (default: %(default)s)",
    )
    found = parser.parse_args(list(words))
    if STANDARD_INPUT in found.paths and len(found.paths) > 1:
        parser.error("'-' is standard input, give no other PATH with it")
    return FmtInvocation(tuple(found.paths), found.check, found.diff, found.width)


def _width(text: str) -> int:
    if not text.isdigit() or int(text) < _LEAST_WIDTH:
        raise argparse.ArgumentTypeError(f"expected a number of columns from {_LEAST_WIDTH} on, got '{text}'")
    return int(text)
