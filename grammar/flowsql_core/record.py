"""``record``: a frozen dataclass whose methods are generated when the first instance is made.

A process uses a fraction of the plan, AST and operation classes that it imports, and ``dataclasses`` takes about a
millisecond a class to generate methods: a third of the time to a first row. Here the class statement takes
microseconds; everything else is ``dataclasses.dataclass(frozen=True)``, applied in place, bases first.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar, dataclass_transform, overload

C = TypeVar("C", bound=type)

_FIELDS = "__dataclass_fields__"


class _Fields:
    """Stands in for ``__dataclass_fields__`` until somebody asks: ``dataclasses`` itself then sees a dataclass."""

    __slots__ = ("_make",)

    def __init__(self, make: Callable[[], None]) -> None:
        self._make = make

    def __get__(self, instance: object, owner: type) -> Any:
        self._make()
        return getattr(owner, _FIELDS)


@overload
def record(cls: C, /) -> C: ...
@overload
def record(*, kw_only: bool = False) -> Callable[[C], C]: ...
@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def record(cls: Any = None, /, *, kw_only: bool = False) -> Any:
    """Declare a frozen dataclass; use it as ``@record`` or ``@record(kw_only=True)``.

    >>> @record
    ... class Point:
    ...     x: int
    ...     y: int = 0
    >>> Point(1)
    Point(x=1, y=0)
    """
    if cls is None:
        return lambda later: _declare(later, kw_only)
    return _declare(cls, kw_only)


def _declare(cls: Any, kw_only: bool) -> Any:
    def make() -> None:
        # One lock for all: making a class makes its bases. The other threads wait in ``first_new`` below.
        with _MAKING:
            if isinstance(cls.__dict__.get(_FIELDS), _Fields):
                delattr(cls, _FIELDS)
                dataclass(frozen=True, kw_only=kw_only)(cls)
                cls.__new__ = _new

    def first_new(actual: Any, /, *args: Any, **kwargs: Any) -> Any:
        make()
        return _OBJECT_NEW(actual)

    cls.__new__ = first_new
    setattr(cls, _FIELDS, _Fields(make))
    return cls


_MAKING = threading.RLock()
_OBJECT_NEW = object.__new__


def _new(actual: Any, /, *args: Any, **kwargs: Any) -> Any:
    """The arguments are for ``__init__``."""
    return _OBJECT_NEW(actual)
