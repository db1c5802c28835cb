"""The front door of the ``flowsql`` command: words in, exit code out. The engine loads only when there is SQL."""

from __future__ import annotations

import contextlib
import signal
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any, Final, NoReturn

from flowsql.cli import last_resort
from flowsql.cli.arguments.parser import (
    EXIT_FAILED,
    EXIT_INTERRUPTED,
    EXIT_TERMINATED,
    EXIT_USAGE,
    TerminatedError,
    UsageError,
)

#: The first word, if it is one of these, names a module of ``flowsql.cli.arguments`` that reads the others, and one of
#: ``flowsql.cli.commands`` that does what they say. Without such a word a script runs.
COMMANDS: Final = ("explain", "fmt", "init", "job", "lineage", "lint", "plan", "run", "sample", "tail", "test", "top")

#: Calls within calls: types and values of nested arrays are printed by recursion. A stack of 8 MB holds more of them.
_CALLS: Final = 4000

#: Commands that only read or write SQL: they start without what the engine needs.
_WITHOUT_ENGINE: Final = frozenset(("fmt", "init"))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; the exit code is 0, 1 (a statement failed), 2 (usage), 130 (Ctrl-C) or 143 (SIGTERM).

    ``plan`` also ends with 3: the changed script would lose state.
    """
    words = sys.argv[1:] if arguments is None else list(arguments)
    name, module = "script", "flowsql.cli.script"
    if words and words[0] in COMMANDS:
        name = words.pop(0)
        module = f"flowsql.cli.commands.{name}"
    try:
        invocation: Any = import_module(f"flowsql.cli.arguments.{name}").parse(words)
    except UsageError as error:
        print(error, file=sys.stderr)
        return EXIT_USAGE
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    try:
        # SIGTERM stops as Ctrl-C does: the job is cancelled and leaves nothing behind.
        with contextlib.suppress(ValueError):  # in a thread of a program, which handles its own signals
            signal.signal(signal.SIGTERM, _terminate)
        from flowsql.cli import cold_start

        if arguments is None and name not in _WITHOUT_ENGINE:
            # Before anything has threads: the child is a copy of this process.
            last_resort.watch()
        if name == "script" and invocation.is_shell:
            module = "flowsql.cli.shell.shell"
        cold_start.spare_the_collector()
        sys.setrecursionlimit(max(sys.getrecursionlimit(), _CALLS))
        if name not in _WITHOUT_ENGINE:
            cold_start.compute_alone()
            cold_start.keep_pandas_out()
        code: int = import_module(module).run(invocation)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        # Whoever read the output has enough.
        from flowsql.cli.start import leave_closed_pipe

        leave_closed_pipe()
        return EXIT_FAILED
    except TerminatedError:
        return EXIT_TERMINATED
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    finally:
        last_resort.leave()
        with contextlib.suppress(ValueError):
            signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _terminate(number: int, frame: object) -> NoReturn:
    last_resort.end_soon(EXIT_TERMINATED)
    raise TerminatedError
