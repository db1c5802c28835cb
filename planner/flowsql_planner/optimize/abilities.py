"""What rules may ask of sources."""

from __future__ import annotations

from typing import Protocol

from flowsql_core.expr import Expr
from flowsql_planner.logical.nodes import Scan


class SourceAbilities(Protocol):
    """Abilities of the source behind a scan."""

    def supports_projection(self, scan: Scan) -> bool:
        """Whether unread columns need not be read."""
        ...

    def kept_columns(self, scan: Scan) -> tuple[int, ...]:
        """Columns that are needed although nobody reads them: the key that the scan's changes are normalized by."""
        ...

    def updates(self, scan: Scan) -> bool:
        """Whether the source gives changes other than insertions."""
        ...

    def handled_filters(self, scan: Scan, filters: tuple[Expr, ...]) -> tuple[bool, ...]:
        """For each filter over the table's physical columns: does the source apply it fully?"""
        ...

    def shows_filters(self, scan: Scan) -> bool:
        """Whether filters are shown on the scan although they are kept above it."""
        ...

    def supports_limit(self, scan: Scan) -> bool:
        """Whether the source can stop early."""
        ...
