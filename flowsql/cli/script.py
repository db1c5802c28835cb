"""Runs a script: statements one after the other, each to its end, until one fails."""

from __future__ import annotations

import contextlib
import io
import os
import sys
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import assert_never

from flowsql.cli import cold_start
from flowsql.cli.arguments.parser import (
    EXIT_FAILED,
    EXIT_INTERRUPTED,
    EXIT_OK,
    EXIT_TERMINATED,
    EXIT_USAGE,
    TerminatedError,
)
from flowsql.cli.arguments.script import Invocation
from flowsql.cli.expectations import tell_expectations
from flowsql.cli.progress import progress
from flowsql.cli.render import CsvRenderer, JsonLinesRenderer, Limits, Renderer, TableauRenderer
from flowsql.cli.restarts import restarts_told_here, tell_restart
from flowsql.configuration import command_line_configuration
from flowsql.table.session.environment import TableEnvironment
from flowsql.table.table_result import AnswerKind, TableResult
from flowsql_core.config import Configuration, option, parse_bool
from flowsql_core.errors import ExecutionError, FlowSqlError, InternalError
from flowsql_core.span import Source
from flowsql_grammar.ast.statement import ClientCommand, ClientCommandKind

VERBOSE = option("sql-client.verbose", parse_bool, False, "Print the Python trace of an error, too.")
PRINT_TIME_COST = option(
    "sql-client.display.print-time-cost", parse_bool, True, "Print the seconds that a query took behind its row count."
)
PRINT_VOLUMES = option(
    "sql-client.display.print-volumes",
    parse_bool,
    False,
    "Behind each query and INSERT, tell on standard error the rows and bytes it read, wrote, shuffled and spilled.",
)

HELP = """The following commands are available:

HELP           Prints the available commands.
QUIT/EXIT      Quits the script.
CLEAR          Clears the terminal; without effect in a script.
SET            Sets a property, e.g. SET 'key' = 'value'; lists all without one.
RESET          Resets a property, e.g. RESET 'key'; resets all without one.
SELECT         Runs a query and prints its rows.
INSERT INTO    Writes the rows of a query to a table.
EXPLAIN        Prints the plans of a query or an INSERT.
BEGIN STATEMENT SET ... END
               Runs several INSERTs as one job.
SHOW JOBS, DESCRIBE JOB, STOP JOB
               Look at running jobs and stop them.
CREATE, ALTER, DROP, USE, SHOW, DESCRIBE
               Work on catalogs, databases, tables and views.

Hint: Make sure that a statement ends with ";" for finalizing (multi-line) statements."""


def run(invocation: Invocation) -> int:
    """Run what the command line asks for; the exit code."""
    _use_utf8()
    try:
        sources = list(_sources(invocation))
        configuration = command_line_configuration(invocation.settings, invocation.format, _warn)
    except (OSError, UnicodeDecodeError) as error:
        print(f"flowsql: error: {_reading_error(error)}", file=sys.stderr)
        return EXIT_USAGE
    except FlowSqlError as error:
        print(f"flowsql: error: {error.render()}", file=sys.stderr)
        return EXIT_USAGE
    script = Script(invocation, configuration)
    try:
        with restarts_told_here():
            for source, is_init in sources:
                script.run(source, is_init)
    except StatementFailedError:
        return EXIT_FAILED
    except BrokenPipeError:
        # Whoever read our output has enough. Python must not complain again when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_FAILED
    except TerminatedError:
        return EXIT_TERMINATED
    except KeyboardInterrupt:
        print("[INFO] Result retrieval cancelled.", file=sys.stderr)
        return EXIT_INTERRUPTED
    return EXIT_OK


class StatementFailedError(Exception):
    """A statement failed and was reported; the script stops."""


