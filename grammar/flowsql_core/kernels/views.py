"""Writable views for kernels: Numba types read-only arrays apart, and compiling a kernel twice doubles cold start."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt


class _Writable:
    """Hands NumPy the same memory without its read-only mark; keeps the owner alive."""

    __slots__ = ("__array_interface__", "owner")

    def __init__(self, owner: npt.NDArray[Any]) -> None:
        self.owner = owner
        interface = dict(owner.__array_interface__)
        interface["data"] = (interface["data"][0], False)
        self.__array_interface__ = interface


def for_kernel(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The array as kernels take it: contiguous and typed as writable.

    Kernels never write their inputs; the mark only decides which compilation is called. Copies only when the array is
    not contiguous.
    """
    if not array.flags.c_contiguous:
        return np.ascontiguousarray(array)
    if array.flags.writeable or not array.size:
        return array if array.flags.writeable else array.copy()
    return np.asarray(_Writable(array))
