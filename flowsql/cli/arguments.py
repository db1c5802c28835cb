"""What the command line says, as data. Nothing heavy is imported here: ``flowsql --help`` is instant."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NoReturn

EXIT_OK = 0
EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_LOSES = 3
EXIT_INTERRUPTED = 130
EXIT_TERMINATED = 143

FORMATS = ("tableau", "jsonl", "csv")


@dataclass(frozen=True, slots=True)
class Invocation:
    """One call of the command.

    ``file`` or ``command`` is given, never both. ``settings``: ``-D`` in the order given, the later wins.
    ``max_rows`` and ``timeout_s`` end a query that returns rows early; None is no limit.
    """

    file: str | None
    command: str | None
    init: str | None
    settings: tuple[tuple[str, str], ...]
    format: str
    max_rows: int | None
    timeout_s: float | None


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


@dataclass(frozen=True, slots=True)
class PlanInvocation:
    """``flowsql plan``: ``old`` is a script or a snapshot, ``new`` a script."""

    old: str
    new: str
    init: str | None
    settings: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class RunInvocation:
    """``flowsql run``: ``project`` is a folder. ``engine`` None leaves it to the configuration."""

    project: str
    engine: str | None
    dry_run: bool
    full: bool
    report: str | None
    settings: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class LineageInvocation:
    """``flowsql lineage``: ``path`` is a script, or the folder of a pipeline. ``output`` None: standard output."""

    path: str
    format: str
    output: str | None
    init: str | None
    settings: tuple[tuple[str, str], ...]


#: Which jobs ``flowsql job list`` shows.
RUNNING, SCHEDULED, TERMINATED = "running", "scheduled", "terminated"


class TerminatedError(KeyboardInterrupt):
    """SIGTERM arrived: unwinds as Ctrl-C does."""


class UsageError(Exception):
    """The command line is wrong; the text says how, usage included."""


class _Parser(argparse.ArgumentParser):
    """An ArgumentParser that raises instead of ending the process."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{self.format_usage()}{self.prog}: error: {message}")


def parse_arguments(arguments: Sequence[str]) -> Invocation:
    """Read the words behind ``flowsql``. Raises UsageError; ``--help`` and ``--version`` end the process with 0."""
    words = list(arguments)
    # Flink's client is started as `sql-client.sh embedded ...`; the word changes nothing here.
    if words and words[0] == "embedded":
        del words[0]
    parser = _make_parser()
    found = parser.parse_args(words)
    if found.from_savepoint is None and (found.claim or found.allow_non_restored_state):
        parser.error("--claim and --allow-non-restored-state say how to start from a savepoint: give one with -s PATH")
    if (found.file is None) == (found.command is None):
        parser.error("give a script with -f FILE or statements with -c SQL")
    return Invocation(
        file=found.file,
        command=found.command,
        init=found.init,
        settings=(*(found.settings or ()), *_recovery_settings(found)),
        format=found.format,
        max_rows=found.max_rows,
        timeout_s=found.timeout,
    )


def parse_plan_arguments(words: Sequence[str]) -> PlanInvocation:
    """Read the words behind ``flowsql plan``, as :func:`parse_arguments` does those of a run."""
    parser = _Parser(
        prog="flowsql plan",
        description="Compare a script with the one before it, or with a snapshot: what becomes of the state of jobs.",
        epilog="exit codes: 0 all state is kept, 1 a statement failed, 2 usage error, 3 a restore would refuse the "
        "script, as state would be lost or results of two queries mixed",
        allow_abbrev=False,
    )
    parser.add_argument("old", metavar="OLD", help="the script before, or the folder of a checkpoint or savepoint")
    parser.add_argument("new", metavar="NEW", help="the changed script")
    _add_session(parser)
    found = parser.parse_args(list(words))
    return PlanInvocation(found.old, found.new, found.init, tuple(found.settings or ()))


