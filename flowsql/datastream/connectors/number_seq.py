"""``NumberSequenceSource``: numbers in order."""

from __future__ import annotations

from flowsql.common.typeinfo import TypeInformation, Types
from flowsql.datastream.connectors.base import Source
from flowsql.datastream.plan.operators import collection_source
from flowsql.datastream.plan.transformations import SpecMaker


class NumberSequenceSource(Source):
    """The whole numbers from ``start`` to ``end``, both included."""

    def __init__(self, start: int, end: int) -> None:
        if start > end:
            raise ValueError("'from' must be <= 'to'")
        self._numbers = range(start, end + 1)

    def produced_type(self) -> TypeInformation:
        """LONG."""
        return Types.LONG()

    def spec_maker(self) -> SpecMaker:
        """The numbers, from one subtask."""
        return collection_source(self._numbers)
