"""Values of drivers as Arrow arrays and back, a column at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from flowsql_connectors.jdbc.alchemy.kinds import ANY_TYPE
from flowsql_connectors.jdbc.arrays import client_values, columns_of, leaving, made
from flowsql_core.arrow import compute as pc
from flowsql_core.types import logical as t
from flowsql_core.types.arrow import to_arrow


def arrays(rows: Sequence[Sequence[Any]], columns: t.Schema, zone: str = "UTC") -> list[Any]:
    """Rows of a driver in the types of columns.

    Args:
        zone: in which a TIMESTAMP stands for a moment of the database.

    Raises:
        ExecutionError: a value is none of its type.
    """
    return made(columns_of(rows, len(columns)), columns, lambda values, column: _array(values, column.type, zone))


def _array(values: list[Any], type_: t.LogicalType, zone: str) -> Any:
    """Python's values as Arrow sees them: drivers choose their classes."""
    if isinstance(type_, t.BinaryStringType):
        return pa.array(values, pa.binary())
    if isinstance(type_, t.DecimalType):
        return _digits(values, to_arrow(type_))
    array = pa.array(values)
    if pa.types.is_null(array.type):
        return pa.nulls(len(values), to_arrow(type_))
    if isinstance(type_, t.BooleanType) and pa.types.is_binary(array.type):
        # BIT(1) of MySQL.
        return pc.not_equal(array, pa.scalar(b"\0"))
    if isinstance(type_, t.TimestampType) and pa.types.is_timestamp(array.type) and array.type.tz is not None:
        return pc.local_timestamp(array.cast(pa.timestamp("us", zone)))
    if isinstance(type_, t.TimeType) and pa.types.is_duration(array.type):
        return array.cast(pa.int64()).cast(pa.time64("us"))
    if isinstance(type_, t.CharacterType) and not pa.types.is_string(array.type):
        raise TypeError(f"the driver gives values of the Arrow type {array.type}")
    return array


def _digits(values: list[Any], wanted: Any) -> Any:
    try:
        return pa.array(values, wanted)
    except (pa.ArrowException, TypeError):
        # Texts, floats, and zeros behind the scale.
        return pa.array(values).cast(wanted)


def parameters(array: Any, kind: str) -> list[Any]:
    """The values of an array as Python objects that drivers take; where columns hold any type, moments and numbers of
    digits as texts."""
    found: list[Any] = client_values(array) if kind in ANY_TYPE else leaving(array).to_pylist()
    return found
