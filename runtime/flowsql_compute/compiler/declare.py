"""``kernel`` and ``device``: functions that become machine code when they are first called.

Declaring costs nothing: neither Numba nor LLVM is imported before a kernel runs, and Numba only where no object file of
the kernel is in the cache (docs/adr/008-kernel-objects.md).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import FunctionType
from typing import Any

from flowsql_compute.compiler.declared import KernelSource
from flowsql_compute.compiler.declared import device as device
from flowsql_compute.compiler.declared import native as native


class Kernel(KernelSource):
    """A function over NumPy arrays with one signature; runs without the interpreter lock."""

    def __init__(self, signature: str, function: FunctionType, name: str, replaced: Mapping[str, FunctionType]) -> None:
        super().__init__(signature, function, name, replaced)
        self.run: Callable[..., Any] = self._first_run

    def __call__(self, *args: Any) -> Any:
        """Run on NumPy arrays and scalars of exactly the signature's types.

        Raises:
            TypeError: when an array has another type or number of dimensions, or is not contiguous.
        """
        return self.run(*args)

    def variant(self, name: str, **devices: Any) -> Kernel:
        """This kernel with other device functions; ``name`` is that of the module's variable that it is assigned to."""
        return Kernel(self.signature, self.function, name, devices)

    def _first_run(self, *args: Any) -> Any:
        # What links loads LLVM, which a process without kernels does not need.
        from flowsql_compute.compiler.linking import machine_code

        self.run = machine_code(self)
        self.bound = True
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
