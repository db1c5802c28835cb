"""Terminals for tests: keys in, screens out. Through tmux where it is installed, else through an emulator in Python."""

from __future__ import annotations

import contextlib
import os
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import termios
import threading
import time
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from fcntl import ioctl
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
COLUMNS, LINES = 110, 30
PATIENCE_S = 20.0

#: Names of keys as tmux has them, and what a terminal sends.
KEYS = {
    "Enter": "\r", "Tab": "\t", "Escape": "\x1b", "BSpace": "\x7f", "Up": "\x1b[A", "Down": "\x1b[B",
    "Right": "\x1b[C", "Left": "\x1b[D", "End": "\x1b[F", "Home": "\x1b[H", "PageUp": "\x1b[5~",
    "PageDown": "\x1b[6~", **{f"C-{letter}": chr(ord(letter) - 96) for letter in "abcdefghijklmnopqrstuvwxyz"},
}  # fmt: skip


class Terminal(ABC):
    """A program at a terminal of 110 columns and 30 lines."""

    @abstractmethod
    def type(self, text: str) -> None:
        """Type a text, as it is."""

    @abstractmethod
    def press(self, *keys: str) -> None:
        """Press keys by their names, see :data:`KEYS`."""

    @abstractmethod
    def paste(self, text: str) -> None:
        """Paste a text, as terminals do it in brackets."""

    @abstractmethod
    def screen(self) -> str:
        """What can be seen, without blanks at the ends of lines and empty lines at the end."""

    @abstractmethod
    def is_over(self) -> bool:
        """Whether the program has ended."""

    @abstractmethod
    def close(self) -> None:
        """End the program."""

    def enter(self, text: str) -> None:
        """Type a line and press Enter."""
        self.type(text)
        self.press("Enter")

    def run(self, text: str) -> None:
        """Give the shell a line once it waits for one: keys that come before may be lost."""
        self.at_prompt()
        self.enter(text)

    def wait_for(self, wanted: str | Callable[[str], bool], patience_s: float = PATIENCE_S) -> str:
        """The screen, once it shows a text or satisfies a condition."""
        met = wanted if callable(wanted) else lambda screen: wanted in screen
        deadline = time.monotonic() + patience_s
        while True:
            screen = self.screen()
            if met(screen):
                return screen
            if time.monotonic() > deadline:
                raise AssertionError(f"not met: {wanted!r}; the screen is\n{screen}")
            time.sleep(0.02)

    def at_prompt(self) -> str:
        """The screen, once the shell waits for a statement: keys that come before are not the prompt's."""
        return self.wait_for(lambda screen: screen.rstrip().endswith("Flow SQL>"))

    def settled(self) -> str:
        """The screen, once it has not changed for a while."""
        screen, since = self.screen(), time.monotonic()
        while time.monotonic() - since < 0.4:
            time.sleep(0.05)
            if (now := self.screen()) != screen:
                screen, since = now, time.monotonic()
        return screen

    def wait_for_end(self) -> None:
        """Until the program has ended."""
        deadline = time.monotonic() + PATIENCE_S
        while not self.is_over():
            assert time.monotonic() < deadline, f"the program goes on; the screen is\n{self.screen()}"
            time.sleep(0.02)


class Tmux(Terminal):
    """A window of a tmux server of its own."""

    def __init__(self, command: list[str], environment: dict[str, str], folder: Path) -> None:
        self._server = f"flowsql-{uuid.uuid4().hex[:12]}"
        settings = [f"{key}={value}" for key, value in environment.items()]
        words = ["env", "-u", "COLUMNS", "-u", "LINES", *settings, *command]
        self._tmux("-f", "/dev/null", "new-session", "-d", "-x", str(COLUMNS), "-y", str(LINES), "-c", str(folder),
                   *words)  # fmt: skip

    def _tmux(self, *words: str) -> str:
        done = subprocess.run(["tmux", "-L", self._server, *words], capture_output=True, text=True, check=False)
        return done.stdout

    def type(self, text: str) -> None:
        self._tmux("send-keys", "-l", _word(text))

    def press(self, *keys: str) -> None:
        self._tmux("send-keys", *keys)

    def paste(self, text: str) -> None:
        self._tmux("set-buffer", _word(text))
        self._tmux("paste-buffer", "-p")

    def screen(self) -> str:
        return _trimmed(self._tmux("capture-pane", "-p").split("\n"))

    def is_over(self) -> bool:
        return not self._tmux("list-sessions")

    def close(self) -> None:
        self._tmux("kill-server")


def _word(text: str) -> str:
    """A semicolon at the end would end the command of tmux."""
    return re.sub(";$", r"\\;", text)


class Emulator(Terminal):
    """A pseudo terminal of this process, its screen kept by pyte."""

    def __init__(self, command: list[str], environment: dict[str, str], folder: Path) -> None:
        import pyte

        pid, self._file = pty.fork()
        if not pid:
            os.chdir(folder)
            # The size that the environment of the tests tells is not that of this terminal.
            inherited = {key: value for key, value in os.environ.items() if key not in ("COLUMNS", "LINES")}
            os.execvpe(command[0], command, {**inherited, **environment})
        self._pid = pid
        ioctl(self._file, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
        self._screen = pyte.Screen(COLUMNS, LINES)
        self._screen.write_process_input = self._send
        self._stream = pyte.ByteStream(self._screen)
        self._lock = threading.Lock()
        self._ended = False
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                if not select.select([self._file], [], [], 0.2)[0]:
                    continue
                data = os.read(self._file, 65536)
                if not data:
                    break
                with self._lock:
                    self._stream.feed(data)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self._pid, 0)
        self._ended = True

    def _send(self, text: str) -> None:
        os.write(self._file, text.encode())

    def type(self, text: str) -> None:
        self._send(text)

    def press(self, *keys: str) -> None:
        for key in keys:
            self._send(KEYS.get(key, key))
            time.sleep(0.02)

    def paste(self, text: str) -> None:
        self._send(f"\x1b[200~{text}\x1b[201~")

    def screen(self) -> str:
        with self._lock:
            return _trimmed(self._screen.display)

    def is_over(self) -> bool:
        return self._ended

    def close(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._pid, signal.SIGKILL)
        # The number of the file may be another terminal's next: nobody may read it any more.
        self._reader.join()
        os.close(self._file)


#: The terminals that there are here.
TERMINALS: dict[str, type[Terminal]] = {"emulator": Emulator}
if shutil.which("tmux"):
    TERMINALS["tmux"] = Tmux


@contextlib.contextmanager
def shell(folder: Path, *words: str, terminal: str = "emulator", **environment: str) -> Iterator[Terminal]:
    """The shell in a folder, which is its home, too."""
    paths = [str(ROOT), *(str(ROOT / name) for name in ("grammar", "planner", "runtime", "connectors"))]
    settings = {
        "HOME": str(folder), "PYTHONPATH": os.pathsep.join(paths), "TERM": "xterm-256color", "NO_COLOR": "1",
        "PAGER": "", "LANG": "C.UTF-8", **environment,
    }  # fmt: skip
    made = TERMINALS[terminal]([sys.executable, "-m", "flowsql.cli", *words], settings, folder)
    try:
        yield made
    finally:
        made.close()


def _trimmed(lines: list[str]) -> str:
    return "\n".join(line.rstrip() for line in lines).rstrip("\n")
