"""From a kernel to the bytes of an object file: Numba compiles, LLVM emits, one plain C function is the way in.

The way in takes the addresses of the NumPy arrays themselves and reads their data, shape and type by NumPy's documented
C layout (``PyArrayObject_fields``, ``PyArray_Descr``), so that a call from Python converts nothing.
"""

from __future__ import annotations

from types import FunctionType
from typing import Any

from flowsql_core.kernels.lazy import Kernel, devices_of, is_native
from flowsql_core.kernels.signature import ELEMENTS, Parameter, parse

#: Results of the way in that no kernel has: an argument is not what the signature says; the kernel raised.
REFUSED, RAISED = -(2**63), -(2**63) + 1
#: Name of the way in is this and the name of the kernel.
ENTRY = "flowsql_kernel_"

_HEADER = object.__basicsize__
_DATA, _NDIM, _SHAPE, _DESCR, _FLAGS = (_HEADER + at for at in (0, 8, 16, 40, 48))
_KIND, _BYTE_ORDER, _ITEM_SIZE = (_HEADER + at for at in (8, 10, 24))
_CONTIGUOUS_AND_ALIGNED = 0x0101
#: What an object may ask of the C library.
_FOREIGN = {"memcpy", "memmove", "memset"}
_OPTIONS = {"nogil": True, "error_model": "numpy", "no_cpython_wrapper": True, "no_cfunc_wrapper": True, "_nrt": False}


def entry_name(kernel: Kernel) -> str:
    """Symbol of the kernel's way in, unique in the process."""
    return ENTRY + f"{kernel.__module__}.{kernel.__name__}".replace(".", "_")


def emit(kernel: Kernel) -> bytes:
    """Compile for this machine with the options that Numba itself uses."""
    from llvmlite import binding
    from numba import njit

    dispatcher = njit(kernel.signature, **_OPTIONS)(_linked(kernel.function, {}))
    (compiled,) = dispatcher.overloads.values()
    (text,) = dispatcher.inspect_llvm().values()
    module = binding.parse_assembly(text)
    module.link_in(binding.parse_assembly(_entry(kernel, dispatcher.targetctx, compiled.fndesc)))
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


def _linked(function: FunctionType, done: dict[FunctionType, Any]) -> FunctionType:
    """The function with compiled functions in place of the device functions that it names."""
    from numba import njit

    names = {}
    for name, device in devices_of(function).items():
        if device not in done:
            done[device] = device() if is_native(device) else njit(**_OPTIONS)(_linked(device, done))
        names[name] = done[device]
    linked = FunctionType(function.__code__, {**function.__globals__, **names}, function.__name__)
    linked.__module__ = function.__module__
    linked.__qualname__ = function.__qualname__
    return linked


def _entry(kernel: Kernel, context: Any, described: Any) -> str:
    """LLVM assembly of the way in: int64 (address of NumPy's array type, argument ...)."""
    from llvmlite import ir

    signature = parse(kernel.signature)
    word, double, small = ir.IntType(64), ir.DoubleType(), ir.IntType(8)
    module = ir.Module(name=entry_name(kernel))
    body = ir.Function(
        module, context.call_conv.get_function_type(described.restype, described.argtypes), described.llvm_func_name
    )
    parameters = [word if p.ndim or ELEMENTS[p.element][0] != "f" else double for p in signature.parameters]
    entry = ir.Function(module, ir.FunctionType(word, [word, *parameters]), entry_name(kernel))
    builder = ir.IRBuilder(entry.append_basic_block())
    refused = entry.append_basic_block("refused")

    def read(address: Any, offset: int, kind: Any) -> Any:
        place = builder.add(address, ir.Constant(word, offset))
        return builder.load(builder.inttoptr(place, kind.as_pointer()))

    def check(good: Any) -> None:
        following = entry.append_basic_block()
        builder.cbranch(good, following, refused)
        builder.position_at_end(following)

    def equal(value: Any, wanted: int) -> Any:
        return builder.icmp_signed("==", value, ir.Constant(value.type, wanted))

    def array(address: Any, parameter: Parameter, kind: Any) -> Any:
        from numba.np.arrayobj import make_array, populate_array

        letter, size = ELEMENTS[parameter.element]
        check(builder.icmp_signed("==", read(address, object.__basicsize__ - 8, word), entry.args[0]))
        descr = read(address, _DESCR, word)
        order = read(descr, _BYTE_ORDER, small)
        native = builder.or_(equal(order, ord("=")), equal(order, ord("|")))
        same_type = builder.and_(
            equal(read(descr, _KIND, small), ord(letter)), equal(read(descr, _ITEM_SIZE, word), size)
        )
        flags = builder.and_(
            read(address, _FLAGS, ir.IntType(32)), ir.Constant(ir.IntType(32), _CONTIGUOUS_AND_ALIGNED)
        )
        same_shape = builder.and_(
            equal(read(address, _NDIM, ir.IntType(32)), parameter.ndim), equal(flags, _CONTIGUOUS_AND_ALIGNED)
        )
        check(builder.and_(builder.and_(native, same_type), same_shape))
        dimensions = read(address, _SHAPE, word)
        shape = [read(dimensions, 8 * axis, word) for axis in range(parameter.ndim)]
        strides = [ir.Constant(word, size)]
        for extent in reversed(shape[1:]):
            strides.insert(0, builder.mul(strides[0], extent))
        made = make_array(kind)(context, builder)
        data = builder.inttoptr(read(address, _DATA, word), context.get_data_type(kind.dtype).as_pointer())
        populate_array(made, data, shape, strides, ir.Constant(word, size), None)
        return made._getvalue()

    def scalar(value: Any, kind: Any) -> Any:
        target = context.get_value_type(kind)
        if isinstance(target, ir.DoubleType) or target == word:
            return value
        return builder.fptrunc(value, target) if isinstance(target, ir.FloatType) else builder.trunc(value, target)

    values = [
        array(value, parameter, kind) if parameter.ndim else scalar(value, kind)
        for value, parameter, kind in zip(entry.args[1:], signature.parameters, described.argtypes, strict=True)
    ]
    status, result = context.call_conv.call_function(builder, body, described.restype, described.argtypes, values)
    fine = ir.Constant(word, 0) if signature.result == "void" else result
    builder.ret(builder.select(status.is_error, ir.Constant(word, RAISED), fine))
    builder.position_at_end(refused)
    builder.ret(ir.Constant(word, REFUSED))
    return str(module)
