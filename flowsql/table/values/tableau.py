"""Result tables as text: Flink's tableau. Widths come from types (queries) or from content (SHOW, DESCRIBE).

Whole columns are padded and joined at once; only cells that are not ASCII are measured one by one.
Source: printed answers of Flink 2.3.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa

from flowsql_compute.eval.text.render import Notation, render_column
from flowsql_core.arrow import compute as pc
from flowsql_core.batch import ChangelogBatch
from flowsql_core.config import option
from flowsql_core.row import SHORT_STRINGS
from flowsql_core.types.logical import (
    BigIntType,
    BooleanType,
    Column,
    DateType,
    DecimalType,
    IntType,
    LogicalType,
    Schema,
    SmallIntType,
    TimestampLtzType,
    TimestampType,
    TimeType,
    TinyIntType,
)

MAX_COLUMN_WIDTH = option(
    "table.display.max-column-width", int, 30, "Widest printed column of unbounded types; longer text is cut."
)

NULL_CELL: Final = "<NULL>"
_CUT: Final = "..."


def type_width(type_: LogicalType, unbounded: int) -> int:
    """Printed width of a column of this type; ``unbounded`` for types whose text has no longest form."""
    match type_:
        case TinyIntType():
            width = 4
        case SmallIntType():
            width = 6
        case IntType():
            width = 11
        case BigIntType():
            width = 20
        case DecimalType(precision=precision):
            width = precision + 2
        case BooleanType():
            width = 5
        case DateType():
            width = 10
        case TimeType(precision=precision):
            width = 8 if precision == 0 else 9 + precision
        case TimestampType(precision=precision) | TimestampLtzType(precision=precision):
            width = 19 if precision == 0 else 20 + precision
        case _:
            width = unbounded
    return max(width, len(NULL_CELL))


class Tableau:
    """One printed table: its borders, header and rows.

    Args:
        schema: the columns.
        widths: printed width of each.
        null_text: how a NULL cell looks.
        with_op: whether the change kind stands in front.
        zone: session time zone that TIMESTAMP_LTZ cells are shown in.
    """

    def __init__(
        self, schema: Schema, widths: Sequence[int], null_text: str, with_op: bool = False, zone: str = "UTC"
    ) -> None:
        self._schema = schema
        self._widths = tuple(widths)
        self._null_text = null_text
        self._with_op = with_op
        self._zone = zone

    @staticmethod
    def by_type(schema: Schema, unbounded: int, with_op: bool, zone: str) -> Tableau:
        """The table of a query: widths are known before the first row."""
        widths = [max(text_width(c.name), type_width(c.type, unbounded)) for c in schema]
        return Tableau(schema, widths, NULL_CELL, with_op, zone)

    @staticmethod
    def by_content(schema: Schema, batch: ChangelogBatch, zone: str) -> Tableau:
        """The table of an answer that is complete: columns as wide as their widest cell, NULL blank."""
        widths = []
        for column, data in zip(schema, batch.columns, strict=True):
            cells = cells_of(data, column, "", zone)
            widths.append(max([text_width(column.name), *map(text_width, cells.to_pylist())]))
        return Tableau(schema, widths, "", False, zone)

    @staticmethod
    def by_texts(schema: Schema, rows: Sequence[Sequence[str]], widest: int) -> Tableau:
        """The table of rows that are texts already: columns as wide as their widest cell, ``widest`` at most."""
        widths = []
        for place, column in enumerate(schema):
            cells = max((text_width(row[place]) for row in rows), default=0)
            widths.append(max(text_width(column.name), min(cells, widest)))
        return Tableau(schema, widths, NULL_CELL)

    def lines(self, rows: Sequence[Sequence[str]]) -> str:
        """A line for each row of texts."""
        lines = (" | ".join(map(fitted, row, self._widths)) for row in rows)
        return "".join(f"| {line} |\n" for line in lines)

    def border(self) -> str:
        """``+----+-----+`` with its newline."""
        widths = (2, *self._widths) if self._with_op else self._widths
        return "+" + "".join("-" * (width + 2) + "+" for width in widths) + "\n"

    def header(self) -> str:
        """Border, names, border."""
        names = [fitted(column.name, width) for column, width in zip(self._schema, self._widths, strict=True)]
        if self._with_op:
            names.insert(0, "op")
        return f"{self.border()}| {' | '.join(names)} |\n{self.border()}"

    def rows(self, batch: ChangelogBatch) -> str:
        """A line for each row."""
        if not batch.num_rows:
            return ""
        texts: list[Any] = []
        if self._with_op:
            kinds = pa.scalar(SHORT_STRINGS[0])
            texts.append(kinds if batch.kinds is None else pc.take(pa.array(SHORT_STRINGS), pa.array(batch.kinds)))
        for column, data, width in zip(self._schema, batch.columns, self._widths, strict=True):
            texts.append(_padded(cells_of(data, column, self._null_text, self._zone), width))
        if not texts:
            return "|  |\n" * batch.num_rows
        joined = pc.binary_join_element_wise(*texts, " | ")
        if isinstance(joined, pa.Scalar):
            joined = pa.array([joined.as_py()] * batch.num_rows)
        return "".join(f"| {line} |\n" for line in joined.to_pylist())


def row_count(rows: int) -> str:
    """``1 row``, ``2 rows``."""
    return f"{rows} row" if rows == 1 else f"{rows} rows"


def cells_of(data: Any, column: Column, null_text: str, zone: str) -> pa.StringArray:
    """The texts of a column as tableaus show them, neither padded nor cut."""
    if isinstance(column.type, TimestampLtzType) and zone != "UTC":
        # Cells show the wall clock of the session; the renderer itself writes UTC.
        data = pc.local_timestamp(pc.cast(data, pa.timestamp(data.type.unit, zone)))
    texts = render_column(data, column.type, Notation.TABLEAU)
    if getattr(data, "null_count", 0):
        texts = pc.if_else(pc.is_valid(data), texts, null_text)
    return texts


def _padded(texts: pa.StringArray, width: int) -> pa.StringArray:
    if pc.all(pc.string_is_ascii(texts)).as_py():
        lengths = pc.utf8_length(texts)
        if pc.max(lengths).as_py() > width:
            cut = pc.binary_join_element_wise(pc.utf8_slice_codeunits(texts, 0, width - len(_CUT)), _CUT, "")
            texts = pc.if_else(pc.greater(lengths, width), cut, texts)
        return pc.utf8_lpad(texts, width)
    return pa.array([fitted(text, width) for text in texts.to_pylist()], pa.string())


def fitted(text: str, width: int) -> str:
    """The text right-aligned in ``width`` terminal cells, cut with dots if longer."""
    have = text_width(text)
    if have > width:
        kept, have = [], len(_CUT)
        for character in text:
            have += _char_width(character)
            if have > width:
                have -= _char_width(character)
                break
            kept.append(character)
        text = "".join(kept) + _CUT
    return " " * (width - have) + text


def text_width(text: str) -> int:
    """Terminal cells of a text; wide characters take two.

    >>> text_width("abc"), text_width("日本")
    (3, 4)
    """
    return len(text) if text.isascii() else sum(map(_char_width, text))


@functools.cache
def _char_width(character: str) -> int:
    from wcwidth import wcwidth

    width: int = wcwidth(character)
    return 1 if width < 0 else width
