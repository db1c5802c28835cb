"""Python over the distinct values of columns: for what neither Arrow nor NumPy computes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice, repeat
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flowsql_compute.eval.columns import TooManyBytesError, values_and_validity
from flowsql_core import column_bytes
from flowsql_core.arrow import compute as pc


def map_distinct(column: pa.Array, function: Callable[[Any], Any], type_: pa.DataType) -> pa.Array:
    """``function`` of each distinct value, spread over the rows; NULL stays NULL, and None becomes NULL."""
    if len(column) == 1:
        value = column[0].as_py()
        return pa.array([None if value is None else function(value)], type_)
    encoded = pc.dictionary_encode(column)
    # The one place where values become Python objects: one object a distinct value, not a row.
    values = encoded.dictionary.to_pylist()
    made = _collected((None if value is None else function(value) for value in values), type_)
    return pc.take(made, encoded.indices)


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
    choices: dict[int, tuple[list[Any], npt.NDArray[Any]]] = {}
    code, width = np.zeros(n, dtype=np.int64), 1
    missing = np.zeros(n, dtype=np.bool_)
    for place in varying:
        encoded = pc.dictionary_encode(columns[place])
        indices, valid = values_and_validity(encoded.indices)
        if valid is not None:
            missing |= ~valid
            indices = np.where(valid, indices, 0)
        # An empty dictionary means that all rows are NULL.
        known = encoded.dictionary.to_pylist() or [None]
        choices[place] = (known, indices)
        if width * len(known) > _MOST_CODES:
            # There are no more combinations than rows.
            code, width = values_and_validity(pc.dictionary_encode(pa.array(code)).indices)[0].astype(np.int64), n
        code, width = code * len(known) + indices, width * len(known)
    encoded = pc.dictionary_encode(pa.array(code, mask=missing))
    present = np.flatnonzero(~missing)[::-1]
    # A row of each combination: the first one is written last.
    rows = np.empty(len(encoded.dictionary), dtype=np.int64)
    rows[values_and_validity(encoded.indices)[0][present]] = present
    picked: list[Iterable[Any]] = []
    for place, column in enumerate(columns):
        if isinstance(column, pa.Scalar):
            picked.append(repeat(column.as_py()))
        else:
            known, indices = choices[place]
            picked.append([known[index] for index in indices[rows].tolist()])
    return pc.take(_collected(map(function, *picked), type_), encoded.indices)


def _collected(values: Iterator[Any], type_: pa.DataType) -> pa.Array:
    """The values as a column; long texts do not all lie about as Python objects before they prove too long.

    Raises:
        TooManyBytesError: they take more than an array holds.
    """
    parts: list[pa.Array] = []
    size = 0
    while chunk := list(islice(values, _AT_ONCE)):
        part = pa.array(chunk, type_)
        size += part.nbytes
        if isinstance(part, pa.ChunkedArray) or size > column_bytes.MOST_BYTES:
            raise TooManyBytesError
        parts.append(part)
    return parts[0] if len(parts) == 1 else pa.concat_arrays([pa.array([], type_), *parts])


#: Python values that become a column together.
_AT_ONCE = 4096


#: Combinations of values that have a number of 64 bits each.
_MOST_CODES = 2**62
