"""64 bytes at a time as one word of 64 bits, for kernels that look for few bytes among many.

Bit k of a mask stands for the byte at ``at + k``. Positions are not checked. The masks are vector comparisons, which
every processor has in some width.
"""

from __future__ import annotations

from typing import Any

from flowsql_compute.compiler.declare import native


@native
def equal_mask() -> Any:
    """``equal_mask(data, at, value)``: which of ``data[at:at + 64]`` are ``value`` (uint8), as uint64."""
    from llvmlite import ir  # type: ignore[import-untyped, unused-ignore]
    from numba import types
    from numba.extending import intrinsic

    @intrinsic  # type: ignore[untyped-decorator, unused-ignore]
    def equal_mask(typing: Any, data: Any, at: Any, value: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            vector = ir.VectorType(ir.IntType(8), 64)
            array = context.make_array(signature.args[0])(context, builder, args[0])
            address = builder.bitcast(builder.gep(array.data, [args[1]]), vector.as_pointer())
            first = builder.insert_element(ir.Constant(vector, ir.Undefined), args[2], ir.Constant(ir.IntType(32), 0))
            places = ir.Constant(ir.VectorType(ir.IntType(32), 64), [0] * 64)
            wanted = builder.shuffle_vector(first, ir.Constant(vector, ir.Undefined), places)
            found = builder.icmp_unsigned("==", builder.load(address, align=1), wanted)
            return builder.bitcast(found, ir.IntType(64))

        return types.uint64(data, types.int64, types.uint8), generate

    return equal_mask


@native
def text_end_mask() -> Any:
    """``text_end_mask(data, at)``: which of ``data[at:at + 64]`` end a run of plain bytes in a JSON string, as uint64.

    They are quotes, backslashes and control characters.
    """
    from llvmlite import ir
    from numba import types
    from numba.extending import intrinsic

    @intrinsic  # type: ignore[untyped-decorator, unused-ignore]
    def text_end_mask(typing: Any, data: Any, at: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            vector = ir.VectorType(ir.IntType(8), 64)
            array = context.make_array(signature.args[0])(context, builder, args[0])
            address = builder.bitcast(builder.gep(array.data, [args[1]]), vector.as_pointer())
            found = builder.load(address, align=1)

            def is_(relation: str, code: int) -> Any:
                return builder.icmp_unsigned(relation, found, ir.Constant(vector, [code] * 64))

            ends = builder.or_(builder.or_(is_("==", 0x22), is_("==", 0x5C)), is_("<", 0x20))
            return builder.bitcast(ends, ir.IntType(64))

        return types.uint64(data, types.int64), generate

    return text_end_mask


@native
def same_mask() -> Any:
    """``same_mask(data, at, other)``: which of ``data[at:at + 64]`` are as ``data[other:other + 64]``, as uint64."""
    from llvmlite import ir
    from numba import types
    from numba.extending import intrinsic

    @intrinsic  # type: ignore[untyped-decorator, unused-ignore]
    def same_mask(typing: Any, data: Any, at: Any, other: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            vector = ir.VectorType(ir.IntType(8), 64)
            array = context.make_array(signature.args[0])(context, builder, args[0])

            def loaded(place: Any) -> Any:
                return builder.load(builder.bitcast(builder.gep(array.data, [place]), vector.as_pointer()), align=1)

            return builder.bitcast(builder.icmp_unsigned("==", loaded(args[1]), loaded(args[2])), ir.IntType(64))

        return types.uint64(data, types.int64, types.int64), generate

    return same_mask


@native
def high_mask() -> Any:
    """``high_mask(data, at)``: which of ``data[at:at + 64]`` are above 127, as uint64."""
    from llvmlite import ir
    from numba import types
    from numba.extending import intrinsic

    @intrinsic  # type: ignore[untyped-decorator, unused-ignore]
    def high_mask(typing: Any, data: Any, at: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            vector = ir.VectorType(ir.IntType(8), 64)
            array = context.make_array(signature.args[0])(context, builder, args[0])
            address = builder.bitcast(builder.gep(array.data, [args[1]]), vector.as_pointer())
            zeros = ir.Constant(vector, [0] * 64)
            found = builder.icmp_signed("<", builder.load(address, align=1), zeros)
            return builder.bitcast(found, ir.IntType(64))

        return types.uint64(data, types.int64), generate

    return high_mask


@native
def count_ones() -> Any:
    """``count_ones(word)``: how many bits of a uint64 are set, as uint64."""
    from numba import types
    from numba.extending import intrinsic

    @intrinsic  # type: ignore[untyped-decorator, unused-ignore]
    def count_ones(typing: Any, word: Any) -> Any:
        return types.uint64(types.uint64), lambda context, builder, signature, args: builder.ctpop(args[0])

    return count_ones


@native
def lowest_place() -> Any:
    """``lowest_place(word)``: the place of the lowest set bit of a uint64 that is not 0, as uint64."""
    from llvmlite import ir
    from numba import types
    from numba.extending import intrinsic

    @intrinsic  # type: ignore[untyped-decorator, unused-ignore]
    def lowest_place(typing: Any, word: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))

        return types.uint64(types.uint64), generate

    return lowest_place


@native
def highest_place() -> Any:
    """``highest_place(word)``: the place of the highest set bit of a uint64 that is not 0, as uint64."""
    from llvmlite import ir
    from numba import types
    from numba.extending import intrinsic

    @intrinsic  # type: ignore[untyped-decorator, unused-ignore]
    def highest_place(typing: Any, word: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            before = builder.ctlz(args[0], ir.Constant(ir.IntType(1), 1))
            return builder.xor(before, ir.Constant(ir.IntType(64), 63))

        return types.uint64(types.uint64), generate

    return highest_place
