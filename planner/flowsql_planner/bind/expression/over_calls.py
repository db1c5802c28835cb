"""Window functions, ``f(x) OVER (...)``: bound to calls, then lifted into an :class:`Over` node below the projection.

Source: Flink manual, "Over aggregation"; result types are Calcite's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import UnionType
from typing import Any, Final

from flowsql_compute.eval.context import EvalContext
from flowsql_compute.eval.not_null import declare
from flowsql_compute.functions.registry import implicit_cast
from flowsql_core.errors import BindError, NotSupportedYetError
from flowsql_core.expr import Call, Expr, InputRef, Literal, input_refs, remap_inputs, transform, walk
from flowsql_core.record import record
from flowsql_core.span import Span
from flowsql_core.types import logical as t
from flowsql_grammar import ast
from flowsql_planner.bind.environment import ClauseBinder
from flowsql_planner.bind.expression.fractions import constant_fractions
from flowsql_planner.logical.internal_calls import OVER
from flowsql_planner.logical.nodes import BoundKind, Frame, FrameBound, FrameUnit, Over, OverCall, Project, Rel, SortKey
from flowsql_planner.logical.rewrite import refs, select, unique_names

_RANKS: Final = frozenset({"ROW_NUMBER", "RANK", "DENSE_RANK"})
_SHARES: Final = frozenset({"PERCENT_RANK", "CUME_DIST"})
_NEIGHBOURS: Final = frozenset({"LAG", "LEAD"})
_NEEDS_ORDER: Final = _RANKS - {"ROW_NUMBER"} | _SHARES | _NEIGHBOURS | {"NTILE"}
#: Functions that look at no frame.
_WITHOUT_FRAME: Final = _RANKS | _SHARES | _NEIGHBOURS | {"NTILE"}
_BOUND_ORDER: Final = tuple(BoundKind)


@record
class OverFunction:
    """A user's function before OVER: its name in calls, their options, and what types its arguments."""

    function: str
    type: t.LogicalType
    options: tuple[tuple[str, Any], ...]
    arguments: Callable[[Sequence[Expr]], Sequence[Expr]]


def bind_over(binder: ClauseBinder, name: str, node: ast.FunctionCall, user: OverFunction | None = None) -> Expr:
    """A window function as a call over its arguments, partition columns and sort keys, in this order.

    Args:
        user: the function, where a user made it.

    Raises:
        BindError: OVER where no window function may stand, or a window that contradicts itself.
        NotSupportedYetError: valid Flink SQL around the call that is not executed yet.
    """
    if binder.aggregates is None:
        raise BindError(
            "over-not-allowed", f"Windowed aggregate expression is illegal in {binder.clause} clause", node.span
        )
    if node.filter is not None:
        raise BindError("not-an-aggregate", "OVER must be applied to aggregate function", node.span)
    if node.within_group or node.order_by or node.match_scope is not None:
        raise NotSupportedYetError(f"what stands between {name}(...) and OVER", node.span)
    streaming = binder.context.streaming
    distinct = node.quantifier is ast.SetQuantifier.DISTINCT
    if distinct and name in _WITHOUT_FRAME:
        raise NotSupportedYetError(f"{name}(DISTINCT ...) OVER (...)", node.span)
    if distinct and not streaming:
        if user is not None or name not in ("MIN", "MAX"):
            message = (
                f"Distinct not supported in Windowing function! {name}(DISTINCT ...) OVER (...) runs in streaming mode"
            )
            raise BindError(
                "over-distinct", message, node.span, "aggregate distinct values in a query of its own, and join it"
            )
        # Equal values are one to them anyway.
        distinct = False
    if streaming and node.null_treatment is not None and name != "ARRAY_AGG":
        message = f"Cannot specify IGNORE NULLS or RESPECT NULLS following '{node.name.last.text}'"
        raise BindError("null-treatment", message, node.span)
    if node.null_treatment is ast.NullTreatment.IGNORE:
        raise NotSupportedYetError(f"{name}(...) IGNORE NULLS OVER (...)", node.span)
    window = _window(binder, node)
    if window.frame is not None and name in _WITHOUT_FRAME:
        message = "ROW/RANGE not allowed with RANK, DENSE_RANK or ROW_NUMBER functions"
        raise BindError("frame-not-allowed", message, window.frame.span)
    star = len(node.args) == 1 and isinstance(node.args[0], ast.Star)
    if star and name != "COUNT":
        raise BindError("star-argument", f"'*' is no argument of {name}", node.args[0].span)
    args = [] if star else [binder.bind(argument) for argument in node.args]
    for item in window.partition_by:
        if isinstance(item, ast.NullLiteral):
            raise BindError("illegal-null", "Illegal use of 'NULL'", item.span, "cast it: CAST(NULL AS INT)")
    partition = [binder.bind(item) for item in window.partition_by]
    order = [binder.bind(item.expression) for item in window.order_by]
    if name in _NEEDS_ORDER and not order:
        raise BindError(
            "over-without-order",
            f"RANK or DENSE_RANK functions require ORDER BY clause in window specification: {name}",
            node.span,
        )
    frame = None if window.frame is None else _frame(binder, window.frame)
    if window.frame is not None and frame is not None and frame.unit is FrameUnit.RANGE:
        _check_range(frame, order, window.frame.span)
    if streaming and name == "LAG" and len(args) == 3:
        _refuse_other_default(args[0].type, args[2])
    if user is None:
        args, type_, declared = _typed(name, args, frame, node.span)
    else:
        name, args, type_ = user.function, list(user.arguments(args)), user.type
        declared = type_
    options_of_call = () if user is None else user.options
    if name == "PERCENTILE" and user is None:
        fractions = constant_fractions(args[1])
        if fractions is None:
            what = "PERCENTILE(...) OVER (...) with a fraction that is no constant"
            raise NotSupportedYetError(what, args[1].span or node.span)
        options_of_call = (("fractions", fractions),)
        del args[1]
    directions = tuple(
        (item.descending, not item.descending if item.nulls is None else item.nulls is ast.NullOrder.FIRST)
        for item in window.order_by
    )
    if distinct and len(args) > 1 and name != "LISTAGG":
        raise BindError("distinct-arguments", f"{name}(DISTINCT ...) OVER (...) takes one column", node.span)
    options = (
        ("function", name),
        ("distinct", distinct),
        ("args", len(args)),
        ("partition", len(partition)),
        ("order", directions),
        ("frame", frame),
        ("options", options_of_call),
    )
    return declare(Call(OVER, (*args, *partition, *order), type_, options, node.span), declared)


