"""``record``: a frozen dataclass whose methods are generated when the first instance is made.

A process uses a fraction of the plan, AST and operation classes that it imports, and ``dataclasses`` takes about a
millisecond a class to generate methods: a third of the time to a first row. Here the class statement takes
microseconds; the rest happens in place, bases first. ``dataclasses`` finds the fields, so ``fields`` and ``replace``
work; the methods behave as those of ``dataclass(frozen=True)``, but only ``__init__`` is compiled for each class.
Fields are plain ones: no ``InitVar``, no ``init=False``, no ``__post_init__``.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import MISSING, Field, FrozenInstanceError, dataclass, field, fields
from operator import attrgetter
from reprlib import recursive_repr
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
        # One lock for all: making a class makes its bases.
        with _MAKING:
            if isinstance(cls.__dict__.get(_FIELDS), _Fields):
                delattr(cls, _FIELDS)
                cls.__doc__ = cls.__doc__ or cls.__name__
                # Finds the fields, the bases' first, and generates nothing.
                dataclass(init=False, repr=False, eq=False, kw_only=kw_only)(cls)
                _generate(cls)

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807
        make()
        cls.__init__(self, *args, **kwargs)

    def __setstate__(self: Any, state: dict[str, Any]) -> None:  # noqa: N807
        # Of an instance that was pickled in another process no ``__init__`` is called here.
        make()
        self.__dict__.update(state)

    cls.__init__ = __init__
    if "__setstate__" not in cls.__dict__:
        cls.__setstate__ = __setstate__
    setattr(cls, _FIELDS, _Fields(make))
    return cls


_MAKING = threading.RLock()


def _generate(cls: Any) -> None:
    own = cls.__dict__
    listed = fields(cls)
    names = frozenset(f.name for f in listed)
    content = _content(tuple(f.name for f in listed if f.compare))

    def __eq__(self: Any, other: object) -> Any:  # noqa: N807
        return content(self) == content(other) if other.__class__ is self.__class__ else NotImplemented

    def __hash__(self: Any) -> int:  # noqa: N807
        return hash(content(self))

    def __setattr__(self: Any, name: str, value: object) -> None:  # noqa: N807
        if type(self) is cls or name in names:
            raise FrozenInstanceError(f"cannot assign to field {name!r}")
        super(cls, self).__setattr__(name, value)

    def __delattr__(self: Any, name: str) -> None:  # noqa: N807
        if type(self) is cls or name in names:
            raise FrozenInstanceError(f"cannot delete field {name!r}")
        super(cls, self).__delattr__(name)

    if "__eq__" not in own:
        cls.__eq__ = __eq__
    # Python itself puts None there when a class writes only __eq__.
    if own.get("__hash__") is None:
        cls.__hash__ = __hash__
    if "__repr__" not in own:
        cls.__repr__ = _repr
    cls.__setattr__ = __setattr__
    cls.__delattr__ = __delattr__
    init = _init(listed)
    init.__qualname__ = f"{cls.__qualname__}.__init__"
    # Last: threads that come meanwhile meet the first ``__init__``, which waits for this one.
    cls.__init__ = init


def _content(names: tuple[str, ...]) -> Callable[[Any], tuple[Any, ...]]:
    """What equality and hash look at, as a tuple."""
    match names:
        case ():
            return lambda instance: ()
        case (name,):
            only = attrgetter(name)
            return lambda instance: (only(instance),)
    return attrgetter(*names)


@recursive_repr()
def _repr(self: Any) -> str:
    shown = ", ".join(f"{f.name}={getattr(self, f.name)!r}" for f in fields(self) if f.repr)
    return f"{type(self).__qualname__}({shown})"


def _init(listed: tuple[Field[Any], ...]) -> Any:
    """``__init__``, the one method that is compiled: constructors are called often."""
    known: dict[str, Any] = {"_set": object.__setattr__, "_missing": MISSING}
    lines = []
    for f in listed:
        value = f.name
        if f.default_factory is not MISSING:
            known[f"_make_{f.name}"] = f.default_factory
            value = f"_make_{f.name}() if {f.name} is _missing else {f.name}"
        elif f.default is not MISSING:
            known[f"_default_{f.name}"] = f.default
        lines.append(f" _set(self, {f.name!r}, {value})")
    by_place = [_parameter(f) for f in listed if not f.kw_only]
    by_name = [_parameter(f) for f in listed if f.kw_only]
    head = ", ".join(("self", *by_place, *(("*", *by_name) if by_name else ())))
    exec(f"def __init__({head}):\n" + "\n".join(lines or [" pass"]), known)
    return known["__init__"]


def _parameter(f: Field[Any]) -> str:
    if f.default_factory is not MISSING:
        return f"{f.name}=_missing"
    return f.name if f.default is MISSING else f"{f.name}=_default_{f.name}"
