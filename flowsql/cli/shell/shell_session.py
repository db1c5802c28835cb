"""A session that somebody types: jobs run on behind the prompt, Ctrl-C ends a query, answers go where the user says."""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import subprocess
import sys
import threading
from typing import IO, TYPE_CHECKING, TextIO

from flowsql.cli.expectations import tell_expectations
from flowsql.cli.losses import tell_losses
from flowsql.cli.options import EXPLAIN_SILENCE, RESULT_MODE, ResultMode
from flowsql.cli.render.base import Limits, Renderer
from flowsql.cli.render.forms import FORMS
from flowsql.cli.restarts import tell_restart
from flowsql.cli.session import HELP, Session, StatementFailedError
from flowsql.cli.silence import explained_silence
from flowsql.table.session.environment import DML_SYNC
from flowsql.table.table_result import AnswerKind
from flowsql_core.errors import FlowSqlError
from flowsql_core.span import Source

if TYPE_CHECKING:
    from flowsql.common.job_client import JobClient
    from flowsql.table.session.environment import TableEnvironment
    from flowsql.table.table_result import TableResult
    from flowsql_grammar.ast.statement import Statement

HINT = "\n\nBackslash commands (\\d, \\timing, \\x, \\i, \\o, \\watch, \\e, ...): \\?"