def lift_over(rel: Rel, exprs: Sequence[Expr], span: Span | None, narrow: bool = False) -> tuple[Rel, list[Expr]]:
    """Window functions computed below the expressions: the relation with their columns, and what reads those.

    ``narrow``: columns that no expression reads do not reach the windows, as in Flink's plans of QUALIFY.
    """
    if not any(map(has_over, exprs)):
        return rel, list(exprs)
    if narrow:
        rel, exprs = _narrowed(rel, exprs)
    calls: list[Expr] = []
    for expr in exprs:
        calls += [node for node in walk(expr) if _is_over(node) and node not in calls]
    columns: list[Expr] = list(refs(rel.schema))
    width = len(columns)

    def column(expr: Expr) -> int:
        if expr not in columns:
            columns.append(expr)
        return columns.index(expr)

    made = [_over_call(call, column, f"w{index}$o0") for index, call in enumerate(calls) if isinstance(call, Call)]
    source = rel
    if len(columns) > width:
        names = [field.name for field in rel.schema] + [f"$f{index}" for index in range(width, len(columns))]
        source = Project(rel, tuple(columns), unique_names(names), span)
    first = len(columns)

    def read(node: Expr) -> Expr:
        return InputRef(first + calls.index(node), node.type, node.span) if _is_over(node) else node

    return Over(source, tuple(made), span), [transform(expr, read) for expr in exprs]


def _narrowed(rel: Rel, exprs: Sequence[Expr]) -> tuple[Rel, list[Expr]]:
    """The relation with the columns that some expression reads, and the expressions over those."""
    read = sorted(frozenset[int]().union(*map(input_refs, exprs)))
    if not read or len(read) == len(rel.schema):
        return rel, list(exprs)
    places = {old: new for new, old in enumerate(read)}
    return select(rel, tuple(read)), [remap_inputs(expr, places.__getitem__) for expr in exprs]


def has_over(expr: Expr) -> bool:
    """Whether a window function is somewhere in an expression."""
    return any(map(_is_over, walk(expr)))


def _is_over(expr: Expr) -> bool:
    return isinstance(expr, Call) and expr.function == OVER


def _over_call(call: Call, column: Callable[[Expr], int], name: str) -> OverCall:
    n, m = call.option("args"), call.option("partition")

    def argument(expr: Expr) -> InputRef | Literal:
        return expr if isinstance(expr, Literal) else InputRef(column(expr), expr.type, expr.span)

    return OverCall(
        call.option("function"),
        tuple(argument(arg) for arg in call.args[:n]),
        call.type,
        name,
        tuple(column(expr) for expr in call.args[n : n + m]),
        tuple(
            SortKey(column(expr), descending, nulls_first)
            for expr, (descending, nulls_first) in zip(call.args[n + m :], call.option("order"), strict=True)
        ),
        call.option("frame"),
        call.option("distinct"),
        call.option("options"),
        call.span,
    )


