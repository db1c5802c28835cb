"""Message digests of whole columns by the kernels of ``kernels.digests``."""

from __future__ import annotations

import math
from functools import cache
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flowsql_core.eval.columns import make_strings, string_buffers, validity
from flowsql_core.eval.text_kernels import KERNEL_ROWS
from flowsql_core.kernels.views import for_kernel

#: Bytes of each digest.
_BYTES: Final = {"md5": 16, "sha1": 20, "sha224": 28, "sha256": 32, "sha384": 48, "sha512": 64}
#: Texts longer than this on average gain more from a processor's own instructions than they lose in calls.
_LONG: Final = 1000
#: Offsets of text columns have 32 bits.
_MOST_BYTES: Final = 2**31 - 1
_MD5_SHIFTS: Final = ((7, 12, 17, 22), (5, 9, 14, 20), (4, 11, 16, 23), (6, 10, 15, 21))


def digests(column: pa.Array, algorithm: str) -> pa.Array | None:
    """The digests of a binary column in hexadecimal digits, NULL of NULL.

    None for short columns and for long texts, where the library of digests is faster.
    """
    n, size = len(column), 2 * _BYTES[algorithm]
    if n < KERNEL_ROWS or n * size > _MOST_BYTES:
        return None
    offsets, data = string_buffers(column)
    if int(offsets[-1]) - int(offsets[0]) > n * _LONG:
        return None
    out = np.empty(n * size, dtype=np.uint8)
    _run(algorithm, for_kernel(offsets), for_kernel(data), out)
    return make_strings(np.arange(0, n * size + 1, size, dtype=np.int32), out, validity(column), pa.string())


def _run(algorithm: str, offsets: Any, data: Any, out: npt.NDArray[np.uint8]) -> None:
    from flowsql_core.kernels import digests as kernels

    tail = np.empty(256, dtype=np.uint8)
    words, state = np.empty(80, dtype=np.uint32), np.empty(8, dtype=np.uint32)
    match algorithm:
        case "md5":
            kernels.md5_rows(offsets, data, *_md5_constants(), tail, words, state, out)
        case "sha1":
            kernels.sha1_rows(offsets, data, tail, words, state, out)
        case "sha224" | "sha256":
            # SHA-224 begins with the lower halves of what SHA-384 begins with.
            start = _sha2_start(8) & np.uint64(0xFFFFFFFF) if algorithm == "sha224" else _sha2_start(0) >> np.uint64(32)
            constants = (_sha2_constants()[:64] >> np.uint64(32)).astype(np.uint32)
            count = _BYTES[algorithm] // 4
            kernels.sha256_rows(offsets, data, constants, start.astype(np.uint32), count, tail, words, state, out)
        case _:
            start, count = _sha2_start(8 if algorithm == "sha384" else 0), _BYTES[algorithm] // 8
            wide, held = np.empty(80, dtype=np.uint64), np.empty(8, dtype=np.uint64)
            kernels.sha512_rows(offsets, data, _sha2_constants(), start, count, tail, wide, held, out)


@cache
def _md5_constants() -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint32]]:
    """The first 32 bits of the sines of 1 to 64, and how far each step turns."""
    sines = np.array([int(abs(math.sin(step + 1)) * 2**32) for step in range(64)], dtype=np.uint32)
    return sines, np.array([_MD5_SHIFTS[step // 16][step % 4] for step in range(64)], dtype=np.uint32)


@cache
def _primes() -> tuple[int, ...]:
    return tuple(n for n in range(2, 410) if all(n % k for k in range(2, math.isqrt(n) + 1)))


@cache
def _sha2_constants() -> npt.NDArray[np.uint64]:
    """The first 64 bits of the fractions of the cube roots of the first 80 primes."""
    return np.array([_cube_root(prime << 192) % 2**64 for prime in _primes()], dtype=np.uint64)


def _sha2_start(skipped: int) -> npt.NDArray[np.uint64]:
    """The first 64 bits of the fractions of the square roots of eight primes."""
    return np.array([math.isqrt(prime << 128) % 2**64 for prime in _primes()[skipped : skipped + 8]], dtype=np.uint64)


def _cube_root(number: int) -> int:
    low, high = 0, 1 << (number.bit_length() // 3 + 1)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if middle**3 <= number else (low, middle - 1)
    return low
