"""The words of ``flowsql test``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from flowsql.cli.arguments.parser import Parser, add_profile, add_settings


@dataclass(frozen=True, slots=True)
class TestInvocation:
    """``flowsql test``: files and folders; none: the tests of the project around, or those in the working directory.

    ``name``: a part of the names of tests that run.
    """

    paths: tuple[str, ...]
    profile: str | None
    name: str
    update: bool
    verbose: bool
    junit: str | None
    settings: tuple[tuple[str, str], ...]


def parse(words: Sequence[str]) -> TestInvocation:
    """Read the words behind ``flowsql test``, as :func:`.script.parse` does those of a script."""
    parser = Parser(
        prog="flowsql test",
        description="Run the tests in *.test.sql files: given rows, moved watermarks and clocks, expected tables.",
        epilog="exit codes: 0 all tests passed, 1 some did not, 2 usage error or no tests, 130 interrupted",
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("paths", metavar="PATH", nargs="*", help="files, and folders (default: the project here or above, else .)")
    add_profile(parser)
    add("-k", dest="name", metavar="TEXT", default="", help="only tests with this text in their names")
    add("--update", action="store_true", help="write tables of rows that differ as what is expected; review the diff")
    add("-v", "--verbose", action="store_true", help="name tests that pass, too")
    add("--junit-xml", dest="junit", metavar="FILE", help="write a report in JUnit's form")
    add_settings(parser)
    found = parser.parse_args(list(words))
    return TestInvocation(
        tuple(found.paths),
        found.profile,
        found.name,
        found.update,
        found.verbose,
        found.junit,
        tuple(found.settings or ()),
    )