# The window


def _window(binder: ClauseBinder, node: ast.FunctionCall) -> ast.WindowSpec:
    """The window of a call, names of the WINDOW clause followed."""
    over = node.over
    assert over is not None
    return _extended(_named(over, binder.windows) if isinstance(over, ast.Name) else over, binder.windows)


def _named(name: ast.Name, known: Mapping[str, ast.WindowSpec]) -> ast.WindowSpec:
    found = known.get(name.text)
    if found is None:
        raise BindError("window-not-found", f"Window '{name.text}' not found", name.span)
    return found


def _extended(window: ast.WindowSpec, known: Mapping[str, ast.WindowSpec]) -> ast.WindowSpec:
    """A window with what it has from the named one that it goes on from."""
    if window.base is None:
        return window
    base = _named(window.base, known)
    refused = None
    if window.partition_by:
        refused = "PARTITION BY not allowed with existing window reference"
    elif window.order_by and base.order_by:
        refused = "ORDER BY not allowed in both base and referenced windows"
    elif base.frame is not None:
        refused = "Referenced window cannot have framing declarations"
    if refused is not None:
        hint = f"window '{window.base.text}' is taken over as it is; write the whole window"
        raise BindError("window-override", refused, window.span, hint)
    if base.base is not None:
        # Flink 2.3 loses what the innermost window says.
        what = f"a window over '{window.base.text}', which itself goes on from another window"
        raise NotSupportedYetError(what, window.base.span, "write the whole window")
    frame = window.frame
    if frame is not None and (
        frame.start.kind is not ast.BoundKind.UNBOUNDED_PRECEDING
        or (frame.end is not None and frame.end.kind is not ast.BoundKind.CURRENT_ROW)
    ):
        # Flink 2.3 takes ROWS or RANGE from here and the bounds from the named window.
        what = "bounds of a frame beside a named window"
        raise NotSupportedYetError(what, frame.span, "write the whole window in OVER (...)")
    return replace(window, base=None, partition_by=base.partition_by, order_by=window.order_by or base.order_by)


def _frame(binder: ClauseBinder, node: ast.Frame) -> Frame:
    unit = FrameUnit[node.unit.name]
    start = _bound(binder, node.start, unit)
    end = FrameBound(BoundKind.CURRENT_ROW) if node.end is None else _bound(binder, node.end, unit)
    backwards = _BOUND_ORDER.index(start.kind) > _BOUND_ORDER.index(end.kind)
    if backwards or start.kind is BoundKind.UNBOUNDED_FOLLOWING or end.kind is BoundKind.UNBOUNDED_PRECEDING:
        raise BindError(
            "bad-frame", f"{start.kind.value} cannot be followed by {end.kind.value} in a window frame", node.span
        )
    return Frame(unit, start, end)


def _bound(binder: ClauseBinder, node: ast.FrameBound, unit: FrameUnit) -> FrameBound:
    kind = BoundKind[node.kind.name]
    if node.offset is None:
        return FrameBound(kind)
    offset = binder.bind(node.offset)
    if not isinstance(offset, Literal) or offset.value is None:
        raise NotSupportedYetError("a frame whose width is no constant", node.offset.span)
    if unit is FrameUnit.ROWS and not isinstance(offset.type, t.IntegerType):
        raise BindError("bad-frame", "ROWS value must be a non-negative integral constant", node.offset.span)
    if offset.value < 0:
        raise BindError("bad-frame", "a frame's width cannot be negative", node.offset.span)
    return FrameBound(kind, offset)


def _check_range(frame: Frame, order: Sequence[Expr], span: Span) -> None:
    """BindError where RANGE measures a width that the sort columns do not have."""
    widths = [bound.offset for bound in (frame.start, frame.end) if bound.offset is not None]
    if not widths:
        return
    if not order:
        message = "Window specification must contain an ORDER BY clause"
        raise BindError("bad-frame", message, span, "RANGE with a width measures the column of ORDER BY")
    if len(order) > 1:
        message = "RANGE clause cannot be used with compound ORDER BY clause"
        raise BindError("bad-frame", message, span, "order by one column, or count ROWS")
    match order[0].type:
        case t.NumericType():
            fitting: type | UnionType = t.NumericType
        case t.DateTimeType():
            fitting = t.DayTimeIntervalType | t.YearMonthIntervalType
        case other:
            message = "Data type of ORDER BY prohibits use of RANGE clause"
            raise BindError("bad-frame", message, span, f"{other.as_nullable()} has no width; count ROWS")
    wrong = [width for width in widths if not isinstance(width.type, fitting)]
    if wrong:
        message = "Data Type mismatch between ORDER BY and RANGE clause"
        wanted = "a number" if isinstance(order[0].type, t.NumericType) else "an INTERVAL"
        raise BindError("bad-frame", message, wrong[0].span or span, f"use {wanted}")


