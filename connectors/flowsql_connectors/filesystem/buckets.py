"""Folders of a stream's sink: one for all rows, or by the clock as Flink's DateTimeBucketAssigner names them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Protocol

import numpy as np

from flowsql_compute.eval.java.date_pattern import format_moments, pattern_tokens
from flowsql_compute.eval.time.calendar import utc_to_local
from flowsql_compute.eval.time.machine_zone import machine_zone
from flowsql_core.config import LOCAL_TIME_ZONE
from flowsql_core.errors import NotSupportedYetError
from flowsql_core.record import record

_ZONE_LETTERS: Final = frozenset("VvzOXxZ")


class Folders(Protocol):
    """Which folder below the sink's own each row goes to."""

    @property
    def file_columns(self) -> tuple[int, ...]:
        """Indexes of the columns that stand in the files."""
        ...

    def group(
        self, columns: Sequence[Any], num_rows: int, now_ms: int
    ) -> tuple[Any | None, list[tuple[str, int, int]]]:
        """Rows by folder.

        Args:
            columns: of a batch.
            num_rows: of the batch, above 0.
            now_ms: processing time.

        Returns:
            ``(order, runs)``: positions that bring the rows of each folder together in their order (None when they
            are so already), and per folder ``(folder, start, stop)`` within that order. ``""``: the sink's own folder.
        """
        ...


@record
class ClockBuckets:
    """One folder for the rows of a moment.

    Attributes:
        width: number of columns.
        pattern: Java's DateTimeFormatter; None: all rows go to the sink's own folder.
        zone: whose clock it shows.
    """

    width: int
    pattern: str | None
    zone: str

    @property
    def file_columns(self) -> tuple[int, ...]:
        """All."""
        return tuple(range(self.width))

    def group(
        self, columns: Sequence[Any], num_rows: int, now_ms: int
    ) -> tuple[Any | None, list[tuple[str, int, int]]]:
        """All rows of a batch to one folder: the clock stands still for a batch."""
        folder = "" if self.pattern is None else clock_text(now_ms, self.pattern, self.zone)
        return None, [(folder, 0, num_rows)]


def clock_text(now_ms: int, pattern: str, zone: str) -> str:
    """What the clock of a zone shows.

    Raises:
        ExecutionError: Java has no such pattern.
        NotSupportedYetError: the pattern shows the zone.
    """
    letters = {token.letter for token in pattern_tokens(pattern)}
    if letters & _ZONE_LETTERS:
        raise NotSupportedYetError(f"letters of zones in names of folders: '{pattern}'")
    zone = machine_zone() if zone == LOCAL_TIME_ZONE.default else zone
    wall = utc_to_local(np.array([now_ms], dtype=np.int64), 1000, zone)
    return str(format_moments(wall, None, 1000, pattern)[0]).strip("/")
