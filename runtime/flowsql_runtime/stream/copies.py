"""Copies of Python objects: an element belongs to whoever got it, unless ``pipeline.object-reuse`` says otherwise.

A function hands over a copy of what it emits, because the rows of a batch leave together: what it changes after a
``yield`` must not show. Objects that cannot change are not copied.
"""

from __future__ import annotations

import copy
import datetime as dt
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final
from uuid import UUID

import numpy as np

from flowsql_core.batch import ChangelogBatch, LateColumns, PyObjectColumn
from flowsql_core.errors import ExecutionError, shortened
from flowsql_core.stream.keys import ROW_CLASS
from flowsql_core.stream.window import CountWindow, GlobalWindow, TimeWindow

#: Types whose values nobody can change.
IMMUTABLE: Final = frozenset(
    {
        type(None), bool, int, float, complex, str, bytes, Decimal, Fraction, UUID, range, type,
        dt.datetime, dt.date, dt.time, dt.timedelta, TimeWindow, CountWindow, GlobalWindow,
    }
)  # fmt: skip


def copied(value: Any) -> Any:
    """The value itself where it cannot change, else a deep copy.

    Raises:
        ExecutionError: the object refuses to be copied.
    """
    type_ = type(value)
    if type_ in IMMUTABLE or (type_ is tuple and IMMUTABLE.issuperset(map(type, value))):
        return value
    try:
        return _deep(value, type_)
    except Exception as error:  # what a class raises in __deepcopy__ or __reduce__ is its own
        raise ExecutionError(
            "element-not-copied",
            f"an element of type {type_.__name__} cannot be copied: {type(error).__name__}: {error}",
            hint="emit plain values, or set pipeline.object-reuse to hand objects on without copies",
        ) from error


def _deep(value: Any, type_: type) -> Any:
    # Plain containers of plain values, the usual elements, without the memo of deepcopy.
    if type_ is list and IMMUTABLE.issuperset(map(type, value)):
        return value.copy()
    if type_ is dict and IMMUTABLE.issuperset(map(type, value.values())):
        return value.copy()
    if (type_.__module__, type_.__qualname__) == ROW_CLASS and IMMUTABLE.issuperset(map(type, value)):
        return value.copy()
    return copy.deepcopy(value)


def copied_batch(batch: ChangelogBatch) -> ChangelogBatch:
    """The same rows with copies of all Python objects; Arrow data is shared, late columns stay late."""
    if not batch.holds_objects:
        return batch
    columns = batch.columns
    if not isinstance(columns, LateColumns):
        return batch.with_columns([_copied_column(column) for column in columns])
    places = range(len(columns))
    return batch.with_columns(LateColumns([_copied_entry(columns, place) for place in places]))


def _copied_entry(columns: LateColumns, index: int) -> Any:
    origin = columns.origin(index)
    entry = columns.entry(index)
    return _copied_column(columns[index]) if isinstance(origin[0] if origin else entry, PyObjectColumn) else entry


def _copied_column(column: Any) -> Any:
    if not isinstance(column, PyObjectColumn):
        return column
    return PyObjectColumn(np.fromiter(map(copied, column.values.tolist()), object, len(column)))


def user_copy(function: Any) -> Any:
    """A subtask's own copy of a user's function object; plain functions and classes are shared.

    Raises:
        ExecutionError: the object refuses to be copied.
    """
    try:
        return copy.deepcopy(function)
    except Exception as error:  # what a class raises in __deepcopy__ or __reduce__ is its own
        refusal = error
    try:
        # Modules and the like are shipped by reference.
        import cloudpickle

        return cloudpickle.loads(cloudpickle.dumps(function))
    except Exception as error:
        raise ExecutionError(
            "function-not-copied",
            f"{shortened(repr(function), 120)} cannot be copied for a subtask: {type(refusal).__name__}: {refusal}",
            hint="make connections, locks and files in open(), not in __init__",
        ) from error
