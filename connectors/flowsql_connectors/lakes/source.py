"""Scans of lakes: files of a commit, or of one commit after another, read side by side."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from flowsql_connectors.lakes.splits import FileCode, FilePart, LakeEnumerator, LakeHistory
from flowsql_connectors.spi.counters import BYTES_READ
from flowsql_connectors.spi.fetching import FetchingReader
from flowsql_connectors.spi.source import ReaderContext, SourceReader, SplitEnumerator, TableSource
from flowsql_core.expr import Expr
from flowsql_core.graph.specs import ScanSpec


class LakeSource(TableSource):
    """A scan of a table of a lake.

    Args:
        scan: what is wanted.
        interval_ms: how often to look for commits; None: the scan ends.
        limit: rows that each reader reads at most, by the table's own options.
    """

    def __init__(self, scan: ScanSpec, interval_ms: int | None, limit: int | None = None) -> None:
        self.scan = scan
        self.interval_ms = interval_ms
        limits = [each for each in (scan.limit, limit) if each is not None]
        self._limit = min(limits) if limits else None

    @abstractmethod
    def history(self) -> LakeHistory:
        """The table's commits."""

    @abstractmethod
    def read_file(self, told: Mapping[str, Any]) -> Iterator[tuple[Sequence[Any], int]]:
        """Columns of the scan's output of a data file, and their rows: the same ones at every call. One thread."""

    @property
    def bounded(self) -> bool:
        """Unless the table is followed."""
        return self.interval_ms is None

    @property
    def tells_backlog(self) -> bool:
        """Files are read to their ends."""
        return True

    def supports_projection(self) -> bool:
        """Other columns are not read."""
        return True

    def shows_filters(self) -> bool:
        """Filters leave out files and row groups; the planner keeps them above."""
        return True

    def supports_filters(self, filters: tuple[Expr, ...]) -> tuple[bool, ...]:
        """None is handled by the scan itself."""
        return (False,) * len(filters)

    def supports_limit(self) -> bool:
        """A reader stops after so many rows."""
        return True

    def create_enumerator(self) -> SplitEnumerator:
        """A file each."""
        return LakeEnumerator(self.history(), self.interval_ms)

    def create_reader(self, context: ReaderContext) -> SourceReader:
        """A reader with a thread."""

        def read(part: FilePart) -> Iterator[tuple[Sequence[Any], int]]:
            part.check()
            yield from self.read_file(part.told)
            context.count(BYTES_READ, part.size_bytes)

        return FetchingReader(
            FileCode(), read, lambda: None, self.scan.output, None, self._limit, context, "lake-reader"
        )
