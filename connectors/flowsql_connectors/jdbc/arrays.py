"""Arrow arrays between client libraries and the types of declared columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa

from flowsql_core.arrow import compute as pc
from flowsql_core.errors import ExecutionError
from flowsql_core.types.arrow import to_arrow
from flowsql_core.types.logical import Column, Schema


def arrived(arrays: Sequence[Any], columns: Schema, whole_seconds: bool = True) -> list[Any]:
    """Arrays of a client library in the types of declared columns.

    Args:
        whole_seconds: times lose their fractions, as in Flink's jdbc connector, whose drivers have them in seconds.

    Raises:
        ExecutionError: a value has none, e.g. NaN as a DECIMAL.
    """
    found = []
    for array, column in zip(arrays, columns, strict=True):
        with _judged(column):
            found.append(_as(array, to_arrow(column.type), whole_seconds))
    return found


def made(values: Sequence[list[Any]], columns: Schema, make: Callable[[list[Any], Column], Any]) -> list[Any]:
    """Columns of a client's Python objects in the types of declared columns.

    Args:
        make: an array of a column's objects, in whatever type they have.

    Raises:
        ExecutionError: a value has none.
    """
    found = []
    for column, own in zip(columns, values, strict=True):
        with _judged(column):
            found.append(make(own, column))
    return arrived(found, columns)


@contextmanager
def _judged(column: Column) -> Iterator[None]:
    """What a value of a column is not, in one sentence."""
    try:
        yield
    except (pa.ArrowException, OverflowError, TypeError, ValueError) as error:
        raise ExecutionError(
            "bad-database-value",
            f"A value of column '{column.name}' of the database is no {column.type.as_nullable()}: "
            f"{str(error).splitlines()[0]}.",
        ) from error


def _as(array: Any, type_: Any, whole_seconds: bool) -> Any:
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if array.type == type_:
        return array
    kinds = pa.types
    if kinds.is_list(type_) and kinds.is_list(array.type):
        values = _as(array.values, type_.value_type, whole_seconds)
        made = pa.ListArray.from_arrays(array.offsets, values, mask=array.is_null() if array.null_count else None)
        return made.cast(type_)
    if kinds.is_timestamp(type_):
        if kinds.is_string(array.type):
            array = array.cast(pa.timestamp("us", type_.tz))
        if type_.unit == "ms" and array.type.unit != "ms":
            # A cast alone cuts towards 1970.
            array = pc.floor_temporal(array, unit="millisecond")
        return array.cast(type_, safe=False)
    if kinds.is_time32(type_):
        if kinds.is_string(array.type):
            moments = pc.binary_join_element_wise(pa.scalar("1970-01-01"), array, pa.scalar(" "))
            array = moments.cast(pa.timestamp("us")).cast(pa.time64("us"))
        if whole_seconds:
            array = array.cast(pa.time32("s"), safe=False)
        return array.cast(type_, safe=False)
    return array.cast(type_)


def leaving(array: Any) -> Any:
    """An array in types that databases take: no ``int8``, timestamps in microseconds, times in whole seconds."""
    type_ = _widened(array.type)
    if pa.types.is_time(type_):
        return array.cast(pa.time32("s"), safe=False).cast(type_)
    return array if type_ == array.type else array.cast(type_, safe=False)


def _widened(type_: Any) -> Any:
    kinds = pa.types
    if kinds.is_int8(type_):
        return pa.int16()
    if kinds.is_time(type_):
        return pa.time64("us")
    if kinds.is_timestamp(type_):
        return pa.timestamp("us", type_.tz)
    if kinds.is_list(type_):
        return pa.list_(_widened(type_.value_type))
    return type_


def client_values(array: Any) -> list[Any]:
    """The values of an array as Python objects that drivers of rows take: times and numbers of digits as texts."""
    kinds = pa.types
    array = leaving(array)
    if kinds.is_timestamp(array.type):
        array = array.cast(pa.timestamp("us")).cast(pa.string())
    elif kinds.is_temporal(array.type) or kinds.is_decimal(array.type):
        array = array.cast(pa.string())
    found: list[Any] = array.to_pylist()
    return found


def columns_of(rows: Sequence[Sequence[Any]], width: int) -> list[list[Any]]:
    """Rows of a client library by column."""
    return [list(column) for column in zip(*rows, strict=True)] if rows else [[] for _ in range(width)]


def positions(values: Any) -> Any:
    """Numbers of keys as int32, (n,)."""
    return np.asarray(values).astype(np.int32)
