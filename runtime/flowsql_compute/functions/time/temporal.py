"""Dates and times: the clock, parts (EXTRACT), rounding to units, TIMESTAMPADD and TIMESTAMPDIFF, watermarks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flowsql_compute.eval.columns import Bools, make_array, values_and_validity
from flowsql_compute.eval.time.calendar import (
    DAY_MS,
    UNITS_PER_SECOND,
    civil_from_days,
    days_from_civil,
    iso_week,
    old_calendar_local,
    require_range,
    utc_to_local,
)
from flowsql_compute.eval.time.rounding import rounded_days
from flowsql_compute.functions.registry import (
    CUSTOM,
    NOT_NULL,
    NULLABLE,
    Invocation,
    implicit_cast,
    resolve_call,
    scalar,
)
from flowsql_compute.functions.signature import summary
from flowsql_compute.functions.spark_form import BY_JOB
from flowsql_compute.functions.time.arithmetic import add_interval_to, millis_of, months_between
from flowsql_core.arrow import compute as pc
from flowsql_core.errors import BindError, ExecutionError, NotSupportedYetError
from flowsql_core.expr import Call, Expr
from flowsql_core.span import Span
from flowsql_core.types import logical as t
from flowsql_core.types.arrow import to_arrow

Int64s = npt.NDArray[np.int64]

_CLOCK_UNITS = {"HOUR": 3_600_000, "MINUTE": 60_000, "SECOND": 1000, "MILLISECOND": 1}
_MONTH_UNITS = {"MILLENNIUM": 12_000, "CENTURY": 1200, "DECADE": 120, "YEAR": 12, "QUARTER": 3, "MONTH": 1}
_FIXED_UNITS_MS = {"WEEK": 7 * DAY_MS, "DAY": DAY_MS, **_CLOCK_UNITS}


def _column(datum: Any, n: int) -> tuple[npt.NDArray[Any], Bools | None]:
    return values_and_validity(pa.repeat(datum, n) if isinstance(datum, pa.Scalar) else datum)


# The clock


@scalar("CURRENT_DATE() -> DATE", nulls=NOT_NULL, deterministic=False, spark=BY_JOB)
def current_date(call: Invocation) -> Any:
    """Today in the session's zone."""
    return pa.scalar(_local_now(call) // DAY_MS, pa.int32()).cast(pa.date32())


@scalar("CURRENT_TIME() -> TIME(0)", nulls=NOT_NULL, deterministic=False, aliases=("LOCALTIME",), spark=BY_JOB)
def current_time(call: Invocation) -> Any:
    """The time of day in the session's zone, whole seconds."""
    seconds = _local_now(call) % DAY_MS // 1000
    return pa.scalar(seconds * 1000, pa.int32()).cast(pa.time32("ms"))


@scalar("CURRENT_TIMESTAMP() -> TIMESTAMP_LTZ(3)", nulls=NOT_NULL, deterministic=False, aliases=("NOW",), spark=BY_JOB)
def current_timestamp(call: Invocation) -> Any:
    """Now, as a point in time."""
    return pa.scalar(call.context.now_ms(), pa.timestamp("ms", "UTC"))


@scalar("CURRENT_ROW_TIMESTAMP() -> TIMESTAMP_LTZ(3)", nulls=NOT_NULL, deterministic=False, spark=BY_JOB)
def current_row_timestamp(call: Invocation) -> Any:
    """Now, asked for every record also in batch mode."""
    return pa.scalar(call.context.clock.now_ms(), pa.timestamp("ms", "UTC"))


@scalar("LOCALTIMESTAMP() -> TIMESTAMP(3)", nulls=NOT_NULL, deterministic=False, spark=BY_JOB)
def localtimestamp(call: Invocation) -> Any:
    """Now, as wall clock of the session's zone."""
    return pa.scalar(_local_now(call), pa.timestamp("ms"))


@scalar("PROCTIME() -> TIMESTAMP_LTZ(3) *PROCTIME*", nulls=NOT_NULL, deterministic=False, spark=BY_JOB)
def proctime(call: Invocation) -> Any:
    """The processing-time attribute: the clock when a row is looked at."""
    return pa.scalar(call.context.clock.now_ms(), pa.timestamp("ms", "UTC"))


@scalar("UNIX_TIMESTAMP() -> BIGINT", nulls=NOT_NULL, deterministic=False, spark=BY_JOB)
def unix_timestamp_now(call: Invocation) -> Any:
    """Now in seconds since the epoch."""
    return pa.scalar(call.context.now_ms() // 1000, pa.int64())


def _local_now(call: Invocation) -> int:
    now = np.array([call.context.now_ms()], dtype=np.int64)
    return int(utc_to_local(now, 1000, call.context.zone)[0])


def _watermark_rule(args: Sequence[Expr], options: dict[str, Any]) -> t.LogicalType | None:
    type_ = t.without_attribute(args[0].type)
    if isinstance(type_, t.TimestampLtzType):
        return t.TimestampLtzType(precision=type_.precision)
    if isinstance(type_, t.TimestampType):
        return t.TimestampType(precision=type_.precision)
    raise BindError(
        "not-a-rowtime",
        "CURRENT_WATERMARK() must be called with a single rowtime attribute argument, but "
        f"'{type_.as_nullable()}' cannot be a time attribute.",
        args[0].span,
    )


def _check_rowtime(args: Sequence[Expr], span: Span | None) -> None:
    if not t.is_rowtime(args[0].type):
        raise BindError(
            "not-a-rowtime",
            f"The argument of CURRENT_WATERMARK() must be a rowtime attribute, but was '{args[0].type}'.",
            span,
        )


@scalar("CURRENT_WATERMARK(ANY) -> $1", nulls=NULLABLE, deterministic=False, returns=_watermark_rule,
        check=_check_rowtime, spark=BY_JOB)  # fmt: skip
def current_watermark(call: Invocation, rowtime: Any) -> Any:
    """The watermark that reached the operator before the row, NULL before the first.

    Operators through which watermarks pass read it from a column (``operators/evaluation.py``); elsewhere, as in batch
    mode, there is none.
    """
    return pa.scalar(None, to_arrow(call.type))


# Parts


def _check_extract(args: Sequence[Expr], options: dict[str, Any]) -> t.LogicalType | None:
    unit, type_ = options["unit"], args[0].type
    if isinstance(type_, t.TimeType) and unit not in _CLOCK_UNITS:
        shown = type_.as_nullable() if unit in _TOO_FINE else "time"
        raise BindError("bad-unit", f"unit {unit} can not be applied to {shown} variable", args[0].span)
    if isinstance(type_, t.DateType) and unit in ("MICROSECOND", "NANOSECOND"):
        raise BindError("bad-unit", f"unit {unit} can not be applied to DATE variable", args[0].span)
    return t.BIGINT


@scalar("EXTRACT(DATETIME) -> BIGINT", returns=_check_extract, spark=None)
def extract(call: Invocation, moment: Any) -> Any:
    """One part of a moment, by ``unit``: YEAR .. NANOSECOND, DOW, DOY, ISODOW, ISOYEAR, WEEK (ISO), EPOCH, CENTURY."""
    values, valid = _column(moment, call.n)
    made = _part(call.option("unit"), values.astype(np.int64), call.arg_types[0], call.context.zone)
    return make_array(made, valid, pa.int64())


def _check_interval_unit(args: Sequence[Expr], options: dict[str, Any]) -> t.LogicalType | None:
    months = isinstance(args[0].type, t.YearMonthIntervalType)
    years = ("MILLENNIUM", "CENTURY", "YEAR", "QUARTER", "MONTH")
    known = years if months else ("DAY", "HOUR", "MINUTE", "SECOND", "MILLISECOND")
    if options["unit"] not in known:
        raise BindError("bad-unit", f"Unit '{options['unit']}' is not supported.", args[0].span)
    return t.BIGINT


@scalar("EXTRACT(INTERVAL) -> BIGINT", returns=_check_interval_unit, spark=None)
def extract_interval(call: Invocation, interval: Any) -> Any:
    """One field of an interval."""
    values, valid = _column(interval, call.n)
    unit = call.option("unit")
    values = values.astype(np.int64)
    if isinstance(call.arg_types[0], t.YearMonthIntervalType):
        months = np.fmod(values, 12)
        quarters = np.trunc((months - 1) / 3).astype(np.int64) + 1
        years = np.trunc(values / 12).astype(np.int64)
        coarse = {"CENTURY": 100, "MILLENNIUM": 1000}
        made = (
            np.trunc(years / coarse[unit]).astype(np.int64)
            if unit in coarse
            else {"YEAR": years, "QUARTER": quarters, "MONTH": months}[unit]
        )
    else:
        made = {
            "DAY": np.trunc(values / DAY_MS).astype(np.int64),
            "HOUR": np.fmod(np.trunc(values / 3_600_000).astype(np.int64), 24),
            "MINUTE": np.fmod(np.trunc(values / 60_000).astype(np.int64), 60),
            "SECOND": np.fmod(np.trunc(values / 1000).astype(np.int64), 60),
            "MILLISECOND": np.fmod(values, 1000),
        }[unit]
    return make_array(made, valid, pa.int64())


def _split(values: Int64s, type_: t.LogicalType, zone: str, fine: bool = False) -> tuple[Int64s, Int64s, int]:
    """Epoch days, units since midnight, units per second; of the zone's wall clock.

    Flink divides as Java does: before 1970 the day is the next midnight's, and the clock counts backwards from it.
    It divides whole milliseconds, which its timestamps round down; ``fine`` keeps what is below them.
    """
    match type_:
        case t.DateType():
            return values, np.zeros_like(values), 1000
        case t.TimeType():
            return np.zeros_like(values), values, 1000
    per_second = UNITS_PER_SECOND[to_arrow(type_).unit]
    if isinstance(type_, t.TimestampLtzType):
        values = old_calendar_local(values, zone, per_second)
    if per_second > 1000 and not fine:
        values, per_second = values // (per_second // 1000), 1000
    days = _truncated(values, 86_400 * per_second)
    return days, values - days * (86_400 * per_second), per_second


def _part(unit: str, values: Int64s, type_: t.LogicalType, zone: str) -> Int64s:
    days, clock, per_second = _split(values, type_, zone, unit in ("MICROSECOND", "NANOSECOND"))
    if isinstance(type_, t.DateType) and unit in _CLOCK_UNITS:
        # Flink takes the days for milliseconds.
        clock = values
    match unit:
        case "HOUR":
            return _truncated(clock, 3600 * per_second)
        case "MINUTE":
            return np.fmod(_truncated(clock, 60 * per_second), 60)
        case "SECOND":
            return np.fmod(_truncated(clock, per_second), 60)
        case "MILLISECOND" | "MICROSECOND" | "NANOSECOND":
            digits = {"MILLISECOND": 1000, "MICROSECOND": 1_000_000, "NANOSECOND": 1_000_000_000}[unit]
            if per_second > 1000:
                # Whole milliseconds count backwards before 1970, what is below them never does.
                step = per_second // 1000
                millis = (days * (86_400 * per_second) + clock) // step
                below = days * (86_400 * per_second) + clock - millis * step
                finer = below * (1_000_000_000 // per_second) // (1_000_000_000 // digits)
                return np.asarray(np.fmod(millis, 1000) * (digits // 1000) + finer)
            fraction = np.fmod(clock, per_second)
            if digits >= per_second:
                return fraction * (digits // per_second)
            return _truncated(fraction, per_second // digits)
        case "EPOCH":
            return days * 86_400 + _truncated(clock, per_second)
        case "DOW":
            return (days + 4) % 7 + 1
        case "ISODOW":
            return (days + 3) % 7 + 1
        case "WEEK":
            return iso_week(days)[1]
        case "ISOYEAR":
            return iso_week(days)[0]
    return _date_part(unit, days)


def _date_part(unit: str, days: Int64s) -> Int64s:
    year, month, day = civil_from_days(days)
    match unit:
        case "YEAR":
            return year
        case "QUARTER":
            return (month + 2) // 3
        case "MONTH":
            return month
        case "DAY":
            return day
        case "DOY":
            one = np.ones_like(year)
            return days - days_from_civil(year, one, one) + 1
        case "DECADE":
            return year // 10
        case "CENTURY":
            return (year + 99) // 100
        case "MILLENNIUM":
            return (year + 999) // 1000
    raise BindError("bad-unit", f"unit {unit} can not be extracted")


def _part_function(name: str, unit: str, doc: str) -> None:
    def rewrite(args: tuple[Expr, ...], span: Span | None) -> Expr:
        return resolve_call("EXTRACT", args, (("unit", unit),), span)

    def kernel(moment: Any) -> Any:
        return moment

    kernel.__doc__ = doc
    of_intervals = [] if unit in ("WEEK", "DOY", "DOW") else [f"{name}(INTERVAL) -> BIGINT"]
    scalar(f"{name}(DATETIME) -> BIGINT", *of_intervals, rewrite=rewrite, spark=None)(kernel)


for _name, _unit, _doc in (
    ("YEAR", "YEAR", "The year."),
    ("QUARTER", "QUARTER", "The quarter of the year, 1 to 4."),
    ("MONTH", "MONTH", "The month, 1 to 12."),
    ("WEEK", "WEEK", "The ISO week of the year, 1 to 53."),
    ("DAYOFYEAR", "DOY", "The day of the year, 1 to 366."),
    ("DAYOFMONTH", "DAY", "The day of the month, 1 to 31."),
    ("DAYOFWEEK", "DOW", "The day of the week, 1 (Sunday) to 7."),
    ("HOUR", "HOUR", "The hour, 0 to 23."),
    ("MINUTE", "MINUTE", "The minute, 0 to 59."),
    ("SECOND", "SECOND", "The second, 0 to 59."),
):
    _part_function(_name, _unit, _doc)


# Rounding to units


def _unit_rule(args: Sequence[Expr], options: dict[str, Any]) -> t.LogicalType | None:
    if "unit" not in options:
        return None
    fine = not isinstance(args[0].type, t.TimeType) and options["unit"] in _TOO_FINE
    if options["unit"] not in _ROUNDED_TO and not fine:
        raise BindError("bad-unit", f"a moment can not be rounded to {options['unit']}", args[0].span)
    return args[0].type


_ROUNDED_TO = frozenset({*_FIXED_UNITS_MS, *_MONTH_UNITS})
#: Flink divides by zero for them, but for a DATE.
_TOO_FINE = ("MICROSECOND", "NANOSECOND")


@scalar("FLOOR(DATETIME) -> $1", returns=_unit_rule, raises=True, spark=None)
def floor_to(call: Invocation, moment: Any) -> Any:
    """The start of the unit that a moment lies in; weeks start on Sunday."""
    return _to_unit(call, moment, up=False)


@scalar("CEIL(DATETIME) -> $1", returns=_unit_rule, raises=True, spark=None)
def ceil_to(call: Invocation, moment: Any) -> Any:
    """The next start of a unit that is not before the moment."""
    return _to_unit(call, moment, up=True)


def _to_unit(call: Invocation, moment: Any, up: bool) -> pa.Array:
    type_, unit = call.arg_types[0], call.option("unit")
    values, valid = _column(moment, call.n)
    values = values.astype(np.int64)
    arrow_type = to_arrow(call.type)
    match type_:
        case t.DateType():
            made = values if unit in _CLOCK_UNITS or unit in _TOO_FINE else rounded_days(values, unit, up)
            return make_array(made.astype(np.int32), valid, arrow_type)
        case t.TimeType():
            if unit in _CLOCK_UNITS:
                step = _CLOCK_UNITS[unit]
                made = -(-values // step) * step if up else values // step * step
            else:
                # Flink takes the milliseconds for days.
                made = rounded_days(values, unit, up)
            there = made if valid is None else made[valid]
            if np.any(there >= DAY_MS):
                raise ExecutionError("time-range", "Hour out of range: [24]")
            return make_array((made % DAY_MS).astype(np.int32), valid, arrow_type)
    per_second = UNITS_PER_SECOND[arrow_type.unit]
    zone = call.context.zone if isinstance(type_, t.TimestampLtzType) else "UTC"
    # Flink rounds milliseconds: what is finer is cut off before. The zone's offset at the moment counts for both ends.
    wall = old_calendar_local(values, zone, per_second)
    offset = wall - values
    # To milliseconds, a TIMESTAMP of finer ones goes up.
    fine = up and unit == "MILLISECOND" and isinstance(type_, t.TimestampType)
    wall = -(-wall // (per_second // 1000)) if fine else wall // (per_second // 1000)
    if unit in _CLOCK_UNITS or unit == "DAY":
        step = _FIXED_UNITS_MS[unit]
        wall = -(-wall // step) * step if up else wall // step * step
    elif unit in _TOO_FINE:
        raise ExecutionError("division-by-zero", "/ by zero")
    else:
        wall = rounded_days(_truncated(wall, DAY_MS), unit, up) * DAY_MS
    require_range(wall // 1000 if valid is None else np.where(valid, wall // 1000, 0), arrow_type)
    return make_array(wall * (per_second // 1000) - offset, valid, arrow_type)


# Adding and subtracting


def _add_rule(args: Sequence[Expr], options: dict[str, Any]) -> t.LogicalType | None:
    type_ = t.without_attribute(args[1].type)
    nullable = any(arg.type.nullable for arg in args)
    if options["unit"] not in (*_MONTH_UNITS, *_FIXED_UNITS_MS):
        raise NotSupportedYetError(f"TIMESTAMPADD in units of {options['unit']}", args[0].span)
    if isinstance(type_, t.DateType) and options["unit"] in ("HOUR", "MINUTE", "SECOND", "MILLISECOND"):
        return t.TimestampType(precision=6, nullable=nullable)
    return type_.as_nullable(nullable)


def _moment_to_result(args: tuple[Expr, ...], type_: t.LogicalType) -> tuple[Expr, ...]:
    return (args[0], implicit_cast(args[1], type_))


@scalar("TIMESTAMPADD(INTEGER, DATETIME) -> $2", nulls=CUSTOM, returns=_add_rule, coerce=_moment_to_result,
        spark=None)  # fmt: skip
def timestampadd(call: Invocation, amount: Any, moment: Any) -> Any:
    """A moment moved by so many units; months clamp the day to the month's end."""
    unit = call.option("unit")
    if unit in _MONTH_UNITS:
        interval: t.LogicalType = t.YearMonthIntervalType(resolution="MONTH")
        factor = _MONTH_UNITS[unit]
    else:
        interval = t.DayTimeIntervalType(resolution="SECOND", fractional_precision=3)
        factor = _FIXED_UNITS_MS[unit]
    steps = pc.multiply(pc.cast(amount, pa.int64()), pa.scalar(factor, pa.int64()))
    return add_interval_to(call, moment, call.arg_types[1], steps, interval, 1)


def _diff_rule(args: Sequence[Expr], options: dict[str, Any]) -> t.LogicalType | None:
    kinds = [isinstance(arg.type, t.TimestampLtzType) for arg in args]
    if kinds[0] != kinds[1]:
        raise BindError("argument-types", "TIMESTAMP_LTZ only supports diff between the same type.", args[0].span)
    if options["unit"] not in (*_MONTH_UNITS, *_FIXED_UNITS_MS, "MICROSECOND", "NANOSECOND"):
        raise NotSupportedYetError(f"TIMESTAMPDIFF in units of {options['unit']}", args[0].span)
    return t.INT


@scalar("TIMESTAMPDIFF(DATETIME, DATETIME) -> INT", returns=_diff_rule, spark=None)
def timestampdiff(call: Invocation, start: Any, end: Any) -> Any:
    """Whole units from the first moment to the second, cut towards zero; months count clamped month ends."""
    unit = call.option("unit")
    a, valid_a = _column(start, call.n)
    b, valid_b = _column(end, call.n)
    valid = valid_a if valid_b is None else valid_b if valid_a is None else valid_a & valid_b
    wall_a, wall_b = millis_of(a, call.arg_types[0]), millis_of(b, call.arg_types[1])
    if unit in _MONTH_UNITS:
        # Flink counts decades in years.
        made = _truncated(months_between(wall_a, wall_b), _MONTH_UNITS["YEAR" if unit == "DECADE" else unit])
    elif unit == "WEEK":
        # Flink's seconds between both are an INT, which wraps around.
        made = _truncated(_truncated(wall_b - wall_a, 1000).astype(np.int32).astype(np.int64), 7 * 86_400)
    elif unit in _FIXED_UNITS_MS:
        made = _truncated(wall_b - wall_a, _FIXED_UNITS_MS[unit])
    else:
        made = np.zeros_like(wall_a)
    return make_array(made.astype(np.int32), valid, pa.int32())


def _truncated(values: Int64s, unit: int) -> Int64s:
    """Divided as Java does: cut towards zero."""
    # numpy's division towards minus infinity is many times faster than its remainder.
    if not len(values) or int(values.min()) >= 0:
        return np.asarray(values // unit)
    return np.asarray((values - np.fmod(values, unit)) // unit)


# Periods


def _check_periods(args: Sequence[Expr], span: Span | None) -> None:
    flat = [part for arg in args for part in (arg.args if isinstance(arg, Call) and arg.function == "ROW" else (arg,))]
    lengths = t.DateTimeType | t.DayTimeIntervalType | t.YearMonthIntervalType
    proper = len(flat) == 4 and all(isinstance(part.type, lengths) for part in flat)
    if not proper or not all(isinstance(flat[position].type, t.DateTimeType) for position in (0, 2)):
        shown = ", ".join(f"<{summary(part.type)}>" for part in flat)
        raise BindError(
            "argument-types",
            f"Cannot apply 'OVERLAPS' to arguments of type '{shown}'. Supported form(s): "
            "'(<DATETIME>, <DATETIME>) OVERLAPS (<DATETIME>, <DATETIME>)'\n"
            "'(<DATETIME>, <INTERVAL>) OVERLAPS (<DATETIME>, <INTERVAL>)'",
            span,
        )


def _rewrite_overlaps(args: tuple[Expr, ...], span: Span | None) -> Expr:
    """Both periods as (start, end) in order: they overlap when neither ends before the other starts."""
    if len(args) == 2:
        # Written (a, b) OVERLAPS (c, d): two implicit rows.
        args = tuple(part for arg in args if isinstance(arg, Call) and arg.function == "ROW" for part in arg.args)

    def end(start: Expr, length: Expr) -> Expr:
        if isinstance(length.type, t.DateTimeType):
            return length
        return resolve_call("+", (start, length), (), span)

    def pair(start: Expr, length: Expr) -> tuple[Expr, Expr]:
        other = end(start, length)
        return resolve_call("LEAST", (start, other), (), span), resolve_call("GREATEST", (start, other), (), span)

    (start_a, end_a), (start_b, end_b) = pair(args[0], args[1]), pair(args[2], args[3])
    return resolve_call(
        "AND",
        (resolve_call(">=", (end_a, start_b), (), span), resolve_call(">=", (end_b, start_a), (), span)),
        (),
        span,
    )


@scalar("OVERLAPS(ANY, ANY) -> BOOLEAN", "OVERLAPS(ANY, ANY, ANY, ANY) -> BOOLEAN", check=_check_periods,
        rewrite=_rewrite_overlaps, spark=None)  # fmt: skip
def overlaps(start_a: Any, end_a: Any, start_b: Any, end_b: Any) -> Any:
    """Whether two periods, each a start with an end or a length, share a moment."""
    return pc.and_(pc.greater_equal(end_a, start_b), pc.greater_equal(end_b, start_a))
