"""``sum``, ``min``, ``max``, ``min_by`` and ``max_by`` of a keyed stream as reduce functions over one field."""

from __future__ import annotations

import enum
import operator
from typing import Any, Final

from flowsql.common.row import Row
from flowsql_core.stream.functions import ReduceFunction


class FieldCall(enum.Enum):
    """What is kept: a field's sum or extreme in the first element, or the element that has the extreme."""

    SUM = "sum"
    MIN = "min"
    MAX = "max"
    MIN_BY = "min_by"
    MAX_BY = "max_by"


def _least(old: Any, new: Any) -> Any:
    return new if new < old else old


def _greatest(old: Any, new: Any) -> Any:
    return new if new > old else old


#: What is kept of two fields.
_KEPT: Final = {FieldCall.SUM: operator.add, FieldCall.MIN: _least, FieldCall.MAX: _greatest}
#: Whether the element of a new field takes the place of the old one.
_TAKES_OVER: Final = {FieldCall.MIN_BY: operator.lt, FieldCall.MAX_BY: operator.gt}


class FieldFold(ReduceFunction):
    """Folds one field of tuples, lists and rows, or whole values where they are numbers or texts.

    Args:
        position: of the field, or its name in a row; 0 for values without fields.
        call: what to keep.
    """

    def __init__(self, position: int | str, call: FieldCall) -> None:
        if not isinstance(position, int | str):
            raise TypeError(f"the field is an int or a str, not {position!r}")
        # Rows take names as well as places.
        self._position: Any = position
        self._kept = _KEPT.get(call)
        self._takes_over = _TAKES_OVER.get(call)

    def reduce(self, value1: Any, value2: Any) -> Any:
        """``value1`` as it was when nothing changes; never changed itself."""
        place = self._position
        if isinstance(value1, tuple | list | Row):
            old, new = value1[place], value2[place]
        elif place == 0:
            old, new = value1, value2
        else:
            raise TypeError(
                f"The {place} field selected on a basic type. A field expression on a basic type can only select the "
                "0th field (which means selecting the entire basic type)."
            )
        if self._takes_over is not None:
            return value2 if self._takes_over(new, old) else value1
        assert self._kept is not None
        kept = self._kept(old, new)
        if type(value1) is tuple:
            fields = [*value1]
            fields[place] = kept
            return tuple(fields)
        return self._with_field(value1, kept)

    def _with_field(self, value: Any, field: Any) -> Any:
        if not isinstance(value, tuple | list | Row):
            return field
        made = [*value] if isinstance(value, tuple) else value.copy()
        made[self._position] = field
        return tuple(made) if isinstance(value, tuple) else made
