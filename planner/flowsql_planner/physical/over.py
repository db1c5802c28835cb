"""Over -> OverAggregate over an Exchange; SUM, AVG and deviations become COUNT and $SUM0 below a Calc, as in Flink.

Source: Flink's ``StreamPhysicalOverAggregateRule`` and ``StreamExecOverAggregate``, Calcite's
``StandardConvertletTable``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Final

from flowsql_compute.functions.aggregate import aggregate_function, resolve_aggregate
from flowsql_compute.functions.registry import implicit_cast, resolve_call
from flowsql_core.errors import BindError, PlanError
from flowsql_core.expr import AggregateCall, Case, Cast, Expr, InputRef, Literal, remap_inputs
from flowsql_core.graph.bounded_specs import OverFrame
from flowsql_core.graph.over_specs import OverOrder
from flowsql_core.python_call import named_function
from flowsql_core.span import Span
from flowsql_core.types import logical as t
from flowsql_planner.logical.nodes import BoundKind, Frame, FrameBound, FrameUnit, Over, OverCall
from flowsql_planner.logical.rewrite import ref, refs
from flowsql_planner.physical.calc import make_calc
from flowsql_planner.physical.group_aggregate import exchange
from flowsql_planner.physical.nodes import OverAggregate, Physical, PythonOverAggregate
from flowsql_planner.physical.order import order_keys

#: Functions that number rows: over a stream all of them count the rows of their frame.
_NUMBERS: Final = frozenset({"ROW_NUMBER", "RANK", "DENSE_RANK"})
_BATCH_ONLY: Final = frozenset({"LEAD", "NTILE", "CUME_DIST", "PERCENT_RANK"})
#: Functions that look at no values, or at those of one other row: no aggregates.
_OF_PLACES: Final = _NUMBERS | _BATCH_ONLY | {"LAG"}
_DEVIATIONS: Final = frozenset({"STDDEV_POP", "STDDEV_SAMP", "VAR_POP", "VAR_SAMP"})


def plan_over(rel: Over, source: Physical) -> Physical:
    """Window functions over one window, in ascending order of one column, up to the current row.

    Raises:
        PlanError: windows and functions that Flink does not run over a stream, in its words.
    """
    first = rel.calls[0]
    in_python = any(named_function(call.function, call.options) is not None for call in rel.calls)
    window = _Window.of(first, source.schema)
    for call in rel.calls:
        _require(call)
        if in_python and named_function(call.function, call.options) is None:
            message = "Python UDAF and Java/Scala UDAF cannot be used together."
            raise PlanError("python-over", message, call.span or rel.span, "compute the other in a query of its own")
        if _Window.of(call, source.schema) != window:
            raise PlanError(
                "over-windows",
                "All aggregates must be computed on the same window.",
                call.span or rel.span,
                "compute the other window in a query of its own",
            )
    _check_order(first, window)
    order_type = source.schema[window.order[0][0]].type
    preceding = _preceding(window, first.span)
    order = (
        OverOrder.ROW_TIME
        if t.is_rowtime(order_type)
        else OverOrder.PROCESSING_TIME
        if t.is_proctime(order_type)
        else OverOrder.VALUES
    )
    if in_python and order is OverOrder.VALUES:
        message = "OVER windows' ordering in stream mode must be defined on a time attribute."
        raise PlanError("over-order", message, first.span)
    if in_python and preceding is None:
        message = "Python UDAF is not supported to be used in UNBOUNDED PRECEDING OVER windows."
        raise PlanError("python-over", message, first.span, "start at a number of rows or an interval PRECEDING")
    if order is OverOrder.VALUES and preceding is not None:
        message = "Non-time attribute sort is not supported for bounded OVER window."
        raise PlanError("over-order", message, first.span, "order by a time attribute, or start at UNBOUNDED PRECEDING")
    building = OverCalls(source)
    results = [building.result(call) for call in rel.calls]
    below = building.below()
    width = len(below.schema)
    calls = tuple(building.call(made, width) for made in building.calls)
    schema = (*below.schema, *(t.Column(call.name, call.type) for call in calls))
    over = (PythonOverAggregate if in_python else OverAggregate)(
        inputs=(exchange(below, window.partition),),
        schema=schema,
        partition=window.partition,
        order=order,
        order_index=window.order[0][0],
        counts_rows=window.frame.unit is FrameUnit.ROWS,
        preceding=preceding,
        calls=calls,
        constants=tuple(building.constants),
        nulls_last=order is OverOrder.VALUES and not first.order[0].nulls_first,
        span=rel.span,
    )
    kept = refs(schema)[: len(source.schema)]
    made = tuple(building.over(result, width) for result in results)
    return make_calc(over, (*kept, *made), tuple(column.name for column in rel.schema), rel.span)


@dataclass(frozen=True, slots=True)
class _Window:
    """What calls of one window have in common. ``order``: (column, descending, NULLs first)."""

    partition: tuple[int, ...]
    order: tuple[tuple[int, bool, bool], ...]
    frame: Frame

    @staticmethod
    def of(call: OverCall, schema: t.Schema) -> _Window:
        """A call's window, its frame written out."""
        to_here = FrameBound(BoundKind.UNBOUNDED_PRECEDING), FrameBound(BoundKind.CURRENT_ROW)
        frame = call.frame
        if frame is None:
            frame = Frame(FrameUnit.ROWS if call.function == "ROW_NUMBER" else FrameUnit.RANGE, *to_here)
        partition = tuple(dict.fromkeys(call.partition))
        return _Window(partition, order_keys(call.order, schema, call.span), frame)


