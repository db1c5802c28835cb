"""From a kernel to the bytes of an object file: Numba compiles the kernel, LLVM emits it with a way in for Python.

The way in is a function of Python's C API (METH_FASTCALL): it checks type, dimensions and layout of the NumPy arrays in
place by NumPy's documented C layout (``PyArrayObject_fields``, ``PyArray_Descr``), lets go of the interpreter lock and
calls the kernel. The object names no symbol outside: addresses come in a table, the contents of the bytes object that
is the function's ``self``.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import FunctionType
from typing import Any

from flowsql_compute.compiler.declared import KernelSource, devices_of, is_inlined, is_native
from flowsql_compute.compiler.signature import ELEMENTS, Parameter, Signature, parse

#: What the table holds, in order: types, None, what to call with the arguments when they are not as they should be
#: and when the kernel raised, and functions of the C API.
TABLE = (
    "ndarray", "int", "bool", "float", "None", "otherwise", "failed", "PyEval_SaveThread", "PyEval_RestoreThread",
    "PyLong_AsLongLong", "PyFloat_AsDouble", "PyErr_Occurred", "PyLong_FromLongLong", "Py_IncRef",
    "PyObject_Vectorcall",
)  # fmt: skip

_HEADER = object.__basicsize__
_TYPE = _HEADER - 8
_TABLE = bytes.__basicsize__ - 1
_DATA, _NDIM, _SHAPE, _DESCR, _FLAGS = (_HEADER + at for at in (0, 8, 16, 40, 48))
_KIND, _BYTE_ORDER, _ITEM_SIZE = (_HEADER + at for at in (8, 10, 24))
_CONTIGUOUS_AND_ALIGNED = 0x0101
#: What an object may ask of the C library.
_FOREIGN = {"memcpy", "memmove", "memset"}
_OPTIONS: dict[str, Any] = {"error_model": "numpy", "no_cpython_wrapper": True, "no_cfunc_wrapper": True, "_nrt": False}


def entry_name(kernel: KernelSource) -> str:
    """Symbol of the kernel's way in."""
    return f"flowsql_kernel_{kernel.__module__}.{kernel.__name__}".replace(".", "_")


def emit(kernel: KernelSource) -> bytes:
    """Compile for this machine with the options that Numba itself uses."""
    from llvmlite import binding
    from numba import njit

    dispatcher: Any = njit(kernel.signature, **_OPTIONS)(_linked(kernel.function, {}, kernel.replaced))
    (compiled,) = dispatcher.overloads.values()
    (text,) = dispatcher.inspect_llvm().values()
    module = binding.parse_assembly(text)
    module.link_in(binding.parse_assembly(_entry(kernel, dispatcher.targetctx, compiled.fndesc)))
    _hide(module, entry_name(kernel))
    module.verify()
    foreign = {f.name for f in module.functions if f.is_declaration and not f.name.startswith("llvm.")} - _FOREIGN
    if foreign:
        raise TypeError(f"kernel {kernel.__name__} may not allocate, raise or call: {', '.join(sorted(foreign))}")
    x86 = binding.get_default_triple().startswith(("x86_64", "i386", "i686"))
    machine = binding.Target.from_default_triple().create_target_machine(
        cpu=binding.get_host_cpu_name(),
        features=binding.get_host_cpu_features().flatten(),
        opt=3,
        reloc="static" if x86 else "default",
        codemodel="jitdefault",
        jit=True,
    )
    return bytes(machine.emit_object(module))


def _hide(module: Any, entry: str) -> None:
    """Make every symbol but the way in the object's own: objects share an engine, variants of a kernel share names."""
    for symbol in (*module.functions, *module.global_variables):
        if not symbol.is_declaration and symbol.name != entry:
            symbol.linkage = "internal"


def _linked(
    function: FunctionType, done: dict[FunctionType, Any], replaced: Mapping[str, FunctionType]
) -> FunctionType:
    """The function with compiled functions in place of the device functions that it names."""
    from numba import njit

    names = {}
    for name, device in {**devices_of(function), **replaced}.items():
        if device not in done:
            options = {**_OPTIONS, "forceinline": is_inlined(device)}
            done[device] = device() if is_native(device) else njit(**options)(_linked(device, done, {}))
        names[name] = done[device]
    linked = FunctionType(function.__code__, {**function.__globals__, **names}, function.__name__)
    linked.__module__ = function.__module__
    linked.__qualname__ = function.__qualname__
    return linked


def _entry(kernel: KernelSource, context: Any, described: Any) -> str:
    """LLVM assembly of the way in: object (self, address of the arguments, how many)."""
    return _Entry(kernel, parse(kernel.signature), context, described).write()


