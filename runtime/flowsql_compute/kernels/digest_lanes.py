"""The steps of message digests on several messages at once, one in each lane of the processor's vectors.

Each function adds what one block of every message makes of its state to that state. ``words`` and ``state`` hold the
first word of all lanes, then the second; a lane whose ``mask`` is 0 stays as it is, one of all bits takes part.

The cache of kernels knows a function marked ``native`` by its own code: whoever changes what those here call renames
them too.

Source: RFC 1321, FIPS 180-4.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

from flowsql_compute.compiler.declare import native

#: Messages at once: of words of 32 bits, of words of 64 bits.
LANES, WIDE_LANES = 8, 8
_MD5_TURNS = ((7, 12, 17, 22), (5, 9, 14, 20), (4, 11, 16, 23), (6, 10, 15, 21))


@cache
def primes() -> tuple[int, ...]:
    """The first 80 primes."""
    return tuple(n for n in range(2, 410) if all(n % k for k in range(2, math.isqrt(n) + 1)))


def square_root_bits(prime: int) -> int:
    """The first 64 bits of the fraction of a number's square root: what SHA-2 begins with."""
    return math.isqrt(prime << 128) % 2**64


@cache
def _cube_root_bits() -> tuple[int, ...]:
    """The first 64 bits of the fractions of the primes' cube roots: the constants of SHA-2."""
    return tuple(_cube_root(prime << 192) % 2**64 for prime in primes())


