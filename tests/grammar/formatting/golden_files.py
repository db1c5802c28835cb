"""Files of inputs and what becomes of them.

``#### title`` begins a case, ``#### ->`` what becomes of its input; ``(width 40)`` in a title is the width. What stands
before the first case says what the file is about.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent / "golden"
_CASE = re.compile(
    r"(?ms)^#### (?!->)(?P<title>[^\n]*)\n(?P<input>.*?)(?:^#### ->\n(?P<output>.*?))?(?=^#### (?!->)|\Z)"
)
_WIDTH = re.compile(r"\(width (\d+)\)")


@dataclass(frozen=True)
class Case:
    """One input; ``output`` is empty where it has not been written yet."""

    file: Path
    title: str
    input: str
    output: str

    @property
    def width(self) -> int:
        found = _WIDTH.search(self.title)
        return int(found[1]) if found else 100


def cases() -> list[Case]:
    """The cases of all files."""
    return [
        Case(file, found["title"], found["input"], found["output"] or "")
        for file in sorted(FOLDER.glob("*.txt"))
        for found in _CASE.finditer(file.read_text("utf-8"))
    ]


def write(case: Case, output: str) -> None:
    """Put an output into the file of its case."""
    head = f"#### {case.title}\n{case.input}"
    text = case.file.read_text("utf-8")
    old = f"{head}#### ->\n{case.output}" if case.output else head
    assert text.count(old) == 1, f"{case.file.name}: '{case.title}' is there twice"
    case.file.write_text(text.replace(old, f"{head}#### ->\n{output}"), "utf-8")
