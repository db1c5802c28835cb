"""Source text and positions in it: where a token stood, and the frame that shows it with a caret."""

from __future__ import annotations

import unicodedata

from flowsql_core.record import record
from flowsql_core.secrets.shown import HIDDEN, secret_places


@record
class Span:
    """A half-open range of characters ``[start, end)`` in a source text.

    Offsets count characters (not bytes) from 0. Lines and columns are derived on demand by
    :class:`Source`, so that a span is two integers and costs nothing to carry.
    """

    start: int
    end: int

    def to(self, other: Span) -> Span:
        """The smallest span that covers both."""
        return Span(min(self.start, other.start), max(self.end, other.end))


@record
class Source:
    """A text that statements come from, with the name it is shown under (a file name, or ``<sql>``)."""

    text: str
    name: str = "<sql>"
    # Offset of this text in the file it was cut from, so that positions are those of the file.
    first_line: int = 1

    def position(self, offset: int) -> tuple[int, int]:
        """Line and column (both from 1) of a character offset."""
        offset = min(offset, len(self.text))
        line_start = self.text.rfind("\n", 0, offset) + 1
        return self.first_line + self.text.count("\n", 0, offset), offset - line_start + 1

    def frame(self, span: Span, note: str = "") -> str:
        """The line of the span with carets under it and an optional note, in the look of ``rustc``."""
        line, column = self.position(span.start)
        line_start = self.text.rfind("\n", 0, min(span.start, len(self.text))) + 1
        line_end = self.text.find("\n", line_start)
        line_end = len(self.text) if line_end < 0 else line_end
        shown_end = min(max(span.end, span.start + 1), max(line_end, span.start + 1))
        before = self._shown(line_start, min(span.start, line_end)) + " " * (span.start - line_end)
        pointed = self._shown(span.start, min(shown_end, line_end))
        margin = " " * len(str(line))
        pointer = " " * _width(before) + "^" * max(1, _width(pointed)) + (f" {note}" if note else "")
        shown = self._shown(line_start, line_end).rstrip("\r")
        return f"{margin}--> {self.name}:{line}:{column}\n{margin} |\n{line} | {shown}\n{margin} | {pointer}"

    def _shown(self, start: int, end: int) -> str:
        """A part of a line as people may see it: tabs are blanks, secrets are hidden."""
        parts, at = [], start
        for first, last in secret_places(self.text):
            if last > at and first < end:
                parts += [self.text[at : max(at, first)], HIDDEN]
                at = last
        parts.append(self.text[at:end])
        return "".join(parts).replace("\t", " ")


def _width(text: str) -> int:
    """Terminal cells: wide and full-width characters count two, combining ones none."""
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)
