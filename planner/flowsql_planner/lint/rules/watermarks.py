"""Windows, OVER, temporal and interval joins whose time never passes, or passes too soon."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from flowsql_core.errors import FlowSqlError
from flowsql_core.expr import Call, Expr, conjuncts, input_refs, walk
from flowsql_core.types.logical import DayTimeIntervalType, TimestampLtzType, TimestampType
from flowsql_grammar import ast
from flowsql_planner.lint.model import Hit, Rule, Subject
from flowsql_planner.physical.nodes import JoinNode, TableSourceScan, WindowAggregate, WindowTableFunctionNode
from flowsql_planner.physical.nodes import walk as walk_physical

#: Codes of errors whose cause is a column without a WATERMARK, and what would need its time.
_NEED_TIME: Final = {
    "not-a-time-attribute": "a window",
    "temporal-join-time": "a temporal join",
    "match-order": "MATCH_RECOGNIZE",
    "over-order": "a bounded OVER window",
}
_NO_TIMESTAMP: Final = (
    "make it a timestamp in CREATE TABLE and declare its watermark: ts AS TO_TIMESTAMP(text) or TO_TIMESTAMP_LTZ(ms, "
    "3), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND"
)
_NAME: Final = re.compile(r"[\w.`]+")
_COMPARISONS: Final = frozenset({"=", "<", "<=", ">", ">="})
_INTERVAL_REASON: Final = (
    "without watermarks on both times the condition bounds nothing: both inputs are kept whole, as in any join"
)


def window_without_watermark(subject: Subject) -> Iterator[Hit]:
    """Columns that are no times, because no WATERMARK makes them ones."""
    error = subject.error
    if error is not None and error.at is not None and _needs_time(error):
        name = subject.text(error.at)
        column = f"'{name.split('.')[-1].strip('`')}'" if _NAME.fullmatch(name) else "its column"
        message = f"{_NEED_TIME[error.code]} needs a time, and {column} has no WATERMARK."
        remedy = error.hint if error.hint is not None and "behind" in error.hint else None
        if error.code == "not-a-time-attribute" and "TIMESTAMP" not in error.message:
            remedy = _NO_TIMESTAMP
        yield Hit(error.at, message[0].upper() + message[1:], remedy, explains_error=True)
    if not subject.streaming:
        return
    for node in subject.physical():
        if isinstance(node, JoinNode) and any(map(subject.grows, node.inputs)):
            width = len(node.inputs[0].schema)
            if any(_bounds_times(part, width) for part in conjuncts(node.rest)):
                message = "The join compares times within an interval, but is a regular join that keeps every row."
                yield Hit(subject.node_place(node), message, reason=_INTERVAL_REASON)


def _needs_time(error: FlowSqlError) -> bool:
    """Whether the statement fails for want of a time; an OVER window may also have too many columns, or a descent."""
    return error.code in _NEED_TIME and (error.code != "over-order" or "time attribute" in error.message)


def _bounds_times(part: Expr, width: int) -> bool:
    """Whether a condition compares times of both sides, one of them moved by an interval."""
    match part:
        case Call(function=name, args=(left, right)) if name in _COMPARISONS:
            sides = input_refs(left), input_refs(right)
            crosses = all(sides) and any(max(one) < width <= min(other) for one, other in (sides, sides[::-1]))
            moved = any(isinstance(each.type, DayTimeIntervalType) for each in walk(part))
            return crosses and moved and isinstance(left.type, TimestampType | TimestampLtzType)
    return False


def watermark_ahead(subject: Subject) -> Iterator[Hit]:
    """Watermarks that run in front of the rows they are made of."""
    for watermark in subject.written(ast.Watermark):
        match watermark.expression:
            case ast.BinaryOp(operator=ast.BinaryOperator.PLUS, left=ast.ColumnRef(path=path), right=added) if (
                path.texts == watermark.column.texts and _is_interval(added)
            ):
                message = f"The watermark is ahead of '{path}': every row comes too late for its window."
                yield Hit(watermark.expression.span, message)


def _is_interval(node: ast.Node) -> bool:
    return isinstance(node, ast.IntervalLiteral) and not node.negative


def clock_window_over_bounded_input(subject: Subject) -> Iterator[Hit]:
    """Windows that only the clock closes, over rows that end before it does."""
    if not subject.streaming:
        return
    for node in subject.physical():
        if not isinstance(node, WindowAggregate | WindowTableFunctionNode) or not node.window.processing_time:
            continue
        scans = [each for each in walk_physical(node) if isinstance(each, TableSourceScan)]
        if scans and not any(map(subject.grows, scans)):
            names = ", ".join(dict.fromkeys(f"'{scan.table.shown_path[-1]}'" for scan in scans))
            message = f"The clock closes the windows, and {names} ends before: the last ones give no rows."
            yield Hit(subject.node_place(node), message)


RULES = (
    Rule(
        "window-without-watermark",
        "Windows, OVER, MATCH_RECOGNIZE, temporal and interval joins over a column without a WATERMARK.",
        "a watermark tells how far time has come: without one nobody knows when a window is over",
        "declare it in CREATE TABLE: WATERMARK FOR ts AS ts - INTERVAL '5' SECOND, or take a processing time: pt AS "
        "PROCTIME()",
        window_without_watermark,
    ),
    Rule(
        "watermark-ahead",
        "A WATERMARK that adds an interval to its column, and so is later than every row.",
        "rows older than the watermark are late, and windows drop late rows without a word",
        "subtract how much later rows may come: ts - INTERVAL '5' SECOND",
        watermark_ahead,
    ),
    Rule(
        "clock-window-over-bounded-input",
        "A window over processing time whose input ends: windows that are open then never answer.",
        "windows of the clock close when their time has come, and a job whose input is read is over at once",
        "take a time of the rows with a WATERMARK: the end of the input closes its windows",
        clock_window_over_bounded_input,
    ),
)
