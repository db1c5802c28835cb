"""The words of ``flowsql plan``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from flowsql.cli.arguments.parser import Parser, add_profile, add_session


@dataclass(frozen=True, slots=True)
class PlanInvocation:
    """``flowsql plan``: ``old`` is a script or a snapshot, ``new`` a script.

    Without ``new`` a project is meant: ``old`` is its folder; None: the one around.
    """

    old: str | None
    new: str | None
    profile: str | None
    init: str | None
    settings: tuple[tuple[str, str], ...]


def parse(words: Sequence[str]) -> PlanInvocation:
    """Read the words behind ``flowsql plan``, as :func:`.script.parse` does those of a run."""
    parser = Parser(
        prog="flowsql plan",
        usage="%(prog)s [-h] [-i INIT] [-D KEY=VALUE] OLD NEW\n       %(prog)s [-h] [--profile NAME] [-D KEY=VALUE] "
        "[PROJECT]",
        description="Compare a script with the one before it, or with a snapshot: what becomes of the state of jobs. "
        "Or a project with its last run: what is new, changed or gone, and what becomes of the state in savepoints.",
        epilog="exit codes: 0 all state is kept, 1 a statement failed, 2 usage error, 3 a restore would refuse the "
        "script, as state would be lost or results of two queries mixed",
        allow_abbrev=False,
    )
    what = "the script before (or the folder of a checkpoint or savepoint), or the folder of a project (default: the "
    parser.add_argument("old", metavar="OLD", nargs="?", help=f"{what}one here or above, with a flowsql.toml)")
    parser.add_argument("new", metavar="NEW", nargs="?", help="the changed script")
    add_profile(parser)
    add_session(parser)
    found = parser.parse_args(list(words))
    if found.new is None and found.init is not None:
        parser.error("a project has no initialization file: leave -i out, or give OLD and NEW")
    if found.new is not None and found.profile is not None:
        parser.error("--profile is of projects: leave it out, or give the folder of one alone")
    return PlanInvocation(found.old, found.new, found.profile, found.init, tuple(found.settings or ()))
