"""The key that all inputs of a chain of joins share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate

from flowsql_core.expr import Call, Expr, InputRef, conjuncts
from flowsql_core.record import record
from flowsql_core.types.logical import CharacterType, LogicalType, without_attribute


@record
class Equality:
    """Column ``column`` of input ``input`` equals column ``other`` of the input that is joined."""

    input: int
    column: int
    other: int


@record
class CommonKey:
    """One column of each input, all equal in a row of the join.

    ``columns``: within each input. ``linked``: of each input but the first, the earlier one that its column is compared
    with.
    """

    columns: tuple[int, ...]
    linked: tuple[int, ...]


def equalities(condition: Expr | None, widths: Sequence[int], joined: int) -> Iterator[Equality]:
    """Columns of earlier inputs that a condition compares with columns of input ``joined``, if of one kind of type."""
    starts = (0, *accumulate(widths))
    for part in conjuncts(condition):
        match part:
            case Call(function="=", args=(InputRef() as a, InputRef() as b)) if _alike(a.type, b.type):
                left, right = sorted((a.index, b.index))
                if left < starts[joined] <= right < starts[joined + 1]:
                    place = max(i for i in range(joined) if starts[i] <= left)
                    yield Equality(place, left - starts[place], right - starts[joined])


def _alike(left: LogicalType, right: LogicalType) -> bool:
    """Whether values are kept and hashed alike; texts of any length are."""
    if left.root == right.root and isinstance(left, CharacterType):
        return True
    return without_attribute(left).as_nullable() == without_attribute(right).as_nullable()


def common_join_key(conditions: Sequence[Expr | None], widths: Sequence[int]) -> tuple[CommonKey, ...]:
    """The keys of inputs of ``widths`` columns, in the order of the first input's columns; none: they share none.

    ``conditions``: of each input but the first. A key follows equalities from the first input on: rows that fulfil all
    conditions have equal values of it, and a padded row has partners nowhere that it would lead to.
    """
    steps = [tuple(equalities(condition, widths, i)) for i, condition in enumerate(conditions, 1)]
    found: list[CommonKey] = []
    for first in sorted({step.column for step in steps[0] if step.input == 0} if steps else ()):
        columns, linked = [first], []
        for known in steps:
            step = next((one for one in known if columns[one.input] == one.column), None)
            if step is None:
                break
            columns.append(step.other)
            linked.append(step.input)
        else:
            found.append(CommonKey(tuple(columns), tuple(linked)))
    return tuple(found)
