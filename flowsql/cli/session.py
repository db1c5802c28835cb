"""A session of the command: runs the statements of texts one after the other and shows what they answer."""

from __future__ import annotations

import contextlib
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TextIO, assert_never

from flowsql.cli import cold_start, last_resort
from flowsql.cli.expectations import tell_expectations
from flowsql.cli.growing_state import warned_of_growth
from flowsql.cli.losses import tell_losses
from flowsql.cli.options import EXPLAIN_SILENCE, PRINT_TIME_COST, PRINT_VOLUMES
from flowsql.cli.progress import above_progress, progress
from flowsql.cli.render.base import Limits, Renderer
from flowsql.cli.render.forms import FORMS
from flowsql.cli.restarts import tell_restart
from flowsql.cli.resuming import check_still_resumes, tell_start
from flowsql.cli.silence import explained_silence
from flowsql.common.public_api import VERBOSE
from flowsql.table.table_result import AnswerKind
from flowsql_core.errors import ExecutionError, FlowSqlError, InternalError
from flowsql_core.secrets.hidden import foreign_texts, hidden
from flowsql_core.secrets.shown import without_secrets
from flowsql_grammar.ast.statement import ClientCommand, ClientCommandKind

if TYPE_CHECKING:
    from flowsql.common.job_client import JobClient
    from flowsql.table.session.environment import TableEnvironment
    from flowsql.table.table_result import TableResult
    from flowsql_core.span import Source
    from flowsql_grammar.ast.statement import Statement

