"""The words of ``flowsql`` itself: a script or statements, and how their answers are printed."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NoReturn

from flowsql.cli.arguments.parser import FORMATS, Parser, add_session, count, seconds


@dataclass(frozen=True, slots=True)
class Invocation:
    """One call of the command.

    Without ``file`` and ``command`` the shell is meant; both are never given. ``settings``: ``-D`` in the order given,
    the later wins. ``max_rows`` and ``timeout_s`` end a query that returns rows early; None is no limit.
    """

    file: str | None
    command: str | None
    init: str | None
    settings: tuple[tuple[str, str], ...]
    format: str
    max_rows: int | None
    timeout_s: float | None
    output: str | None = None
    history: str | None = None
    #: The folder from which jobs go on by themselves.
    resume: str | None = None

    @property
    def is_shell(self) -> bool:
        """Whether somebody types."""
        return self.file is None and self.command is None


def parse(arguments: Sequence[str]) -> Invocation:
    """Read the words behind ``flowsql``. Raises UsageError; ``--help`` and ``--version`` end the process with 0."""
    words = list(arguments)
    # Flink's client is started as `sql-client.sh embedded ...`; the word changes nothing here.
    if words and words[0] == "embedded":
        del words[0]
    parser = _make_parser()
    found = parser.parse_args(words)
    if found.from_savepoint is None and (found.claim or found.allow_non_restored_state):
        parser.error("--claim and --allow-non-restored-state say how to start from a savepoint: give one with -s PATH")
    if found.resume is not None and found.from_savepoint is not None:
        parser.error("--resume finds what jobs go on from by itself, and -s PATH names it: give one of them")
    if found.resume == "":
        parser.error("--resume needs a folder: --resume DIR")
    if found.file is not None and found.command is not None:
        parser.error("give a script with -f FILE or statements with -c SQL, not both")
    file = found.file
    if file is None and found.command is None and not (sys.stdin.isatty() and sys.stdout.isatty()):
        # Nobody types: standard input is a script.
        file = "-"
    return Invocation(
        file=file,
        command=found.command,
        init=found.init,
        settings=(*(found.settings or ()), *_recovery_settings(found)),
        format=found.format,
        max_rows=found.max_rows,
        timeout_s=found.timeout,
        output=found.output,
        history=found.history,
        resume=None if found.resume is None else resume_folder(found.resume),
    )


def _make_parser() -> Parser:
    parser = Parser(
        prog="flowsql",
        description="Run Flink SQL: a shell, a script file, or statements from the command line.",
        epilog="exit codes: 0 all statements succeeded, 1 a statement failed, 2 usage error, 130 interrupted, "
        "143 terminated. See also: flowsql job --help (jobs that are running), "
        "flowsql top --help, flowsql sample --help, flowsql tail --help (what they do, and their rows), "
        "flowsql plan --help (changed scripts), "
        "flowsql init --help and flowsql run --help (projects), flowsql test --help (tests of SQL), "
        "flowsql explain --help (plans), flowsql lineage --help (where columns come from), "
        "flowsql fmt --help (scripts laid out), flowsql lint --help (what bites in scripts).",
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("-f", "--file", metavar="FILE", help="run the statements of a file ('-' reads standard input)")
    add("-c", "--command", metavar="SQL", help="run these statements")
    add_session(parser)
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
    add(
        "--resume",
        metavar="DIR",
        help="start, or go on from the newest checkpoint of each job in this folder, which one process at a time has: "
        "sets execution.state-recovery.path to 'latest', execution.checkpointing.dir, and an interval of 10 s where "
        "none is set",
    )
    add("--format", choices=FORMATS, default=FORMATS[0], help="how answers are printed (default: %(default)s)")
    add("-o", "--output", metavar="FILE", help="write answers to this file")
    add("-hist", "--history", metavar="FILE", help="where the shell keeps what was typed (default: ~/.flowsql-history)")
    add("--max-rows", metavar="N", type=count, help="end each query after N rows")
    add("--timeout", metavar="SECONDS", type=seconds, help="end each query after this time")
    add("--version", action=_Version, help="print the version and end")
    return parser


def _recovery_settings(found: argparse.Namespace) -> Iterator[tuple[str, str]]:
    """What ``-s``, the words behind it and ``--resume`` stand for; they win over ``-D``."""
    if found.resume is not None:
        yield "execution.state-recovery.path", "latest"
        yield "execution.checkpointing.dir", resume_folder(found.resume)
    if found.from_savepoint is not None:
        yield "execution.state-recovery.path", found.from_savepoint
        if found.claim:
            yield "execution.state-recovery.claim-mode", "CLAIM"
        if found.allow_non_restored_state:
            yield "execution.state-recovery.ignore-unclaimed-state", "true"


def resume_folder(name: str) -> str:
    """The folder of ``--resume``, wherever the script is read; a URI stays as it is and is refused by the engine."""
    return name if "://" in name else os.path.abspath(os.path.expanduser(name))


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
