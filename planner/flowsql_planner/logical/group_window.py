"""Group windows in logical plans: calls while a query is bound, then a part of the aggregate.

``$TUMBLE(ts, size)`` is a grouping expression; ``TUMBLE_START(x)`` stands over the group's column. The optimizer gives
the aggregate columns for the window's properties (``rules/group_windows.py``), as Flink does in
``LogicalWindowAggregateRule``.
"""

from __future__ import annotations

from typing import Final

from flowsql_core.errors import BindError
from flowsql_core.expr import Call
from flowsql_core.graph.specs import WindowKind
from flowsql_core.record import record
from flowsql_core.types.logical import Schema


@record
class Auxiliary:
    """A function of a window's properties: TUMBLE and START of TUMBLE_START."""

    window: str
    part: str


#: Grouping calls: the time, then lengths (of HOP first the slide).
WINDOWS: Final = {f"${kind.value}": kind for kind in (WindowKind.TUMBLE, WindowKind.HOP, WindowKind.SESSION)}
#: A length of a grouping call in rows, which the Table API has; SQL has no name for it.
ROWS: Final = "$ROWS"
#: What stands above the aggregate in place of the grouping call; arguments: start, end, row time, time of the clock.
PROPERTIES: Final = "$WINDOW"
PARTS: Final = ("START", "END", "ROWTIME", "PROCTIME")
AUXILIARY: Final = {f"{kind.value}_{part}": Auxiliary(kind.value, part) for kind in WINDOWS.values() for part in PARTS}


@record
class GroupWindow:
    """The window of an aggregate. ``time_index``: column of its input; lengths in ms, of SESSION the gap.

    ``counts_rows``: lengths are numbers of rows.

    ``properties``: columns behind the calls: start, end, row time (not for windows of the clock), time of the clock;
    none where nobody reads them.
    """

    kind: WindowKind
    time_index: int
    size_ms: int
    step_ms: int
    properties: Schema
    counts_rows: bool = False


def no_such_window(call: Call) -> BindError:
    """An auxiliary function whose window is not in GROUP BY."""
    window = AUXILIARY[call.function].window
    return BindError(
        "group-window",
        f"Call to auxiliary group function '{call.function}' must have matching call to group function '${window}' in "
        "GROUP BY clause",
        call.span,
    )
