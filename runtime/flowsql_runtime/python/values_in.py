"""Columns to Python values, a whole column at a time: what a row-wise function is called with.

TINYINT to BIGINT become int, DECIMAL Decimal, TIMESTAMP datetime (to the microsecond), TIMESTAMP_LTZ datetime in the
session's zone, TIME time, a day-time interval timedelta, a year-month one int months, ARRAY list, MAP and MULTISET
dict, ROW Row, NULL None.
"""

from __future__ import annotations

import datetime
import decimal
import itertools
import zoneinfo
from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flowsql_compute.eval.columns import validity, values_and_validity
from flowsql_core.arrow import compute as pc
from flowsql_core.errors import ExecutionError, NotSupportedYetError
from flowsql_core.types import logical as t
from flowsql_core.udf import ROW_CLASS

#: A column as a list of Python values.
Reader = Callable[[pa.Array], list[Any]]

_PER_DAY: Final = {"ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}
_FIRST_DAY: Final = datetime.date.min.toordinal() - datetime.date(1970, 1, 1).toordinal()
_LAST_DAY: Final = datetime.date.max.toordinal() - datetime.date(1970, 1, 1).toordinal()


def reader(type_: t.LogicalType, zone: str) -> Reader:
    """What turns columns of a type into lists.

    Raises:
        NotSupportedYetError: values of the type have no Python form.
    """
    match type_:
        case t.BooleanType() | t.IntegerType() | t.ApproximateType() | t.YearMonthIntervalType():
            return _plain
        case t.CharacterType() | t.BinaryStringType():
            return _objects
        case t.DecimalType():
            return _decimals
        case t.DateType():
            return _dates
        case t.TimeType():
            return _times
        case t.TimestampType():
            return _moments
        case t.TimestampLtzType():
            return _zoned(zone)
        case t.DayTimeIntervalType():
            return _intervals
        case t.NullType():
            return lambda column: [None] * len(column)
        case t.ArrayType(element=element):
            return _lists(reader(element, zone))
        case t.MapType(key=key, value=value):
            return _maps(reader(key, zone), reader(value, zone))
        case t.MultisetType(element=element):
            return _maps(reader(element, zone), _plain)
        case t.RowType(fields=fields):
            return _rows(tuple(field.name for field in fields), [reader(field.type, zone) for field in fields])
    raise NotSupportedYetError(f"{type_.as_nullable()} in Python functions")


@cache
def tzinfo_of(zone: str) -> datetime.tzinfo:
    """The zone of an IANA name or an offset such as ``+02:00``."""
    if zone in ("UTC", "Z"):
        return datetime.UTC
    if zone[:1] in "+-":
        hours, _, minutes = zone[1:].partition(":")
        offset = datetime.timedelta(hours=int(hours), minutes=int(minutes or 0))
        return datetime.timezone(-offset if zone[0] == "-" else offset)
    return zoneinfo.ZoneInfo(zone)


@cache
def row_class() -> Any:
    """The class of rows as programs know it."""
    module, _, name = ROW_CLASS.partition(":")
    return getattr(import_module(module), name)


def _with_nulls(values: list[Any], column: pa.Array) -> list[Any]:
    valid = validity(column)
    if valid is not None:
        for row in np.flatnonzero(~valid).tolist():
            values[row] = None
    return values


def _plain(column: pa.Array) -> list[Any]:
    return _with_nulls(values_and_validity(column)[0].tolist(), column)


def _objects(column: pa.Array) -> list[Any]:
    # Texts and bytes are made by Arrow itself, NULLs too.
    made: list[Any] = column.to_numpy(zero_copy_only=False).tolist()
    return made


def _decimals(column: pa.Array) -> list[Any]:
    texts = _objects(pc.cast(column, pa.string()))
    if column.null_count:
        return [None if text is None else decimal.Decimal(text) for text in texts]
    return list(map(decimal.Decimal, texts))


def _dates(column: pa.Array) -> list[Any]:
    days = values_and_validity(column)[0].astype(np.int64)
    return _with_nulls(_in_calendar(days, column, 1).view("M8[D]").tolist(), column)


def _in_calendar(raw: npt.NDArray[np.int64], column: pa.Array, per_day: int) -> npt.NDArray[np.int64]:
    """Counts since 1970, ``per_day`` of them a day, that Python's calendar holds; 0 under a NULL."""
    valid = validity(column)
    if valid is not None:
        raw = np.where(valid, raw, 0)
    if len(raw) and (raw.min() < _FIRST_DAY * per_day or raw.max() >= (_LAST_DAY + 1) * per_day):
        raise ExecutionError(
            "python-calendar", "A date outside of the years 1 to 9999 cannot be handed to a Python function."
        )
    return raw


def _times(column: pa.Array) -> list[Any]:
    moments = values_and_validity(column)[0].astype(np.int64).view("M8[ms]").astype("M8[us]")
    return _with_nulls([moment.time() for moment in moments.tolist()], column)


def _moments(column: pa.Array) -> list[Any]:
    unit = column.type.unit
    raw = _in_calendar(values_and_validity(column)[0], column, _PER_DAY[unit])
    return _with_nulls(raw.view(f"M8[{unit}]").astype("M8[us]").tolist(), column)


def _zoned(zone: str) -> Reader:
    where = tzinfo_of(zone)
    utc = datetime.UTC

    def read(column: pa.Array) -> list[Any]:
        return [None if moment is None else moment.replace(tzinfo=utc).astimezone(where) for moment in _moments(column)]

    return read


def _intervals(column: pa.Array) -> list[Any]:
    return _with_nulls(values_and_validity(column)[0].view("m8[ms]").tolist(), column)


# Nested


def _slices(column: pa.Array) -> tuple[list[int], int, int]:
    """Offsets of the rows from the first row's, and which part of the children the rows hold."""
    offsets = values_and_validity(column.offsets)[0]
    first, last = int(offsets[0]), int(offsets[-1])
    return (offsets - first).tolist(), first, last


def _lists(element: Reader) -> Reader:
    def read(column: pa.Array) -> list[Any]:
        offsets, first, last = _slices(column)
        values = element(column.values.slice(first, last - first))
        made: list[Any] = [values[start:stop] for start, stop in itertools.pairwise(offsets)]
        return _with_nulls(made, column)

    return read


def _maps(key: Reader, value: Reader) -> Reader:
    def read(column: pa.Array) -> list[Any]:
        offsets, first, last = _slices(column)
        keys = key(column.keys.slice(first, last - first))
        values = value(column.items.slice(first, last - first))
        made: list[Any] = [
            dict(zip(keys[start:stop], values[start:stop], strict=True)) for start, stop in itertools.pairwise(offsets)
        ]
        return _with_nulls(made, column)

    return read


def _rows(names: tuple[str, ...], fields: Sequence[Reader]) -> Reader:
    def read(column: pa.Array) -> list[Any]:
        of_names = row_class().of_names
        values = [read_field(column.field(index)) for index, read_field in enumerate(fields)]
        made: list[Any] = [of_names(names, row) for row in zip(*values, strict=True)]
        return _with_nulls(made, column)

    return read
