"""The shell's loop: a prompt is there at once, the engine loads while the first statement is typed."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, TextIO

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.patch_stdout import patch_stdout
from prompt_toolkit.styles import Style

from flowsql.cli.arguments.parser import EXIT_FAILED, EXIT_OK, EXIT_USAGE
from flowsql.cli.arguments.script import Invocation
from flowsql.cli.shell.colors import SqlLexer, style_of
from flowsql.cli.shell.prompt import BARE, ENDED_BY_COMMAND, Prompt, history_at
from flowsql.cli.start import begin

if TYPE_CHECKING:
    from collections.abc import Iterable

    from flowsql.cli.shell.shell_session import ShellSession
    from flowsql_core.config import Configuration

WELCOME = "FlowSQL shell. Statements end with ';'. HELP; lists commands, \\? those with a backslash, QUIT; leaves.\n"


def run(invocation: Invocation) -> int:
    """Talk until QUIT or Ctrl-D; the exit code."""
    begun = begin(invocation)
    if begun is None:
        return EXIT_USAGE
    sources, configuration, out = begun
    shell = Shell(invocation, configuration, out)
    shell.load()
    for source, _ in sources:
        from flowsql.cli.session import StatementFailedError

        try:
            shell.session().run(source, is_init=True)
        except StatementFailedError:
            return EXIT_FAILED
    return shell.talk()


class Engine:
    """The session, made in a thread of its own.

    Until it is there no other thread imports modules of FlowSQL: two that import the same ones may wait for each other.
    """

    def __init__(self, make: Callable[[], ShellSession]) -> None:
        self._make = make
        self._made: ShellSession | None = None
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._load, name="load-engine", daemon=True)

    def start(self) -> None:
        """Begin to load."""
        self._thread.start()

    def is_ready(self) -> bool:
        """Whether it is loaded."""
        return self._made is not None

    def session(self) -> ShellSession:
        """The session, as soon as it is there."""
        self._thread.join()
        if self._error is not None:
            raise self._error
        assert self._made is not None
        return self._made

    def _load(self) -> None:
        try:
            self._made = self._make()
        except BaseException as error:
            self._error = error


class Shell:
    """One conversation."""

    def __init__(self, invocation: Invocation, configuration: Configuration, out: TextIO) -> None:
        self._invocation = invocation
        self._out = out
        self._terminal = sys.stdout
        self.configuration = configuration
        self._engine = Engine(self._make_session)
        self._prompt = Prompt(
            history_at(invocation.history),
            _FromCatalog(self._engine),
            SqlLexer(self._engine.is_ready),
            self._style,
            self._line_numbers,
            self._is_complete,
        )
        #: What ran last, for ``\watch``, ``\g`` and ``\e``.
        self.last_text = ""
        #: Stands at the next prompt, to be edited.
        self.to_edit = ""
        self._warned_of_jobs = False

    def load(self) -> None:
        """Begin to load the engine."""
        self._engine.start()

    def session(self) -> ShellSession:
        """What runs statements."""
        return self._engine.session()

    def talk(self) -> int:
        """Ask and answer until the end."""
        from flowsql.cli.options import EDITING_MODE, EditingMode

        sys.stdout.write(WELCOME)
        while True:
            typed, self.to_edit = self.to_edit, ""
            vi = self._engine.is_ready() and self.configuration.get(EDITING_MODE) is EditingMode.VI
            try:
                with patch_stdout(raw=True):
                    text = self._prompt.ask(typed, vi)
            except KeyboardInterrupt:
                continue
            except EOFError:
                text = "QUIT;"
            if not text.strip():
                continue
            try:
                self.answer(text)
            except KeyboardInterrupt:
                print("\n[INFO] Result retrieval cancelled.", file=sys.stderr, flush=True)
            if self.session().is_over and self._may_leave():
                break
        self.session().write_to(None)
        self.session().end_jobs()
        return EXIT_OK

    def answer(self, text: str) -> None:
        """Run what was typed: backslash commands, a line each, then statements."""
        while text.lstrip().startswith("\\"):
            from flowsql.cli.shell.backslash import run_command

            line, _, text = text.lstrip().partition("\n")
            run_command(self, line.strip())
        if not text.strip():
            return
        form = None
        if ended := ENDED_BY_COMMAND.search(text):
            text = text[: ended.start()] + ";"
            form = None if ended[1] == "g" else "vertical"
        if BARE.fullmatch(text) is None:
            self.last_text = text
        error = self.session().run_text(text, form)
        self._prompt.fault = None if error is None or error.at is None else (text, error.at.start)

    def _may_leave(self) -> bool:
        """QUIT with jobs behind the prompt is asked for twice: they end with the shell."""
        session = self.session()
        running = session.running_jobs()
        if not running or self._warned_of_jobs:
            return True
        self._warned_of_jobs = True
        session.is_over = False
        what = f"Job {running[0]} runs" if len(running) == 1 else f"{len(running)} jobs run ({', '.join(running)})"
        print(
            f"[WARNING] {what} in this shell and would be cancelled. QUIT again to leave; "
            "STOP JOB '<id>' WITH SAVEPOINT keeps the state of a job.",
            file=sys.stderr,
        )
        return False

    def _make_session(self) -> ShellSession:
        from flowsql.cli.shell.shell_session import ShellSession
        from flowsql.table.session.environment import TableEnvironment

        return ShellSession(
            TableEnvironment.of_configuration(self.configuration),
            self._invocation.format,
            self._invocation.max_rows,
            self._invocation.timeout_s,
            self._terminal,
            None if self._invocation.output is None else self._out,
        )

    def _style(self) -> Style:
        if not self._engine.is_ready() or os.environ.get("NO_COLOR"):
            return style_of("DEFAULT")
        from flowsql.cli.options import COLOR_SCHEMA

        return style_of(self.configuration.get(COLOR_SCHEMA).value)

    def _is_complete(self, text: str) -> bool:
        self._engine.session()
        from flowsql_grammar import is_complete

        return is_complete(text)

    def _line_numbers(self) -> bool:
        if not self._engine.is_ready():
            return False
        from flowsql.cli.options import SHOW_LINE_NUMBERS

        return self.configuration.get(SHOW_LINE_NUMBERS)


class _FromCatalog(Completer):
    """What Tab offers: from the grammar and the catalog."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        """Texts that may stand at the cursor."""
        if document.text_before_cursor.lstrip().startswith("\\"):
            from flowsql.cli.shell.backslash import completions

            yield from completions(document.text_before_cursor.lstrip())
            return
        from flowsql.completion.complete import complete

        environment = self._engine.session().environment
        for found in complete(environment, document.text, document.cursor_position):
            yield Completion(
                found.text,
                start_position=found.start - document.cursor_position,
                display=found.shown,
                display_meta=found.detail,
            )
