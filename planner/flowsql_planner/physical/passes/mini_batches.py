"""Where mini-batches are marked: above the watermark of each source, or above the source without one.

Source: Flink's ``MiniBatchIntervalInferRule``.
"""

from __future__ import annotations

from dataclasses import replace

from flowsql_planner.physical.nodes import (
    MiniBatchAssigner,
    MiniBatchMode,
    Physical,
    TableSourceScan,
    WatermarkAssignerNode,
)


def assign_mini_batches(node: Physical, interval_ms: int, kind: MiniBatchMode = MiniBatchMode.PROC_TIME) -> Physical:
    """The plan with a MiniBatchAssigner on each source: by row time below operators that wait for watermarks."""
    if isinstance(node, WatermarkAssignerNode):
        return _marked(node, interval_ms, kind)
    if isinstance(node, TableSourceScan):
        return _marked(node, interval_ms, kind) if kind is MiniBatchMode.PROC_TIME else node
    below = node.mini_batches_below(kind)
    return replace(node, inputs=tuple(assign_mini_batches(child, interval_ms, below) for child in node.inputs))


def _marked(node: Physical, interval_ms: int, kind: MiniBatchMode) -> Physical:
    return MiniBatchAssigner(inputs=(node,), schema=node.schema, interval_ms=interval_ms, kind=kind, span=node.span)
