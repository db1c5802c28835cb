"""Where mini-batches are marked: above the watermark of each source, or above the source without one.

Source: Flink's ``MiniBatchIntervalInferRule``.
"""

from __future__ import annotations

from dataclasses import replace

from flowsql_planner.physical.nodes import (
    IntervalJoin,
    MiniBatchAssigner,
    MiniBatchMode,
    Physical,
    TableSourceScan,
    TemporalSort,
    WatermarkAssignerNode,
    WindowAggregate,
    WindowJoin,
    WindowTableFunctionNode,
)


def assign_mini_batches(node: Physical, interval_ms: int, kind: MiniBatchMode = MiniBatchMode.PROC_TIME) -> Physical:
    """The plan with a MiniBatchAssigner on each source: by row time below operators that wait for watermarks."""
    match node:
        case TableSourceScan():
            return _marked(node, interval_ms, kind) if kind is MiniBatchMode.PROC_TIME else node
        case WatermarkAssignerNode():
            return _marked(node, interval_ms, kind)
        case WindowAggregate(window=window) | WindowTableFunctionNode(window=window):
            below = kind if window.processing_time else MiniBatchMode.ROW_TIME
        case WindowJoin():
            below = kind if node.left_window.processing_time else MiniBatchMode.ROW_TIME
        case IntervalJoin(row_time=row_time):
            below = MiniBatchMode.ROW_TIME if row_time else kind
        case TemporalSort():
            below = MiniBatchMode.ROW_TIME
        case _:
            below = kind
    return replace(node, inputs=tuple(assign_mini_batches(child, interval_ms, below) for child in node.inputs))


def _marked(node: Physical, interval_ms: int, kind: MiniBatchMode) -> Physical:
    return MiniBatchAssigner(inputs=(node,), schema=node.schema, interval_ms=interval_ms, kind=kind, span=node.span)
