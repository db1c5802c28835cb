"""Kernels as C functions: load an object file (or compile it) and call it through ctypes, without Numba."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from operator import index
from typing import Any

import numpy as np

from flowsql_core.kernels import object_cache
from flowsql_core.kernels.emit import RAISED, REFUSED, emit, entry_name
from flowsql_core.kernels.lazy import Kernel
from flowsql_core.kernels.signature import ELEMENTS, Parameter, Signature, parse

_lock = threading.RLock()
_engines: list[Any] = []
_SCALARS: dict[str, Callable[[Any], Any]] = {"b": bool, "i": index, "u": index, "f": float}


def bind(kernel: Kernel) -> None:
    """Set the kernel's ``run`` to its machine code, from the cache or freshly compiled."""
    with _lock:
        signature = parse(kernel.signature)
        body = object_cache.load(kernel)
        if body is None:
            body = emit(kernel)
            object_cache.store(kernel, body)
        kernel.run = _caller(kernel, signature, _link(kernel, signature, body))


def _link(kernel: Kernel, signature: Signature, body: bytes) -> Callable[..., int]:
    """The C function of an object; its memory lives as long as the process."""
    from llvmlite import binding

    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    machine = binding.Target.from_default_triple().create_target_machine(codemodel="jitdefault", jit=True)
    engine = binding.create_mcjit_compiler(binding.parse_assembly(""), machine)
    _engines.append(engine)
    engine.add_object_file(binding.ObjectFileRef.from_data(body))
    engine.finalize_object()
    address = engine.get_function_address(entry_name(kernel))
    kinds = [_c_type(parameter) for parameter in signature.parameters]
    return ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.py_object, *kinds)(address)


def _c_type(parameter: Parameter) -> Any:
    if parameter.ndim:
        return ctypes.py_object
    return ctypes.c_double if ELEMENTS[parameter.element][0] == "f" else ctypes.c_int64


def _caller(kernel: Kernel, signature: Signature, call: Callable[..., int]) -> Callable[..., Any]:
    array_type, void = np.ndarray, signature.result == "void"

    def run(*args: Any) -> Any:
        try:
            result = call(array_type, *args)
        except ctypes.ArgumentError:
            result = REFUSED
        if result <= RAISED:
            if result == REFUSED:
                result = call(array_type, *_adapted(kernel, signature, args))
            if result <= RAISED:
                raise RuntimeError(f"kernel {kernel.__name__} failed")
        return None if void else result

    return run


def _adapted(kernel: Kernel, signature: Signature, args: tuple[Any, ...]) -> list[Any]:
    """The arguments as the machine code takes them: NumPy scalars as Python's, subclasses of arrays as plain arrays.

    Raises:
        TypeError: when an argument is not what the signature says.
    """
    if len(args) != len(signature.parameters):
        raise TypeError(f"kernel {kernel.__name__} takes {len(signature.parameters)} arguments, not {len(args)}")
    adapted: list[Any] = []
    for place, (value, parameter) in enumerate(zip(args, signature.parameters, strict=True)):
        name = kernel.function.__code__.co_varnames[place]
        if not parameter.ndim:
            try:
                adapted.append(_SCALARS[ELEMENTS[parameter.element][0]](value))
            except (TypeError, ValueError):
                raise TypeError(f"{kernel.__name__}: {name} is {parameter.element}, not {value!r}") from None
            continue
        wanted = np.dtype(parameter.element.replace("boolean", "bool"))
        if not isinstance(value, np.ndarray):
            raise TypeError(f"{kernel.__name__}: {name} is an array of {wanted}, not {type(value).__name__}")
        if value.dtype != wanted or value.ndim != parameter.ndim:
            raise TypeError(
                f"{kernel.__name__}: {name} is an array of {wanted} with {parameter.ndim} dimensions, "
                f"not of {value.dtype} with {value.ndim}"
            )
        if not (value.flags.c_contiguous and value.flags.aligned):
            raise TypeError(f"{kernel.__name__}: {name} is not contiguous and aligned")
        adapted.append(value.view(np.ndarray))
    return adapted
