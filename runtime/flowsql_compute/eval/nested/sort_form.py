"""ROWs and ARRAYs as bytes that sort as the values do, so that operators which sort words and texts sort them too.

Inside of a value NULL comes before everything else, whatever the order says of NULL itself. Fields decide one after
another, elements one after another, and an ARRAY comes after its own beginning. The zeros sort alike, NaN is the
largest number.

Source: Flink, ``GenerateUtils.generateRowCompare`` and ``generateArrayCompare``.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa

from flowsql_compute.eval.columns import make_strings, validity, values_and_validity
from flowsql_compute.keys import is_bytes_type
from flowsql_core.arrow import compute as pc

_NULL: Final = pa.scalar(b"\0", pa.binary())
_THERE: Final = pa.scalar(b"\1", pa.binary())
_EMPTY: Final = pa.scalar(b"", pa.binary())
_SIGN: Final = np.uint64(1 << 63)


def is_sorted_by_form(type_: Any) -> bool:
    """True if columns of an Arrow type are sorted by :func:`sort_form`."""
    return bool(pa.types.is_struct(type_) or pa.types.is_list(type_))


def sort_form(column: Any) -> Any:
    """Return a binary column that sorts ascending, byte by byte, as the values of a column do; NULL stays NULL.

    >>> rows = pa.array([{"a": 2}, {"a": None}, {"a": 1}])
    >>> pc.sort_indices(sort_form(rows)).to_pylist()
    [1, 2, 0]
    """
    made = _inside(column)
    valid = validity(column)
    return made if valid is None else pc.if_else(pa.array(valid), made, pa.scalar(None, pa.binary()))


def _form(column: Any) -> Any:
    """The form of a part of a value: a byte for NULL in front."""
    if column.null_count == 0:
        return _joined(_THERE, _inside(column))
    return pc.if_else(column.is_valid(), _joined(_THERE, _inside(column)), _NULL)


def _inside(column: Any) -> Any:
    """The form of values that are there, without NULLs of its own; anything at NULL."""
    type_ = column.type
    if pa.types.is_struct(type_):
        fields = [_form(column.field(place)) for place in range(type_.num_fields)]
        return _joined(*fields) if fields else pa.array([b""] * len(column), pa.binary())
    if pa.types.is_list(type_):
        lengths = pc.fill_null(pc.list_value_length(column), 0)
        offsets = np.concatenate([[0], np.cumsum(values_and_validity(lengths)[0])]).astype(np.int32)
        elements = _joined(_THERE, _form(column.flatten()))
        return _joined(pc.binary_join(pa.ListArray.from_arrays(pa.array(offsets), elements), _EMPTY), _NULL)
    if is_bytes_type(type_):
        # A zero byte ends a text; one inside of it is marked as no end.
        data = pc.fill_null(pc.cast(column, pa.binary()), b"")
        return _joined(
            pc.replace_substring(data, pattern=b"\0", replacement=b"\0\xff"), pa.scalar(b"\0\0", pa.binary())
        )
    return _fixed(column)


def _fixed(column: Any) -> Any:
    """Numbers, moments and truths: big-endian words."""
    values, _ = values_and_validity(column)
    if values.ndim == 2:
        words = [values[:, 1].view(np.uint64) ^ _SIGN, values[:, 0].view(np.uint64)]
    elif values.dtype.kind == "f":
        numbers = values.astype(np.float64) + 0.0
        bits = np.where(np.isnan(numbers), np.float64("nan"), numbers).view(np.int64)
        words = [(bits ^ ((bits >> np.int64(63)) & np.int64(2**63 - 1))).view(np.uint64) ^ _SIGN]
    else:
        words = [values.astype(np.int64).view(np.uint64) ^ _SIGN]
    matrix = np.stack(words, axis=1).astype(">u8")
    offsets = np.arange(len(column) + 1, dtype=np.int32) * np.int32(8 * len(words))
    return make_strings(offsets, np.ascontiguousarray(matrix).view(np.uint8).reshape(-1), None, pa.binary())


def _joined(*parts: Any) -> Any:
    return pc.binary_join_element_wise(*parts, _EMPTY)