class Script:
    """One session of the command: an environment, a renderer, the limits of each query."""

    def __init__(self, invocation: Invocation, configuration: Configuration) -> None:
        self._invocation = invocation
        self._environment = TableEnvironment.of_configuration(configuration)
        self._quit = False
        # Statements given on the command line stand there to be read already.
        self._echoes = invocation.file is not None

    def run(self, source: Source, is_init: bool = False) -> None:
        """Run the statements of a text. Raises StatementFailedError after the first failure was reported."""
        statements = self._environment.statements(source)
        while not self._quit:
            started = time.monotonic()
            renderer = self._renderer()
            try:
                statement = next(statements, None)
                if statement is None:
                    return
                if self._echoes and not is_init:
                    renderer.echo(source.text[statement.span.start : statement.span.end])
                if is_init:
                    self._environment.check_initial(statement, source)
                if isinstance(statement, ClientCommand):
                    self._client_command(statement.kind, renderer)
                else:
                    result = self._environment.execute(statement, source, waiting=True)
                    cold_start.settle()
                    self._answer(result, source, renderer, started)
            except FlowSqlError as error:
                raise self._report(error.within(source), renderer) from error
            except (BrokenPipeError, RecursionError, MemoryError):
                raise
            except Exception as error:
                wrapped = InternalError(f"{type(error).__name__}: {error}").within(source)
                wrapped.hint = "SET 'sql-client.verbose' = 'true' shows where"
                wrapped.__cause__ = error
                raise self._report(wrapped, renderer) from error

    def _client_command(self, kind: ClientCommandKind, renderer: Renderer) -> None:
        match kind:
            case ClientCommandKind.QUIT:
                self._quit = True
            case ClientCommandKind.HELP:
                renderer.note(HELP)
            case ClientCommandKind.CLEAR:
                pass
            case _:
                assert_never(kind)

    def _answer(self, result: TableResult, source: Source, renderer: Renderer, started: float) -> None:
        timeout_s = self._invocation.timeout_s
        deadline = None if timeout_s is None else started + timeout_s
        job = result.get_job_client()
        if job is not None:
            job.on_restart(lambda restart: tell_restart(restart, source))
        try:
            with progress(result, sys.stderr):
                if result.kind is AnswerKind.CHANGE and timeout_s is not None:
                    self._wait_for_change(result, timeout_s)
                renderer.answer(result, Limits(self._invocation.max_rows, deadline), started)
            if job is not None and result.kind is AnswerKind.CHANGE:
                tell_expectations(job)
            if job is not None and self._environment.configuration.get(PRINT_VOLUMES):
                sys.stdout.flush()
                print(f"[INFO] {job.get_volumes()}", file=sys.stderr, flush=True)
        finally:
            # Also when the rows ended early, at Ctrl-C and at a closed pipe: no job is left behind.
            result.cancel()

    def _wait_for_change(self, result: TableResult, timeout_s: float) -> None:
        try:
            result.wait(round(timeout_s * 1000))
        except TimeoutError:
            raise ExecutionError(
                "timeout", f"The job did not end within {timeout_s:g} seconds and was cancelled.", hint="see --timeout"
            ) from None

    def _report(self, error: FlowSqlError, renderer: Renderer) -> StatementFailedError:
        text = error.render()
        trace = ""
        if self._environment.configuration.get(VERBOSE):
            trace = "".join(traceback.format_exception(error))
        sys.stdout.flush()
        print(f"[ERROR] Could not execute SQL statement. Reason:\n{text}", file=sys.stderr)
        if trace:
            print(trace, end="", file=sys.stderr)
        renderer.failure(text)
        return StatementFailedError()

    def _renderer(self) -> Renderer:
        match self._invocation.format:
            case "jsonl":
                return JsonLinesRenderer(sys.stdout)
            case "csv":
                return CsvRenderer(sys.stdout)
        return TableauRenderer(sys.stdout, self._environment.configuration.get(PRINT_TIME_COST))


def _sources(invocation: Invocation) -> Iterator[tuple[Source, bool]]:
    """The texts to run, the initial one first and marked so."""
    if invocation.init is not None:
        yield Source(_read(invocation.init), invocation.init), True
    if invocation.command is not None:
        yield Source(invocation.command, "<command>"), False
    elif invocation.file is not None:
        yield Source(_read(invocation.file), "<stdin>" if invocation.file == "-" else invocation.file), False


def _read(name: str) -> str:
    """A script's text: UTF-8 with or without a byte order mark, any line ends."""
    data = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    return data.decode("utf-8-sig").replace("\r\n", "\n")


def _reading_error(error: OSError | UnicodeDecodeError) -> str:
    if isinstance(error, UnicodeDecodeError):
        return f"the script is not UTF-8 text (byte {error.start})"
    return f"cannot read '{error.filename}': {error.strerror}"


def _warn(text: str) -> None:
    print(f"[WARNING] {text}", file=sys.stderr)


def _use_utf8() -> None:
    """Answers are UTF-8 whatever the locale says."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.encoding.lower() != "utf-8":
            with contextlib.suppress(ValueError):
                stream.reconfigure(encoding="utf-8", errors="backslashreplace")
