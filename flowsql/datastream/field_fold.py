"""``sum``, ``min``, ``max``, ``min_by`` and ``max_by`` of a keyed stream as reduce functions over one field."""

from __future__ import annotations

import enum
from typing import Any

from flowsql.common.row import Row
from flowsql_core.stream.functions import ReduceFunction


class FieldCall(enum.Enum):
    """What is kept: a field's sum or extreme in the first element, or the element that has the extreme."""

    SUM = "sum"
    MIN = "min"
    MAX = "max"
    MIN_BY = "min_by"
    MAX_BY = "max_by"


class FieldFold(ReduceFunction):
    """Folds one field of tuples, lists and rows, or whole values where they are numbers or texts.

    Args:
        position: of the field, or its name in a row; 0 for values without fields.
        call: what to keep.
    """

    def __init__(self, position: int | str, call: FieldCall) -> None:
        if not isinstance(position, int | str):
            raise TypeError(f"the field is an int or a str, not {position!r}")
        self._position = position
        self._call = call

    def reduce(self, value1: Any, value2: Any) -> Any:
        """``value1`` as it was when nothing changes; never changed itself."""
        if not isinstance(value1, tuple | list | Row):
            return self._whole(value1, value2)
        # Rows take names as well as places.
        place: Any = self._position
        old, new = value1[place], value2[place]
        match self._call:
            case FieldCall.MIN_BY:
                return value2 if new < old else value1
            case FieldCall.MAX_BY:
                return value2 if new > old else value1
            case FieldCall.MIN:
                kept = new if new < old else old
            case FieldCall.MAX:
                kept = new if new > old else old
            case FieldCall.SUM:
                kept = old + new
        return self._with_field(value1, kept)

    def _whole(self, value1: Any, value2: Any) -> Any:
        if self._position != 0:
            raise TypeError(
                f"The {self._position} field selected on a basic type. A field expression on a basic type can only "
                "select the 0th field (which means selecting the entire basic type)."
            )
        match self._call:
            case FieldCall.SUM:
                return value1 + value2
            case FieldCall.MIN | FieldCall.MIN_BY:
                return value2 if value2 < value1 else value1
            case FieldCall.MAX | FieldCall.MAX_BY:
                return value2 if value2 > value1 else value1

    def _with_field(self, value: Any, field: Any) -> Any:
        if isinstance(value, tuple):
            assert isinstance(self._position, int)
            place = self._position % len(value)
            return (*value[:place], field, *value[place + 1 :])
        made = value.copy()
        made[self._position] = field
        return made
