"""``kernel`` and ``device``: functions that become machine code when they are first called.

Declaring costs nothing: neither Numba nor LLVM is imported before a kernel runs, and Numba only where no object file of
the kernel is in the cache (docs/adr/008-kernel-objects.md).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import FunctionType
from typing import Any, TypeVar, overload

_F = TypeVar("_F", bound=Callable[..., Any])
_devices: set[Callable[..., Any]] = set()
_inlined: set[Callable[..., Any]] = set()
#: Device functions that are not compiled from Python but made by a call.
_natives: set[Callable[..., Any]] = set()


class Kernel:
    """A function over NumPy arrays with one signature; runs without the interpreter lock."""

    def __init__(self, signature: str, function: FunctionType, name: str, replaced: Mapping[str, FunctionType]) -> None:
        self.signature = signature
        self.function = function
        #: Device functions that stand in for those of the same name.
        self.replaced = replaced
        self.run: Callable[..., Any] = self._first_run
        self.__doc__ = function.__doc__
        self.__name__ = name
        self.__module__ = function.__module__

    def __call__(self, *args: Any) -> Any:
        """Run on NumPy arrays and scalars of exactly the signature's types.

        Raises:
            TypeError: when an array has another type or number of dimensions, or is not contiguous.
        """
        return self.run(*args)

    @property
    def bound(self) -> bool:
        """Whether the machine code is loaded."""
        return self.run != self._first_run

    def variant(self, name: str, **devices: Any) -> Kernel:
        """This kernel with other device functions; ``name`` is that of the module's variable that it is assigned to."""
        return Kernel(self.signature, self.function, name, devices)

    def _first_run(self, *args: Any) -> Any:
        from flowsql_compute.compiler.linking import bind

        bind(self)
        return self.run(*args)


def kernel(signature: str) -> Callable[[Callable[..., Any]], Kernel]:
    """Declare a kernel with its one signature in Numba's spelling, e.g. ``void(int64[::1], int32[:,::1], boolean)``.

    Kernels return ``void`` or ``int64``, take contiguous arrays of one or two dimensions and scalars, allocate nothing
    and raise nothing.
    """

    def declare(function: Callable[..., Any]) -> Kernel:
        assert isinstance(function, FunctionType)
        return Kernel(signature, function, function.__name__, {})

    return declare


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
