"""Code blocks of documents, and how each kind is run.

``console``
    Commands in one folder: ``$ flowsql ...``, ``$ pytest ...``, and ``$ cat FILE``; where output is shown it is what is
    printed, but for seconds.
``sql``
    A script. One whose first line names its file (``-- clicks.sql``) is run by commands below it, any other at once.
``python``
    A program; those of one document continue one another. One whose first line names its file (``# test_jobs.py``) is
    run by commands below it.
``text`` behind one of these two
    What it prints last.
``yaml``
    A ``config.yaml``.
``screen`` behind ``<!-- screen ... -->``
    What a terminal shows: ``tests/cli/shell/test_recording.py`` types the lines of the comment.
``bnf``
    Forms of statements, which a test compares with the grammar.
any, behind ``<!-- not run: why -->``
    What no test can run: commands for the reader's own machine, forms of commands, drawings. ``sh`` and ``text`` stand
    nowhere else.
"""

from __future__ import annotations

import contextlib
import io
import linecache
import os
import re
import shlex
import subprocess
import sys
import traceback
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from flowsql.cli.main import main
from flowsql.configuration import file_configuration

_FENCE = re.compile(
    r"(?ms)(?:^<!-- (?:not run: (?P<reason>[^\n]+) |screen\n(?P<steps>(?:(?!-->).)*?))-->\n+)?"
    r"^ *```(?P<kind>[^\n`]*)\n(?P<text>.*?)^ *```$"
)
#: ``(0.04 seconds)``, ``(40 ms)``, ``in 0.3 s``, ``0.3s``, and the column of seconds in a table of nodes.
_SECONDS = re.compile(
    r"\(\d+\.\d\d seconds\)|\(\d+ ms\)|(?<=in )\d+\.\d+(?= ?s\b)|(?<= )\d+\.\d(?=  +[\d.,]+ (?:bytes|kB|MB))"
)
_FILE_NAME = re.compile(r"(?:--|#) ([\w/.]+\.(?:sql|py))\n")
#: First line of what Python prints of an error, where a document shows the lines that led to it.
_TRACE = "Traceback (most recent call last):"


@dataclass(frozen=True)
class Block:
    """``text`` between fences, from the character ``start`` on; the first fence stands in ``line`` of its document.

    ``reason``: why no test runs it. ``steps``: what is typed until a screen looks so.
    """

    kind: str
    text: str
    line: int
    reason: str | None = None
    steps: tuple[str, ...] = ()
    start: int = 0


def blocks_of(document: str) -> list[Block]:
    """The code blocks of a document."""
    return [
        Block(
            found["kind"],
            found["text"],
            document.count("\n", 0, found.start("kind")) + 1,
            found["reason"],
            tuple((found["steps"] or "").splitlines()),
            found.start("text"),
        )
        for found in _FENCE.finditer(document)
    ]


def shown_with(blocks: list[Block]) -> list[tuple[Block, str | None]]:
    """The blocks without what others print; each of the others with it."""
    found: list[tuple[Block, str | None]] = []
    for before, block in zip([None, *blocks], blocks, strict=False):
        if block.kind == "text" and block.reason is None and before is not None and before.kind in ("python", "sql"):
            found[-1] = (before, block.text)
        else:
            found.append((block, None))
    return found


