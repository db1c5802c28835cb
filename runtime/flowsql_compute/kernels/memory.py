"""Whole words and runs of bytes in byte arrays, for kernels: one instruction, or one ``memcpy``, instead of a loop.

Positions are not checked: whoever calls these knows that the bytes are there. Words are little-endian.
"""

from __future__ import annotations

from typing import Any

from flowsql_compute.compiler.declare import native


@native
def load64() -> Any:
    """``load64(data, at)``: the word at ``data[at:at + 8]`` as uint64, aligned or not."""
    from llvmlite import ir  # type: ignore[import-untyped, unused-ignore]
    from numba import types
    from numba.extending import intrinsic

    @intrinsic  # type: ignore[untyped-decorator, unused-ignore]
    def load64(typing: Any, data: Any, at: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            array = context.make_array(signature.args[0])(context, builder, args[0])
            address = builder.gep(array.data, [args[1]])
            return builder.load(builder.bitcast(address, ir.IntType(64).as_pointer()), align=1)

        return types.uint64(data, types.int64), generate

    return load64


@native
def store64() -> Any:
    """``store64(data, at, word)``: the word (uint64 or int64) into ``data[at:at + 8]``, aligned or not."""
    from llvmlite import ir  # type: ignore[import-untyped, unused-ignore]
    from numba import types
    from numba.extending import intrinsic

    @intrinsic  # type: ignore[untyped-decorator, unused-ignore]
    def store64(typing: Any, data: Any, at: Any, word: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            array = context.make_array(signature.args[0])(context, builder, args[0])
            address = builder.gep(array.data, [args[1]])
            builder.store(args[2], builder.bitcast(address, ir.IntType(64).as_pointer()), align=1)
            return context.get_dummy_value()

        return types.none(data, types.int64, types.uint64), generate

    return store64


@native
def copy_bytes() -> Any:
    """``copy_bytes(target, to, source, start, length)``: ``target[to:to + length] = source[start:start + length]``.

    The two ranges never overlap.
    """
    from numba import types
    from numba.core import cgutils
    from numba.extending import intrinsic

    @intrinsic  # type: ignore[untyped-decorator, unused-ignore]
    def copy_bytes(typing: Any, target: Any, to: Any, source: Any, start: Any, length: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            into = context.make_array(signature.args[0])(context, builder, args[0])
            out_of = context.make_array(signature.args[2])(context, builder, args[2])
            cgutils.raw_memcpy(
                builder, builder.gep(into.data, [args[1]]), builder.gep(out_of.data, [args[3]]), args[4], 1
            )
            return context.get_dummy_value()

        return types.none(target, types.int64, source, types.int64, types.int64), generate

    return copy_bytes


@native
def far8() -> Any:
    """``far8(address)``: the byte at a memory address as uint8."""
    return _far("uint8", 8)


@native
def far32() -> Any:
    """``far32(address)``: the word at a memory address as int32, aligned or not."""
    return _far("int32", 32)


@native
def far64() -> Any:
    """``far64(address)``: the word at a memory address as int64, aligned or not."""
    return _far("int64", 64)


def _far(name: str, bits: int) -> Any:
    from llvmlite import ir  # type: ignore[import-untyped, unused-ignore]
    from numba import types
    from numba.extending import intrinsic

    made = getattr(types, name)

    @intrinsic  # type: ignore[untyped-decorator, unused-ignore]
    def far(typing: Any, address: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return builder.load(builder.inttoptr(args[0], ir.IntType(bits).as_pointer()), align=1)

        return made(types.int64), generate

    return far


@native
def copy_far() -> Any:
    """``copy_far(target, to, address, length)``: ``length`` bytes from a memory address into ``target[to:]``."""
    from llvmlite import ir  # type: ignore[import-untyped, unused-ignore]
    from numba import types
    from numba.core import cgutils
    from numba.extending import intrinsic

    @intrinsic  # type: ignore[untyped-decorator, unused-ignore]
    def copy_far(typing: Any, target: Any, to: Any, address: Any, length: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            into = context.make_array(signature.args[0])(context, builder, args[0])
            source = builder.inttoptr(args[2], ir.IntType(8).as_pointer())
            cgutils.raw_memcpy(builder, builder.gep(into.data, [args[1]]), source, args[3], 1)
            return context.get_dummy_value()

        return types.none(target, types.int64, types.int64, types.int64), generate

    return copy_far


@native
def call_far() -> Any:
    """``call_far(function, one, other, third)``: what the C function at an address returns, as int64, for three words.

    A function of fewer arguments takes no notice of the others; the bits above a shorter result mean nothing.
    """
    from llvmlite import ir
    from numba import types
    from numba.extending import intrinsic

    @intrinsic  # type: ignore[untyped-decorator, unused-ignore]
    def call_far(typing: Any, function: Any, one: Any, other: Any, third: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            word = ir.IntType(64)
            called = builder.inttoptr(args[0], ir.FunctionType(word, [word, word, word]).as_pointer())
            return builder.call(called, [args[1], args[2], args[3]])

        return types.int64(types.int64, types.int64, types.int64, types.int64), generate

    return call_far


@native
def copy32() -> Any:
    """``copy32(target, to, source, start)``: ``target[to:to + 32] = source[start:start + 32]``, read before written."""
    from llvmlite import ir
    from numba import types
    from numba.extending import intrinsic

    @intrinsic  # type: ignore[untyped-decorator, unused-ignore]
    def copy32(typing: Any, target: Any, to: Any, source: Any, start: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            into = context.make_array(signature.args[0])(context, builder, args[0])
            out_of = context.make_array(signature.args[2])(context, builder, args[2])
            vector = ir.VectorType(ir.IntType(8), 32).as_pointer()
            source = builder.bitcast(builder.gep(out_of.data, [args[3]]), vector)
            target = builder.bitcast(builder.gep(into.data, [args[1]]), vector)
            builder.store(builder.load(source, align=1), target, align=1)
            return context.get_dummy_value()

        return types.none(target, types.int64, source, types.int64), generate

    return copy32


@native
def block32() -> Any:
    """``block32()``: 32 words (uint64) on the stack, as an array; gone when the kernel returns."""
    from llvmlite import ir  # type: ignore[import-untyped, unused-ignore]
    from numba import types
    from numba.core import cgutils
    from numba.extending import intrinsic
    from numba.np.arrayobj import make_array, populate_array

    @intrinsic  # type: ignore[untyped-decorator, unused-ignore]
    def block32(typing: Any) -> Any:
        made = types.Array(types.uint64, 1, "C")

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            word = ir.IntType(64)
            array = make_array(made)(context, builder)
            data = cgutils.alloca_once(builder, word, size=32)
            size = ir.Constant(word, 8)
            populate_array(array, data, [ir.Constant(word, 32)], [size], size, None)
            return array._getvalue()

        return made(), generate

    return block32
