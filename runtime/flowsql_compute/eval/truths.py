"""Results of steps as truth values of rows, and as columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flowsql_compute.eval.columns import Bools, make_array, spread, validity, values_and_validity

Datum = Any
Rows = npt.NDArray[np.int64]


def decided_rows(made: Datum, n: int, absorbing: bool) -> Bools:
    """Where the value so far already decides: FALSE of AND, TRUE of OR."""
    if isinstance(made, pa.Scalar):
        return np.full(n, made.is_valid and made.as_py() is absorbing)
    values, valid = values_and_validity(made)
    decided = values if absorbing else ~values
    return decided if valid is None else decided & valid


def spread_truths(part: pa.Array, rows: Rows, n: int) -> pa.Array:
    """Booleans of ``rows`` as a column of ``n`` rows, NULL elsewhere."""
    if pa.types.is_null(part.type):
        return pa.nulls(n, pa.bool_())
    values, valid = values_and_validity(part)
    spread_values, spread_valid = np.zeros(n, dtype=np.bool_), np.zeros(n, dtype=np.bool_)
    spread_values[rows] = values
    spread_valid[rows] = True if valid is None else valid
    return make_array(spread_values, spread_valid, pa.bool_())


def valid_rows(datum: Datum, n: int) -> Bools:
    """True where a result is not NULL."""
    if isinstance(datum, pa.Scalar):
        return np.full(n, datum.is_valid)
    valid = validity(datum)
    return np.ones(n, dtype=np.bool_) if valid is None else valid


def truths(datum: Datum, n: int) -> Bools:
    """True where a result is TRUE."""
    if isinstance(datum, pa.Scalar):
        return np.full(n, bool(datum.is_valid and datum.as_py()))
    if pa.types.is_null(datum.type):
        return np.zeros(n, dtype=np.bool_)
    values, valid = values_and_validity(datum)
    return values if valid is None else values & valid


def as_column(datum: Datum, n: int) -> pa.Array:
    """A result as a column of ``n`` rows."""
    return spread(datum, n) if isinstance(datum, pa.Scalar) else datum
