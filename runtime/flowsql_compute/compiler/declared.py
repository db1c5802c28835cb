"""What kernels and device functions are declared as; nothing here compiles or loads machine code."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import FunctionType
from typing import Any, TypeVar, overload

_F = TypeVar("_F", bound=Callable[..., Any])
_devices: set[Callable[..., Any]] = set()
_inlined: set[Callable[..., Any]] = set()
#: Device functions that are not compiled from Python but made by a call.
_natives: set[Callable[..., Any]] = set()


class KernelSource:
    """A function over NumPy arrays with one signature, as it is compiled."""

    def __init__(self, signature: str, function: FunctionType, name: str, replaced: Mapping[str, FunctionType]) -> None:
        self.signature = signature
        self.function = function
        #: Device functions that stand in for those of the same name.
        self.replaced = replaced
        #: Whether the machine code is loaded.
        self.bound = False
        self.__doc__ = function.__doc__
        self.__name__ = name
        self.__module__ = function.__module__


@overload
def device(function: _F, /) -> _F: ...
@overload
def device(*, inline: bool) -> Callable[[_F], _F]: ...
def device(function: Any = None, /, *, inline: bool = False) -> Any:
    """Declare a function that kernels call; it stays a Python function until a kernel that calls it is compiled.

    ``inline``: the machine code stands in the caller's, however long it is.
    """
    if function is None:
        return _inlined_device if inline else device
    _devices.add(function)
    return function


def _inlined_device(function: _F) -> _F:
    _inlined.add(function)
    return device(function)


def native(make: Callable[[], Any]) -> Any:
    """Declare a device function by what makes it: ``make()`` gives a Numba intrinsic, when a kernel first needs it."""
    _natives.add(make)
    return make


def is_native(function: FunctionType) -> bool:
    """Whether a device function is one of :func:`native`."""
    return function in _natives


def is_inlined(function: FunctionType) -> bool:
    """Whether a device function was declared with ``inline``."""
    return function in _inlined


def devices_of(function: FunctionType) -> dict[str, FunctionType]:
    """The device functions that a kernel or device function names, by that name."""
    if function in _natives:
        return {}
    named = ((name, function.__globals__.get(name)) for name in function.__code__.co_names)
    known = _devices | _natives
    return {name: found for name, found in named if isinstance(found, FunctionType) and found in known}
