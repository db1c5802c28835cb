"""Batch mode on the streaming engine: only where both give the same answer."""

from __future__ import annotations

from collections.abc import Sequence

from flowsql_core.config import RUNTIME_MODE, Configuration, RuntimeMode
from flowsql_core.errors import NotSupportedYetError
from flowsql_planner.physical.nodes import (
    Calc,
    CorrelateNode,
    Exchange,
    ExpandNode,
    JoinNode,
    Limit,
    Physical,
    SinkNode,
    TableSourceScan,
    UnionNode,
    ValuesNode,
    WatermarkAssignerNode,
    walk,
)

#: Nodes that answer the same, whether their input ends or not.
_SAME = (
    TableSourceScan,
    ValuesNode,
    Calc,
    CorrelateNode,
    Exchange,
    ExpandNode,
    JoinNode,
    Limit,
    SinkNode,
    UnionNode,
    WatermarkAssignerNode,
)


def check_batch(roots: Sequence[Physical], configuration: Configuration) -> None:
    """Refuse plans whose batch answer is another one than the changelog of the streaming plan.

    Raises:
        NotSupportedYetError: batch mode asked for, and a node would answer differently.
    """
    if configuration.get(RUNTIME_MODE) is not RuntimeMode.BATCH:
        return
    for root in roots:
        for node in walk(root):
            if not isinstance(node, _SAME) or (node.mode is not None and not node.mode.insert_only):
                name = type(node).__name__.removesuffix("Node")
                raise NotSupportedYetError(f"{name} in batch mode", node.span)
