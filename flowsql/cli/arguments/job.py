"""The words of ``flowsql job``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from flowsql.cli.arguments.parser import Parser

#: Which jobs ``flowsql job list`` shows.
RUNNING, SCHEDULED, TERMINATED = "running", "scheduled", "terminated"


@dataclass(frozen=True, slots=True)
class JobInvocation:
    """One call of ``flowsql job``: ``action`` is ``list``, ``savepoint``, ``stop`` or ``cancel``.

    ``directory``: where a savepoint goes; None leaves it to the job. ``statuses``: which jobs to list.
    """

    action: str
    job_id: str | None = None
    directory: str | None = None
    drain: bool = False
    statuses: frozenset[str] = frozenset()
    format: str = "text"


def parse(arguments: Sequence[str]) -> JobInvocation:
    """Read the words behind ``flowsql job``. Raises UsageError; ``--help`` ends the process with 0."""
    found = _make_job_parser().parse_args(arguments)
    if found.action == "list":
        wanted = [name for name in (RUNNING, SCHEDULED) if getattr(found, name)]
        statuses = {RUNNING, SCHEDULED, TERMINATED} if found.all else set(wanted or (RUNNING, SCHEDULED))
        return JobInvocation("list", statuses=frozenset(statuses), format=found.format)
    return JobInvocation(
        found.action,
        found.job_id,
        directory=getattr(found, "directory", None),
        drain=getattr(found, "drain", False),
    )


def _make_job_parser() -> Parser:
    parser = Parser(
        prog="flowsql job",
        description="Look at, save and stop jobs that run in your other processes on this machine.",
        epilog="exit codes: 0 done, 1 it failed, 2 usage error, 130 interrupted",
        allow_abbrev=False,
    )
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION", parser_class=Parser)
    listing = actions.add_parser("list", help="list jobs", description="List running and scheduled jobs.")
    listing.add_argument("-r", "--running", action="store_true", help="only those that run")
    listing.add_argument("-s", "--scheduled", action="store_true", help="only those that do not run yet")
    listing.add_argument("-a", "--all", action="store_true", help="those that ended, too")
    listing.add_argument(
        "--format", choices=("text", "jsonl"), default="text", help="for people or for programs (default: %(default)s)"
    )
    savepoint = actions.add_parser(
        "savepoint", help="take a savepoint", description="Take a savepoint of a job, which goes on."
    )
    stop = actions.add_parser("stop", help="stop with a savepoint", description="End a job with a savepoint.")
    cancel = actions.add_parser("cancel", help="end without a savepoint", description="End a job without a savepoint.")
    for action in (savepoint, stop, cancel):
        action.add_argument("job_id", metavar="ID", help="32 hexadecimal digits, see 'flowsql job list'")
    folder = "folder (path or URI) for the savepoint; default: execution.checkpointing.savepoint-dir of the job"
    savepoint.add_argument("directory", metavar="DIR", nargs="?", help=folder)
    stop.add_argument("-p", "--savepoint-path", "--savepointPath", dest="directory", metavar="DIR", help=folder)
    stop.add_argument(
        "-d", "--drain", action="store_true", help="send the last watermark first: all windows and event timers fire"
    )
    return parser
