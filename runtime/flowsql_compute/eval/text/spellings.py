"""Text and byte columns in other spellings by the kernels of ``kernels.spellings``: base 64, hexadecimal digits,
character sets. For columns of ``KERNEL_ROWS`` rows and more.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flowsql_compute.eval.columns import Bools, make_strings, string_buffers, validity
from flowsql_compute.kernels import spellings
from flowsql_compute.kernels.contiguous import for_kernel

_BASE_64: Final = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
#: Offsets of text columns have 32 bits.
_MOST_BYTES: Final = 2**31 - 1
#: Python's names of the character sets that the kernel writes, and how many bytes a byte of UTF-8 takes at most.
_CHARSETS: Final = {
    "ascii": (spellings.ASCII, 1), "latin-1": (spellings.LATIN_1, 1), "utf-16": (spellings.UTF_16, 2),
    "utf-16-be": (spellings.UTF_16_BE, 2), "utf-16-le": (spellings.UTF_16_LE, 2),
    "utf-32-be": (spellings.UTF_32_BE, 4), "utf-32-le": (spellings.UTF_32_LE, 4),
}  # fmt: skip


def _codes(digits: bytes) -> npt.NDArray[np.int8]:
    """The value of each byte that is a digit, -1 of others, (256,)."""
    codes = np.full(256, -1, dtype=np.int8)
    codes[list(digits)] = np.arange(len(digits))
    return codes


def _buffers(column: pa.Array) -> tuple[Any, Any, int]:
    """Offsets and bytes for a kernel, and how many bytes the rows have."""
    offsets, data = string_buffers(column)
    return for_kernel(offsets), for_kernel(data), int(offsets[-1]) - int(offsets[0])


def to_base64(column: pa.Array) -> pa.Array | None:
    """The bytes of each row in base 64; None: the column is too long."""
    offsets, data, _ = _buffers(column)
    ends = np.cumsum((np.diff(offsets).astype(np.int64) + 2) // 3 * 4)
    if len(ends) and ends[-1] > _MOST_BYTES:
        return None
    out_offsets = np.zeros(len(offsets), dtype=np.int32)
    out_offsets[1:] = ends
    out = np.empty(int(out_offsets[-1]), dtype=np.uint8)
    letters = np.frombuffer(_BASE_64, dtype=np.uint8)
    spellings.base64_encode(offsets, data, for_kernel(letters), out_offsets, out)
    return make_strings(out_offsets, out, validity(column), pa.string())


def from_base64(column: pa.Array) -> tuple[pa.Array, Bools]:
    """The texts that base 64 says, and the rows that are left to the slow way."""
    return _decoded(column, pa.string())


def bytes_of_base64(column: pa.Array) -> tuple[pa.Array, Bools]:
    """The bytes that base 64 says, and the rows that say none."""
    return _decoded(column, pa.binary())


def _decoded(column: pa.Array, type_: pa.DataType) -> tuple[pa.Array, Bools]:
    offsets, data, size = _buffers(column)
    left = np.empty(len(column), dtype=np.bool_)
    out_offsets, out = np.empty(len(offsets), dtype=np.int32), np.empty(size, dtype=np.uint8)
    as_text = pa.types.is_string(type_)
    written = spellings.base64_decode(offsets, data, _codes(_BASE_64), as_text, left, out_offsets, out)
    valid = validity(column)
    return make_strings(out_offsets, out[:written], valid, type_), left if valid is None else left & valid


def from_hex(column: pa.Array) -> pa.Array:
    """The bytes of hexadecimal digits; NULL of other texts."""
    offsets, data, size = _buffers(column)
    codes = _codes(b"0123456789abcdef")
    codes[list(b"ABCDEF")] = np.arange(10, 16)
    wrong = np.empty(len(column), dtype=np.bool_)
    out_offsets, out = np.empty(len(offsets), dtype=np.int32), np.empty(size, dtype=np.uint8)
    written = spellings.hex_decode(offsets, data, codes, wrong, out_offsets, out)
    valid = validity(column)
    return make_strings(out_offsets, out[:written], ~wrong if valid is None else valid & ~wrong, pa.binary())


def encoded(column: pa.Array, charset: str) -> pa.Array | None:
    """Texts in a character set of Python's name; None: the kernel does not write it, or the column is too long."""
    if charset not in _CHARSETS:
        return None
    number, most = _CHARSETS[charset]
    offsets, data, size = _buffers(column)
    # UTF-16 begins each text with a mark.
    room = most * size + 2 * len(column)
    if room > _MOST_BYTES:
        return None
    out_offsets, out = np.empty(len(offsets), dtype=np.int32), np.empty(room, dtype=np.uint8)
    written = spellings.encode_text(offsets, data, number, out_offsets, out)
    return make_strings(out_offsets, out[:written], validity(column), pa.binary())
