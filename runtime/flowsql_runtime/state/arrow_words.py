"""Arrow values as words and back: state keeps fixed-width values as int64 words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flowsql_compute.eval.columns import pack_validity, values_and_validity
from flowsql_compute.keys import FixedColumn, fixed_column
from flowsql_core import column_bytes
from flowsql_core.arrow import compute as pc

Bools = npt.NDArray[np.bool_]
Int64s = npt.NDArray[np.int64]

_NUMPY: Final = {8: np.int8, 16: np.int16, 32: np.int32, 64: np.int64}


def array_of_words(words: Sequence[Int64s], valid: Bools | None, type_: Any) -> Any:
    """An Arrow array of a fixed-width type from its words (int64 (n,) each; two, low and high, for wide DECIMAL).

    Narrow integers wrap to their width. ``valid`` False gives NULL.
    """
    n = len(words[0])
    if pa.types.is_null(type_):
        return pa.nulls(n)
    mask = pack_validity(valid)
    data: npt.NDArray[Any]
    if pa.types.is_boolean(type_):
        data = np.packbits(words[0] != 0, bitorder="little")
    elif pa.types.is_decimal(type_):
        pairs = np.empty((n, 2), np.int64)
        pairs[:, 0] = words[0]
        pairs[:, 1] = words[1] if len(words) == 2 else words[0] >> 63
        data = pairs
    elif pa.types.is_floating(type_):
        doubles = np.ascontiguousarray(words[0]).view(np.float64)
        with np.errstate(over="ignore"):
            data = doubles if type_.bit_width == 64 else doubles.astype(np.float32)
    else:
        data = np.ascontiguousarray(words[0]).astype(_NUMPY[type_.bit_width], copy=False)
    return pa.Array.from_buffers(type_, n, [mask, pa.py_buffer(np.ascontiguousarray(data))])


def array_of_bytes(offsets: Int64s, data: npt.NDArray[np.uint8], valid: Bools | None, type_: Any) -> Any:
    """An Arrow string or binary array from offsets (n + 1) and bytes; wide (``column_bytes``) where they are many."""
    n = len(offsets) - 1
    mask = pack_validity(valid)
    if int(offsets[-1]) > column_bytes.MOST_BYTES:
        return pa.Array.from_buffers(
            column_bytes.wide_type(type_), n, [mask, pa.py_buffer(offsets), pa.py_buffer(data)]
        )
    buffers = [mask, pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(data)]
    if pa.types.is_string(type_) or pa.types.is_binary(type_):
        return pa.Array.from_buffers(type_, n, buffers)
    return pc.cast(pa.Array.from_buffers(pa.binary(), n, buffers), type_)


def word_count(type_: Any) -> int:
    """Words of a fixed-width value: 2 for DECIMAL of more than 18 digits, else 1."""
    return 2 if pa.types.is_decimal(type_) and type_.precision > 18 else 1


def value_words(array: Any) -> FixedColumn:
    """Words of a fixed-width Arrow array as values: like key words, but -0.0 and NaN keep their bits."""
    if not pa.types.is_floating(array.type):
        return fixed_column(array)
    values, valid = values_and_validity(array)
    words = values.astype(np.float64, copy=False).view(np.int64)
    return FixedColumn((words if valid is None else np.where(valid, words, np.int64(0)),), valid)
