"""What a kernel's machine code depends on, in two digests: its own code, and the machine with its compilers."""

from __future__ import annotations

import hashlib
import importlib.util
import pathlib
import sys
from collections.abc import Mapping
from functools import cache
from types import CodeType, FunctionType, ModuleType

import numpy as np

from flowsql_compute.compiler.declared import KernelSource, devices_of, is_inlined, is_native

#: Raised when the way in which objects are called or stored changes.
ABI = 4


def of_kernel(kernel: KernelSource) -> bytes:
    """Digest (16 bytes) of the signature, the bytecode and every constant of the kernel and its device functions."""
    digest = hashlib.blake2b(kernel.signature.encode(), digest_size=16)
    seen: set[FunctionType] = set()

    def add_code(code: CodeType) -> None:
        digest.update(code.co_code)
        plain = [value for value in code.co_consts if not isinstance(value, CodeType)]
        digest.update(repr((code.co_name, code.co_varnames, code.co_names, plain)).encode())
        for value in code.co_consts:
            if isinstance(value, CodeType):
                add_code(value)

    def add(function: FunctionType, replaced: Mapping[str, FunctionType]) -> None:
        if function in seen:
            return
        seen.add(function)
        add_code(function.__code__)
        if is_native(function):
            return
        devices = {**devices_of(function), **replaced}
        for name in function.__code__.co_names:
            if name in function.__globals__ and name not in devices:
                digest.update(f"{name}={_constant(function, name)}".encode())
        for device in devices.values():
            digest.update(bytes([is_inlined(device)]))
            add(device, {})

    add(kernel.function, kernel.replaced)
    return digest.digest()


def _constant(function: FunctionType, name: str) -> str:
    value = function.__globals__[name]
    match value:
        case ModuleType():
            return value.__name__
        case bool() | int() | float() | np.generic() | type():
            return repr(value)
        case _:
            raise TypeError(f"{function.__module__}.{function.__name__} names {name}, which is no constant")


@cache
def of_machine() -> bytes:
    """Digest (16 bytes) of the processor, of Python, and of NumPy's, Numba's and LLVM's releases; imports no Numba."""
    import llvmlite
    from llvmlite import binding

    parts = (
        ABI,
        sys.implementation.cache_tag,
        object.__basicsize__,
        np.__version__,
        llvmlite.__version__,
        _numba_release(),
        binding.get_default_triple(),
        binding.get_host_cpu_name(),
        binding.get_host_cpu_features().flatten(),
    )
    return hashlib.blake2b(repr(parts).encode(), digest_size=16).digest()


def _numba_release() -> bytes:
    found = importlib.util.find_spec("numba")
    if found is None or found.origin is None:
        return b""
    return pathlib.Path(found.origin).with_name("_version.py").read_bytes()
