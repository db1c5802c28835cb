"""Bytes as Avro's JSON encoding has them: texts whose characters are the bytes, U+0000 to U+00FF.

Source: Apache Avro specification 1.12, "JSON Encoding". Whole columns at once, by NumPy.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flowsql_compute.eval.columns import make_strings, string_buffers, validity

Bytes = npt.NDArray[np.uint8]

#: What stands for a character that is no byte, as in Java: a question mark.
_NO_BYTE: Final = 0x3F
_WORD_BYTES: Final = 16


def texts_of_bytes(array: Any) -> Any:
    """A column of bytes as texts."""
    offsets, raw = string_buffers(array)
    data = raw[int(offsets[0]) : int(offsets[-1])]
    high = data >= 128
    # Where each byte's character begins: those before it that are high take two bytes.
    ends = np.zeros(len(data) + 1, np.int64)
    np.cumsum(high.astype(np.int64) + 1, out=ends[1:])
    out = np.empty(int(ends[-1]), np.uint8)
    out[ends[:-1]] = np.where(high, 0xC0 | data >> 6, data)
    out[ends[:-1][high] + 1] = 0x80 | data[high] & 0x3F
    return make_strings(ends[offsets - offsets[0]], out, validity(array), pa.string())


def bytes_of_texts(array: Any) -> Any:
    """A column of texts as bytes."""
    offsets, raw = string_buffers(array)
    data = raw[int(offsets[0]) : int(offsets[-1])]
    first = (data & 0xC0) != 0x80
    starts = np.flatnonzero(first)
    heads = data[starts]
    low = data[np.minimum(starts + 1, len(data) - 1)] & 0x3F
    # U+0080 to U+00FF begin with 0xC2 or 0xC3.
    out = np.where(heads < 0x80, heads, np.where(heads <= 0xC3, (heads & 0x03) << 6 | low, _NO_BYTE))
    ends = np.zeros(len(data) + 1, np.int64)
    np.cumsum(first, out=ends[1:])
    return make_strings(ends[offsets - offsets[0]], out.astype(np.uint8), validity(array), pa.binary())


def bytes_of_decimals(array: Any) -> Any:
    """A column of decimals as their digits: two's complement, highest byte first, as few bytes as hold it."""
    count = len(array)
    words = np.frombuffer(array.buffers()[1], np.uint8, _WORD_BYTES * (array.offset + count)) if count else _NOTHING
    big = words.reshape(-1, _WORD_BYTES)[array.offset :, ::-1]
    below_zero = big >= 128
    fill = np.where(below_zero[:, :1], 0xFF, 0)
    # A byte tells nothing when it repeats the sign, and the next one has the same sign.
    idle = (big[:, :-1] == fill) & (below_zero[:, 1:] == below_zero[:, :1])
    skipped = np.logical_and.accumulate(idle, axis=1).sum(axis=1)
    kept = np.arange(_WORD_BYTES) >= skipped[:, None]
    offsets = np.zeros(count + 1, np.int64)
    np.cumsum(_WORD_BYTES - skipped, out=offsets[1:])
    return make_strings(offsets, big[kept], validity(array), pa.binary())


_NOTHING: Final[Bytes] = np.zeros(0, np.uint8)
