"""``HybridSource``: several bounded sources, one behind the other."""

from __future__ import annotations

from collections.abc import Sequence

from flowsql.common.typeinfo import TypeInformation
from flowsql.datastream.connectors.base import Source
from flowsql.datastream.plan.operators import hybrid_source
from flowsql.datastream.plan.transformations import SpecMaker
from flowsql_core.errors import NotSupportedYetError


class HybridSource(Source):
    """The elements of sources of one type, in the order of the sources. Made by :meth:`builder`."""

    def __init__(self, sources: Sequence[Source]) -> None:
        self._sources = tuple(sources)

    @staticmethod
    def builder(first_source: Source) -> HybridSourceBuilder:
        """Begin with a source."""
        return HybridSourceBuilder(first_source)

    def produced_type(self) -> TypeInformation:
        """The type of all sources.

        Raises:
            TypeError: the sources are of different types.
        """
        types = [source.produced_type() for source in self._sources]
        if any(type_ != types[0] for type_ in types):
            raise TypeError(f"the sources of a hybrid source have different types: {', '.join(map(repr, types))}")
        return types[0]

    def spec_maker(self) -> SpecMaker:
        """One source behind the other, in one subtask.

        Raises:
            NotSupportedYetError: one of them does not end, or reads columns.
        """
        if not all(source.bounded for source in self._sources):
            raise NotSupportedYetError("hybrid sources with a source that does not end")
        if any(source.values_of_columns() is not None for source in self._sources):
            raise NotSupportedYetError(
                "hybrid sources of anything but lines and number sequences", hint="a stream of each source, and union"
            )
        return hybrid_source([source.spec_maker() for source in self._sources])


class HybridSourceBuilder:
    """Makes a :class:`HybridSource`."""

    def __init__(self, first_source: Source) -> None:
        self._sources = [_checked(first_source)]

    def add_source(self, next_source: Source) -> HybridSourceBuilder:
        """Go on with another source when those before it have ended."""
        self._sources.append(_checked(next_source))
        return self

    def build(self) -> HybridSource:
        """The source."""
        return HybridSource(self._sources)


def _checked(source: Source) -> Source:
    if not isinstance(source, Source):
        raise TypeError(f"{source!r} is not a Source")
    return source
