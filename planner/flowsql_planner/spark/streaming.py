"""Which streaming plans run on Spark, batch by batch; all others are refused where they stand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from flowsql_core.errors import NotSupportedYetError
from flowsql_core.graph.over_specs import OverOrder
from flowsql_core.row import INSERT_ONLY
from flowsql_core.span import Span
from flowsql_planner.physical.context import PlanContext
from flowsql_planner.physical.nodes import (
    Calc,
    ChangelogFunctionNode,
    ChangelogNormalize,
    CorrelateNode,
    DropUpdateBefore,
    Exchange,
    ExpandNode,
    GroupAggregate,
    IncrementalGroupAggregate,
    IntervalJoin,
    JoinNode,
    MatchNode,
    MiniBatchAssigner,
    MultiJoinNode,
    OverAggregate,
    Physical,
    PythonCalc,
    RankNode,
    SinkNode,
    SortLimit,
    TableSourceScan,
    TemporalJoinNode,
    UnionNode,
    WatermarkAssignerNode,
    WindowAggregate,
    WindowDeduplicate,
    WindowJoin,
    WindowRank,
    WindowTableFunctionNode,
)

#: Nodes that need nothing but rows, event time and their state between two batches. A node that is derived from one of
#: them is another one.
_RUNNING: Final = frozenset(
    {
        Calc,
        ChangelogFunctionNode,
        ChangelogNormalize,
        CorrelateNode,
        DropUpdateBefore,
        Exchange,
        ExpandNode,
        GroupAggregate,
        IntervalJoin,
        IncrementalGroupAggregate,
        JoinNode,
        MatchNode,
        MiniBatchAssigner,
        MultiJoinNode,
        OverAggregate,
        PythonCalc,
        RankNode,
        SinkNode,
        SortLimit,
        TableSourceScan,
        TemporalJoinNode,
        UnionNode,
        WatermarkAssignerNode,
        WindowAggregate,
        WindowDeduplicate,
        WindowJoin,
        WindowRank,
        WindowTableFunctionNode,
    }
)


def refuse_on_spark(roots: Sequence[Physical], context: PlanContext) -> None:
    """Refuse a streaming plan that cannot run batch by batch.

    Raises:
        NotSupportedYetError: with the operator, where it stands.
    """
    for root in roots:
        _refuse(root, root.span, context)


def _refuse(node: Physical, above: Span | None, context: PlanContext) -> None:
    span = above if node.span is None else node.span
    lacking = _lacking(node, context)
    if lacking is not None:
        raise NotSupportedYetError(f"{lacking} in a stream on Spark", span, "'execution.target' = 'local' runs it")
    for child in node.inputs:
        _refuse(child, span, context)


def _lacking(node: Physical, context: PlanContext) -> str | None:
    """What of a node does not run; None: all of it does."""
    if type(node) not in _RUNNING:
        return node.title
    match node:
        case TableSourceScan(table=table):
            if context.table_source(table, node.span).batched_input() is None:
                return f"the connector '{table.option('connector')}' of table '{table.name}'"
        case WatermarkAssignerNode(options=options):
            if any(key.startswith("scan.watermark.alignment.") for key, _ in options):
                return "watermark alignment"
        case WindowTableFunctionNode(window=window) | WindowAggregate(window=window) if window.processing_time:
            return f"{node.title} of processing time"
        case IntervalJoin(row_time=False) | MatchNode(row_time=False):
            return f"{node.title} of processing time"
        case OverAggregate(order=OverOrder.PROCESSING_TIME):
            return f"{node.title} of processing time"
        case SinkNode(table=table) if table is not None:
            sink = context.sink(node.writing(INSERT_ONLY), node.span)
            if not sink.writes_anywhere() and sink.create_committer() is not None:
                return f"the connector '{table.option('connector')}' of table '{table.name}'"
            return sink.beyond_batches()
    return None
