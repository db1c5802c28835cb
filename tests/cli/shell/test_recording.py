"""``docs/transcript.md`` is played at a terminal, screen by screen; ``--update`` writes its screens and their film.

In front of each ``screen`` block a comment says what is done, a step a line: ``start COMMAND`` in a new terminal,
``type TEXT`` and ``enter TEXT`` once the shell waits for a line, ``press KEY ...``, ``wait TEXT`` until it is seen.
"""

from __future__ import annotations

import json
import re
import shlex
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.cli.shell.terminal import COLUMNS, LINES, PATIENCE_S, ROOT, Terminal, shell
from tests.repo.document_blocks import Block, blocks_of

PAGE = ROOT / "docs" / "transcript.md"
FILM = PAGE.with_suffix(".cast")
#: Of the film: seconds from one screen to the next.
PACE_S = 3.0
PROMPTS = ("Flow SQL>", "        >")


class Player:
    """Plays a page in a folder. ``screens``: by the place of each block, what was seen."""

    def __init__(self, folder: Path, *, update: bool, patience_s: float = PATIENCE_S) -> None:
        self.folder = folder
        self.update = update
        self.patience_s = patience_s
        self.screens: dict[int, str] = {}
        self._terminals = ExitStack()

    def play(self, page: str) -> None:
        with self._terminals:
            terminal: Terminal | None = None
            for block in blocks_of(page):
                if block.kind == "sql" and (name := re.match(r"-- (\S+)\n", block.text)):
                    (self.folder / name[1]).write_text(block.text)
                if block.kind == "screen":
                    assert block.steps, f"nothing is done in front of the screen of line {block.line}"
                    head = ""
                    for step in block.steps:
                        verb, _, rest = step.partition(" ")
                        if verb == "start":
                            terminal, head = self._start(rest), f"$ {rest}\n"
                        else:
                            assert terminal is not None, "no terminal was started"
                            self._do(terminal, verb, rest)
                    assert terminal is not None, "no terminal was started"
                    self.screens[block.start] = self._seen(terminal, block, head)

    def _start(self, command: str) -> Terminal:
        program, *words = shlex.split(command)
        assert program == "flowsql"
        return self._terminals.enter_context(shell(self.folder, *words))

    def _do(self, terminal: Terminal, verb: str, rest: str) -> None:
        if verb in ("type", "enter"):
            terminal.wait_for(lambda screen: screen.rstrip().endswith(PROMPTS), self.patience_s)
            terminal.type(rest)
            # The prompt that was there before must not be taken for the next one.
            terminal.wait_for(lambda screen: rest in screen.splitlines()[-1], self.patience_s)
        match verb:
            case "type":
                pass
            case "enter":
                terminal.press("Enter")
            case "press":
                terminal.press(*rest.split())
            case "wait":
                terminal.wait_for(rest, self.patience_s)
            case _:
                raise AssertionError(f"no step is called '{verb}'")

    def _seen(self, terminal: Terminal, block: Block, head: str) -> str:
        """The screen, once it is that of the block."""

        def shown() -> str:
            return f"{head}{still(terminal.screen())}\n"

        if self.update:
            terminal.settled()
        else:
            terminal.wait_for(lambda _: shown() == block.text, self.patience_s)
        return shown()


def still(screen: str) -> str:
    """A screen without what another run would show differently, and with two empty lines in place of many."""
    screen = re.sub(r"\d+\.\d\d seconds", "N.NN seconds", screen)
    screen = re.sub(r"in \d+\.\d\d s\b", "in N.NN s", screen)
    screen = re.sub(r"\d\d:\d\d:\d\d\.\d\d\d", "HH:MM:SS.mmm", screen)
    screen = re.sub(r"\[\d+ s, .*\] complete", "[PROGRESS] complete", screen)
    return re.sub(r"\n{4,}", "\n\n\n", screen)


def film(screens: list[str]) -> str:
    """The screens as a recording of asciinema, version 2."""
    lines = [json.dumps({"version": 2, "width": COLUMNS, "height": LINES, "title": "FlowSQL"})]
    for number, screen in enumerate(screens):
        drawn = "\x1b[H\x1b[2J" + screen.rstrip("\n").replace("\n", "\r\n")
        lines.append(json.dumps([number * PACE_S, "o", drawn], ensure_ascii=False))
    return "\n".join(lines) + "\n"


def test_the_transcript_is_what_a_terminal_shows(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    page = PAGE.read_text()
    player = Player(tmp_path, update=pytestconfig.getoption("--update"))
    player.play(page)
    if player.update:
        for block in reversed(blocks_of(page)):
            if (screen := player.screens.get(block.start)) is not None:
                page = page[: block.start] + screen + page[block.start + len(block.text) :]
        PAGE.write_text(page)
        FILM.write_text(film(list(player.screens.values())))
    assert len(player.screens) > 5
    assert FILM.read_text() == film(list(player.screens.values()))


@pytest.mark.parametrize(
    ("screen", "complaint"),
    [
        ("start flowsql --version", "not met"),
        ("start flowsql --version\ndance", "no step is called"),
        ("wait x", "no terminal"),
    ],
)
def test_a_wrong_screen_is_found(screen: str, complaint: str, tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match=complaint):
        Player(tmp_path, update=False, patience_s=0.5).play(f"<!-- screen\n{screen}\n-->\n```screen\nwrong\n```\n")
