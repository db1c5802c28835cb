"""Moments and intervals together: ``ts + INTERVAL '1' MONTH``, also behind TIMESTAMPADD."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flowsql_compute.eval.columns import Bools, make_array, values_and_validity
from flowsql_compute.eval.time.calendar import DAY_MS, UNITS_PER_SECOND, add_months, civil_from_days, require_range
from flowsql_compute.functions.registry import Invocation
from flowsql_core.arrow import compute as pc
from flowsql_core.errors import BindError
from flowsql_core.expr import Expr
from flowsql_core.types import logical as t
from flowsql_core.types.arrow import to_arrow


def interval_sum_type(args: Sequence[Expr], options: dict[str, Any]) -> t.LogicalType | None:
    """Type of moment +- interval (the moment's, a time attribute's too), or of interval +- interval of one kind."""
    a, b = (arg.type for arg in args)
    nullable = a.nullable or b.nullable
    if isinstance(a, t.DateTimeType):
        return a.as_nullable(nullable)
    if isinstance(b, t.DateTimeType):
        return b.as_nullable(nullable)
    return a.as_nullable(nullable) if type(a) is type(b) else None


def negate_interval(a: Any) -> Any:
    """The interval backwards."""
    return pc.negate(a)


def add_interval(call: Invocation, a: Any, b: Any, sign: int) -> Any:
    """``a + sign * b`` where one may be a moment and the other is an interval."""
    type_a, type_b = call.arg_types
    if not isinstance(type_a, t.DateTimeType) and isinstance(type_b, t.DateTimeType):
        return add_interval_to(call, b, type_b, a, type_a, sign)
    if isinstance(type_a, t.DateTimeType):
        return add_interval_to(call, a, type_a, b, type_b, sign)
    return pc.add(a, b) if sign > 0 else pc.subtract(a, b)


def add_interval_to(
    call: Invocation, moment: Any, moment_type: t.LogicalType, amount: Any, amount_type: t.LogicalType, sign: int
) -> pa.Array:
    """Moments moved by ``sign`` times an interval column or scalar (months or milliseconds); type stays."""
    values, valid = _column(moment, call.n)
    steps, steps_valid = _column(amount, call.n)
    steps = steps.astype(np.int64) * sign
    if steps_valid is not None:
        valid = steps_valid if valid is None else valid & steps_valid
    months = isinstance(amount_type, t.YearMonthIntervalType)
    arrow_type = to_arrow(call.type)
    if arrow_type == pa.timestamp("ns") or arrow_type == pa.timestamp("ns", "UTC"):
        coarse = _move(values // 1_000_000, t.TimestampType(precision=3), steps, months)
        require_range(coarse // 1000 if valid is None else np.where(valid, coarse // 1000, 0), arrow_type)
    made = _move(values.astype(np.int64), moment_type, steps, months)
    if isinstance(moment_type, t.DateType | t.TimeType):
        made = made.astype(np.int32)
    return make_array(made, valid, arrow_type)


def _move(
    values: npt.NDArray[np.int64], type_: t.LogicalType, steps: npt.NDArray[np.int64], months: bool
) -> npt.NDArray[np.int64]:
    match type_:
        case t.DateType():
            return add_months(values, steps) if months else values + np.sign(steps) * (np.abs(steps) // DAY_MS)
        case t.TimeType():
            return values if months else (values + steps) % DAY_MS
    per_second = UNITS_PER_SECOND[to_arrow(type_).unit]
    per_day = 86_400 * per_second
    if not months:
        moved = values + steps * (per_second // 1000)
        step = 10 ** max(0, len(str(per_second)) - 1 - precision_of(type_))
        return moved if step == 1 else moved // step * step
    # Months of points in time are those of UTC, whatever the session's zone is.
    days = values // per_day
    return add_months(days, steps) * per_day + (values - days * per_day)


def difference_type(args: Sequence[Expr], options: dict[str, Any]) -> t.LogicalType | None:
    """An interval of the kind in ``unit``: MONTH or SECOND. Flink subtracts moments where a unit is written only."""
    if "unit" not in options:
        return None
    if isinstance(args[0].type, t.DateType) != isinstance(args[1].type, t.DateType):
        raise BindError("argument-types", "Parameters must be of the same type", args[0].span)
    if options["unit"] == "MONTH":
        return t.YearMonthIntervalType(resolution="MONTH")
    return t.DayTimeIntervalType(resolution="SECOND", fractional_precision=3)


def subtract_moments(call: Invocation, a: Any, b: Any) -> pa.Array:
    """``a - b`` of moments as whole months or milliseconds, whichever the call's type counts."""
    (left, left_valid), (right, right_valid) = _column(a, call.n), _column(b, call.n)
    valid = left_valid if right_valid is None else right_valid if left_valid is None else left_valid & right_valid
    ends, starts = millis_of(left, call.arg_types[0]), millis_of(right, call.arg_types[1])
    if isinstance(call.type, t.YearMonthIntervalType):
        return make_array(months_between(starts, ends).astype(np.int32), valid, to_arrow(call.type))
    return make_array(ends - starts, valid, to_arrow(call.type))


def millis_of(values: npt.NDArray[Any], type_: t.LogicalType) -> npt.NDArray[np.int64]:
    """Moments of a type as milliseconds since the epoch or midnight."""
    values = values.astype(np.int64)
    if isinstance(type_, t.DateType):
        return values * DAY_MS
    if isinstance(type_, t.TimeType):
        return values
    return values // (UNITS_PER_SECOND[to_arrow(type_).unit] // 1000)


def months_between(a: npt.NDArray[np.int64], b: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Whole months from ``a`` to ``b`` as Calcite counts: by dates first, then one less when the clock is behind."""
    days_a, days_b = a // DAY_MS, b // DAY_MS
    early, late = np.minimum(days_a, days_b), np.maximum(days_a, days_b)
    (year_a, month_a, _), (year_b, month_b, _) = civil_from_days(early), civil_from_days(late)
    months = (year_b - year_a) * 12 + month_b - month_a
    months = np.where(add_months(early, months) > late, months - 1, months)
    months = np.where(days_b < days_a, -months, months)
    behind = b - days_b * DAY_MS < a - days_a * DAY_MS
    return np.asarray(months - ((add_months(days_a, months) == days_b) & behind))


def precision_of(type_: t.LogicalType) -> int:
    """Fractional digits of a timestamp type; 9 for others."""
    return type_.precision if isinstance(type_, t.TimestampType | t.TimestampLtzType) else 9


def _column(datum: Any, n: int) -> tuple[npt.NDArray[Any], Bools | None]:
    return values_and_validity(pa.repeat(datum, n) if isinstance(datum, pa.Scalar) else datum)
