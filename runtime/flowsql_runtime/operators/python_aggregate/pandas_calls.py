"""Calls of pandas aggregate functions: a Series for each argument with the rows of a window or frame."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flowsql_core.column_bytes import joined, taken
from flowsql_core.errors import ExecutionError
from flowsql_core.expr import AggregateCall
from flowsql_core.types import logical as t
from flowsql_core.types.arrow import to_arrow
from flowsql_runtime.operators.base import OperatorContext
from flowsql_runtime.operators.python_aggregate.functions import LoadedFunctions
from flowsql_runtime.python.evaluate import WRONG_RESULT
from flowsql_runtime.python.values_out import row_fields

Int64s = npt.NDArray[np.int64]


class PandasCalls(LoadedFunctions):
    """Functions over ranges of rows.

    Args:
        schema: the columns that calls read; ``places``: their indexes as arguments name them.
    """

    def __init__(self, calls: Sequence[AggregateCall], schema: t.Schema, places: Sequence[int]) -> None:
        super().__init__(calls)
        self._schema = schema
        self._places = tuple(places)

    def load(self, ctx: OperatorContext, zone: str) -> None:
        """Make the functions of this subtask, and open them."""
        self._zone = zone
        super().load(ctx, zone)

    def results(self, columns: Sequence[Any], starts: Int64s, stops: Int64s) -> list[Any]:
        """Results by call, Arrow (m,).

        Args:
            columns: Arrow, those of the schema.
            starts, stops: (m,), the rows of each call; equal ranges are called once.
        """
        ranges, which = np.unique(np.stack((starts, stops)), axis=1, return_inverse=True)
        which = which.ravel()
        series = self.ranges(columns)
        bounds = list(zip(ranges[0].tolist(), ranges[1].tolist(), strict=True))
        made = []
        for place, call in enumerate(self.calls):
            arguments = [series[self._places.index(arg.index)] for arg in call.args]
            values = [self._value(place, [one.at(start, stop) for one in arguments]) for start, stop in bounds]
            column = self._column(place, values)
            made.append(
                column if len(ranges[0]) == len(starts) and (np.diff(which) == 1).all() else taken(column, which)
            )
        return made

    def ranges(self, columns: Sequence[Any]) -> list[Ranges]:
        """Columns, Arrow, those of the schema, as Series are made of them."""
        return [Ranges(column, field, self._zone) for column, field in zip(columns, self._schema, strict=True)]

    def frames(self, ranges: Sequence[Ranges], first: Int64s, last: Int64s, low: Int64s, high: Int64s) -> list[Any]:
        """Results by call, Arrow (n,), of frames within partitions.

        Args:
            first, last: (n,), the rows of each row's partition.
            low, high: (n,), those of its frame; neighbours of one frame are called once.
        """
        changes = np.ones(len(low), np.bool_)
        changes[1:] = (np.diff(first) != 0) | (np.diff(low) != 0) | (np.diff(high) != 0)
        which = np.cumsum(changes, dtype=np.int64) - 1
        bounds = [column[changes].tolist() for column in (first, last, low, high)]
        made = []
        for place, call in enumerate(self.calls):
            arguments = [ranges[self._places.index(arg.index)] for arg in call.args]
            values = [
                self._value(place, [one.within(*frame) for one in arguments]) for frame in zip(*bounds, strict=True)
            ]
            column = self._column(place, values, cuts=False)
            made.append(column if changes.all() else taken(column, which))
        return made

    def _value(self, place: int, arguments: list[Any]) -> Any:
        function = self._objects[place]
        accumulator = self.guarded(place, "create_accumulator", function.create_accumulator)
        self.guarded(place, "accumulate", function.accumulate, accumulator, *arguments)
        return self.guarded(place, "get_value", function.get_value, accumulator)  # type: ignore[attr-defined]

    def _column(self, place: int, values: list[Any], cuts: bool = True) -> Any:
        """Values as a column: those of one Python type together; missing ones are NULL.

        Args:
            cuts: whether floats become whole numbers without their fractions, else they are refused.
        """
        type_ = self.calls[place].type
        wanted = to_arrow(type_)
        by_type: dict[type, list[int]] = {}
        for position, value in enumerate(values):
            by_type.setdefault(type(value), []).append(position)
        parts, order = [], []
        for kind, positions in by_type.items():
            order += positions
            if kind is type(None):
                parts.append(pa.nulls(len(positions), wanted))
                continue
            parts.append(self._converted(place, [values[position] for position in positions], cuts))
        if not parts:
            return pa.nulls(0, wanted)
        column = joined(parts)
        if len(parts) > 1:
            column = taken(column, np.argsort(np.array(order), kind="stable"))
        if column.null_count and not type_.nullable:
            raise self._wrong(place, f"NULL is no {type_}")
        return column

    def _converted(self, place: int, values: list[Any], cuts: bool) -> Any:
        import pandas as pd

        from flowsql_runtime.python.pandas_batches import from_pandas

        type_ = self.calls[place].type
        if isinstance(type_, t.RowType):
            names = [field.name for field in type_.fields]
            values = [row_fields(value, names) for value in values]
        given = pd.Series(values, dtype=object if isinstance(values[0], list | dict | tuple) else None)
        try:
            if isinstance(type_, t.IntegerType) and given.dtype.kind == "f":
                # PyFlink cuts fractions off where results travel as rows, and refuses them where they are Arrow's.
                return pa.Array.from_pandas(given).cast(to_arrow(type_), safe=not cuts)
            return from_pandas(given, type_, self._zone)
        except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, TypeError, ValueError) as error:
            raise self._wrong(place, f"a value of {type(values[0]).__name__} is no {type_}: {error}") from None

    def _wrong(self, place: int, text: str) -> ExecutionError:
        return ExecutionError(WRONG_RESULT, f"{text}\nin the result of {self._named(place)}", self.calls[place].span)


class Ranges:
    """A column whose ranges become Series, each with an index from 0 and values of its own."""

    def __init__(self, column: Any, field: t.Column, zone: str) -> None:
        self._column, self._field, self._zone = column, field, zone
        # A range without NULLs holds whole numbers where one with NULLs holds floats, also within its lists.
        kept = not pa.types.is_floating(column.type)
        self._by_range = kept and (column.null_count > 0 or pa.types.is_nested(column.type))
        self._whole = None if self._by_range else self._series(column)
        self._partition: Any = None
        self._bounds = (-1, -1)

    def _series(self, column: Any) -> Any:
        from flowsql_runtime.python.pandas_batches import to_series

        return to_series(column, self._field.type, self._zone)

    def at(self, start: int, stop: int) -> Any:
        """The Series of a range of rows."""
        if self._whole is None:
            made = self._series(self._column.slice(start, stop - start))
        else:
            made = self._whole.iloc[start:stop].reset_index(drop=True)
        return self._with_name(made)

    def within(self, first: int, last: int, start: int, stop: int) -> Any:
        """The rows ``start`` to ``stop`` of the Series of ``first`` to ``last``, with their index in it; not copied."""
        if self._bounds != (first, last):
            import pandas as pd

            if self._whole is None:
                made = self._series(self._column.slice(first, last - first))
            else:
                made = self._whole.iloc[first:last]
                made.index = pd.RangeIndex(last - first)
            self._partition, self._bounds = self._with_name(made), (first, last)
        return self._partition.iloc[start - first : stop - first]

    def _with_name(self, made: Any) -> Any:
        if not isinstance(self._field.type, t.RowType):
            made.name = self._field.name
        return made
