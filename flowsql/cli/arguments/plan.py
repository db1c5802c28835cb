"""The words of ``flowsql plan``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from flowsql.cli.arguments.parser import Parser, add_session


@dataclass(frozen=True, slots=True)
class PlanInvocation:
    """``flowsql plan``: ``old`` is a script or a snapshot, ``new`` a script."""

    old: str
    new: str
    init: str | None
    settings: tuple[tuple[str, str], ...]


def parse(words: Sequence[str]) -> PlanInvocation:
    """Read the words behind ``flowsql plan``, as :func:`.script.parse` does those of a run."""
    parser = Parser(
        prog="flowsql plan",
        description="Compare a script with the one before it, or with a snapshot: what becomes of the state of jobs.",
        epilog="exit codes: 0 all state is kept, 1 a statement failed, 2 usage error, 3 a restore would refuse the "
        "script, as state would be lost or results of two queries mixed",
        allow_abbrev=False,
    )
    parser.add_argument("old", metavar="OLD", help="the script before, or the folder of a checkpoint or savepoint")
    parser.add_argument("new", metavar="NEW", help="the changed script")
    add_session(parser)
    found = parser.parse_args(list(words))
    return PlanInvocation(found.old, found.new, found.init, tuple(found.settings or ()))
