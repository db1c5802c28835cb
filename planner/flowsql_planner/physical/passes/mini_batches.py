"""Where mini-batches are marked: above the watermark of each source, or above the source without one.

Source: Flink's ``MiniBatchIntervalInferRule``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from flowsql_planner.physical.nodes import (
    MiniBatchAssigner,
    MiniBatchMode,
    Physical,
    TableSourceScan,
    WatermarkAssignerNode,
    walk,
)


def assign_mini_batches(node: Physical, interval_ms: int, kind: MiniBatchMode = MiniBatchMode.PROC_TIME) -> Physical:
    """The plan with a MiniBatchAssigner on each source: by row time below operators that wait for watermarks."""
    if kind is MiniBatchMode.NONE:
        return node
    if isinstance(node, WatermarkAssignerNode):
        return _marked(node, interval_ms, kind)
    if isinstance(node, TableSourceScan):
        return _marked(node, interval_ms, kind) if kind is MiniBatchMode.PROC_TIME else node
    below = node.mini_batches_below(kind)
    return replace(node, inputs=tuple(assign_mini_batches(child, interval_ms, below) for child in node.inputs))


def _marked(node: Physical, interval_ms: int, kind: MiniBatchMode) -> Physical:
    return MiniBatchAssigner(inputs=(node,), schema=node.schema, interval_ms=interval_ms, kind=kind, span=node.span)


def idle_assigners(roots: Sequence[Physical]) -> set[int]:
    """Identities of assigners that do not run: those by the clock that no aggregate or join waits for.

    Those by row time always run: they hold watermarks back, and so decide which rows are late.
    """
    waited: set[int] = set()

    def visit(node: Physical, waits: bool) -> None:
        waits = waits or node.waits_for_mini_batch()
        if waits and isinstance(node, MiniBatchAssigner):
            waited.add(id(node))
        for child in node.inputs:
            visit(child, waits)

    for root in roots:
        visit(root, False)
    return {
        id(node)
        for root in roots
        for node in walk(root)
        if isinstance(node, MiniBatchAssigner) and node.kind is MiniBatchMode.PROC_TIME and id(node) not in waited
    }