class ShellSession(Session):
    """What the shell runs.

    Args:
        environment: see :class:`Session`.
        form: likewise.
        max_rows: likewise.
        timeout_s: likewise.
        terminal: where answers go first and where people read them.
        output: a file for answers in place of it.
    """

    def __init__(
        self,
        environment: TableEnvironment,
        form: str,
        max_rows: int | None,
        timeout_s: float | None,
        terminal: TextIO,
        output: TextIO | None,
    ) -> None:
        super().__init__(environment, terminal if output is None else output, form, max_rows, timeout_s)
        # While somebody types, the standard output is one that prints above the prompt.
        self._terminal = terminal
        self._jobs: dict[str, TableResult] = {}
        self._piped: subprocess.Popen[str] | None = None

    # Statements

    def run_text(self, text: str, form: str | None = None) -> FlowSqlError | None:
        """Run what was typed, in ``form`` if one is named; the error of the statement that failed.

        Ctrl-C ends the statement that runs, and those behind it are not begun.
        """
        before = self.form
        self.form = form or before
        try:
            self.run(Source(text, "<shell>"))
        except StatementFailedError as failed:
            return failed.error
        except KeyboardInterrupt:
            print("[INFO] Result retrieval cancelled.", file=sys.stderr, flush=True)
        except BrokenPipeError:
            # Whoever read our output has enough.
            self.write_to(None)
        except (RecursionError, MemoryError) as error:
            print(f"[ERROR] {type(error).__name__}: the statement takes more than there is.", file=sys.stderr)
        finally:
            self.form = before
        return None

    def run_watched(self, text: str) -> bool:
        """Run a text once more; False where it failed. Ctrl-C goes on to who repeats it."""
        try:
            self.run(Source(text, "<shell>"))
        except StatementFailedError:
            return False
        return True

    def help_text(self) -> str:
        """The commands, and where those with a backslash are listed."""
        return HELP + HINT

    def clear(self) -> None:
        """An empty screen."""
        self._terminal.write("\x1b[2J\x1b[H")
        self._terminal.flush()

    def _run(self, statement: Statement, source: Source, renderer: Renderer, started: float) -> None:
        result = self._started(statement, source)
        if result.kind is AnswerKind.CHANGE and not self.environment.configuration.get(DML_SYNC):
            self._leave_running(result, source, renderer)
        elif result.kind in (AnswerKind.LISTING, AnswerKind.TEXT) and self.out is self._terminal and self._pager():
            text = io.StringIO()
            FORMS[self.form](text, False).answer(result, Limits(), started)
            self._page(text.getvalue())
        elif result.kind is AnswerKind.QUERY and self._wants_view():
            from flowsql.cli.shell.views.open import view

            self._show(result, source, lambda shown, *_: view(shown, self.environment.configuration), started, True)
        else:
            try:
                self._show(result, source, renderer.answer, started)
            except KeyboardInterrupt:
                from flowsql.table.values.tableau import row_count

                self.out.flush()
                renderer.note(f"\nQuery terminated, received a total of {row_count(result.rows_given)}")
                raise

    def _wants_view(self) -> bool:
        mode = self.environment.configuration.get(RESULT_MODE)
        return mode is not ResultMode.TABLEAU and self.form == "tableau" and self.out is self._terminal

    # Jobs behind the prompt

    def running_jobs(self) -> list[str]:
        """Ids of the INSERTs that run on."""
        return [name for name, result in list(self._jobs.items()) if not _is_over(result)]

    def _leave_running(self, result: TableResult, source: Source, renderer: Renderer) -> None:
        """An INSERT runs while the next statement is typed, as Flink's client leaves it to the cluster."""
        job = result.get_job_client()
        assert job is not None
        job.on_restart(lambda restart: tell_restart(restart, source))
        name = job.get_job_id()
        self._jobs[name] = result
        renderer.note(
            "[INFO] Submitting SQL update statement to the cluster...\n"
            f"[INFO] SQL update statement has been successfully submitted to the cluster:\nJob ID: {name}\n"
        )
        threading.Thread(target=self._await, args=(result, job, source), name=f"await-{name}", daemon=True).start()

    def _await(self, result: TableResult, job: JobClient, source: Source) -> None:
        """Tell how a job ended. The prompt takes what is printed meanwhile and stays below it."""
        name = job.get_job_id()
        patience_ms = self.environment.configuration.get(EXPLAIN_SILENCE)
        try:
            with explained_silence(result, patience_ms, lambda line: print(f"[INFO] Job {name}: {line}", flush=True)):
                job.wait()
        except FlowSqlError as error:
            print(f"[ERROR] Job {name} failed. Reason:\n{error.within(source).render()}", flush=True)
        except Exception as error:  # a fault of FlowSQL's own
            print(f"[ERROR] Job {name} failed. Reason:\n{type(error).__name__}: {error}", flush=True)
        else:
            status = job.get_job_status().value.lower()
            print(f"[INFO] Job {name} {status}: {job.records_written():,} rows written.", flush=True)
            tell_expectations(job)
            tell_losses(job)
        finally:
            self._jobs.pop(name, None)

    def end_jobs(self) -> None:
        """Cancel what still runs."""
        for result in list(self._jobs.values()):
            result.cancel()

    # Where answers go

    def write_to(self, target: str | None) -> None:
        """Answers go to a file, to a command (``|wc -l``), or to the terminal again.

        Raises:
            OSError: there is no such place.
        """
        made: TextIO | IO[str] = self._terminal
        piped = None
        if target is not None and target.startswith("|"):
            piped = subprocess.Popen(target[1:], shell=True, stdin=subprocess.PIPE, text=True, encoding="utf-8")
            assert piped.stdin is not None
            made = piped.stdin
        elif target is not None:
            made = open(os.path.expanduser(target), "w", encoding="utf-8")  # noqa: SIM115 - stays open until the next \o
        if self.out is not self._terminal:
            with contextlib.suppress(OSError):
                self.out.close()
        if self._piped is not None:
            self._piped.wait()
        self.out, self._piped = made, piped  # type: ignore[assignment]

    @staticmethod
    def _pager() -> str | None:
        return os.environ.get("PAGER") or None

    def _page(self, text: str) -> None:
        """A text, in the user's pager if the screen is too small for it."""
        pager = self._pager()
        if pager is None or text.count("\n") < shutil.get_terminal_size().lines:
            self.out.write(text)
            self.out.flush()
            return
        with contextlib.suppress(KeyboardInterrupt):
            subprocess.run(pager, shell=True, input=text, text=True, encoding="utf-8", check=False)


def _is_over(result: TableResult) -> bool:
    job = result.get_job_client()
    return job is None or job.is_over()
