"""Over in batch mode: an OverAggregate for each partitioning and order, as in Flink."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from flowsql_core.errors import NotSupportedYetError, PlanError
from flowsql_core.expr import Expr, InputRef, Literal, remap_inputs
from flowsql_core.graph.bounded_specs import Distance, OverFrame
from flowsql_core.python_call import named_function
from flowsql_core.types import logical as t
from flowsql_planner.logical.nodes import BoundKind, FrameBound, FrameUnit, Over, OverCall, SortKey
from flowsql_planner.logical.rewrite import refs
from flowsql_planner.physical.calc import make_calc
from flowsql_planner.physical.group_aggregate import exchange
from flowsql_planner.physical.nodes import Calc, Physical
from flowsql_planner.physical.nodes.bounded import BoundedOver, PandasOver
from flowsql_planner.physical.nodes.bounded.over import frame_text
from flowsql_planner.physical.order import order_keys
from flowsql_planner.physical.over import OverCalls

#: Numbers of rows, which look at the whole partition in its order.
_WITHOUT_FRAME: Final = frozenset({"ROW_NUMBER", "RANK", "DENSE_RANK", "PERCENT_RANK", "NTILE", "LAG", "LEAD"})
#: Ranks whose window CUME_DIST shares.
_RANKS: Final = frozenset({"RANK", "DENSE_RANK", "PERCENT_RANK"})
_Window = tuple[tuple[int, ...], tuple[SortKey, ...]]


def plan_bounded_over(rel: Over, source: Physical) -> Physical:
    """Window functions of any windows.

    Raises:
        PlanError: functions of pandas and built-in ones in one window.
        NotSupportedYetError: a frame or an argument that the operator does not take.
    """
    groups: dict[_Window, list[OverCall]] = {}
    for call in rel.calls:
        groups.setdefault((tuple(dict.fromkeys(call.partition)), call.order), []).append(call)
    width = len(source.schema)
    made: dict[int, Expr] = {}
    current = source
    frames = 0
    for (partition, order), calls in sorted(groups.items(), key=_place):
        current, results = _plan_window(partition, order, calls, current, frames)
        frames += current.frame_count()
        for call, result in zip(calls, results, strict=True):
            made[id(call)] = result
    exprs = (*refs(current.schema)[:width], *(made[id(call)] for call in rel.calls))
    return make_calc(current, exprs, tuple(column.name for column in rel.schema), rel.span)


def _place(group: tuple[_Window, list[OverCall]]) -> tuple[tuple[int, ...], tuple[tuple[int, bool], ...]]:
    """Windows are computed in this order, whatever the query says, as Flink's plans show: it decides about equals."""
    partition, order = group[0]
    return tuple(sorted(partition)), tuple((key.index, key.descending) for key in order)


def _plan_window(
    partition: tuple[int, ...], order: tuple[SortKey, ...], calls: Sequence[OverCall], source: Physical, frames: int
) -> tuple[BoundedOver, list[Expr]]:
    """The operator of one window, whose first columns are those of ``source``, and what each call is over it.

    ``frames``: those of windows before it. Calls stand frame by frame, with the frame's number in their names.
    """
    building = OverCalls(source)
    results: list[Expr] = []
    before: OverCall | None = None
    for written in calls:
        call = _with_constants(written, source)
        _check(call)
        building.frame = _frame(call, before)
        results.append(building.result(call))
        if call.function not in ("ROW_NUMBER", "NTILE", "LAG", "LEAD"):
            before = call
    below = building.below()
    width = len(below.schema)
    by_frame: dict[str, list[int]] = {}
    for place, one in enumerate(building.calls):
        by_frame.setdefault(frame_text(one.frame, bool(order)), []).append(place)
    places = [place for own in by_frame.values() for place in own]
    names = [f"w{frames + number}$o{i}" for number, own in enumerate(by_frame.values()) for i in range(len(own))]
    made = tuple(
        replace(building.call(building.calls[place], width), name=name)
        for place, name in zip(places, names, strict=True)
    )
    keys = order_keys(order, source.schema, calls[0].span)
    node = (PandasOver if _in_python(calls) else BoundedOver)(
        inputs=(exchange(below, partition),),
        schema=(*below.schema, *(t.Column(call.name, call.type) for call in made)),
        partition=partition,
        order=keys,
        calls=made,
        frames=tuple(building.calls[place].frame for place in places),
        constants=tuple(building.constants),
        span=calls[0].span,
    )
    return node, [remap_inputs(result, lambda index: width + places.index(index)) for result in results]


def _with_constants(call: OverCall, source: Physical) -> OverCall:
    """The call with what it takes as numbers of rows and defaults, where a projection below computes them."""
    if call.function not in ("LAG", "LEAD", "NTILE") or not isinstance(source, Calc):
        return call

    def constant(arg: InputRef | Literal) -> InputRef | Literal:
        made = source.projections[arg.index] if isinstance(arg, InputRef) else arg
        return made if isinstance(made, Literal) else arg

    kept = 0 if call.function == "NTILE" else 1
    return replace(call, args=(*call.args[:kept], *map(constant, call.args[kept:])))


def _in_python(calls: Sequence[OverCall]) -> bool:
    """Whether the calls of a window are of pandas.

    Raises:
        PlanError: some of them are, as in Flink (``BatchPhysicalOverAggregateRule``).
    """
    python = [named_function(call.function, call.options) is not None for call in calls]
    if any(python) and not all(python):
        message = "Python UDAF and Java/Scala UDAF cannot be used together."
        raise PlanError(
            "python-over", message, calls[python.index(False)].span, "compute the other in a query of its own"
        )
    return all(python)


def _check(call: OverCall) -> None:
    if call.function in ("LAG", "LEAD", "NTILE"):
        offset = call.args[0] if call.function == "NTILE" else call.args[1] if len(call.args) > 1 else None
        if isinstance(offset, InputRef):
            if call.function == "NTILE":
                raise NotSupportedYetError("NTILE of a number that is no constant in batch mode", call.span)
            message = f"The number of rows of {call.function} must be a constant in batch mode."
            raise PlanError("lag-offset", message, offset.span or call.span)


def _frame(call: OverCall, before: OverCall | None) -> OverFrame | None:
    """What a call sees. ``before``: the call of the window in front of it.

    CUME_DIST takes the frame of a rank in front of it, in which peers are rows like others. Source: Flink,
    ``BatchExecOverAggregateBase.inferGroupMode``, as its answers show.
    """
    if call.function in _WITHOUT_FRAME:
        return None
    if call.function == "CUME_DIST":
        return None if before is not None and before.function in _RANKS else OverFrame(False, None, 0)
    if call.frame is None:
        return OverFrame(False, None, 0 if call.order else None)
    by_rows = call.frame.unit is FrameUnit.ROWS
    start, end = _distance(call.frame.start, call), _distance(call.frame.end, call)
    if not by_rows and not call.order:
        # Without an order all rows are peers.
        start = end = None
    return OverFrame(by_rows, start, end)


def _distance(bound: FrameBound, call: OverCall) -> Distance:
    match bound.kind:
        case BoundKind.UNBOUNDED_PRECEDING | BoundKind.UNBOUNDED_FOLLOWING:
            return None
        case BoundKind.CURRENT_ROW:
            return 0
    offset = bound.offset
    if not isinstance(offset, Literal) or isinstance(offset.type, t.YearMonthIntervalType):
        raise NotSupportedYetError("a frame of OVER whose bound is no number and no time", call.span)
    value: int | float = offset.value
    return -value if bound.kind is BoundKind.PRECEDING else value
