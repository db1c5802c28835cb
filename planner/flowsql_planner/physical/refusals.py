"""Plans that can be explained but not run."""

from __future__ import annotations

from collections.abc import Sequence

from flowsql_compute.functions.aggregate import counts_approximately
from flowsql_core.config import RUNTIME_MODE, Configuration, RuntimeMode
from flowsql_core.errors import NotSupportedYetError, PlanError
from flowsql_core.expr import AggregateCall, Call
from flowsql_core.expr import walk as walk_expression
from flowsql_core.graph.process_specs import ProcessCall
from flowsql_core.python_call import named_function, spoken_name
from flowsql_core.span import Span
from flowsql_core.udf import FunctionKind
from flowsql_planner.logical.group_window import AUXILIARY, no_such_window
from flowsql_planner.logical.nodes import Aggregate, OverCall, Rel, Scan, expressions
from flowsql_planner.logical.rewrite import walk as walk_logical
from flowsql_planner.physical.context import PlanContext
from flowsql_planner.physical.nodes import Physical, walk


def refuse_stray_windows(root: Rel) -> None:
    """Refuse an optimized plan with functions of group windows that belong to no GROUP BY.

    Raises:
        BindError: with the function, where it stands.
    """
    for rel in walk_logical(root):
        for expr in expressions(rel):
            for node in walk_expression(expr):
                if isinstance(node, Call) and node.function in AUXILIARY:
                    raise no_such_window(node)


def refuse_unbounded(scan: Scan, context: PlanContext) -> None:
    """Refuse a table that does not end, in batch mode.

    Raises:
        PlanError: as Flink does.
    """
    if not context.table_source(scan.table, scan.span).bounded:
        raise PlanError(
            "unbounded-in-batch",
            f"Querying an unbounded table '{scan.table.name}' in batch mode is not allowed. The table source is "
            "unbounded.",
            scan.span,
        )


def refuse_python_in_batch(calls: Sequence[AggregateCall | OverCall]) -> bool:
    """Refuse Python aggregates that Flink has in streaming alone; whether some of the others are of pandas.

    Raises:
        NotSupportedYetError: with Flink's reason.
    """
    pandas = False
    for call in calls:
        function = named_function(call.function, call.options)
        if function is None:
            continue
        if function.kind != FunctionKind.PANDAS.value:
            raise NotSupportedYetError(
                f"the Python aggregate function {function.name} in batch mode",
                call.span,
                "Flink has functions of pandas alone there ('non-Pandas UDAFs are not supported')",
            )
        pandas = True
    return pandas


def refuse_approximate(calls: Sequence[AggregateCall]) -> None:
    """Refuse APPROX_COUNT_DISTINCT in groups and windows of streaming, where Flink has none.

    Raises:
        PlanError: at the call.
    """
    for call in calls:
        if call.function == "APPROX_COUNT_DISTINCT":
            message = "APPROX_COUNT_DISTINCT aggregate function does not support yet for streaming."
            raise PlanError("approximate-count", message, call.span, "COUNT(DISTINCT ...) counts exactly")


def refuse_approximate_groups(rel: Aggregate) -> None:
    """Refuse in batch mode what Flink has no APPROX_COUNT_DISTINCT for: group windows, DISTINCT beside it, some types.

    Raises:
        PlanError: at the call.
    """
    for call in rel.calls:
        if call.function != "APPROX_COUNT_DISTINCT":
            continue
        type_ = call.args[0].type
        if not counts_approximately(type_):
            what = f"APPROX_COUNT_DISTINCT does not take {type_.as_nullable().text()}"
        elif rel.window is not None:
            what = "group windows have no APPROX_COUNT_DISTINCT"
        elif any(other.distinct for other in rel.calls):
            what = "APPROX_COUNT_DISTINCT cannot stand beside DISTINCT of other functions"
        else:
            continue
        message = f"Cannot generate a valid execution plan: {what}."
        raise PlanError("approximate-count", message, call.span, "COUNT(DISTINCT ...) counts exactly")


def process_in_batch(call: ProcessCall, span: Span | None) -> NotSupportedYetError:
    """Flink plans process table functions in streaming alone, the built-in ones as well."""
    return NotSupportedYetError(
        f"the process table function {spoken_name(call.function.name)} in batch mode",
        span,
        "Flink has none there either; streaming mode runs them, over bounded tables as well",
    )


def refuse_other_in_batch(roots: Sequence[Physical], configuration: Configuration) -> None:
    """Refuse plans whose batch answer is another one than the changelog of the streaming plan.

    Raises:
        NotSupportedYetError: batch mode asked for, and a node would answer differently.
    """
    if configuration.get(RUNTIME_MODE) is not RuntimeMode.BATCH:
        return
    for root in roots:
        for node in walk(root):
            if not node.same_in_batch() or node.retracts:
                raise NotSupportedYetError(f"{node.title} in batch mode", node.span)
