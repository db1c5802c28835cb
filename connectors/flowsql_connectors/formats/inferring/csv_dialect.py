"""Which characters separate and quote the fields of a csv file, from its first rows."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import islice
from typing import Final

from flowsql_connectors.formats.csv_tokens import CsvDialect, CsvRow, CsvTokenizer
from flowsql_core.record import record

#: Of equally good ones the first: a comma stands in texts and numbers more often than the others.
DELIMITERS: Final = ("\t", "|", ";", ",")
#: Rows and characters that are cut in all ways.
_ROWS: Final = 200
_CHARACTERS: Final = 64 * 1024


@record
class FoundDialect:
    """``width``: fields of most rows."""

    dialect: CsvDialect
    width: int


def find_dialect(
    text: str, delimiter: str | None, quote: str | None, escape: str | None, *, quoted: bool = True
) -> FoundDialect:
    """The dialect that makes rows of one width of a text.

    Args:
        text: the beginning of a file; its last row may be cut off.
        delimiter, quote, escape: characters that are known; None: to be found.
        quoted: False where no character quotes.
    """
    head = text[:_CHARACTERS] if "\n" in text[:_CHARACTERS] else text
    quotes: tuple[str | None, ...] = (None,) if not quoted else (quote,) if quote else ('"', "'")
    escapes = (escape,) if escape else (None, "\\") if '\\"' in head or "\\'" in head else (None,)
    best: tuple[float, FoundDialect] | None = None
    for mark in quotes:
        if best is not None and not _opens_fields(head, best[1].dialect.delimiter):
            continue
        for escaping in escapes:
            for between in (delimiter,) if delimiter else DELIMITERS:
                score, found = _judged(head, CsvDialect(between, mark, escaping))
                # Apostrophes that leave well-formed rows are meant as quotes.
                if best is None or score > best[0] or (score == best[0] and best[1].dialect.quote != mark):
                    best = score, found
    assert best is not None
    found = best[1]
    # One field a row: nothing tells what would be between several.
    return replace(found, dialect=replace(found.dialect, delimiter=delimiter or ",")) if found.width == 1 else found


def _opens_fields(text: str, delimiter: str) -> bool:
    """Whether apostrophes stand around fields and not only in them."""
    return any(
        f"{left}'" in text and f"'{right}" in text for left, right in (("\n", delimiter), (delimiter, delimiter))
    )


def _judged(text: str, dialect: CsvDialect) -> tuple[float, FoundDialect]:
    """How well the rows of a text go together: well-formed, of one width, and more than one field wide."""
    tokenizer = CsvTokenizer(dialect)
    rows: list[CsvRow] = [row for row in islice(tokenizer.rows(text), _ROWS + 1) if row.text.strip()]
    if len(rows) > 1:
        # The last one may be cut off.
        rows.pop()
    widths = Counter(len(row.fields) for row in rows if tokenizer.is_strict(row))
    if not widths:
        return 0.0, FoundDialect(dialect, 1)
    width, times = widths.most_common(1)[0]
    share = times / len(rows)
    return (share + 1 if width > 1 else share / 2), FoundDialect(dialect, width)
