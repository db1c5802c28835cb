"""The exact grammar of a csv row, as Flink's reader (Jackson) sees it: for the rows that the bulk reader cannot take.

A field is quoted only if the quote is its first character; blanks may follow the closing quote, nothing else may.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from flowsql_core.record import record


@record
class CsvDialect:
    """Characters with a meaning; None switches the meaning off."""

    delimiter: str = ","
    quote: str | None = '"'
    escape: str | None = None
    comments: bool = False


@record
class CsvRow:
    """One row: its fields, or why it is none. ``start`` is its character position in the text, ``text`` its source."""

    fields: tuple[str, ...]
    start: int
    text: str
    error: str | None = None


#: What comes before a row where comments are allowed: blanks and blank lines, too, as in Jackson.
_NO_ROW = re.compile(r"(?:[ \r\n]|#[^\r\n]*)*")


class CsvTokenizer:
    """Cuts text into rows of one dialect."""

    def __init__(self, dialect: CsvDialect) -> None:
        self.dialect = dialect
        delimiter = re.escape(dialect.delimiter)
        escape = "" if dialect.escape is None else re.escape(dialect.escape)
        plain = f"[^{delimiter}\r\n{escape}]"
        self._unquoted = re.compile(f"(?:{plain}|{escape}.)*" if escape else f"{plain}*", re.DOTALL)
        self._quoted: re.Pattern[str] | None = None
        if dialect.quote is not None:
            quote = re.escape(dialect.quote)
            inner = f"[^{quote}{escape}]|{quote}{quote}" + (f"|{escape}." if escape else "")
            self._quoted = re.compile(f"{quote}((?:{inner})*){quote}[ \t]*", re.DOTALL)
        self._strict = re.compile(f"(?:{self._strict_field()})(?:{delimiter}(?:{self._strict_field()}))*")
        self._escaped = re.compile(f"{escape}(.)", re.DOTALL) if escape else None
        self._line_end = re.compile(r"\r\n|\n|\r")

    def _strict_field(self) -> str:
        if self._quoted is None or self.dialect.quote is None:
            return self._unquoted.pattern
        return f"{self._quoted.pattern}|[^{re.escape(self.dialect.delimiter)}\r\n{re.escape(self.dialect.quote)}]*"

    def is_strict(self, row: CsvRow) -> bool:
        """Whether the row is well-formed without any quote inside an unquoted field: what careful writers write."""
        return row.error is None and self._strict.fullmatch(row.text) is not None

    def rows(self, text: str) -> Iterator[CsvRow]:
        """All rows of a text that begins at a row's start; a final line end makes no further row."""
        at = 0
        while at < len(text):
            row, at = self.next_row(text, at)
            if row is not None:
                yield row

    def next_row(self, text: str, at: int) -> tuple[CsvRow | None, int]:
        """The row at a row's start, and where the next one starts; None at the end.

        Where comments are allowed, they and blanks before the row are left out.
        """
        if self.dialect.comments:
            match = _NO_ROW.match(text, at)
            assert match is not None, "the pattern matches nothing, too"
            at = match.end()
        return self._row(text, at) if at < len(text) else (None, at)

    def _row(self, text: str, start: int) -> tuple[CsvRow, int]:
        fields: list[str] = []
        at = start
        while True:
            field, at, error = self._field(text, at)
            if error is None and at < len(text) and text[at] not in self._ends():
                error = _unexpected(text[at], self.dialect.delimiter)
            if error is not None:
                # The reader goes on behind the line that broke.
                end = self._line_end.search(text, at)
                stop = len(text) if end is None else end.start()
                after = len(text) if end is None else end.end()
                return CsvRow((), start, text[start:stop], error), after
            fields.append(field)
            if at >= len(text):
                return CsvRow(tuple(fields), start, text[start:]), at
            if text[at] == self.dialect.delimiter:
                at += 1
                continue
            row = CsvRow(tuple(fields), start, text[start:at])
            return row, at + (2 if text.startswith("\r\n", at) else 1)

    def _ends(self) -> str:
        return self.dialect.delimiter + "\r\n"

    def _field(self, text: str, at: int) -> tuple[str, int, str | None]:
        quote = self.dialect.quote
        if self._quoted is None or quote is None or not text.startswith(quote, at):
            match = self._unquoted.match(text, at)
            assert match is not None, "the pattern matches nothing, too"
            return self._unescape(match[0]), match.end(), None
        match = self._quoted.match(text, at)
        if match is None:
            return "", len(text), "Missing closing quote for value"
        return self._unescape(match[1].replace(quote * 2, quote)), match.end(), None

    def _unescape(self, text: str) -> str:
        if self._escaped is None:
            return text
        return self._escaped.sub(lambda match: _ESCAPED.get(match[1], match[1]), text)


_ESCAPED = {"0": "\0", "n": "\n", "r": "\r", "t": "\t"}


def header_fault(row: CsvRow, names: list[str]) -> str | None:
    """Why a row does not hold the names of the columns, in order; None if it does."""
    for number, (expected, actual) in enumerate(zip(names, row.fields, strict=False), start=1):
        if expected != actual:
            return f'Mismatched header column #{number}: expected "{expected}", actual "{actual}"'
    if len(row.fields) < len(names):
        return f'Missing header column #{len(row.fields) + 1}, expecting "{names[len(row.fields)]}"'
    if len(row.fields) > len(names):
        return f'Extra header column "{row.fields[len(names)]}"'
    return None


def _unexpected(character: str, delimiter: str) -> str:
    return (
        f"Unexpected character ('{character}' (code {ord(character)})): Expected column separator character "
        f"('{delimiter}' (code {ord(delimiter)})) or end-of-line"
    )
