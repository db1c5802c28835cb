"""Columns that a table was declared with beside those that the lake has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from flowsql_core.arrow import compute as pc
from flowsql_core.errors import BindError, ExecutionError, did_you_mean
from flowsql_core.types import logical as t
from flowsql_core.types.arrow import to_arrow


def whole_rows(shown: str, schema: Any, places: Sequence[int | None], columns: Sequence[Any], num_rows: int) -> Any:
    """A record batch of all columns of a lake's table; those that an INSERT does not give are NULL.

    Args:
        shown: the table, as messages call it.
        places: of each column of the schema its place among ``columns``; None: it is not given.

    Raises:
        ExecutionError: a column takes no NULL and gets one, or a value does not fit.
    """
    arrays = []
    for place, field in zip(places, schema, strict=True):
        if place is None:
            arrays.append(pa.nulls(num_rows, field.type))
            continue
        array = converted(columns[place], field.type, field.name)
        if not field.nullable and array.null_count:
            raise ExecutionError("lake-value", f"Column '{field.name}' of {shown} takes no NULL.")
        arrays.append(array)
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def matched(table: str, declared: t.Schema, there: t.Schema, *, exact_case: bool = False) -> list[int]:
    """For each declared column the place of the lake's.

    Args:
        table: the name of the lake's table, for messages.
        exact_case: names must be the same in each letter; else they may differ in case where none is the same.

    Raises:
        BindError: there is none, or it has values of another type.
    """
    names = [column.name for column in there]
    places = []
    for column in declared:
        place = next((at for at, name in enumerate(names) if name == column.name), None)
        if place is None and not exact_case:
            place = next((at for at, name in enumerate(names) if name.lower() == column.name.lower()), None)
        if place is None:
            raise BindError(
                "lake-column",
                f"Table '{table}' has no column '{column.name}'.",
                hint=did_you_mean(column.name, names) or "it has " + ", ".join(names),
            )
        if not fits(there[place].type, column.type):
            raise BindError(
                "lake-column",
                f"Column '{column.name}' of table '{table}' is {there[place].type.as_nullable()}, which is not read or "
                f"written as {column.type.as_nullable()}.",
                hint=f"declare it as {there[place].type.as_nullable()}, and CAST in the query",
            )
        places.append(place)
    return places


def fits(stored: t.LogicalType, declared: t.LogicalType) -> bool:
    """Whether values of a type of the lake are values of a declared one; those that have no room are errors."""
    match stored, declared:
        case (t.IntegerType(), t.IntegerType()) | (t.CharacterType(), t.CharacterType()):
            return True
        case (t.BinaryStringType(), t.BinaryStringType()):
            return True
        case (t.DecimalType(), t.DecimalType()):
            return stored.scale == declared.scale
        case (t.TimestampType(), t.TimestampType()) | (t.TimestampLtzType(), t.TimestampLtzType()):
            return True
        case (t.TimeType(), t.TimeType()):
            return True
        case t.ArrayType(element=a), t.ArrayType(element=b):
            return fits(a, b)
        case t.MapType(key=key, value=value), t.MapType(key=other_key, value=other_value):
            return fits(key, other_key) and fits(value, other_value)
        case t.MapType(key=key, value=value), t.MultisetType(element=element):
            return fits(key, element) and isinstance(value, t.IntType)
        case t.RowType(fields=fields), t.RowType(fields=others):
            return [field.name for field in fields] == [field.name for field in others] and all(
                fits(a.type, b.type) for a, b in zip(fields, others, strict=True)
            )
    return stored.same(declared)


def converted(array: Any, target: pa.DataType, column: str) -> Any:
    """An array of a data file, or for one, with another type that :func:`fits` allows.

    Digits of times past those of the type are cut off.

    Raises:
        ExecutionError: a value has no room in the type.
    """
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    if isinstance(array.type, pa.BaseExtensionType):
        array = array.storage
    if isinstance(target, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(target, converted(array, target.storage_type, column))
    if array.type.equals(target, check_metadata=True):
        return array
    try:
        return pc.cast(array, options=pc.CastOptions(target, allow_time_truncate=True))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise ExecutionError(
            "lake-value", f"Column '{column}' holds a value that has no room in {target}: {error}"
        ) from error


def as_declared(arrays: Sequence[Any], output: t.Schema) -> tuple[Any, ...]:
    """Arrays of data files with the types of the scan."""
    return tuple(
        converted(array, to_arrow(column.type), column.name) for array, column in zip(arrays, output, strict=True)
    )
