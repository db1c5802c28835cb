"""What all commands share: exit codes, a parser that raises, the options of a session."""

from __future__ import annotations

import argparse
from typing import NoReturn

#: How answers are printed; ``flowsql.cli.render.forms`` has what does it.
FORMATS = ("tableau", "jsonl", "csv", "markdown", "vertical")

EXIT_OK = 0
EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_LOSES = 3
EXIT_INTERRUPTED = 130
EXIT_TERMINATED = 143


#: What a command is about that is given no path.
PROJECT_AROUND = "default: the project here or above, with a flowsql.toml"


class TerminatedError(KeyboardInterrupt):
    """SIGTERM arrived: unwinds as Ctrl-C does."""


class UsageError(Exception):
    """The command line is wrong; the text says how, usage included."""


class Parser(argparse.ArgumentParser):
    """An ArgumentParser that raises instead of ending the process."""

    def error(self, message: str) -> NoReturn:
        """Raises UsageError."""
        raise UsageError(f"{self.format_usage()}{self.prog}: error: {message}")


def add_session(parser: Parser) -> None:
    """``-i`` and ``-D``."""
    parser.add_argument(
        "-i", "--init", metavar="FILE", help="run this file first: definitions, USE and SET, no queries"
    )
    add_settings(parser)


def add_form(parser: Parser, help_: str) -> None:
    """``--format text|json|mermaid``, which ``help_`` explains, and ``-o``."""
    add = parser.add_argument
    add("--format", choices=("text", "json", "mermaid"), default="text", help=f"{help_} (default: %(default)s)")
    add("-o", "--output", metavar="FILE", help="write to this file")


def add_live_rows(parser: Parser) -> None:
    """``--rows``, ``--timeout`` and ``--format`` of commands that show rows as they come."""
    add = parser.add_argument
    add("--rows", metavar="N", type=count, help="end after N rows")
    add("--timeout", metavar="SECONDS", type=seconds, help="end after this time")
    add("--format", choices=FORMATS, default=FORMATS[0], help="how rows are printed (default: %(default)s)")


def count(text: str) -> int:
    """A number of rows."""
    if not text.isdigit():
        raise argparse.ArgumentTypeError(f"expected a number of rows, got '{text}'")
    return int(text)


def seconds(text: str) -> float:
    """A time, in seconds."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"expected a positive number of seconds, got '{text}'")
    return value


def add_profile(parser: Parser) -> None:
    """``--profile``."""
    parser.add_argument(
        "--profile", metavar="NAME", help="a profile of flowsql.toml (default: $FLOWSQL_PROFILE, or the project's own)"
    )


def add_settings(parser: Parser) -> None:
    """``-D``."""
    parser.add_argument(
        "-D",
        dest="settings",
        metavar="KEY=VALUE",
        type=_setting,
        action="append",
        help="set a configuration option; may be repeated, the later one wins",
    )


def _setting(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise argparse.ArgumentTypeError(f"expected KEY=VALUE, got '{text}'")
    return key.strip(), value.strip()
