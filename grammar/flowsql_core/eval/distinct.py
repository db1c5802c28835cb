"""Python over the distinct values of a column: for what neither Arrow nor NumPy computes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc


def map_distinct(column: pa.Array, function: Callable[[Any], Any], type_: pa.DataType) -> pa.Array:
    """``function`` of each distinct value, spread over the rows; NULL stays NULL, and None becomes NULL."""
    if len(column) == 1:
        value = column[0].as_py()
        return pa.array([None if value is None else function(value)], type_)
    encoded = pc.dictionary_encode(column)
    # The one place where values become Python objects: one object a distinct value, not a row.
    made = [None if value is None else function(value) for value in encoded.dictionary.to_pylist()]
    return pc.take(pa.array(made, type_), encoded.indices)
