"""Texts of columnar files: those that are no UTF-8, and binaries of a fixed length that are read as texts."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa

from flowsql_compute.eval.text.render import over_distinct
from flowsql_connectors.formats.columnar.field_names import named_as
from flowsql_core.arrow import compute as pc

_HEX: Final = np.frombuffer(b"0123456789abcdef", np.uint8)
#: Where the 32 digits of a UUID stand in its 36 characters.
_UUID_PLACES: Final = np.array([place for place in range(36) if place not in (8, 13, 18, 23)])


def well_formed(array: Any) -> Any:
    """The array with U+FFFD for bytes that are no UTF-8, at any depth, as Java shows them.

    A reader of files does not look: Arrow's functions fail, or worse, on such texts.
    """
    if not _may_hold_text(array.type):
        return array
    try:
        if pa.types.is_string(array.type):
            pc.cast(array.view(pa.binary()), pa.string())
        else:
            array.validate(full=True)
    except pa.ArrowInvalid:
        return named_as(array, array.type, _replaced)
    return array


def texts_of_binaries(array: Any) -> Any:
    """Texts of a column of bytes: of a UUID its 36 characters, of others the characters that they encode.

    Raises:
        pa.ArrowNotImplementedError: bytes of a fixed length, which are no text.
    """
    if isinstance(array.type, pa.UuidType):
        return _uuid_texts(array.storage)
    if pa.types.is_fixed_size_binary(array.type):
        raise pa.ArrowNotImplementedError("bytes of a fixed length are no text: declare the column as BYTES")
    return well_formed(array.view(pa.string())) if pa.types.is_binary(array.type) else array


def _may_hold_text(type_: Any) -> bool:
    if pa.types.is_nested(type_):
        return any(_may_hold_text(type_.field(index).type) for index in range(type_.num_fields))
    return bool(pa.types.is_string(type_))


def _replaced(array: Any, target: Any) -> Any:
    if not pa.types.is_string(target):
        return array
    return over_distinct(array.view(pa.binary()), lambda value: value.decode("utf-8", "replace"))


def _uuid_texts(storage: Any) -> Any:
    """Texts of 16 bytes each, lower case, with hyphens."""
    rows = len(storage)
    data = np.frombuffer(storage.buffers()[1], np.uint8)[16 * storage.offset : 16 * (storage.offset + rows)]
    made = np.full((rows, 36), ord("-"), np.uint8)
    digits = np.stack((_HEX[data >> 4], _HEX[data & 15]), axis=1).reshape(rows, 32)
    made[:, _UUID_PLACES] = digits
    offsets = np.arange(0, 36 * (rows + 1), 36, dtype=np.int32)
    texts = pa.StringArray.from_buffers(rows, pa.py_buffer(offsets), pa.py_buffer(made.tobytes()))
    return pc.if_else(storage.is_valid(), texts, pa.scalar(None, pa.string())) if storage.null_count else texts
