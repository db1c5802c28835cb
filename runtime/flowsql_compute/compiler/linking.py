"""Kernels as built-in functions: an object file is loaded (or compiled first) and called without Numba."""

from __future__ import annotations

import ctypes
import struct
import threading
from collections.abc import Callable
from operator import index
from typing import Any

import numpy as np

from flowsql_compute.compiler import object_cache
from flowsql_compute.compiler.declared import KernelSource
from flowsql_compute.compiler.emit import TABLE, emit, entry_name
from flowsql_compute.compiler.other_process import wait_for
from flowsql_compute.compiler.signature import ELEMENTS, Signature, parse

_lock = threading.RLock()
#: What must live as long as the process.
_kept: list[Any] = []
#: With the names of the ways in that each holds.
_engines: list[tuple[Any, set[str]]] = []
_FASTCALL = 0x80


def _float(value: Any) -> float:
    """As ``float``, but only of numbers."""
    if isinstance(value, str | bytes | bytearray):
        raise TypeError
    return float(value)


_SCALARS: dict[str, Callable[[Any], Any]] = {"b": bool, "i": index, "u": index, "f": _float}


def machine_code(kernel: KernelSource) -> Callable[..., Any]:
    """The kernel as a built-in function, from the cache or freshly compiled."""
    with _lock:
        wait_for(kernel)
        body = object_cache.load(kernel)
        if body is None:
            body = emit(kernel)
            object_cache.store(kernel, body)
        return _function(kernel, _link(kernel, body))


def _link(kernel: KernelSource, body: bytes) -> int:
    """Address of an object's way in; its memory lives as long as the process."""
    from llvmlite import binding

    engine = _engine_without(entry_name(kernel))
    engine.add_object_file(binding.ObjectFileRef.from_data(body))
    engine.finalize_object()
    return int(engine.get_function_address(entry_name(kernel)))


def _engine_without(entry: str) -> Any:
    """The engine of all kernels, for setting one up takes ten times as long as linking an object.

    A module that is loaded twice declares its kernels twice: the second ones go to another engine.
    """
    from llvmlite import binding

    for engine, entries in _engines:
        if entry not in entries:
            entries.add(entry)
            return engine
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    machine = binding.Target.from_default_triple().create_target_machine(codemodel="jitdefault", jit=True)
    engine = binding.create_mcjit_compiler(binding.parse_assembly(""), machine)
    _engines.append((engine, {entry}))
    return engine


class _MethodDef(ctypes.Structure):
    """``PyMethodDef`` of the C API."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


def _function(kernel: KernelSource, address: int) -> Callable[..., Any]:
    """A function object of Python's that calls the way in."""
    signature = parse(kernel.signature)

    def otherwise(*args: Any) -> Any:
        adapted = _adapted(kernel, signature, args)
        if all(new is old for new, old in zip(adapted, args, strict=True)):
            raise TypeError(f"kernel {kernel.__name__} does not take {args!r}")
        return function(*adapted)

    def failed(*args: Any) -> Any:
        raise RuntimeError(f"kernel {kernel.__name__} failed")

    objects = {
        "ndarray": np.ndarray, "int": int, "bool": bool, "float": float, "None": None, "otherwise": otherwise,
        "failed": failed,
    }  # fmt: skip
    addresses = [
        id(objects[name])
        if name in objects
        else ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value or 0
        for name in TABLE
    ]
    definition = _MethodDef(kernel.__name__.encode(), address, _FASTCALL, None)
    _kept.append((otherwise, failed))
    # The interpreter reads it for as long as the function is there, also when modules are gone already.
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(definition))
    make = ctypes.pythonapi.PyCFunction_NewEx
    make.restype, make.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.py_object, ctypes.py_object)
    function: Callable[..., Any] = make(
        ctypes.addressof(definition), struct.pack(f"{len(addresses)}P", *addresses), kernel.__module__
    )
    return function


def _adapted(kernel: KernelSource, signature: Signature, args: tuple[Any, ...]) -> list[Any]:
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
            except TypeError:
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
        adapted.append(value if type(value) is np.ndarray else value.view(np.ndarray))
    return adapted
