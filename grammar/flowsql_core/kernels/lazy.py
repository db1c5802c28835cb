"""``kernel``: one compilation for one signature, made (or loaded from the cache) at the first call."""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any, TypeVar

_F = TypeVar("_F", bound=Callable[..., Any])
_devices: dict[Callable[..., Any], Any] = {}
#: Device functions that are not compiled from Python but made by a call.
_natives: set[Callable[..., Any]] = set()


class Kernel:
    """A function that becomes machine code when it is first called; runs without the interpreter lock."""

    def __init__(self, signature: str, function: Callable[..., Any]) -> None:
        self._signature = signature
        self._function = function
        self._compiled: Callable[..., Any] | None = None
        self.__doc__ = function.__doc__
        self.__name__ = function.__name__

    def __call__(self, *args: Any) -> Any:
        """Run on NumPy arrays and scalars of exactly the signature's types."""
        if self._compiled is None:
            from numba import njit

            self._compiled = njit(self._signature, cache=True, nogil=True)(_linked(self._function))
        return self._compiled(*args)


def kernel(signature: str) -> Callable[[Callable[..., Any]], Kernel]:
    """Declare a kernel with its one Numba signature, e.g. ``void(int64[::1], int32[::1])``."""

    def declare(function: Callable[..., Any]) -> Kernel:
        return Kernel(signature, function)

    return declare


def device(function: _F) -> _F:
    """Declare a function that kernels call; it stays a Python function until a kernel that calls it is compiled."""
    _devices[function] = None
    return function


def native(make: Callable[[], Any]) -> Any:
    """Declare a device function by what makes it: ``make()`` gives a Numba intrinsic, when a kernel first needs it."""
    _natives.add(make)
    _devices[make] = None
    return make


def _linked(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function with compiled functions in place of the device functions that it names."""
    assert isinstance(function, FunctionType)
    names = {
        name: _dispatcher(found)
        for name in function.__code__.co_names
        if isinstance(found := function.__globals__.get(name), FunctionType) and found in _devices
    }
    if not names:
        return function
    linked = FunctionType(function.__code__, {**function.__globals__, **names}, function.__name__)
    linked.__module__ = function.__module__
    linked.__qualname__ = function.__qualname__
    return linked


def _dispatcher(function: Callable[..., Any]) -> Any:
    if _devices[function] is None:
        if function in _natives:
            _devices[function] = function()
        else:
            from numba import njit

            _devices[function] = njit(_linked(function))
    return _devices[function]