def _require(call: OverCall) -> None:
    """PlanError for functions that Flink runs in batch mode alone, and for LAG of a row further on."""
    if call.function == "LAG" and len(call.args) > 1:
        offset = call.args[1]
        if isinstance(offset, Literal) and offset.value is not None and offset.value < 0:
            message = f"Offset({offset.value}) should be positive."
            raise PlanError("lag-offset", message, offset.span or call.span, "say how many rows before")
        if isinstance(offset.type, t.BigIntType):
            message = "LAG takes no number of rows of type BIGINT in stream mode."
            raise PlanError("lag-offset", message, offset.span or call.span, "write CAST(... AS INT)")
    if call.function in _BATCH_ONLY:
        message = f"{call.function} Function is not supported in stream mode."
        raise PlanError("over-function", message, call.span)


def _check_order(call: OverCall, window: _Window) -> None:
    if len(window.order) != 1:
        message = "The window can only be ordered by a single time column."
        raise PlanError("over-order", message, call.span, "a streaming OVER window has ORDER BY one column")
    if window.order[0][1]:
        raise PlanError("over-order", "The window can only be ordered in ASCENDING mode.", call.span)


def _preceding(window: _Window, span: Span | None) -> int | None:
    """Rows or milliseconds before the current row; None: all."""
    frame = window.frame
    start = frame.start
    if frame.end.kind is not BoundKind.CURRENT_ROW or start.kind not in (
        BoundKind.UNBOUNDED_PRECEDING,
        BoundKind.PRECEDING,
    ):
        message = "OVER RANGE FOLLOWING windows are not supported yet."
        raise PlanError("over-frame", message, span, "a streaming OVER window ends at CURRENT ROW and starts before it")
    if start.kind is BoundKind.UNBOUNDED_PRECEDING:
        return None
    assert start.offset is not None
    if frame.unit is FrameUnit.RANGE:
        if isinstance(start.offset.type, t.YearMonthIntervalType):
            message = "INTERVAL_YEAR_MONTH type is not allowed for window boundary"
            raise BindError("bad-frame", message, start.offset.span or span)
        if not isinstance(start.offset.type, t.DayTimeIntervalType):
            message = "Data Type mismatch between ORDER BY and RANGE clause"
            raise BindError("bad-frame", message, start.offset.span or span, "use an INTERVAL")
    return int(start.offset.value)


@dataclass(frozen=True, slots=True)
class _Made:
    """A call of the operator; its arguments are columns of the source, added expressions, or constants."""

    function: str
    args: tuple[Expr, ...]
    type: t.LogicalType
    distinct: bool
    options: tuple[tuple[str, Any], ...] = ()
    frame: OverFrame | None = None
    span: Span | None = field(default=None, compare=False)


