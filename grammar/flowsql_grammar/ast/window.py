"""Windows of OVER and of the WINDOW clause, with their frames."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from flowsql_grammar.ast.node import Name, Node

if TYPE_CHECKING:
    from flowsql_grammar.ast.expression import Expression
    from flowsql_grammar.ast.query import OrderItem


class FrameUnit(StrEnum):
    """Rows are counted; a range measures the sort key."""

    ROWS = "ROWS"
    RANGE = "RANGE"


class BoundKind(StrEnum):
    """Where a frame starts or ends."""

    UNBOUNDED_PRECEDING = "UNBOUNDED PRECEDING"
    PRECEDING = "PRECEDING"
    CURRENT_ROW = "CURRENT ROW"
    FOLLOWING = "FOLLOWING"
    UNBOUNDED_FOLLOWING = "UNBOUNDED FOLLOWING"


class FrameBound(Node):
    """``10 PRECEDING``, ``CURRENT ROW``; ``offset`` only for PRECEDING and FOLLOWING."""

    kind: BoundKind
    offset: Expression | None = None


class Frame(Node):
    """``ROWS BETWEEN start AND end``; ``end`` is None in the short form, which ends at the current row."""

    unit: FrameUnit
    start: FrameBound
    end: FrameBound | None = None


class WindowSpec(Node):
    """``([base] [PARTITION BY ...] [ORDER BY ...] [frame])`` behind OVER or in a WINDOW clause."""

    base: Name | None = None
    partition_by: tuple[Expression, ...] = ()
    order_by: tuple[OrderItem, ...] = ()
    frame: Frame | None = None
    allow_partial: bool | None = None