def parse_run_arguments(words: Sequence[str]) -> RunInvocation:
    """Read the words behind ``flowsql run``, as :func:`parse_arguments` does those of a script."""
    parser = _Parser(
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
    _add_settings(parser)
    found = parser.parse_args(list(words))
    return RunInvocation(
        found.project, found.engine, found.dry_run, found.full, found.report, tuple(found.settings or ())
    )


def parse_lineage_arguments(words: Sequence[str]) -> LineageInvocation:
    """Read the words behind ``flowsql lineage``, as :func:`parse_arguments` does those of a script."""
    parser = _Parser(
        prog="flowsql lineage",
        description="Show from which columns of which tables the INSERTs and queries of a script take theirs, and how. "
        "Definitions and SET take effect; no job runs.",
        epilog="exit codes: 0 done, 1 a statement failed, 2 usage error",
        allow_abbrev=False,
    )
    parser.add_argument("path", metavar="PATH", help="a script, or the folder of a pipeline")
    parser.add_argument(
        "--format",
        choices=("text", "json", "mermaid"),
        default="text",
        help="for people, for programs (OpenLineage's column lineage facet) or a chart (default: %(default)s)",
    )
    parser.add_argument("-o", "--output", metavar="FILE", help="write to this file")
    _add_session(parser)
    found = parser.parse_args(list(words))
    return LineageInvocation(found.path, found.format, found.output, found.init, tuple(found.settings or ()))


def _add_session(parser: _Parser) -> None:
    parser.add_argument(
        "-i", "--init", metavar="FILE", help="run this file first: definitions, USE and SET, no queries"
    )
    _add_settings(parser)


def _add_settings(parser: _Parser) -> None:
    parser.add_argument(
        "-D",
        dest="settings",
        metavar="KEY=VALUE",
        type=_setting,
        action="append",
        help="set a configuration option; may be repeated, the later one wins",
    )


def _make_parser() -> _Parser:
    parser = _Parser(
        prog="flowsql",
        description="Run Flink SQL: a script file or statements from the command line.",
        epilog="exit codes: 0 all statements succeeded, 1 a statement failed, 2 usage error, 130 interrupted, "
        "143 terminated. See also: flowsql job --help (jobs that are running), flowsql plan --help (changed scripts), "
        "flowsql run --help (folders of scripts), flowsql lineage --help (where columns come from).",
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("-f", "--file", metavar="FILE", help="run the statements of a file ('-' reads standard input)")
    add("-c", "--command", metavar="SQL", help="run these statements")
    _add_session(parser)
    add(
        "-s",
        "--from-savepoint",
        "--fromSavepoint",
        metavar="PATH",
        help="start jobs from a savepoint or checkpoint: sets execution.state-recovery.path",
    )
    add(
        "--claim",
        action="store_true",
        help="with -s: the snapshot belongs to the job from now on, which removes it like a checkpoint of its own",
    )
    add(
        "-n",
        "--allow-non-restored-state",
        "--allowNonRestoredState",
        action="store_true",
        help="with -s: drop state of the snapshot that no operator of the job takes",
    )
    add("--format", choices=FORMATS, default=FORMATS[0], help="how answers are printed (default: %(default)s)")
    add("--max-rows", metavar="N", type=_count, help="end each query after N rows")
    add("--timeout", metavar="SECONDS", type=_seconds, help="end each query after this time")
    add("--version", action=_Version, help="print the version and end")
    return parser


def _recovery_settings(found: argparse.Namespace) -> Iterator[tuple[str, str]]:
    """What ``-s`` and the words behind it stand for; they win over ``-D``."""
    if found.from_savepoint is not None:
        yield "execution.state-recovery.path", found.from_savepoint
        if found.claim:
            yield "execution.state-recovery.claim-mode", "CLAIM"
        if found.allow_non_restored_state:
            yield "execution.state-recovery.ignore-unclaimed-state", "true"


def parse_job_arguments(arguments: Sequence[str]) -> JobInvocation:
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


def _make_job_parser() -> _Parser:
    parser = _Parser(
        prog="flowsql job",
        description="Look at, save and stop jobs that run in your other processes on this machine.",
        epilog="exit codes: 0 done, 1 it failed, 2 usage error, 130 interrupted",
        allow_abbrev=False,
    )
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION", parser_class=_Parser)
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


class _Version(argparse.Action):
    """``--version``: reads the package's metadata only when asked."""

    def __init__(self, option_strings: Sequence[str], dest: str, help: str | None = None) -> None:
        super().__init__(option_strings, dest, nargs=0, help=help)

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        from importlib.metadata import PackageNotFoundError, version

        try:
            text = version("flowsql")
        except PackageNotFoundError:
            text = "(not installed)"
        print(f"flowsql {text}")
        parser.exit()


def _setting(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise argparse.ArgumentTypeError(f"expected KEY=VALUE, got '{text}'")
    return key.strip(), value.strip()


def _count(text: str) -> int:
    if not text.isdigit():
        raise argparse.ArgumentTypeError(f"expected a number of rows, got '{text}'")
    return int(text)


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"expected a positive number of seconds, got '{text}'")
    return value
