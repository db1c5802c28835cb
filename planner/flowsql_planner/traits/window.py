"""Window properties: which columns of a node are the start, end and time of a window, and of which window.

Source: Flink's ``FlinkRelMdWindowProperties``.
"""

from __future__ import annotations

from dataclasses import replace

from flowsql_core.expr import InputRef
from flowsql_core.graph.specs import WindowProperty, WindowSpec
from flowsql_core.record import record
from flowsql_planner.physical.nodes import (
    Calc,
    CorrelateNode,
    Exchange,
    ExpandNode,
    MiniBatchAssigner,
    Physical,
    UnionNode,
    WindowAggregate,
    WindowJoin,
    WindowTableFunctionNode,
)

_NONE: frozenset[int] = frozenset()


@record
class WindowColumns:
    """Columns by role; ``window`` has neither time nor attached columns."""

    window: WindowSpec
    starts: frozenset[int] = _NONE
    ends: frozenset[int] = _NONE
    times: frozenset[int] = _NONE

    @property
    def all(self) -> frozenset[int]:
        """Columns of any role."""
        return self.starts | self.ends | self.times

    def attached(self, start: int, end: int) -> WindowSpec:
        """The window as columns of a row."""
        return replace(self.window, start_index=start, end_index=end)

    def role(self, column: int) -> WindowProperty | None:
        """What a column is."""
        if column in self.starts:
            return WindowProperty.START
        if column in self.ends:
            return WindowProperty.END
        return WindowProperty.TIME if column in self.times else None


def detached(window: WindowSpec) -> WindowSpec:
    """The window without the columns that it stands on."""
    return replace(window, time_index=None, start_index=None, end_index=None)


def derive_windows(node: Physical) -> WindowColumns | None:
    """The window columns of a node's output; None where no window is attached."""
    match node:
        case WindowTableFunctionNode(window=window):
            width = len(node.inputs[0].schema)
            return WindowColumns(detached(window), frozenset({width}), frozenset({width + 1}), frozenset({width + 2}))
        case Calc(projections=projections):
            below = derive_windows(node.inputs[0])
            if below is None:
                return None

            def places(columns: frozenset[int]) -> frozenset[int]:
                return frozenset(
                    out for out, expr in enumerate(projections) if isinstance(expr, InputRef) and expr.index in columns
                )

            return _some(WindowColumns(below.window, places(below.starts), places(below.ends), places(below.times)))
        case ExpandNode(projections=rows):
            below = derive_windows(node.inputs[0])
            if below is None:
                return None

            def kept(columns: frozenset[int]) -> frozenset[int]:
                return frozenset(
                    out
                    for out in range(len(node.schema))
                    if all(isinstance(row[out], InputRef) and row[out].index in columns for row in rows)  # type: ignore[union-attr]
                )

            return _some(WindowColumns(below.window, kept(below.starts), kept(below.ends), kept(below.times)))
        case Exchange() | MiniBatchAssigner() | CorrelateNode():
            return derive_windows(node.inputs[0])
        case WindowAggregate(window=window, properties=properties):
            base = len(node.grouping) + len(node.calls)

            def of(role: WindowProperty) -> frozenset[int]:
                return frozenset(base + i for i, name in enumerate(properties) if name is role)

            return WindowColumns(
                detached(window), of(WindowProperty.START), of(WindowProperty.END), of(WindowProperty.TIME)
            )
        case WindowJoin():
            left, right = derive_windows(node.inputs[0]), derive_windows(node.inputs[1])
            if left is None or right is None:
                return None
            own = len(node.inputs[0].schema)
            shift = own if len(node.schema) > own else None

            def both(a: frozenset[int], b: frozenset[int]) -> frozenset[int]:
                return a if shift is None else a | {column + shift for column in b}

            return WindowColumns(
                left.window, both(left.starts, right.starts), both(left.ends, right.ends), both(left.times, right.times)
            )
        case UnionNode():
            all_windows = [derive_windows(child) for child in node.inputs]
            first = all_windows[0]
            return first if all(windows == first for windows in all_windows) else None
        case _:
            return None


def _some(columns: WindowColumns) -> WindowColumns | None:
    return columns if columns.all else None
