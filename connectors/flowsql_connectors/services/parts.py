"""Parts of a bounded scan, dealt out to readers and numbered for snapshots."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

from flowsql_connectors.spi.source import Split, SplitEnumerator
from flowsql_core.record import record


@record
class ScanPart:
    """``where``: what tells the part from others, so that a restored scan reads the same ones."""

    number: int
    where: str = ""


class ScanPartCode:
    """Parts as splits."""

    def encode(self, part: ScanPart, rows: int) -> Split:
        """A part with the number of rows that were read of it."""
        data = json.dumps({"part": part.number, "rows": rows, "where": part.where})
        return Split(f"part-{part.number:05d}", data.encode())

    def decode(self, split: Split) -> tuple[ScanPart, int]:
        """The inverse of :meth:`encode`."""
        data = json.loads(split.data)
        return ScanPart(int(data["part"]), str(data["where"])), int(data["rows"])


class ScanPartEnumerator(SplitEnumerator):
    """All parts at once.

    Args:
        parts: what tells each part from others; called when a job starts, not when it is restored.
    """

    def __init__(self, parts: Callable[[], Sequence[str]]) -> None:
        self._parts = parts

    def initial_splits(self, parallelism: int) -> list[list[Split]]:
        """One part behind another to the subtasks."""
        code = ScanPartCode()
        parts = [code.encode(ScanPart(number, where), 0) for number, where in enumerate(self._parts())]
        return [parts[subtask::parallelism] for subtask in range(parallelism)]
