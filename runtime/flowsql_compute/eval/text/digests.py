"""Message digests of whole columns by the kernels of ``kernels.digests``."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flowsql_compute.eval.columns import make_strings, string_buffers, validity
from flowsql_compute.eval.text.columns import KERNEL_ROWS
from flowsql_compute.kernels.contiguous import for_kernel
from flowsql_compute.kernels.digest_lanes import primes, square_root_bits

#: Bytes of each digest.
_BYTES: Final = {"md5": 16, "sha1": 20, "sha224": 28, "sha256": 32, "sha384": 48, "sha512": 64}
#: Texts longer than this on average gain more from a processor's own instructions than they lose in calls.
_LONG: Final = 1000
#: Offsets of text columns have 32 bits.
_MOST_BYTES: Final = 2**31 - 1


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
    from flowsql_compute.kernels import digests as kernels

    tail = np.empty(256, dtype=np.uint8)
    words, state, mask = (np.empty(size, dtype=np.uint32) for size in (128, 64, 8))
    match algorithm:
        case "md5":
            kernels.md5_rows(offsets, data, _old_start(4), tail, words, state, mask, out)
        case "sha1":
            kernels.sha1_rows(offsets, data, _old_start(5), tail, words, state, mask, out)
        case "sha224" | "sha256":
            # SHA-224 begins with the lower halves of what SHA-384 begins with.
            start = _sha2_start(8) & np.uint64(0xFFFFFFFF) if algorithm == "sha224" else _sha2_start(0) >> np.uint64(32)
            count = _BYTES[algorithm] // 4
            kernels.sha256_rows(offsets, data, start.astype(np.uint32), count, tail, words, state, mask, out)
        case _:
            start, count = _sha2_start(8 if algorithm == "sha384" else 0), _BYTES[algorithm] // 8
            wide, held, taking = (np.empty(size, dtype=np.uint64) for size in (128, 64, 8))
            kernels.sha512_rows(offsets, data, start, count, tail, wide, held, taking, out)


def _old_start(words: int) -> npt.NDArray[np.uint32]:
    return np.array([0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476, 0xC3D2E1F0][:words], dtype=np.uint32)


def _sha2_start(skipped: int) -> npt.NDArray[np.uint64]:
    """Of eight primes, the first of which are left out."""
    return np.array([square_root_bits(prime) for prime in primes()[skipped : skipped + 8]], dtype=np.uint64)
