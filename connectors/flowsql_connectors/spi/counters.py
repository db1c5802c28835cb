"""Names of what readers and writers count, through the hooks of their contexts (FLIP-33)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

#: Bytes of a table that were read where it is stored: of a file, of each range that was read to its end.
BYTES_READ: Final = "numBytesIn"
#: Bytes that were written where a table is stored.
BYTES_SENT: Final = "numBytesSend"
#: Rows of a table that do not fit its columns and were left out.
ROWS_SKIPPED: Final = "numRecordsInErrors"
#: Fields that have no value of their column's type and were read as NULL. Flink has no such metric.
FIELDS_NULLED: Final = "numFieldsInErrors"

#: Count what a reader left out: under a name, so many, and where the first of them is, asked only to be shown.
Lose = Callable[[str, int, Callable[[], str]], None]


def lose_silently(name: str, by: int, where: Callable[[], str]) -> None:
    """Nobody counts."""
