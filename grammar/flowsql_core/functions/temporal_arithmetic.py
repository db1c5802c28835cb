"""Moments and intervals together: ``ts + INTERVAL '1' MONTH``, also behind TIMESTAMPADD."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flowsql_core.arrow import compute as pc
from flowsql_core.eval.columns import Bools, make_array, values_and_validity
from flowsql_core.eval.time import DAY_MS, UNITS_PER_SECOND, add_months, local_to_utc, utc_to_local
from flowsql_core.expr import Expr
from flowsql_core.functions.registry import Invocation
from flowsql_core.types import logical as t
from flowsql_core.types.arrow import to_arrow


def interval_sum_type(args: Sequence[Expr], options: dict[str, Any]) -> t.LogicalType | None:
    """Type of moment +- interval (the moment's), or of interval +- interval of one kind."""
    a, b = (t.without_attribute(arg.type) for arg in args)
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
    made = _move(values.astype(np.int64), moment_type, steps, months, call)
    arrow_type = to_arrow(call.type)
    if isinstance(moment_type, t.DateType | t.TimeType):
        made = made.astype(np.int32)
    return make_array(made, valid, arrow_type)


def _move(
    values: npt.NDArray[np.int64], type_: t.LogicalType, steps: npt.NDArray[np.int64], months: bool, call: Invocation
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
    local = isinstance(type_, t.TimestampLtzType)
    wall = utc_to_local(values, per_second, call.context.zone) if local else values
    days = wall // per_day
    wall = add_months(days, steps) * per_day + (wall - days * per_day)
    return local_to_utc(wall, per_second, call.context.zone) if local else wall


def precision_of(type_: t.LogicalType) -> int:
    """Fractional digits of a timestamp type; 9 for others."""
    return type_.precision if isinstance(type_, t.TimestampType | t.TimestampLtzType) else 9


def _column(datum: Any, n: int) -> tuple[npt.NDArray[Any], Bools | None]:
    return values_and_validity(pa.repeat(datum, n) if isinstance(datum, pa.Scalar) else datum)
