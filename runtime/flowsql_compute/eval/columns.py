"""The one door from Arrow arrays to NumPy and back: straight from the buffers, aware of offsets and bitmaps.

Nothing else on a SQL path turns columns into NumPy: ``to_numpy`` makes floats of integers that have a NULL.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flowsql_core import column_bytes
from flowsql_core.errors import FlowSqlError

Bools = npt.NDArray[np.bool_]
Values = npt.NDArray[Any]

_DTYPES: dict[pa.DataType, str] = {
    pa.int8(): "i1", pa.int16(): "i2", pa.int32(): "i4", pa.int64(): "i8",
    pa.uint8(): "u1", pa.uint16(): "u2", pa.uint32(): "u4", pa.uint64(): "u8",
    pa.float32(): "f4", pa.float64(): "f8", pa.date32(): "i4", pa.time32("ms"): "i4", pa.time32("s"): "i4",
}  # fmt: skip


class TooManyBytesError(FlowSqlError):
    """The values of a column take more than 2 GiB: fewer rows at once would fit."""

    def __init__(self) -> None:
        super().__init__("too-many-bytes", "The values of one column take more than 2 GiB.")


def dtype_of(type_: pa.DataType) -> np.dtype[Any]:
    """NumPy dtype of a fixed-width Arrow type (timestamps and durations: int64).

    Raises:
        TypeError: the type has no such dtype (strings, nested types, booleans, decimals).
    """
    code = _DTYPES.get(type_)
    if code is None:
        if pa.types.is_timestamp(type_) or pa.types.is_duration(type_) or pa.types.is_time64(type_):
            code = "i8"
        else:
            raise TypeError(f"{type_} has no fixed-width NumPy form")
    return np.dtype(code)


def validity(array: pa.Array) -> Bools | None:
    """True where a row is not NULL, shape (n,); None when no row is NULL."""
    if array.null_count == 0:
        return None
    if pa.types.is_null(array.type):
        return np.zeros(len(array), dtype=np.bool_)
    return _bits(array.buffers()[0], array.offset, len(array))


def values_and_validity(array: pa.Array) -> tuple[Values, Bools | None]:
    """Values and validity of a fixed-width column; what stands under a NULL is unspecified.

    Returns:
        ``values``: shape (n,) of the type's dtype, read-only view of the buffer where possible (BOOLEAN: bool,
        unpacked; DECIMAL of at most 18 digits: int64 unscaled values, strided view). A DECIMAL of more digits has
        shape (n, 2): the low and high word, int64 both. ``valid``: bool (n,), None when all are valid.
    """
    n, type_ = len(array), array.type
    valid = validity(array)
    if pa.types.is_null(type_):
        return np.zeros(n, dtype=np.int32), valid
    buffer = array.buffers()[1]
    if pa.types.is_boolean(type_):
        return (np.zeros(n, dtype=np.bool_) if buffer is None else _bits(buffer, array.offset, n)), valid
    if pa.types.is_decimal128(type_):
        words = np.frombuffer(buffer, dtype=np.int64, count=2 * (array.offset + n)).reshape(-1, 2)[array.offset :]
        return (words[:, 0] if type_.precision <= 18 else words), valid
    dtype = dtype_of(type_)
    if n == 0 or buffer is None:
        return np.zeros(n, dtype=dtype), valid
    return np.frombuffer(buffer, dtype=dtype, count=array.offset + n)[array.offset :], valid


def string_buffers(array: pa.Array) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.uint8]]:
    """Offsets (int32, n + 1) and bytes (uint8) of a string or binary column; row i is offsets[i] to offsets[i + 1]."""
    _, offsets, data = array.buffers()
    n = len(array)
    if offsets is None or offsets.size == 0:
        return np.zeros(n + 1, dtype=np.int32), np.zeros(0, dtype=np.uint8)
    starts = np.frombuffer(offsets, dtype=np.int32, count=array.offset + n + 1)[array.offset :]
    raw = np.zeros(0, dtype=np.uint8) if data is None else np.frombuffer(data, dtype=np.uint8)
    return starts, raw


def all_ascii(text: Any) -> bool:
    """Whether no character of a text, or of a column's, is beyond ASCII; the bytes of NULL may count."""
    if isinstance(text, pa.Scalar):
        return not text.is_valid or text.as_py().isascii()
    offsets, data = string_buffers(text)
    used = data[int(offsets[0]) : int(offsets[-1])] if len(text) else data[:0]
    return not len(used) or int(used.max()) < 128


