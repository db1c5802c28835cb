"""All SQL that stands in this repository and, where it is beside the checkout, in the conformance suite."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from flowsql_core.errors import ParseError
from flowsql_grammar import parse_statement, split_statements

GRAMMAR = Path(__file__).resolve().parents[1]
ROOT = GRAMMAR.parents[1]
sys.path.insert(0, str(GRAMMAR))

from corpus_files import script_text, shared_scripts  # noqa: E402

_BLOCK = re.compile(r"(?ms)^ *```sql\n(.*?)^ *```$")


def own_files() -> list[Path]:
    """The scripts of this repository and the documents that show some."""
    scripts = [file for folder in ("tests", "examples", "benchmarks") for file in (ROOT / folder).rglob("*.sql")]
    scripts = [file for file in scripts if not file.name.endswith(".test.sql")]
    return sorted([*scripts, ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])


def shared_files() -> list[Path]:
    """The scripts of the conformance suite; none where the checkout stands alone."""
    return shared_scripts()


def texts_of(file: Path) -> Iterator[str]:
    """The scripts of a file, without statements that are not Flink SQL (some are there to be refused)."""
    found = _BLOCK.findall(file.read_text("utf-8")) if file.suffix == ".md" else [script_text(file)]
    for text in found:
        yield _without_refused(text)


def statements() -> list[str]:
    """Statements of this repository's scripts, each once."""
    texts = [text for file in own_files() for text in texts_of(file)]
    return sorted({text[span.start : span.end] for text in texts for span in split_statements(text)})


def _without_refused(text: str) -> str:
    for span in reversed(split_statements(text)):
        try:
            parse_statement(text, span)
        except ParseError:
            text = text[: span.start] + text[span.end :]
    return text
