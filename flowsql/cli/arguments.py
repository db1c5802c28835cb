"""What the command line says, as data. Nothing heavy is imported here: ``flowsql --help`` is instant."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn

EXIT_OK = 0
EXIT_FAILED = 1
EXIT_USAGE = 2
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
    if (found.file is None) == (found.command is None):
        parser.error("give a script with -f FILE or statements with -c SQL")
    return Invocation(
        file=found.file,
        command=found.command,
        init=found.init,
        settings=tuple(found.settings or ()),
        format=found.format,
        max_rows=found.max_rows,
        timeout_s=found.timeout,
    )


def _make_parser() -> _Parser:
    parser = _Parser(
        prog="flowsql",
        description="Run Flink SQL: a script file or statements from the command line.",
        epilog="exit codes: 0 all statements succeeded, 1 a statement failed, 2 usage error, 130 interrupted, "
        "143 terminated",
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("-f", "--file", metavar="FILE", help="run the statements of a file ('-' reads standard input)")
    add("-c", "--command", metavar="SQL", help="run these statements")
    add("-i", "--init", metavar="FILE", help="run this file first: definitions, USE and SET, no queries")
    add(
        "-D",
        dest="settings",
        metavar="KEY=VALUE",
        type=_setting,
        action="append",
        help="set a configuration option; may be repeated, the later one wins",
    )
    add("--format", choices=FORMATS, default=FORMATS[0], help="how answers are printed (default: %(default)s)")
    add("--max-rows", metavar="N", type=_count, help="end each query after N rows")
    add("--timeout", metavar="SECONDS", type=_seconds, help="end each query after this time")
    add("--version", action=_Version, help="print the version and end")
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
