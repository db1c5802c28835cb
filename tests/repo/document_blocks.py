"""Code blocks of documents, and how each kind is run.

``console``
    ``$ flowsql ...`` commands in one folder; where output is shown it is what is printed, but for seconds.
``sql``
    A script. One whose first line names its file (``-- clicks.sql``) is run by commands below it, any other at once.
``python``
    A program; those of one document continue one another.
``text`` behind one of these two
    What it prints last.
``yaml``
    A ``config.yaml``.
``sh``, ``text``
    What no test runs: commands for the reader's own machine, forms of commands, drawings.
"""

from __future__ import annotations

import contextlib
import io
import linecache
import re
import shlex
import traceback
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from flowsql.cli.main import main
from flowsql.configuration import file_configuration

_FENCE = re.compile(r"(?ms)^ *```(?P<kind>[^\n`]*)\n(?P<text>.*?)^ *```$")
_SECONDS = re.compile(r"\(\d+\.\d\d seconds\)")
#: First line of what Python prints of an error, where a document shows the lines that led to it.
_TRACE = "Traceback (most recent call last):"
_SCRIPT_NAME = re.compile(r"-- (\w+\.sql)\n")


@dataclass(frozen=True)
class Block:
    """``text`` between fences whose first one stands in ``line`` of its document."""

    kind: str
    text: str
    line: int


def blocks_of(document: str) -> list[Block]:
    """The code blocks of a document."""
    return [
        Block(found["kind"], found["text"], document.count("\n", 0, found.start()) + 1)
        for found in _FENCE.finditer(document)
    ]


def shown_with(blocks: list[Block]) -> list[tuple[Block, str | None]]:
    """The blocks without what others print; each of the others with it."""
    found: list[tuple[Block, str | None]] = []
    for before, block in zip([None, *blocks], blocks, strict=False):
        if block.kind == "text" and before is not None and before.kind in ("python", "sql"):
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
    #: Blocks that no test runs.
    left_out: int = 0

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
        match block.kind:
            case "console":
                for command, output in commands_of(block.text):
                    self._command(command, output)
            case "sql":
                name = _SCRIPT_NAME.match(block.text)
                (self.folder / (name[1] if name else "script.sql")).write_text(block.text)
                if name is None:
                    self._command("flowsql -f script.sql", "", shown or "")
                else:
                    assert shown is None, f"what {name[1]} prints stands behind the command that runs it"
                    self._waiting.add(name[1])
            case "python":
                self._program(block.text, shown)
            case "yaml":
                (self.folder / "config.yaml").write_text(block.text)
                assert list(file_configuration().items())
            case "sh" | "text":
                self.left_out += 1
            case _:
                raise AssertionError("its kind is none that readers or tests know")

    def _command(self, command: str, output: str, end: str = "") -> None:
        program, *arguments = shlex.split(command)
        assert program == "flowsql", f"'{command}' is no command of flowsql: a block of sh shows others"
        self._waiting -= set(arguments)
        with _printed() as printed:
            code = main(arguments)
        text = printed.getvalue()
        if output:
            assert _SECONDS.sub("", text) == _SECONDS.sub("", output)
        else:
            assert code == 0, text
            assert _SECONDS.sub("", text).endswith(_SECONDS.sub("", end)), text

    def _program(self, text: str, shown: str | None) -> None:
        path = Path("program.py")
        path.write_text(text)
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
