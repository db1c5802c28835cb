"""Which row groups of a parquet file a query can want nothing of: its filters against the groups' statistics.

The planner keeps every filter above the scan: groups are left out, no answer hangs on it. FLOAT and DOUBLE are not
judged: statistics say nothing of NaN.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date
from decimal import Decimal
from typing import Any, Final

from flowsql_core.expr import Call, Expr, InputRef, Literal
from flowsql_core.types.logical import (
    BooleanType,
    DateType,
    DecimalType,
    IntegerType,
    LogicalType,
    Schema,
    TimestampLtzType,
    TimestampType,
    VarCharType,
)

#: By comparison: whether a value between a least and a greatest one may fulfil it.
_MAY: Final[Mapping[str, Callable[[Any, Any, Any], bool]]] = {
    "=": lambda least, most, value: least <= value <= most,
    "<": lambda least, most, value: least < value,
    "<=": lambda least, most, value: least <= value,
    ">": lambda least, most, value: most > value,
    ">=": lambda least, most, value: most >= value,
    "<>": lambda least, most, value: not least == most == value,
}
_TURNED: Final = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "<>": "<>"}
_EPOCH_DAY: Final = date(1970, 1, 1).toordinal()
_NANOS: Final = {"milliseconds": 1_000_000, "microseconds": 1_000, "nanoseconds": 1}


class GroupFilter:
    """Filters over the columns of files.

    Args:
        filters: all of which a wanted row fulfils; they refer to ``columns``.
        columns: that stand in the files.
        plain_times: stored timestamps are read as they are, without a time zone in between.
    """

    def __init__(self, filters: tuple[Expr, ...], columns: Schema, plain_times: bool) -> None:
        self._filters = filters
        self._columns = columns
        self._plain_times = plain_times

    def may_hold(self, group: Any) -> bool:
        """Whether a row group, given by its metadata, may hold a row that fulfils the filters."""
        if not self._filters:
            return True
        chunks = {}
        for place in range(group.num_columns):
            chunk = group.column(place)
            chunks[chunk.path_in_schema] = chunk
        return all(self._may(part, chunks) for part in self._filters)

    def _may(self, part: Expr, chunks: Mapping[str, Any]) -> bool:
        match part:
            case Call(function="AND", args=args):
                return all(self._may(arg, chunks) for arg in args)
            case Call(function="OR", args=args):
                return any(self._may(arg, chunks) for arg in args)
            case Call(function="IN", args=(InputRef() as column, *values)):
                return any(self._compared("=", column, value, chunks) for value in values)
            case Call(function="IS NULL", args=(InputRef() as column,)):
                statistics = self._statistics(column, chunks)
                return statistics is None or not statistics.has_null_count or statistics.null_count > 0
            case Call(function="IS NOT NULL", args=(InputRef() as column,)):
                statistics = self._statistics(column, chunks)
                return statistics is None or not statistics.has_null_count or statistics.num_values > 0
            case Call(function=function, args=(InputRef() as column, Literal() as value)) if function in _MAY:
                return self._compared(function, column, value, chunks)
            case Call(function=function, args=(Literal() as value, InputRef() as column)) if function in _MAY:
                return self._compared(_TURNED[function], column, value, chunks)
        return True

    def _statistics(self, column: InputRef, chunks: Mapping[str, Any]) -> Any:
        chunk = chunks.get(self._columns[column.index].name)
        return None if chunk is None or not chunk.is_stats_set else chunk.statistics

    def _compared(self, function: str, column: InputRef, literal: Expr, chunks: Mapping[str, Any]) -> bool:
        statistics = self._statistics(column, chunks)
        if statistics is None or not isinstance(literal, Literal) or literal.value is None:
            return True
        if statistics.has_null_count and statistics.num_values == 0:
            # Nothing but NULL, which fulfils no comparison.
            return False
        if not statistics.has_min_max:
            return True
        type_ = self._columns[column.index].type
        kinds = _kinds(type_)
        value = literal.value
        if kinds is None or not isinstance(value, kinds) or isinstance(value, bool) != isinstance(type_, BooleanType):
            return True
        bounds = self._bounds(statistics, type_)
        return bounds is None or _MAY[function](*bounds, value)

    def _bounds(self, statistics: Any, type_: LogicalType) -> tuple[Any, Any] | None:
        """The least and the greatest value in the form of literals; None where the file has another type."""
        match type_:
            case TimestampType(precision=precision) | TimestampLtzType(precision=precision):
                nanos = _nanos(statistics)
                if nanos is None or not (self._plain_times or isinstance(type_, TimestampLtzType)):
                    return None
                # Digits past the type's precision are cut off when they are read.
                unit = 10 ** (9 - precision)
                least, most = (raw * nanos // unit * unit for raw in (statistics.min_raw, statistics.max_raw))
                return least, most
        least, most = statistics.min, statistics.max
        if isinstance(type_, DateType):
            if not isinstance(least, date) or not isinstance(most, date):
                return None
            return least.toordinal() - _EPOCH_DAY, most.toordinal() - _EPOCH_DAY
        kinds = _kinds(type_)
        assert kinds is not None
        if not isinstance(least, kinds) or isinstance(least, bool) != isinstance(type_, BooleanType):
            return None
        return least, most


def _kinds(type_: LogicalType) -> type | tuple[type, ...] | None:
    """Python's type of literals; None: values are not judged."""
    match type_:
        case BooleanType():
            return bool
        case IntegerType() | DateType() | TimestampType() | TimestampLtzType():
            return int
        case VarCharType():
            return str
        case DecimalType():
            return Decimal
    return None


def _nanos(statistics: Any) -> int | None:
    """Nanoseconds of a stored timestamp's unit; None for what is no 64-bit timestamp."""
    if statistics.physical_type != "INT64" or statistics.logical_type.type != "TIMESTAMP":
        return None
    shown = str(statistics.logical_type)
    return next((nanos for unit, nanos in _NANOS.items() if f"timeUnit={unit}" in shown), None)
