"""Python over the distinct values of columns: for what neither Arrow nor NumPy computes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from flowsql_core.arrow import compute as pc
from flowsql_core.eval.columns import values_and_validity


def map_distinct(column: pa.Array, function: Callable[[Any], Any], type_: pa.DataType) -> pa.Array:
    """``function`` of each distinct value, spread over the rows; NULL stays NULL, and None becomes NULL."""
    if len(column) == 1:
        value = column[0].as_py()
        return pa.array([None if value is None else function(value)], type_)
    encoded = pc.dictionary_encode(column)
    # The one place where values become Python objects: one object a distinct value, not a row.
    made = [None if value is None else function(value) for value in encoded.dictionary.to_pylist()]
    return pc.take(pa.array(made, type_), encoded.indices)


def map_rows(columns: Sequence[Any], function: Callable[..., Any], type_: pa.DataType) -> pa.Array:
    """``function`` of each distinct combination of several columns' values; NULL where one is NULL.

    Scalars among the columns are the same for all rows; at least one column is an array.
    """
    n = next(len(column) for column in columns if isinstance(column, pa.Array))
    if any(isinstance(column, pa.Scalar) and not column.is_valid for column in columns):
        return pa.nulls(n, type_)
    varying = [place for place, column in enumerate(columns) if isinstance(column, pa.Array)]
    if len(varying) == 1:
        args = [column.as_py() if isinstance(column, pa.Scalar) else None for column in columns]

        def of_one(value: Any) -> Any:
            args[varying[0]] = value
            return function(*args)

        return map_distinct(columns[varying[0]], of_one, type_)
    choices: list[list[Any]] = []
    code = np.zeros(n, dtype=np.int64)
    missing = np.zeros(n, dtype=np.bool_)
    for column in columns:
        if isinstance(column, pa.Scalar):
            choices.append([column.as_py()])
            continue
        encoded = pc.dictionary_encode(column)
        indices, valid = values_and_validity(encoded.indices)
        if valid is not None:
            missing |= ~valid
            indices = np.where(valid, indices, 0)
        # An empty dictionary means that all rows are NULL.
        choices.append(encoded.dictionary.to_pylist() or [None])
        code = code * len(choices[-1]) + indices
    encoded = pc.dictionary_encode(pa.array(code, mask=missing))
    made = [function(*_decoded(value, choices)) for value in encoded.dictionary.to_pylist()]
    return pc.take(pa.array(made, type_), encoded.indices)


def _decoded(code: int, choices: list[list[Any]]) -> list[Any]:
    """The combination behind a code: the last column varies fastest."""
    picked = []
    for known in reversed(choices):
        code, place = divmod(code, len(known))
        picked.append(known[place])
    return picked[::-1]
