"""Tables as HTML, for notebooks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Final

from flowsql.table.values.tableau import NULL_CELL
from flowsql_core.types.logical import ApproximateType, DecimalType, IntegerType, Schema

#: Characters of a cell that are shown; the whole text is not sent to the browser.
MAX_CELL: Final = 500

_NUMBERS: Final = IntegerType | ApproximateType | DecimalType
_LEFT: Final = "text-align: left; vertical-align: top"
_RIGHT: Final = "text-align: right; vertical-align: top"
_QUIET: Final = "opacity: 0.6; font-weight: normal"


def table_html(schema: Schema, rows: Iterable[Sequence[str]], below: str = "") -> str:
    """A table: names and types of columns, rows of texts, a line below them."""
    sides = [_RIGHT if isinstance(column.type, _NUMBERS) else _LEFT for column in schema]
    heads = "".join(
        f'<th style="{side}">{escape(column.name)}<br><span style="{_QUIET}">{escape(str(column.type))}</span></th>'
        for column, side in zip(schema, sides, strict=True)
    )
    lines = "".join(
        f"<tr>{''.join(_cell(text, side) for text, side in zip(row, sides, strict=True))}</tr>" for row in rows
    )
    return f"<table><thead><tr>{heads}</tr></thead><tbody>{lines}</tbody></table>{line_html(below)}"


def line_html(text: str) -> str:
    """A line of small print; nothing of an empty text."""
    return f'<div style="{_QUIET}">{escape(text)}</div>' if text else ""


def text_html(text: str) -> str:
    """A text of several lines, in columns as it is."""
    return f"<pre>{escape(text)}</pre>"


def _cell(text: str, side: str) -> str:
    if text == NULL_CELL:
        return f'<td style="{side}; {_QUIET}">{escape(NULL_CELL)}</td>'
    shown = text if len(text) <= MAX_CELL else text[: MAX_CELL - 3] + "..."
    return f'<td style="{side}">{escape(shown)}</td>'
