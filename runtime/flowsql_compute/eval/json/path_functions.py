"""Functions at the end of a JSON path: ``$.a.length()``, ``$.a.sum()``. Numbers come out as DOUBLE does."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final


def _length(value: Any) -> int | None:
    return len(value) if isinstance(value, dict | list) else None


def _keys(value: Any) -> list[str] | None:
    return list(value) if isinstance(value, dict) else None


def _numbers(value: Any, extra: tuple[Any, ...]) -> list[float]:
    items = value if isinstance(value, list) else []
    numbers = [float(item) for item in items if isinstance(item, int | float | Decimal) and not isinstance(item, bool)]
    return numbers + [float(item) for item in extra if isinstance(item, int | float | Decimal)]


def _aggregate(compute: Callable[[list[float]], float]) -> Callable[..., Any]:
    def apply(value: Any, *extra: Any) -> Any:
        numbers = _numbers(value, extra)
        if not numbers:
            raise ValueError("Aggregation function attempted to calculate value using empty array")
        return compute(numbers)

    return apply


def _deviation(numbers: list[float]) -> float:
    mean = math.fsum(numbers) / len(numbers)
    return math.sqrt(math.fsum(number * number for number in numbers) / len(numbers) - mean * mean)


def _concat(value: Any, *extra: Any) -> str:
    items = [item for item in value if isinstance(item, str)] if isinstance(value, list) else []
    return "".join([*items, *(item if isinstance(item, str) else str(item) for item in extra if item is not None)])


def _append(value: Any, *extra: Any) -> Any:
    return [*value, *extra] if isinstance(value, list) else value


def _at(place: int) -> Callable[..., Any]:
    def apply(value: Any, *_: Any) -> Any:
        return value[place] if isinstance(value, list) and value else None

    return apply


def _index(value: Any, place: int) -> Any:
    if not isinstance(value, list) or not -len(value) <= place < len(value):
        return None
    return value[place]


PATH_FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
    "length": _length,
    "size": _length,
    "keys": _keys,
    "min": _aggregate(min),
    "max": _aggregate(max),
    "sum": _aggregate(sum),
    "avg": _aggregate(lambda numbers: sum(numbers) / len(numbers)),
    "stddev": _aggregate(_deviation),
    "concat": _concat,
    "append": _append,
    "first": _at(0),
    "last": _at(-1),
    "index": _index,
}
