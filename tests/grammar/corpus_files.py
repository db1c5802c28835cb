"""The statements that the tests of the grammar run over: this folder's own, and shared ones where they are present."""

from __future__ import annotations

import re
from pathlib import Path

from flowsql_core.span import Source
from flowsql_grammar import split_statements

HERE = Path(__file__).parent
SHARED = HERE.parents[2] / "shared"

# Scripts of the conformance suite with a statement that is not Flink SQL.
NOT_SQL = {"005_bad_syntax.sql", "022_reserved_word_alias.sql", "015_reserved_alias.sql"}


def own_statements() -> list[str]:
    """Every accepted statement of ``corpus/*.sql``."""
    return [text for file in sorted((HERE / "corpus").glob("*.sql")) for text in pieces(file.read_text("utf-8"))]


def refused_statements() -> list[str]:
    """Every statement that Flink refuses, one a line."""
    return [line for line in (HERE / "corpus" / "refused.txt").read_text("utf-8").split("\n") if line.strip()]


def shared_scripts() -> list[Path]:
    """Scripts of the conformance suite and Nexmark; empty where the checkout stands alone."""
    if not SHARED.is_dir():
        return []
    return sorted([*(SHARED / "conformance" / "cases").rglob("*.sql"), *(SHARED / "nexmark").rglob("*.sql")])


def script_text(file: Path) -> str:
    """A script with its placeholders filled in."""
    text = file.read_text("utf-8").replace("${FORMAT}", "'format' = 'csv'").replace("${SINK}", "'connector' = 'print'")
    return re.sub(r"\$\{\w+\}", "x", text)


def pieces(text: str) -> list[str]:
    """The statements of a script."""
    return [text[span.start : span.end] for span in split_statements(Source(text))]
