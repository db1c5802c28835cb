"""Positions of the binary log: file and place; with global transaction ids also what was done before."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flowsql_connectors.cdc.mysql.gtid import GtidSet
from flowsql_core.record import record


@record
class Position:
    """A place between two transactions.

    ``gtids``: of MySQL with ``gtid_mode`` = ON: all transactions before it. ``last``: MariaDB's id of the last one.
    ``since_s``: changes that are older, seconds since 1970, are left out. ``skip_events``, ``skip_rows``: so many
    events, and changed rows of the next one, are left out.
    """

    file: str
    place: int
    gtids: str | None = None
    last: str | None = None
    since_s: int = 0
    skip_events: int = 0
    skip_rows: int = 0

    @property
    def order(self) -> tuple[int, int]:
        """Rises along the log of one server."""
        return file_number(self.file), self.place

    @property
    def shown(self) -> str:
        """As messages name it."""
        told = f" (GTIDs {self.gtids})" if self.gtids else f" (GTID {self.last})" if self.last else ""
        return f"{self.file}:{self.place}{told}"

    def to_json(self) -> dict[str, Any]:
        """For checkpoints; what has its default is left out."""
        made: dict[str, Any] = {"file": self.file, "place": self.place}
        for key in ("gtids", "last"):
            if getattr(self, key) is not None:
                made[key] = getattr(self, key)
        for key in ("since_s", "skip_events", "skip_rows"):
            if getattr(self, key):
                made[key] = getattr(self, key)
        return made

    @staticmethod
    def of_json(data: Mapping[str, Any]) -> Position:
        """The inverse of :meth:`to_json`."""
        return Position(**data)

    def covers(self, other: Position) -> bool:
        """Whether all that is before another position is before this one."""
        if self.gtids is not None and other.gtids is not None:
            return GtidSet(other.gtids).within(GtidSet(self.gtids))
        return other.order <= self.order


def file_number(file: str) -> int:
    """The number behind the name of a file; they rise along the log."""
    number = file.rpartition(".")[2]
    return int(number) if number.isdigit() else 0
