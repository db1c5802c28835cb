"""The prompt: statements over several lines until ``;``, history, keys. Only light modules are imported here."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from prompt_toolkit import PromptSession
from prompt_toolkit.auto_suggest import AutoSuggestFromHistory
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.enums import DEFAULT_BUFFER, EditingMode
from prompt_toolkit.filters import Condition, has_focus, is_searching
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.shortcuts import CompleteStyle
from prompt_toolkit.styles import DynamicStyle, Style

from flowsql_core.secrets.shown import without_secrets

if TYPE_CHECKING:
    from prompt_toolkit.completion import Completer
    from prompt_toolkit.lexers import Lexer

PROMPT: Final = "Flow SQL> "
HISTORY_FILE: Final = "~/.flowsql-history"
#: Commands of the shell, which need no ``;`` where they stand alone, as in psql.
BARE: Final = re.compile(r"(?i)\s*(quit|exit|help|clear)\s*;?\s*")
#: psql's ends of a statement.
ENDED_BY_COMMAND: Final = re.compile(r"\\(g|gx|G)\s*$")


def may_be_run(text: str, is_complete: Callable[[str], bool]) -> bool:
    """Whether Enter runs what was typed: nothing, a backslash command, or statements that are all ended."""
    if not text.strip() or text.lstrip().startswith("\\") or BARE.fullmatch(text) or ENDED_BY_COMMAND.search(text):
        return True
    return is_complete(text)


class StatementHistory(FileHistory):
    """What was typed, newest last, in a file; without the secrets of options; what begins with a
    blank is kept out of it, as shells do."""

    def append_string(self, string: str) -> None:
        """Keep a text, unless it is blank or was the last one already."""
        if string.strip() and string[0] != " " and string != (self.get_strings() or [""])[-1]:
            super().append_string(string)

    def store_string(self, string: str) -> None:
        """Write to the file; one that cannot be written is no reason to stop."""
        try:
            super().store_string(without_secrets(string))
        except OSError:
            return


def history_at(name: str | None) -> History:
    """The history of a file; in memory alone where the file cannot be made."""
    path = Path(name or HISTORY_FILE).expanduser()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(mode=0o600)
    except OSError:
        return InMemoryHistory()
    return StatementHistory(str(path))


class Prompt:
    """Asks for statements.

    Args:
        history: what was typed before.
        completer, lexer: for Tab, and for colours.
        style: the colours now.
        line_numbers: whether lines are numbered now.
        is_complete: whether all statements of a text are ended.
    """

    def __init__(
        self,
        history: History,
        completer: Completer,
        lexer: Lexer,
        style: Callable[[], Style],
        line_numbers: Callable[[], bool],
        is_complete: Callable[[str], bool],
    ) -> None:
        self._line_numbers = line_numbers
        self._is_complete = is_complete
        #: Where the statement that failed last is wrong: its text, and the offset.
        self.fault: tuple[str, int] | None = None
        self._session: PromptSession[str] = PromptSession(
            PROMPT,
            history=history,
            auto_suggest=AutoSuggestFromHistory(),
            completer=completer,
            complete_style=CompleteStyle.MULTI_COLUMN,
            complete_while_typing=False,
            enable_open_in_editor=True,
            include_default_pygments_style=False,
            key_bindings=self._keys(),
            lexer=lexer,
            multiline=True,
            prompt_continuation=self._continuation,
            search_ignore_case=True,
            style=DynamicStyle(style),
            tempfile_suffix=".sql",
        )

    def ask(self, typed: str = "", vi: bool = False) -> str:
        """The next text to run.

        Args:
            typed: stands there already, to be edited.
            vi: whether the keys are those of vi.

        Raises:
            KeyboardInterrupt: Ctrl-C; what was typed is gone.
            EOFError: Ctrl-D on an empty line.
        """
        self._session.editing_mode = EditingMode.VI if vi else EditingMode.EMACS
        return self._session.prompt(default=typed)

    def _continuation(self, width: int, line: int, is_soft_wrap: int) -> StyleAndTextTuples:
        if is_soft_wrap:
            return [("", " " * width)]
        mark = f"{line + 1}> " if self._line_numbers() else "> "
        return [("class:continuation", mark.rjust(width))]

    def _keys(self) -> KeyBindings:
        keys = KeyBindings()
        typing = has_focus(DEFAULT_BUFFER) & ~is_searching

        @Condition
        def is_choosing() -> bool:
            state = self._session.default_buffer.complete_state
            return state is not None and state.current_completion is not None

        @keys.add("enter", filter=typing & ~is_choosing)
        def _(event: KeyPressEvent) -> None:
            buffer = event.current_buffer
            if may_be_run(buffer.text, self._is_complete):
                buffer.cursor_position = len(buffer.text)
                buffer.validate_and_handle()
            else:
                buffer.newline(copy_margin=not event.app.paste_mode())

        @keys.add("enter", filter=typing & is_choosing)
        def _(event: KeyPressEvent) -> None:
            event.current_buffer.complete_state = None

        @keys.add("up", filter=typing & ~is_choosing)
        def _(event: KeyPressEvent) -> None:
            buffer = event.current_buffer
            buffer.auto_up(count=event.arg)
            self._go_to_fault(buffer)

        return keys

    def _go_to_fault(self, buffer: Buffer) -> None:
        """A statement that failed comes back with the cursor where it is wrong."""
        if self.fault is not None and buffer.text == self.fault[0]:
            buffer.cursor_position = min(self.fault[1], len(buffer.text))
            self.fault = None
