"""Sets of real numbers made of ranges: what conditions over one operand add up to."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Final

from flowsql_core.record import record

#: A border: the number, and -1 before it, 1 behind it.
Border = tuple[float, int]
Range = tuple[Border, Border]
_FIRST: Final[Border] = (-math.inf, -1)
_LAST: Final[Border] = (math.inf, 1)


@record
class NumberSet:
    """Disjoint ranges in order, each from a border to a border.

    >>> range_of(">", 1.0) | range_of("<=", 1.0) == EVERYTHING
    True
    >>> (~(range_of("<", 1.0) | range_of(">", 1.0))).as_points()
    (1.0,)
    """

    ranges: tuple[Range, ...]

    def __or__(self, other: NumberSet) -> NumberSet:
        return _united((*self.ranges, *other.ranges))

    def __and__(self, other: NumberSet) -> NumberSet:
        return ~(~self | ~other)

    def __invert__(self) -> NumberSet:
        borders = [_FIRST, *(border for pair in self.ranges for border in pair), _LAST]
        pairs = zip(borders[::2], borders[1::2], strict=True)
        return NumberSet(tuple((low, high) for low, high in pairs if low < high))

    def as_points(self) -> tuple[float, ...] | None:
        """The numbers, if there are no others between them."""
        if any(low[0] != high[0] for low, high in self.ranges):
            return None
        return tuple(low[0] for low, _ in self.ranges)


EVERYTHING: Final = NumberSet(((_FIRST, _LAST),))


def range_of(comparison: str, number: float) -> NumberSet:
    """The numbers that stand in a relation to one: ``<`` gives all that are less.

    >>> range_of(">=", 2.0).ranges
    (((2.0, -1), (inf, 1)),)
    """
    before, behind = (number, -1), (number, 1)
    match comparison:
        case "<":
            return NumberSet(((_FIRST, before),))
        case "<=":
            return NumberSet(((_FIRST, behind),))
        case ">":
            return NumberSet(((behind, _LAST),))
        case ">=":
            return NumberSet(((before, _LAST),))
        case "<>":
            return NumberSet(((_FIRST, before), (behind, _LAST)))
        case _:
            return NumberSet(((before, behind),))


def points(numbers: Iterable[float]) -> NumberSet:
    """The set of some numbers."""
    return _united([((number, -1), (number, 1)) for number in numbers])


def _united(ranges: Sequence[Range]) -> NumberSet:
    made: list[Range] = []
    for low, high in sorted(ranges):
        if made and low <= made[-1][1]:
            made[-1] = (made[-1][0], max(made[-1][1], high))
        else:
            made.append((low, high))
    return NumberSet(tuple(made))
