"""``NumberSequenceSource``: numbers in order."""

from __future__ import annotations

from collections.abc import Sequence

from flowsql.common.typeinfo import TypeInformation, Types
from flowsql.datastream.connectors.base import Source


class NumberSequenceSource(Source):
    """The whole numbers from ``start`` to ``end``, both included."""

    def __init__(self, start: int, end: int) -> None:
        if start > end:
            raise ValueError("'from' must be <= 'to'")
        self._numbers = range(start, end + 1)

    def elements(self) -> tuple[Sequence[int], TypeInformation]:
        """The numbers."""
        return self._numbers, Types.LONG()
