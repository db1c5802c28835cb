"""Functions of pandas: a Series (of a ROW a DataFrame) for each argument, one for the result."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from flowsql_core.arrow import compute as pc
from flowsql_core.types import logical as t
from flowsql_core.types.arrow import to_arrow
from flowsql_runtime.python.evaluate import (
    BatchEvaluator,
    call_batch,
    cast_column,
    check_length,
    wrong_batch,
)
from flowsql_runtime.python.program import Step
from flowsql_runtime.python.values_in import tzinfo_of


class PandasEvaluator(BatchEvaluator):
    """pandas Series in, a Series or DataFrame of as many rows out."""

    def _part(self, columns: list[pa.Array], n: int) -> list[pa.Array]:
        series = [
            to_series(column, type_, self.program.zone)
            for column, type_ in zip(columns, self.program.columns, strict=True)
        ]
        results: list[Any] = []
        for position, step in enumerate(self.program.steps):
            made = call_batch(self, position, step, self._arguments(step, series, results), n)
            if not isinstance(made, pd.Series | pd.DataFrame):
                reason = f"The result type must be pandas.Series or pandas.DataFrame, got {type(made).__name__}"
                raise wrong_batch(self, position, step, reason)
            check_length(self, position, step, len(made), n)
            results.append(made)
        return [
            self._column(position, self.program.steps[position], results[position]) for position in self.program.outputs
        ]

    def _column(self, position: int, step: Step, made: Any) -> pa.Array:
        try:
            column = from_pandas(made, step.type, self.program.zone)
        except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, TypeError, ValueError) as error:
            found = getattr(made, "dtype", "DataFrame")
            raise wrong_batch(self, position, step, f"a result of {found}: {error}") from None
        if column.null_count and not step.type.nullable:
            raise wrong_batch(self, position, step, "NULL in it")
        return column


def to_series(column: pa.Array, type_: t.LogicalType, zone: str) -> Any:
    """A column as pandas has it; dates are ``datetime.date``, a TIMESTAMP_LTZ is in the session's zone."""
    match type_:
        case t.RowType(fields=fields):
            parts = [
                to_series(part, field.type, zone).rename(field.name)
                for part, field in zip(column.flatten(), fields, strict=True)
            ]
            return pd.concat(parts, axis=1)
        case t.TimestampLtzType():
            return column.to_pandas().dt.tz_convert(tzinfo_of(zone))
        case t.DayTimeIntervalType():
            return pc.cast(column, pa.duration("ms")).to_pandas()
    return column.to_pandas(date_as_object=True)


def from_pandas(made: Any, type_: t.LogicalType, zone: str) -> pa.Array:
    """A Series, or a DataFrame for a ROW, as a column; missing values are NULL.

    Raises:
        TypeError: a DataFrame, or none, where the type says otherwise; pyarrow's errors where values do not fit.
    """
    arrow_type = to_arrow(type_)
    if isinstance(type_, t.RowType):
        if not isinstance(made, pd.DataFrame):
            return pa.Array.from_pandas(made, type=arrow_type)
        if len(made.columns) != len(type_.fields):
            raise TypeError(f"{len(made.columns)} columns for {len(type_.fields)} fields")
        columns = [from_pandas(made.iloc[:, index], field.type, zone) for index, field in enumerate(type_.fields)]
        return pa.StructArray.from_arrays(columns, fields=[arrow_type.field(i) for i in range(len(columns))])
    if isinstance(made, pd.DataFrame):
        raise TypeError("a DataFrame is a ROW")
    match type_:
        case t.TimestampType():
            if getattr(made.dtype, "tz", None) is not None:
                made = made.dt.tz_localize(None)
            return pc.cast(pa.Array.from_pandas(made, type=_moments(made)), arrow_type, safe=False)
        case t.TimestampLtzType():
            if isinstance(made.dtype, np.dtype) and made.dtype.kind == "M":
                made = made.dt.tz_localize(tzinfo_of(zone))
            return pc.cast(pa.Array.from_pandas(made), arrow_type, safe=False)
        case t.DayTimeIntervalType():
            spans = pa.Array.from_pandas(made, type=pa.duration("ns"))
            return pc.cast(pc.cast(spans, pa.duration("ms"), safe=False), arrow_type)
        case t.TimeType():
            return pc.cast(pa.Array.from_pandas(made, type=pa.time64("us")), arrow_type, safe=False)
    if made.dtype == object:
        return pa.Array.from_pandas(made, type=arrow_type)
    return cast_column(pa.Array.from_pandas(made), arrow_type)


def _moments(made: Any) -> pa.DataType | None:
    """Of a Series of objects the type that its datetimes have; pandas' own types speak for themselves."""
    return pa.timestamp("us") if made.dtype == object else None
