"""Group windows of GROUP BY, ``TUMBLE(ts, INTERVAL '1' MINUTE)``, and what is asked of them: ``TUMBLE_START(...)``.

While a query is bound they are calls of ``logical/group_window.py``. Source: Flink manual, "Group window aggregation";
``SqlGroupedWindowFunction`` of Calcite.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from flowsql_compute.functions.signature import family_name
from flowsql_core.errors import BindError, NotSupportedYetError, PlanError
from flowsql_core.expr import Call, Expr, Literal
from flowsql_core.graph.specs import WindowKind
from flowsql_core.span import Span
from flowsql_core.types import logical as t
from flowsql_planner.logical.group_window import AUXILIARY, ROWS, WINDOWS

_LENGTHS = {WindowKind.TUMBLE: 1, WindowKind.HOP: 2, WindowKind.SESSION: 1}


def is_group_window(name: str, arguments: int) -> bool:
    """Whether a call is one of a group window, or of what belongs to one."""
    return name in AUXILIARY or name == ROWS or (f"${name}" in WINDOWS and arguments >= 2)


def bind_group_window(name: str, args: Sequence[Expr], clause: str, streaming: bool, span: Span | None) -> Expr:
    """The call of a window, or of an auxiliary function over the window with the same arguments.

    Raises:
        BindError: a window outside of GROUP BY, arguments that are none of a window.
        PlanError: lengths or columns that Flink takes no windows over.
        NotSupportedYetError: windows that count rows, in batch mode.
    """
    if name == ROWS:
        if not streaming:
            raise NotSupportedYetError("windows that count rows in batch mode", span)
        return Call(ROWS, tuple(args), t.BIGINT.as_nullable(False), (), span)
    function = f"${AUXILIARY[name].window}" if name in AUXILIARY else f"${name}"
    window = _window(function, args, streaming, span)
    if name in AUXILIARY:
        return Call(name, (window,), _property_type(name, window.type, span), (), span)
    if clause != "GROUP BY":
        raise BindError("group-window", f"Group function '{function}' can only appear in GROUP BY clause", span)
    return window


def _window(function: str, args: Sequence[Expr], streaming: bool, span: Span | None) -> Call:
    kind = WINDOWS[function]
    lengths = _LENGTHS[kind]
    shown = ", ".join(f"<{family_name(arg.type)}>" for arg in args)
    wanted = ", ".join(["<DATETIME>"] + ["<DATETIME_INTERVAL>"] * lengths)
    misfit = BindError(
        "bad-window-arguments",
        f"Cannot apply '{function}' to arguments of type '{function}({shown})'. Supported form(s): "
        f"'{function}({wanted})'",
        span,
    )
    if len(args) == lengths + 2 and isinstance(args[-1].type, t.TimeType):
        raise PlanError("window-alignment", f"{kind.value} window with alignment is not supported yet.", span)
    if len(args) != lengths + 1 or not isinstance(args[0].type, t.TimestampType | t.TimestampLtzType):
        raise misfit
    for length in args[1:]:
        if isinstance(length, Call) and length.function == ROWS:
            _check_rows(length, kind, span)
            continue
        if isinstance(length.type, t.YearMonthIntervalType):
            raise PlanError(
                "window-unit",
                "Window aggregate only support SECOND, MINUTE, HOUR, DAY as the time unit. MONTH and YEAR time unit "
                "are not supported yet.",
                length.span,
            )
        if not isinstance(length.type, t.DayTimeIntervalType):
            raise misfit
        if not isinstance(length, Literal) or length.value is None:
            raise PlanError("window-length", "Only constant window descriptors are supported.", length.span)
        if int(length.value) <= 0:
            raise BindError("bad-window-size", f"{kind.value} needs sizes above zero", length.span)
    # In batch mode any timestamp is a time.
    if streaming and not t.is_time_attribute(args[0].type):
        raise PlanError(
            "not-a-time-attribute",
            "Window aggregate can only be defined over a time attribute column, but "
            f"{args[0].type.as_nullable()} encountered.",
            args[0].span,
            "WATERMARK FOR makes a column one",
        )
    return Call(function, tuple(args), args[0].type, (), span)


def _check_rows(length: Call, kind: WindowKind, span: Span | None) -> None:
    """BindError for a number of rows that makes no window."""
    (rows,) = length.args
    if not isinstance(rows, Literal) or not isinstance(rows.type, t.IntegerType) or rows.value is None:
        raise BindError("bad-window-size", "Only a constant number of rows makes a window", length.span or span)
    if int(rows.value) <= 0:
        raise BindError("bad-window-size", f"{kind.value} needs sizes above zero", length.span or span)


def _property_type(name: str, time: t.LogicalType, span: Span | None) -> t.LogicalType:
    assert isinstance(time, t.TimestampType | t.TimestampLtzType)
    match AUXILIARY[name].part:
        case "START" | "END":
            return t.TimestampType(precision=3, nullable=False)
        case "ROWTIME" if t.is_proctime(time):
            raise PlanError("no-rowtime", "A proctime window cannot provide a rowtime attribute.", span)
    if t.is_proctime(time):
        return time
    # A time attribute of a window may be NULL; in batch mode it is a column like others.
    return replace(time.as_nullable() if t.is_time_attribute(time) else time, precision=3)
