"""Files that are looked up: read whole, and again once they are others."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from flowsql_connectors.filesystem.files import FoundFile
from flowsql_connectors.lookup.whole_table import ReloadTrigger


class ChangedFiles(ReloadTrigger):
    """Out of date as soon as the files of a table, their sizes or times are not what they were.

    Args:
        find: the files that are there now.
    """

    def __init__(self, find: Callable[[], Sequence[FoundFile]]) -> None:
        self._find = find
        self._known: object = None

    def due(self) -> bool:
        """Whether something changed since the last reading began."""
        return self._state() != self._known

    def started(self) -> None:
        """What is there now is what is read."""
        self._known = self._state()

    def _state(self) -> object:
        return tuple(self._find())