# Types


def _typed(
    name: str, args: list[Expr], frame: Frame | None, span: Span
) -> tuple[list[Expr], t.LogicalType, t.LogicalType]:
    """Arguments, cast where needed, the result's type, and that which the query sees (``ResolvedAggregate``)."""
    if name in _RANKS or name in _SHARES:
        _check_count(name, args, 0, 0, span)
        share = (t.BIGINT if name in _RANKS else t.DOUBLE).as_nullable(False)
        return args, share, share
    if name == "NTILE":
        _check_count(name, args, 1, 1, span)
        if not isinstance(args[0], Literal) or not isinstance(args[0].type, t.IntegerType) or args[0].value < 1:
            raise BindError("bad-ntile", "NTILE needs a positive whole number", span)
        return args, t.BIGINT.as_nullable(False), t.BIGINT.as_nullable(False)
    if name in _NEIGHBOURS:
        args, type_ = _neighbour(name, args, span)
        return args, type_, type_
    if name == "NTH_VALUE":
        raise BindError("function-not-found", "No match found for function signature NTH_VALUE(...)", span)
    # Imported here: the declarations of aggregates take time to load, and most queries need none.
    from flowsql_compute.functions.aggregate import check_literals, resolve_aggregate

    check_literals(name, args)
    resolved = resolve_aggregate(name, tuple(arg.type for arg in args), False, span, grouped=_is_never_empty(frame))
    cast = [implicit_cast(arg, wanted) for arg, wanted in zip(args, resolved.arg_types, strict=True)]
    return cast, resolved.result_type, resolved.declared_type


def _neighbour(name: str, args: list[Expr], span: Span) -> tuple[list[Expr], t.LogicalType]:
    _check_count(name, args, 1, 3, span)
    value = args[0]
    if len(args) > 1:
        args = [value, _number_of_rows(name, args[1], span), *args[2:]]
    if len(args) < 3:
        return args, value.type.as_nullable()
    otherwise = implicit_cast(args[2], value.type.as_nullable(args[2].type.nullable))
    if t.without_attribute(otherwise.type).root != t.without_attribute(value.type).root:
        raise BindError("lag-default", f"the default of {name} does not fit {value.type.as_nullable()}", span)
    # As in Flink, a default that is NOT NULL makes the column so, whatever its values are.
    return [value, args[1], otherwise], value.type.as_nullable(otherwise.type.nullable)


def _refuse_other_default(type_: t.LogicalType, default: Expr) -> None:
    """In streaming the default of LAG has the type of the values; batch mode casts it.

    Raises:
        BindError: it has another one.
    """
    wanted, given = t.without_attribute(type_), t.without_attribute(default.type)
    texts = isinstance(wanted, t.CharacterType) and isinstance(given, t.CharacterType)
    if not texts and wanted.root != given.root and not isinstance(given, t.NullType):
        shown = wanted.as_nullable()
        message = f"Please explicitly cast default value {given.as_nullable()} to {shown}."
        raise BindError("lag-default", message, default.span, f"write CAST(... AS {shown})")


def _number_of_rows(name: str, offset: Expr, span: Span) -> Expr:
    """How many rows back or ahead; a constant where it can be computed."""
    from flowsql_compute.eval.compile import fold

    if not isinstance(offset.type, t.IntegerType):
        raise BindError(
            "argument-types",
            f"Cannot apply '{name}' to a number of rows of type {offset.type.as_nullable()}",
            offset.span or span,
            "it is a whole number",
        )
    made = fold(offset, EvalContext())
    if isinstance(made, Literal) and made.value is None:
        raise BindError("lag-offset", f"the number of rows of {name} is NULL", offset.span or span)
    return made


def _check_count(name: str, args: list[Expr], low: int, high: int, span: Span) -> None:
    if not low <= len(args) <= high:
        expected = str(low) if low == high else f"{low} to {high}"
        raise BindError(
            "argument-count",
            f"Invalid number of arguments to function '{name}'. Was expecting {expected} arguments",
            span,
        )


def _is_never_empty(frame: Frame | None) -> bool:
    """Whether Calcite takes a frame for one that holds a row at least: it does not look into measured bounds."""
    if frame is None:
        return True
    bounds = (frame.start, frame.end)
    ordered = _BOUND_ORDER.index(frame.start.kind) <= _BOUND_ORDER.index(frame.end.kind)
    return ordered and all(bound.offset is None for bound in bounds)