@dataclass
class Reader:
    """Does what a document says, from its first line to its last, in a folder which must be the working directory."""

    folder: Path
    _names: dict[str, Any] = field(default_factory=lambda: {"__name__": "__main__"})
    _waiting: set[str] = field(default_factory=set)

    def read(self, document: str) -> None:
        """Run every block.

        Raises:
            AssertionError: a block does not do what it says, with its line.
        """
        for block, shown in shown_with(blocks_of(document)):
            try:
                self._run(block, shown)
            except Exception as error:
                raise AssertionError(f"the {block.kind} block of line {block.line}: {error}") from error
        assert not self._waiting, f"no command runs {', '.join(self._waiting)}"

    def _run(self, block: Block, shown: str | None) -> None:
        if block.reason is not None:
            return
        name = _FILE_NAME.match(block.text) if block.kind in ("sql", "python") else None
        if name is not None:
            assert shown is None, f"what {name[1]} prints stands behind the command that runs it"
            (self.folder / name[1]).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / name[1]).write_text(block.text)
            self._waiting.add(name[1])
            return
        match block.kind:
            case "console":
                for command, output in commands_of(block.text):
                    self._command(command, output)
            case "sql":
                (self.folder / "script.sql").write_text(block.text)
                self._command("flowsql -f script.sql", "", shown or "")
            case "python":
                self._program(block.text, shown)
            case "yaml":
                (self.folder / "config.yaml").write_text(block.text)
                assert list(file_configuration().items())
            case "screen":
                assert block.steps, "what is typed stands in front of it, <!-- screen ... -->"
                for step in block.steps:
                    words = step.split()
                    if words[:2] == ["start", "flowsql"]:
                        self._waiting -= self._run_by(words[2:], tests=words[2] == "test")
            case "bnf":
                pass
            case "sh" | "text":
                raise AssertionError("no test runs it: write why in front of it, <!-- not run: ... -->")
            case _:
                raise AssertionError("its kind is none that readers or tests know")

    def _command(self, command: str, output: str, end: str = "") -> None:
        program, *words = shlex.split(command)
        if program != "cat":
            self._waiting -= self._run_by(words, tests=program == "pytest" or words[:1] == ["test"])
        match program:
            case "flowsql":
                with _printed() as printed:
                    code = main(words)
                text = printed.getvalue()
            case "cat":
                code, text = 0, "".join((self.folder / name).read_text() for name in words)
            case "pytest":
                code, text = self._pytest(words)
            case _:
                raise AssertionError(f"'{command}' is no command of flowsql: a block of sh shows others")
        if output:
            assert _SECONDS.sub("", text) == _SECONDS.sub("", output), f"'{command}' prints\n{text}"
        else:
            assert code == 0, text
            assert _SECONDS.sub("", text).endswith(_SECONDS.sub("", end)), text

    def _run_by(self, words: list[str], *, tests: bool) -> set[str]:
        """The files of blocks that a command runs: those it names, tests that it finds, what these name."""
        named = {name for name in self._waiting if name in words or (tests and name.endswith((".test.sql", ".py")))}
        texts = "".join((self.folder / name).read_text() for name in named)
        return named | {name for name in self._waiting if f"'{name}'" in texts or f'"{name}"' in texts}

    def _pytest(self, words: list[str]) -> tuple[int, str]:
        # The plugin of this checkout, whatever is installed beside it.
        plugin = ["-p", "flowsql.testing.pytest_plugin", "-p", "no:cacheprovider"]
        environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
        command = [sys.executable, "-m", "pytest", "--rootdir", ".", *plugin, *words]
        done = subprocess.run(command, cwd=self.folder, env=environment, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout

    def _program(self, text: str, shown: str | None) -> None:
        path = Path("program.py")
        path.write_text(text)
        self._waiting -= {name for name in self._waiting if f'"{name}"' in text}
        linecache.checkcache(str(path))
        with _printed() as printed:
            try:
                exec(compile(text, str(path), "exec"), self._names)
            except Exception as error:
                if shown is None:
                    raise
                printed.write(_trace(error) if _TRACE in shown else "".join(traceback.format_exception_only(error)))
        if shown is not None:
            assert _SECONDS.sub("", printed.getvalue()).endswith(_SECONDS.sub("", shown)), printed.getvalue()


def _trace(error: Exception) -> str:
    """What Python prints of an error that nobody catches, without the frame that runs the program."""
    assert error.__traceback__ is not None
    lines = traceback.format_exception(error.with_traceback(error.__traceback__.tb_next))
    # Newer Pythons mark places in a line in another way.
    return re.sub(r"(?m)^    [ ~^]+\n", "", "".join(lines))


def commands_of(text: str) -> Iterator[tuple[str, str]]:
    """The commands of a console, each with the output below it."""
    for part in re.split(r"(?m)^\$ ", text)[1:]:
        command, _, output = part.partition("\n")
        yield re.sub(r"\s+# .*", "", command), output


@contextlib.contextmanager
def _printed() -> Iterator[io.StringIO]:
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        yield out
