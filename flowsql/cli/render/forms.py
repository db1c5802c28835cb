"""The forms of answers by name: ``--format``, ``\\format``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TextIO

from flowsql.cli.render.base import Renderer
from flowsql.cli.render.lines import CsvRenderer, JsonLinesRenderer
from flowsql.cli.render.tableau import MarkdownRenderer, TableauRenderer, VerticalRenderer

#: Where to, and whether the seconds of a query are told. The names stand in ``flowsql.cli.arguments.parser``, too.
FORMS: Final[dict[str, Callable[[TextIO, bool], Renderer]]] = {
    "tableau": TableauRenderer,
    "jsonl": lambda out, _: JsonLinesRenderer(out),
    "csv": lambda out, _: CsvRenderer(out),
    "markdown": MarkdownRenderer,
    "vertical": VerticalRenderer,
}
