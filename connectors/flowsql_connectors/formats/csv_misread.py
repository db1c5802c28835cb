"""Texts in a csv block that Arrow reads as numbers and Java does not."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import numpy as np

from flowsql_connectors.formats.csv_tokens import CsvDialect

_NEWLINE: Final = ord("\n")
#: What may stand between the start of a field and the 0 of a hexadecimal number.
_AHEAD: Final = b" \t-"


def holds_hexadecimal(data: bytes, dialect: CsvDialect) -> bool:
    """Whether some field may begin with ``0x``, blanks and a sign in front of it left out."""
    if b"0x" not in data and b"0X" not in data:
        return False
    # Such letters often stand inside of words: to look at what stands before them is faster than to search for both.
    raw = np.frombuffer(data, np.uint8)
    letters = np.flatnonzero((raw | 0x20) == ord("x"))
    zeros = letters[letters > 0] - 1
    zeros = zeros[raw[zeros] == ord("0")]
    before = np.where(zeros > 0, raw[zeros - 1], _NEWLINE)
    ahead = np.frombuffer(_marks(dialect) + _AHEAD, np.uint8)
    return bool(np.isin(before, ahead).any()) and _begins_or_ends(rb"[ \t]*-?0[xX]", None, data, dialect)


def holds_padded(data: bytes, dialect: CsvDialect) -> bool:
    """Whether some field begins or ends with a blank."""
    return any(blank in data for blank in (b" ", b"\t")) and _begins_or_ends(b"[ \t]", b"[ \t]", data, dialect)


def _marks(dialect: CsvDialect) -> bytes:
    """Bytes of the characters that stand beside fields."""
    return "".join((dialect.delimiter, dialect.quote or "", "\r\n")).encode()


def _begins_or_ends(head: bytes, tail: bytes | None, data: bytes, dialect: CsvDialect) -> bool:
    """Whether some field begins or ends with a pattern."""
    border = b"[" + re.escape(_marks(dialect)) + b"]"
    if re.match(head, data) or re.search(border + head, data):
        return True
    return tail is not None and re.search(tail + b"(?:" + border + b"|$)", data) is not None


def failed_column(message: str, wanted: Sequence[int]) -> int | None:
    """The column that Arrow's conversion error names: ``In CSV column #3: ...``."""
    head, found, rest = message.partition("In CSV column #")
    if not found or head:
        return None
    number = int(rest.partition(":")[0])
    return number if number in wanted else None


def has_blank_line(data: bytes) -> bool:
    """Whether a block of whole rows holds a line without anything."""
    if b"\r" in data and (b"\n\r\n" in data or b"\r\r" in data or data.startswith(b"\r")):
        return True
    newline = np.frombuffer(data, dtype=np.uint8) == _NEWLINE
    return bool(newline[0] or (newline[1:] & newline[:-1]).any())
