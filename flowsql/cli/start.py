"""What a script and the shell begin with: texts, configuration, where answers go. The engine is not loaded here."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final, TextIO

from flowsql.cli.arguments.script import Invocation
from flowsql.configuration import command_line_configuration
from flowsql_core.config import Configuration
from flowsql_core.errors import FlowSqlError
from flowsql_core.span import Source

#: Without checkpoints there would be nothing to go on from.
_RESUMING: Final = (("execution.checkpointing.interval", "10 s"),)


def begin(invocation: Invocation) -> tuple[list[tuple[Source, bool]], Configuration, TextIO] | None:
    """The texts to run, initial ones marked, the configuration, and where answers go.

    None: something was wrong with what the command line says, and was told.
    """
    use_utf8()
    try:
        sources = list(_sources(invocation))
        defaults = () if invocation.resume is None else _RESUMING
        configuration = command_line_configuration(invocation.settings, invocation.format, warn, defaults)
        return sources, configuration, open_output(invocation.output)
    except (OSError, UnicodeDecodeError) as error:
        print(f"flowsql: error: {_reading_error(error)}", file=sys.stderr)
    except FlowSqlError as error:
        print(f"flowsql: error: {error.render()}", file=sys.stderr)
    return None


def open_output(name: str | None) -> TextIO:
    """Where answers go: a new file, or standard output without a name."""
    return sys.stdout if name is None else Path(name).expanduser().open("w", encoding="utf-8")


def read_script(name: str) -> str:
    """A script's text: UTF-8 with or without a byte order mark, any line ends. ``-`` is standard input.

    Raises:
        OSError, UnicodeDecodeError: it cannot be read.
    """
    data = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    return data.decode("utf-8-sig").replace("\r\n", "\n")


def _sources(invocation: Invocation) -> Iterator[tuple[Source, bool]]:
    """The texts to run, the initial one first and marked so."""
    if invocation.init is not None:
        yield Source(read_script(invocation.init), invocation.init), True
    if invocation.command is not None:
        yield Source(invocation.command, "<command>"), False
    elif invocation.file is not None:
        yield Source(read_script(invocation.file), "<stdin>" if invocation.file == "-" else invocation.file), False


def _reading_error(error: OSError | UnicodeDecodeError) -> str:
    if isinstance(error, UnicodeDecodeError):
        return f"the script is not UTF-8 text (byte {error.start})"
    return f"cannot read '{error.filename}': {error.strerror}"


def warn(text: str) -> None:
    """What configuration has to say, on standard error."""
    print(f"[WARNING] {text}", file=sys.stderr)


def leave_closed_pipe() -> None:
    """Whoever read our output has enough. Python must not complain again when it flushes at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def use_utf8() -> None:
    """Answers are UTF-8 whatever the locale says."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.encoding.lower() != "utf-8":
            with contextlib.suppress(ValueError):
                stream.reconfigure(encoding="utf-8", errors="backslashreplace")
