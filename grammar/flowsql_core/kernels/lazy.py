"""``kernel``: one compilation for one signature, made (or loaded from the cache) at the first call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


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

            self._compiled = njit(self._signature, cache=True, nogil=True)(self._function)
        return self._compiled(*args)


def kernel(signature: str) -> Callable[[Callable[..., Any]], Kernel]:
    """Declare a kernel with its one Numba signature, e.g. ``void(int64[::1], int32[::1])``."""

    def declare(function: Callable[..., Any]) -> Kernel:
        return Kernel(signature, function)

    return declare