HELP = """The following commands are available:

HELP           Prints the available commands.
QUIT/EXIT      Quits the script or the shell.
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


class StatementFailedError(Exception):
    """A statement failed and was reported; what stands behind it does not run."""

    def __init__(self, error: FlowSqlError) -> None:
        super().__init__(error.message)
        self.error = error


class Session:
    """Statements, their answers and their errors.

    Args:
        environment: where statements run.
        out: where answers go; errors go to standard error.
        form: how answers look, see :data:`FORMS`.
        max_rows: rows after which a query ends; None: all.
        timeout_s: seconds after which a query ends; None: never.
        echoes: whether statements are shown before they run.
        resume: the folder from which jobs go on by themselves.
    """

    def __init__(
        self,
        environment: TableEnvironment,
        out: TextIO,
        form: str,
        max_rows: int | None = None,
        timeout_s: float | None = None,
        echoes: bool = False,
        resume: str | None = None,
    ) -> None:
        self._resume = resume
        self.environment = environment
        environment.catalogs.on_inferred = _tell_inferred
        self.out = out
        self.form = form
        #: QUIT was met.
        self.is_over = False
        self._max_rows = max_rows
        self._timeout_s = timeout_s
        self._echoes = echoes

    def run(self, source: Source, is_init: bool = False) -> None:
        """Run the statements of a text up to its QUIT.

        Args:
            is_init: only definitions and settings are allowed.

        Raises:
            StatementFailedError: after the first failure was reported.
        """
        statements = self.environment.statements(source)
        while not self.is_over:
            started = time.monotonic()
            renderer = self.renderer()
            try:
                statement = next(statements, None)
                if statement is None:
                    return
                if self._echoes and not is_init:
                    renderer.echo(without_secrets(source.text[statement.span.start : statement.span.end]))
                if is_init:
                    self.environment.check_initial(statement, source)
                if isinstance(statement, ClientCommand):
                    self._client_command(statement.kind, renderer)
                else:
                    self._run(statement, source, renderer, started)
                if self._resume is not None:
                    check_still_resumes(self.environment.configuration, self._resume)
            except FlowSqlError as error:
                raise self.report(error.within(source), renderer) from error
            except (BrokenPipeError, RecursionError, MemoryError, StatementFailedError):
                raise
            except Exception as error:
                wrapped = InternalError(f"{type(error).__name__}: {error}").within(source)
                wrapped.hint = "SET 'sql-client.verbose' = 'true' shows where"
                wrapped.__cause__ = error
                raise self.report(wrapped, renderer) from error

    def renderer(self) -> Renderer:
        """What writes answers now."""
        return FORMS[self.form](above_progress(self.out), self.environment.configuration.get(PRINT_TIME_COST))

    def report(self, error: FlowSqlError, renderer: Renderer) -> StatementFailedError:
        """Tell of an error on standard error; what to raise."""
        text = error.render()
        trace = ""
        if self.environment.configuration.get(VERBOSE):
            trace = hidden("".join(traceback.format_exception(error)), foreign_texts(error))
        sys.stdout.flush()
        print(f"[ERROR] Could not execute SQL statement. Reason:\n{text}", file=sys.stderr)
        if trace:
            print(trace, end="", file=sys.stderr)
        renderer.failure(text)
        return StatementFailedError(error)

    def clear(self) -> None:
        """CLEAR: a script has no screen."""

    def help_text(self) -> str:
        """What HELP prints."""
        return HELP

    def _client_command(self, kind: ClientCommandKind, renderer: Renderer) -> None:
        match kind:
            case ClientCommandKind.QUIT:
                self.is_over = True
            case ClientCommandKind.HELP:
                renderer.note(self.help_text())
            case ClientCommandKind.CLEAR:
                self.clear()
            case _:
                assert_never(kind)

    def _run(self, statement: Statement, source: Source, renderer: Renderer, started: float) -> None:
        # A function in C that never comes back hears of no timeout.
        with last_resort.over_by(self._timeout_s):
            result = self._started(statement, source)
            self._show(result, source, renderer.answer, started)

    def _started(self, statement: Statement, source: Source) -> TableResult:
        """Run a statement; of one that moves rows its job has begun."""
        last_resort.listen()
        with warned_of_growth(self.environment, statement, source):
            result = self.environment.execute(statement, source, waiting=True)
        cold_start.settle()
        return result

    def _show(
        self,
        result: TableResult,
        source: Source,
        answer: Callable[[TableResult, Limits, float], None],
        started: float,
        has_screen: bool = False,
    ) -> None:
        """Let ``answer`` write what a statement answers, while its job runs; no job is left behind.

        Args:
            has_screen: ``answer`` has the whole screen, and tells by itself how far the job is.
        """
        deadline = None if self._timeout_s is None else started + self._timeout_s
        job = result.get_job_client()
        if job is not None and self._resume is not None and result.kind is AnswerKind.CHANGE:
            tell_start(job)
        if job is not None:
            job.on_restart(lambda restart: tell_restart(restart, source))
        try:
            with self._accompanied(result, has_screen):
                if result.kind is AnswerKind.CHANGE and self._timeout_s is not None:
                    self._wait_for_change(result, self._timeout_s)
                answer(result, Limits(self._max_rows, deadline), started)
            if job is not None:
                self._tell_of(job, result)
        finally:
            # Also when the rows ended early, at Ctrl-C and at a closed pipe.
            result.cancel()

    @contextlib.contextmanager
    def _accompanied(self, result: TableResult, has_screen: bool) -> Iterator[None]:
        """Tell how far the job is and why nothing comes; of what has the screen only the latter, behind it."""
        patience_ms = self.environment.configuration.get(EXPLAIN_SILENCE)
        if not has_screen:
            with progress(result, sys.stderr), explained_silence(result, patience_ms):
                yield
            return
        told: list[str] = []
        with explained_silence(result, patience_ms, told.append):
            yield
        if told and not result.rows_given:
            print(f"[INFO] {told[-1]}", file=sys.stderr, flush=True)

    def _tell_of(self, job: JobClient, result: TableResult) -> None:
        """What a job that has ended has to say beside its answer."""
        if result.kind is AnswerKind.CHANGE:
            tell_expectations(job)
        tell_losses(job)
        if self.environment.configuration.get(PRINT_VOLUMES):
            sys.stdout.flush()
            told = [str(job.get_volumes())]
            by_table = job.table_rows()
            if any(not one.is_alone(by_table) for one in by_table):
                told += map(str, by_table)
            print("\n".join(f"[INFO] {line}" for line in told), file=sys.stderr, flush=True)

    def _wait_for_change(self, result: TableResult, timeout_s: float) -> None:
        try:
            result.wait(round(timeout_s * 1000))
        except TimeoutError:
            raise ExecutionError(
                "timeout", f"The job did not end within {timeout_s:g} seconds and was cancelled.", hint="see --timeout"
            ) from None


def _tell_inferred(name: str, note: str) -> None:
    print(f"[INFO] {name}: {note}; DESCRIBE {name} shows the types", file=sys.stderr)
