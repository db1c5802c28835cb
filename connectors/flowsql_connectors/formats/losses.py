"""What decoders leave out of the files that they read: counted, and the place of the first one kept."""

from __future__ import annotations

from functools import partial
from typing import Final

from flowsql_connectors.formats.format import FileView
from flowsql_connectors.formats.rows_in_bytes import rows_before
from flowsql_connectors.spi.counters import FIELDS_NULLED, ROWS_SKIPPED, Lose

#: Rows are counted to tell a place no further into a file than this: it is read again for that.
_COUNTED_BYTES: Final = 256 << 20


class Losses:
    """What one decoder leaves out.

    Args:
        lose: takes the numbers.
        unit: what a text of a row is called: ``row`` or ``line``.
        quote: see :func:`rows_before`.
        head: rows in front of those of the table in each file; they are counted where rows are numbered.
    """

    def __init__(self, lose: Lose, unit: str, quote: bytes | None = None, head: int = 0) -> None:
        self._lose = lose
        self._unit = unit
        self._quote = quote
        self._head = head
        self._file = FileView("", 0)
        self._position = 0

    def enter(self, file: FileView, position: int) -> None:
        """What follows is decoded from the bytes of a file from ``position`` on."""
        self._file, self._position = file, position

    def rows(self, count: int, first: int) -> None:
        """Rows were left out; ``first`` counts from 0 within the bytes."""
        self._lose(ROWS_SKIPPED, count, partial(self._place, self._file, self._position, first, None))

    def fields(self, count: int, name: str | None, first: int | None) -> None:
        """Fields became NULL; ``name``, ``first``: column and row of the first one, as far as they are known."""
        self._lose(FIELDS_NULLED, count, partial(self._place, self._file, self._position, first, name))

    def _place(self, file: FileView, position: int, row: int | None, field: str | None) -> str:
        parts = [file.path.rpartition("/")[2]]
        if row is not None:
            if position > _COUNTED_BYTES:
                parts.append(f"behind byte {position:,}")
            else:
                before = rows_before(file, position, self._quote)
                parts.append(f"{self._unit} {before + row + 1 + (0 if before else self._head)}")
        if field is not None:
            parts.append(f"field '{field}'")
        return ", ".join(parts)