class _Entry:
    """Writes one way in."""

    def __init__(self, kernel: KernelSource, signature: Signature, context: Any, described: Any) -> None:
        from llvmlite import ir

        self._ir, self._context, self._described, self._signature = ir, context, described, signature
        self._word, self._double, self._half, self._byte = (
            ir.IntType(64), ir.DoubleType(), ir.IntType(32), ir.IntType(8),
        )  # fmt: skip
        self._module = ir.Module(name=entry_name(kernel))
        self._function = ir.Function(self._module, ir.FunctionType(self._word, [self._word] * 3), entry_name(kernel))
        self._builder = ir.IRBuilder(self._function.append_basic_block())
        self._refused = self._function.append_basic_block("refused")

    def write(self) -> str:
        """The assembly of the whole module."""
        builder, word, described = self._builder, self._word, self._described
        parameters = self._signature.parameters
        arguments, count = self._function.args[1:]
        self._check(self._equal(count, len(parameters)))
        objects = [self._read(arguments, 8 * place, word) for place in range(len(parameters))]
        values = [
            self._array(value, parameter, kind) if parameter.ndim else self._scalar(value, parameter, kind)
            for value, parameter, kind in zip(objects, parameters, described.argtypes, strict=True)
        ]
        call = self._context.call_conv
        body = self._ir.Function(
            self._module, call.get_function_type(described.restype, described.argtypes), described.llvm_func_name
        )
        thread = self._call("PyEval_SaveThread", word)
        status, result = call.call_function(builder, body, described.restype, described.argtypes, values)
        self._call("PyEval_RestoreThread", self._ir.VoidType(), thread)
        with builder.if_then(status.is_error, likely=False):
            builder.ret(self._hand_over("failed"))
        if self._signature.result == "void":
            none = self._address("None")
            self._call("Py_IncRef", self._ir.VoidType(), none)
            builder.ret(none)
        else:
            builder.ret(self._call("PyLong_FromLongLong", word, result))
        builder.position_at_end(self._refused)
        builder.ret(self._hand_over("otherwise"))
        return str(self._module)

    def _array(self, address: Any, parameter: Parameter, kind: Any) -> Any:
        """Numba's array over the memory of the NumPy array at an address."""
        from numba.np.arrayobj import make_array, populate_array

        builder, word = self._builder, self._word
        letter, size = ELEMENTS[parameter.element]
        self._check(self._is_a(address, "ndarray"))
        descr = self._read(address, _DESCR, word)
        order = self._read(descr, _BYTE_ORDER, self._byte)
        flags = self._read(address, _FLAGS, self._half)
        self._check(
            builder.or_(self._equal(order, ord("=")), self._equal(order, ord("|"))),
            self._equal(self._read(descr, _KIND, self._byte), ord(letter)),
            self._equal(self._read(descr, _ITEM_SIZE, word), size),
            self._equal(self._read(address, _NDIM, self._half), parameter.ndim),
            self._equal(builder.and_(flags, flags.type(_CONTIGUOUS_AND_ALIGNED)), _CONTIGUOUS_AND_ALIGNED),
        )
        dimensions = self._read(address, _SHAPE, word)
        shape = [self._read(dimensions, 8 * axis, word) for axis in range(parameter.ndim)]
        strides = [self._constant(size)]
        for extent in reversed(shape[1:]):
            strides.insert(0, builder.mul(strides[0], extent))
        array = make_array(kind)(self._context, builder)
        data = self._context.get_data_type(kind.dtype).as_pointer()
        populate_array(
            array, builder.inttoptr(self._read(address, _DATA, word), data), shape, strides, self._constant(size), None
        )
        return array._getvalue()

    def _scalar(self, value: Any, parameter: Parameter, kind: Any) -> Any:
        builder, target = self._builder, self._context.get_value_type(kind)
        if ELEMENTS[parameter.element][0] == "f":
            self._check(self._is_a(value, "float"))
            read = self._call("PyFloat_AsDouble", self._double, value)
            return read if target == self._double else builder.fptrunc(read, target)
        self._check(builder.or_(self._is_a(value, "int"), self._is_a(value, "bool")))
        read = self._call("PyLong_AsLongLong", self._word, value)
        with builder.if_then(self._equal(read, -1), likely=False):
            raised = self._call("PyErr_Occurred", self._word)
            with builder.if_then(builder.icmp_signed("!=", raised, self._constant(0)), likely=False):
                builder.ret(self._constant(0))
        if parameter.element == "boolean":
            return builder.icmp_signed("!=", read, self._constant(0))
        return read if target == self._word else builder.trunc(read, target)

    # -- pieces

    def _constant(self, value: int) -> Any:
        return self._word(value)

    def _read(self, address: Any, offset: int, kind: Any) -> Any:
        place = self._builder.add(address, self._constant(offset))
        return self._builder.load(self._builder.inttoptr(place, kind.as_pointer()))

    def _equal(self, value: Any, wanted: int) -> Any:
        return self._builder.icmp_signed("==", value, value.type(wanted))

    def _address(self, name: str) -> Any:
        return self._read(self._function.args[0], _TABLE + 8 * TABLE.index(name), self._word)

    def _is_a(self, value: Any, name: str) -> Any:
        return self._builder.icmp_signed("==", self._read(value, _TYPE, self._word), self._address(name))

    def _check(self, *good: Any) -> None:
        """Go on only if all hold."""
        both = good[0]
        for one in good[1:]:
            both = self._builder.and_(both, one)
        following = self._function.append_basic_block()
        self._builder.cbranch(both, following, self._refused)
        self._builder.position_at_end(following)

    def _call(self, name: str, result: Any, *arguments: Any) -> Any:
        kind = self._ir.FunctionType(result, [argument.type for argument in arguments])
        function = self._builder.inttoptr(self._address(name), kind.as_pointer())
        return self._builder.call(function, arguments)

    def _hand_over(self, name: str) -> Any:
        arguments, count = self._function.args[1:]
        return self._call(
            "PyObject_Vectorcall", self._word, self._address(name), arguments, count, self._constant(0)
        )  # fmt: skip