@dataclass(slots=True)
class OverCalls:
    """The operator's calls while they are collected, equal ones once.

    Results are expressions in which ``InputRef(i)`` is call i; :meth:`over` moves them behind the input's columns.
    """

    source: Physical
    calls: list[_Made] = field(default_factory=list)
    added: list[Expr] = field(default_factory=list)
    constants: list[Literal] = field(default_factory=list)
    #: Of the calls that are collected now, where calls of several frames stand in one operator.
    frame: OverFrame | None = None

    def result(self, call: OverCall) -> Expr:
        """What a window function is in terms of the operator's calls."""
        args: tuple[Expr, ...] = tuple(
            _plain(ref(self.source.schema, arg.index)) if isinstance(arg, InputRef) else arg for arg in call.args
        )
        name, distinct, span = call.function, call.distinct, call.span
        if named_function(name, call.options) is not None:
            return self._made(name, args, call.type, distinct, span, call.options)
        if name not in _OF_PLACES:
            name = aggregate_function(name).name
        if name == "SUM":
            return self._sum(args[0], distinct, call.type, span)
        if name == "AVG":
            summed = resolve_aggregate("SUM", (args[0].type,), distinct, span).result_type
            total = self._sum(args[0], distinct, summed.as_nullable(call.type.nullable), span)
            if isinstance(call.type, t.DecimalType):
                total = _as(total, call.type)
            return _as(resolve_call("/", (total, self._count(args[0], distinct, span)), (), span), call.type)
        if name in _DEVIATIONS:
            return self._deviation(name, args[0], distinct, call.type, span)
        return self._made(name, args, t.without_attribute(call.type), distinct, span, call.options)

    def _made(
        self,
        name: str,
        args: tuple[Expr, ...],
        type_: t.LogicalType,
        distinct: bool,
        span: Span | None,
        options: tuple[tuple[str, Any], ...] = (),
    ) -> InputRef:
        made = _Made(name, args, type_, distinct, options, self.frame, span)
        if made not in self.calls:
            self.calls.append(made)
        return InputRef(self.calls.index(made), type_, span)

    def _count(self, arg: Expr, distinct: bool, span: Span | None) -> Expr:
        return self._made("COUNT", (arg,), t.BIGINT.as_nullable(False), distinct, span)

    def _sum(self, arg: Expr, distinct: bool, type_: t.LogicalType, span: Span | None) -> Expr:
        """The sum of no value is NULL; a sum that cannot be NULL is a call of its own."""
        if not type_.nullable:
            return self._made("SUM", (arg,), type_, distinct, span)
        count = self._count(arg, distinct, span)
        zero = resolve_aggregate("$SUM0", (arg.type,), distinct, span).result_type
        total = self._made("$SUM0", (arg,), zero, distinct, span)
        some = resolve_call(">", (count, Literal(0, t.BIGINT.as_nullable(False))), (), span)
        nothing = Literal(None, zero.as_nullable())
        return Case((some,), (total,), nothing, zero.as_nullable(), span)

    def _deviation(self, name: str, arg: Expr, distinct: bool, type_: t.LogicalType, span: Span | None) -> Expr:
        """``(SUM(x * x) - SUM(x) * SUM(x) / n) / n`` or ``/ (n - 1)``, and its root, in the argument's own numbers."""
        plain = type_.as_nullable()
        if isinstance(arg.type, t.DecimalType):
            # Flink sums decimals in the type of the result.
            arg = _as(arg, plain)
        square = _as(resolve_call("*", (arg, arg), (), span), plain)
        squares = self._sum(square, distinct, plain, span)
        total = self._sum(arg, distinct, plain, span)
        count = self._count(arg, distinct, span)
        number = _as(count, plain.as_nullable(False))
        product = _as(resolve_call("*", (total, total), (), span), plain)
        mean = _as(resolve_call("/", (product, number), (), span), plain)
        spread = _as(resolve_call("-", (squares, mean), (), span), plain)
        if name.endswith("SAMP"):
            one = Literal(1, t.BIGINT.as_nullable(False))
            less = resolve_call("-", (count, one), (), span)
            alone = resolve_call("=", (count, one), (), span)
            divisor: Expr = Case((alone,), (Literal(None, t.BIGINT),), less, t.BIGINT, span)
        else:
            divisor = number
        variance = _as(resolve_call("/", (spread, divisor), (), span), plain)
        if name.startswith("VAR"):
            return variance
        half = Literal(Decimal("0.5"), t.DecimalType(precision=2, scale=1, nullable=False))
        return _as(resolve_call("POWER", (variance, half), (), span), plain)

    # -- once all calls are there

    def below(self) -> Physical:
        """The input with the expressions that calls are over."""
        for made in self.calls:
            for arg in made.args:
                if isinstance(arg, Literal):
                    if arg not in self.constants:
                        self.constants.append(arg)
                elif not isinstance(arg, InputRef) and arg not in self.added:
                    self.added.append(arg)
        if not self.added:
            return self.source
        schema = self.source.schema
        names = [*(column.name for column in schema), *(f"${len(schema) + i}" for i in range(len(self.added)))]
        return make_calc(self.source, (*refs(schema), *self.added), tuple(names), self.source.span)

    def call(self, made: _Made, width: int) -> AggregateCall:
        """A call over the input's columns and constants."""

        def place(arg: Expr) -> int:
            if isinstance(arg, InputRef):
                return arg.index
            if isinstance(arg, Literal):
                return width + self.constants.index(arg)
            return len(self.source.schema) + self.added.index(arg)

        args = tuple(InputRef(place(arg), arg.type) for arg in made.args)
        name = f"w0$o{self.calls.index(made)}"
        return AggregateCall(
            made.function, args, made.type, name, distinct=made.distinct, options=made.options, span=made.span
        )

    def over(self, result: Expr, width: int) -> Expr:
        """A result over the operator's output."""
        return remap_inputs(result, lambda index: width + index)


def _plain(arg: InputRef) -> Expr:
    """An argument; a time attribute as a timestamp."""
    if t.is_proctime(arg.type):
        return Cast(arg, t.without_attribute(arg.type), implicit=True)
    return InputRef(arg.index, t.without_attribute(arg.type), arg.span)


def _as(expr: Expr, type_: t.LogicalType) -> Expr:
    """The expression in a type, nullable where it is or where the type is."""
    return implicit_cast(expr, type_.as_nullable(expr.type.nullable))
