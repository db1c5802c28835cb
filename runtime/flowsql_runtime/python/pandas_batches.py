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
from flowsql_runtime.python.values_out import one_array


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
            results.append(_texts_as_objects(made))
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
    """Return a column as a Series, or as a DataFrame for a ROW.

    Dates are ``datetime.date``, a TIMESTAMP_LTZ is in the session's zone. Texts are objects, with None for NULL, in
    every version of pandas: the ``str`` type of pandas 3 would give NaN, a float, for NULL.
    """
    match type_:
        case t.CharacterType():
            return pd.Series(column.to_numpy(zero_copy_only=False), dtype=object)
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


def _texts_as_objects(made: Any) -> Any:
    """Return a result as the next function gets it: texts as ``to_series`` gives them, anything else as it is."""
    if isinstance(made, pd.DataFrame):
        if not any(isinstance(kind, pd.StringDtype) for kind in made.dtypes):
            return made
        return pd.concat([_texts_as_objects(made.iloc[:, place]) for place in range(made.shape[1])], axis=1)
    if not isinstance(made.dtype, pd.StringDtype):
        return made
    return pd.Series(made.to_numpy(dtype=object, na_value=None), index=made.index, name=made.name, dtype=object)


def from_pandas(made: Any, type_: t.LogicalType, zone: str) -> pa.Array:
    """A Series, or a DataFrame for a ROW, as a column; missing values are NULL.

    Raises:
        TypeError: a DataFrame, or none, where the type says otherwise; pyarrow's errors where values do not fit.
    """
    arrow_type = to_arrow(type_)
    if isinstance(type_, t.RowType):
        if not isinstance(made, pd.DataFrame):
            return _array(made, arrow_type)
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
            return pc.cast(_array(made, _moments(made)), arrow_type, safe=False)
        case t.TimestampLtzType():
            if isinstance(made.dtype, np.dtype) and made.dtype.kind == "M":
                made = made.dt.tz_localize(tzinfo_of(zone))
            return pc.cast(_array(made), arrow_type, safe=False)
        case t.DayTimeIntervalType():
            spans = _array(made, pa.duration("ns"))
            return pc.cast(pc.cast(spans, pa.duration("ms"), safe=False), arrow_type)
        case t.TimeType():
            return pc.cast(_array(made, pa.time64("us")), arrow_type, safe=False)
    if made.dtype == object:
        return _array(made, arrow_type)
    return cast_column(_array(made), arrow_type)


def _array(made: Any, type_: pa.DataType | None = None) -> pa.Array:
    """Return a Series as one array: pandas' Arrow types may hold several chunks, its categories a dictionary."""
    column = one_array(pa.Array.from_pandas(made, type=type_))
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def _moments(made: Any) -> pa.DataType | None:
    """Of a Series of objects the type that its datetimes have; pandas' own types speak for themselves."""
    return pa.timestamp("us") if made.dtype == object else None