def make_array(values: Values, valid: Bools | None, type_: pa.DataType) -> pa.Array:
    """A column of NumPy values; the inverse of :func:`values_and_validity` (it takes what that returns).

    ``values`` are not copied when they have the type's dtype and are contiguous: do not write to them afterwards.
    """
    n = len(values)
    bitmap = pack_validity(valid)
    if pa.types.is_null(type_):
        return pa.nulls(n)
    if pa.types.is_boolean(type_):
        data = pa.py_buffer(np.packbits(values, bitorder="little"))
    elif pa.types.is_decimal128(type_):
        data = pa.py_buffer(_words(values))
    else:
        data = pa.py_buffer(np.ascontiguousarray(values, dtype=dtype_of(type_)))
    return pa.Array.from_buffers(type_, n, [bitmap, data])


def pack_validity(valid: Bools | None) -> pa.Buffer | None:
    """Arrow's validity bitmap of a mask; None when nothing is NULL."""
    return None if valid is None or valid.all() else pa.py_buffer(np.packbits(valid, bitorder="little"))


def make_strings(
    offsets: npt.NDArray[Any], data: npt.NDArray[np.uint8], valid: Bools | None, type_: pa.DataType
) -> pa.Array:
    """A string or binary column of offsets (n + 1), int32 or int64, and bytes."""
    buffers = [pack_validity(valid), pa.py_buffer(narrow_offsets(offsets)), pa.py_buffer(data)]
    return pa.Array.from_buffers(type_, len(offsets) - 1, buffers)


def spread(value: pa.Scalar, n: int) -> pa.Array:
    """A column of ``n`` times the value.

    Raises:
        TooManyBytesError: they take more than an array holds; Arrow would wrap the offsets around.
    """
    one = pa.repeat(value, 1)
    if column_bytes.bytes_of_rows(one, np.zeros(n, np.int64), n) is not None:
        raise TooManyBytesError
    return pa.repeat(value, n)


def narrow_offsets(offsets: npt.NDArray[Any]) -> npt.NDArray[np.int32]:
    """Offsets of a column, rising, in the 32 bits that Arrow has for them.

    Raises:
        TooManyBytesError: they do not fit.
    """
    if offsets.dtype != np.int32 and len(offsets) and offsets[-1] > column_bytes.MOST_BYTES:
        raise TooManyBytesError
    return offsets.astype(np.int32, copy=False)


def as_type(array: pa.Array, type_: pa.DataType) -> pa.Array:
    """The same buffers under another type of equal physical layout (BIGINT as TIMESTAMP, a DECIMAL's precision)."""
    if array.type == type_:
        return array
    return pa.Array.from_buffers(type_, len(array), array.buffers(), array.null_count, array.offset)


def _bits(buffer: pa.Buffer, offset: int, n: int) -> Bools:
    first, last = offset >> 3, (offset + n + 7) >> 3
    raw = np.frombuffer(buffer, dtype=np.uint8, count=last)[first:]
    start = offset & 7
    return np.unpackbits(raw, count=start + n, bitorder="little")[start:].view(np.bool_)


def _words(values: Values) -> Values:
    if values.ndim == 2:
        return np.ascontiguousarray(values, dtype=np.int64)
    words = np.empty((len(values), 2), dtype=np.int64)
    words[:, 0] = values
    np.right_shift(words[:, 0], 63, out=words[:, 1])
    return words


#: The bits of the NaN that all NaNs are taken for.
_NAN_BITS: Final = np.int64(0x7FF8000000000000)


def floating_bits(values: npt.NDArray[np.floating[Any]]) -> npt.NDArray[np.int64]:
    """Return FLOAT or DOUBLE values (n,) as the bits of doubles, int64 (n,): -0.0 is not 0.0, and NaN is one value."""
    bits: npt.NDArray[np.int64] = np.ascontiguousarray(values, np.float64).view(np.int64)
    nan = np.isnan(values)
    return np.where(nan, _NAN_BITS, bits) if nan.any() else bits
