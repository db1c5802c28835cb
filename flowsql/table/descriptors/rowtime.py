"""``Rowtime``: the properties of an event-time attribute, as connectors of Flink 1 read them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NoReturn, Self

from flowsql.common.public_api import public_api
from flowsql_core.errors import BindError, NotSupportedYetError


class Descriptor:
    """Properties by key. Deprecated in PyFlink; tables are made of a ``TableDescriptor``."""

    def __init__(self) -> None:
        self._properties: dict[str, str] = {}

    def to_properties(self) -> dict[str, str]:
        """Return a copy of the properties."""
        return dict(self._properties)


@public_api
class Rowtime(Descriptor):
    """Where the times of an event-time attribute come from, and its watermarks.

    >>> Rowtime().watermarks_periodic_bounded(1000).to_properties()
    {'rowtime.watermarks.type': 'periodic-bounded', 'rowtime.watermarks.delay': '1000'}
    """

    def timestamps_from_field(self, field_name: str) -> Self:
        """Take the times of a BIGINT or TIMESTAMP field."""
        return self._put({"rowtime.timestamps.type": "from-field", "rowtime.timestamps.from": field_name})

    def timestamps_from_source(self) -> Self:
        """Take the times that rows have in their stream."""
        return self._put({"rowtime.timestamps.type": "from-source"})

    def timestamps_from_extractor(self, extractor: str) -> Self:
        """Refused: an extractor is a class of Java."""
        _refuse(f"timestamps_from_extractor('{extractor}')")

    def watermarks_periodic_ascending(self) -> Self:
        """Emit watermarks for times that only grow."""
        return self._put({"rowtime.watermarks.type": "periodic-ascending"})

    def watermarks_periodic_bounded(self, delay: int) -> Self:
        """Emit watermarks for times that may be late by at most ``delay`` milliseconds."""
        return self._put({"rowtime.watermarks.type": "periodic-bounded", "rowtime.watermarks.delay": str(delay)})

    def watermarks_from_source(self) -> Self:
        """Take the watermarks of the stream."""
        return self._put({"rowtime.watermarks.type": "from-source"})

    def watermarks_from_strategy(self, strategy: str) -> Self:
        """Refused: a strategy is a class of Java."""
        _refuse(f"watermarks_from_strategy('{strategy}')")

    def _put(self, properties: Mapping[str, str]) -> Self:
        for key in properties:
            if key in self._properties:
                raise BindError(
                    "descriptor-twice", f"The property '{key}' is '{self._properties[key]}' already.",
                    hint="a Rowtime takes one source of times and one of watermarks",
                )  # fmt: skip
        self._properties.update(properties)
        return self


def _refuse(construct: str) -> NoReturn:
    raise NotSupportedYetError(
        construct, hint="it names a class of Java; Schema.new_builder().watermark(column, expression) takes SQL"
    )
