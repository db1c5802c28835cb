"""Scans and sinks that can be planned and explained but not run."""

from __future__ import annotations

from collections.abc import Sequence

from flowsql_core.errors import NotSupportedYetError
from flowsql_core.row import INSERT_ONLY
from flowsql_planner.physical.context import PlanContext
from flowsql_planner.physical.nodes import Physical, SinkNode, TableSourceScan, walk


def refuse_unreadable(roots: Sequence[Physical], context: PlanContext) -> None:
    """Called where a job is made, not where it is explained.

    Raises:
        NotSupportedYetError: with the table reference's span, for a scan whose source cannot read its table, or for a
            sink that cannot write its table.
    """
    for root in roots:
        for node in walk(root):
            if isinstance(node, TableSourceScan):
                refusal = context.table_source(node.table, node.span).refusal()
                if refusal is not None:
                    raise NotSupportedYetError(refusal, node.span)
            elif isinstance(node, SinkNode) and node.table is not None:
                refusal = context.table_sink(node.table, node, INSERT_ONLY).refusal()
                if refusal is not None:
                    raise NotSupportedYetError(refusal, node.span)