def _cube_root(number: int) -> int:
    low, high = 0, 1 << (number.bit_length() // 3 + 1)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if middle**3 <= number else (low, middle - 1)
    return low


class _Lanes:
    """Arithmetic on vectors while machine code is made."""

    def __init__(self, builder: Any, bits: int, lanes: int) -> None:
        from llvmlite import ir  # type: ignore[import-untyped, unused-ignore]

        self.builder = builder
        self.bits = bits
        self.type = ir.VectorType(ir.IntType(bits), lanes)
        self.constant: Callable[[int], Any] = lambda number: ir.Constant(self.type, [number] * lanes)

    def add(self, *terms: Any) -> Any:
        """The sum."""
        made = terms[0]
        for term in terms[1:]:
            made = self.builder.add(made, term)
        return made

    def xor(self, *terms: Any) -> Any:
        """The bits that are set in an odd number of terms."""
        made = terms[0]
        for term in terms[1:]:
            made = self.builder.xor(made, term)
        return made

    def right(self, x: Any, by: int) -> Any:
        """Shifted to the right."""
        return self.builder.lshr(x, self.constant(by))

    def turn(self, x: Any, by: int) -> Any:
        """Rotated to the right."""
        return self.builder.or_(self.right(x, by), self.builder.shl(x, self.constant(self.bits - by)))

    def choose(self, which: Any, one: Any, other: Any) -> Any:
        """Bits of ``one`` where ``which`` is set, else of ``other``."""
        return self.builder.xor(other, self.builder.and_(which, self.builder.xor(one, other)))

    def most(self, a: Any, b: Any, c: Any) -> Any:
        """Bits that are set in two of three."""
        both = self.builder.and_(a, b)
        return self.builder.or_(both, self.builder.and_(c, self.builder.or_(a, b)))


def _step(name: str, bits: int, lanes: int, size: int, rounds: Callable[[_Lanes, list[Any], list[Any]], Any]) -> Any:
    from numba import types
    from numba.extending import intrinsic

    def step(typing: Any, words: Any, state: Any, mask: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            vectors = _Lanes(builder, bits, lanes)

            def places(number: int, count: int) -> list[Any]:
                array = context.make_array(signature.args[number])(context, builder, args[number])
                start = builder.bitcast(array.data, vectors.type.as_pointer())
                index = types.intp
                return [builder.gep(start, [context.get_constant(index, place)]) for place in range(count)]

            message = [builder.load(place, align=1) for place in places(0, 16)]
            kept = places(1, size)
            before = [builder.load(place, align=1) for place in kept]
            taking = builder.load(places(2, 1)[0], align=1)
            for place, old, new in zip(kept, before, rounds(vectors, list(before), message), strict=True):
                builder.store(builder.add(old, builder.and_(new, taking)), place, align=1)
            return context.get_dummy_value()

        return types.none(words, state, mask), generate

    step.__name__ = name
    return intrinsic(step)


@native
def md5_step() -> Any:
    """``md5_step(words, state, mask)``: MD5, uint32."""

    def rounds(v: _Lanes, state: list[Any], words: list[Any]) -> list[Any]:
        a, b, c, d = state
        for i in range(64):
            if i < 16:
                mixed, place = v.choose(b, c, d), i
            elif i < 32:
                mixed, place = v.choose(d, b, c), (5 * i + 1) % 16
            elif i < 48:
                mixed, place = v.xor(b, c, d), (3 * i + 5) % 16
            else:
                mixed, place = v.xor(c, v.builder.or_(b, v.builder.not_(d))), 7 * i % 16
            sine = v.constant(int(abs(math.sin(i + 1)) * 2**32))
            turned = v.turn(v.add(a, mixed, sine, words[place]), 32 - _MD5_TURNS[i // 16][i % 4])
            a, b, c, d = d, v.add(b, turned), b, c
        return [a, b, c, d]

    return _step("md5_step", 32, LANES, 4, rounds)


@native
def sha1_step() -> Any:
    """``sha1_step(words, state, mask)``: SHA-1, uint32."""

    def rounds(v: _Lanes, state: list[Any], words: list[Any]) -> list[Any]:
        a, b, c, d, e = state
        for i in range(80):
            if i >= 16:
                mixed = v.xor(words[i - 3], words[i - 8], words[i - 14], words[i - 16])
                words.append(v.turn(mixed, 31))
            if i < 20:
                mixed, constant = v.choose(b, c, d), 0x5A827999
            elif i < 40:
                mixed, constant = v.xor(b, c, d), 0x6ED9EBA1
            elif i < 60:
                mixed, constant = v.most(b, c, d), 0x8F1BBCDC
            else:
                mixed, constant = v.xor(b, c, d), 0xCA62C1D6
            made = v.add(v.turn(a, 27), mixed, e, v.constant(constant), words[i])
            a, b, c, d, e = made, a, v.turn(b, 2), c, d
        return [a, b, c, d, e]

    return _step("sha1_step", 32, LANES, 5, rounds)


_Turns = tuple[tuple[int, int, int], tuple[int, int, int], tuple[int, int, int], tuple[int, int, int]]


def _sha2(v: _Lanes, state: list[Any], words: list[Any], count: int, turns: _Turns) -> list[Any]:
    """``turns``: of the schedule's near and far word (the third is a shift), of the fifth and the first word."""
    (near1, near2, near3), (far1, far2, far3), fifth, first = turns
    a, b, c, d, e, f, g, h = state
    for i in range(count):
        if i >= 16:
            near, far = words[i - 15], words[i - 2]
            low = v.xor(v.turn(near, near1), v.turn(near, near2), v.right(near, near3))
            high = v.xor(v.turn(far, far1), v.turn(far, far2), v.right(far, far3))
            words.append(v.add(words[i - 16], low, words[i - 7], high))
        constant = v.constant(_cube_root_bits()[i] >> (64 - v.bits))
        one = v.xor(*(v.turn(e, by) for by in fifth))
        added = v.add(h, one, v.choose(e, f, g), constant, words[i])
        other = v.add(v.xor(*(v.turn(a, by) for by in first)), v.most(a, b, c))
        a, b, c, d, e, f, g, h = v.add(added, other), a, b, c, v.add(d, added), e, f, g
    return [a, b, c, d, e, f, g, h]


@native
def sha256_step() -> Any:
    """``sha256_step(words, state, mask)``: SHA-224 and SHA-256, uint32."""
    turns = ((7, 18, 3), (17, 19, 10), (6, 11, 25), (2, 13, 22))
    return _step("sha256_step", 32, LANES, 8, lambda v, state, words: _sha2(v, state, words, 64, turns))


@native
def sha512_step() -> Any:
    """``sha512_step(words, state, mask)``: SHA-384 and SHA-512, uint64."""
    turns = ((1, 8, 7), (19, 61, 6), (14, 18, 41), (28, 34, 39))
    return _step("sha512_step", 64, WIDE_LANES, 8, lambda v, state, words: _sha2(v, state, words, 80, turns))
