"""Window properties: which columns of a node are the start, end and time of a window, and of which window.

Each physical node says which ones its output has (``Physical.window_columns``). Source: Flink's
``FlinkRelMdWindowProperties``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from flowsql_core.graph.specs import WindowProperty, WindowSpec
from flowsql_core.record import record

_NONE: frozenset[int] = frozenset()


@record
class WindowColumns:
    """Columns by role; ``window`` has neither time nor attached columns.

    ``partition``: where each column is that a session's rows share, nowhere for one that did not come along.
    ``padded``: those of the other roles that an outer join pads, so that not every row has a window there.
    """

    window: WindowSpec
    starts: frozenset[int] = _NONE
    ends: frozenset[int] = _NONE
    times: frozenset[int] = _NONE
    partition: tuple[frozenset[int], ...] = ()
    padded: frozenset[int] = _NONE

    @property
    def all(self) -> frozenset[int]:
        """Columns of any role."""
        return self.starts | self.ends | self.times

    def attached(self, start: int, end: int) -> WindowSpec:
        """The window as columns of a row."""
        return replace(self.window, start_index=start, end_index=end)

    def moved(self, place: Callable[[frozenset[int]], frozenset[int]]) -> WindowColumns | None:
        """The columns where ``place`` finds them in another row; None when none of them is there."""
        partition = tuple(map(place, self.partition))
        starts, ends, times = map(place, (self.starts, self.ends, self.times))
        made = WindowColumns(self.window, starts, ends, times, partition, place(self.padded))
        return made if made.all else None

    def in_every_row(self) -> WindowColumns:
        """Without those that an outer join pads."""
        starts, ends, times = (columns - self.padded for columns in (self.starts, self.ends, self.times))
        return replace(self, starts=starts, ends=ends, times=times, padded=_NONE)

    def partitioned_by(self, columns: frozenset[int]) -> bool:
        """Whether columns are those that a session's rows share, and no others."""
        known = frozenset[int]().union(*self.partition)
        return columns <= known and all(columns & places for places in self.partition)

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
