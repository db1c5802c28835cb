"""Splits of lakes: a data file each, dealt out by size; where the table is followed, files of later commits come after.

A file's place in the order in which commits added it stays with its split, so that a restored job reads on in it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import orjson

from flowsql_connectors.spi.source import Split, SplitEnumerator
from flowsql_core.errors import ConnectorError, FlowSqlError
from flowsql_core.record import record


@record
class FilePart:
    """A data file that is to be read.

    Attributes:
        path: that messages show.
        told: what the lake's reader needs, in forms of JSON; of a table that cannot be followed, the reason.
        size_bytes: of the file.
        order: counts the files of a scan.
    """

    path: str
    told: Mapping[str, Any]
    size_bytes: int
    order: int = 0

    @staticmethod
    def failing(error: FlowSqlError) -> FilePart:
        """What its reader fails with."""
        return FilePart(error.code, {"error": [error.code, error.message, error.hint]}, 0)

    def check(self) -> None:
        """Raise what stands here instead of a file."""
        if "error" in self.told:
            code, message, hint = self.told["error"]
            raise ConnectorError(code, message, hint=hint)


class FileCode:
    """Files as splits."""

    def encode(self, part: FilePart, rows: int) -> Split:
        """A file with the number of rows that were read of it."""
        body = {"path": part.path, "told": part.told, "bytes": part.size_bytes, "order": part.order, "rows": rows}
        return Split(f"{part.order:08d}-{part.path.rpartition('/')[2]}", orjson.dumps(body))

    def decode(self, split: Split) -> tuple[FilePart, int]:
        """The inverse of :meth:`encode`."""
        body = orjson.loads(split.data)
        return FilePart(body["path"], body["told"], body["bytes"], body["order"]), body["rows"]


class LakeHistory(ABC):
    """What data files a table has, and what commits add to it. A position is a commit, as text."""

    @abstractmethod
    def files(self) -> list[FilePart]:
        """Those of a scan that ends."""

    @abstractmethod
    def start(self) -> tuple[list[FilePart], str]:
        """Those that a scan which goes on begins with, and the position behind them."""

    @abstractmethod
    def since(self, position: str) -> tuple[list[FilePart], str]:
        """Those that were appended behind a position, commit by commit, and the position behind them.

        Raises:
            ConnectorError: the table's history does not tell.
        """


class LakeEnumerator(SplitEnumerator):
    """Deals out data files.

    Args:
        history: of the table.
        interval_ms: how often to look for commits; None: the scan ends.
    """

    def __init__(self, history: LakeHistory, interval_ms: int | None) -> None:
        self._history = history
        self._interval_ms = interval_ms
        self._position = ""
        self._count = 0
        self._loads: list[int] = []
        #: The position behind what ``discover`` found last.
        self._found = ""

    def initial_splits(self, parallelism: int) -> list[list[Split]]:
        """The files of the table as it is, or those that following it begins with."""
        if self._interval_ms is None:
            parts = self._history.files()
        else:
            parts, self._position = self._history.start()
        return self._deal(self._numbered(parts), parallelism)

    def parts(self, part_bytes: int) -> list[list[Split]]:
        """Files of about so many bytes together."""
        code, left = FileCode(), 0
        made: list[list[Split]] = []
        for part in self._numbered(self._history.files()):
            if left <= 0:
                made.append([])
                left = part_bytes
            made[-1].append(code.encode(part, 0))
            left -= part.size_bytes
        return made

    def redistribute(self, splits: list[Split], parallelism: int) -> list[list[Split]]:
        """Restored files, in their order."""
        code = FileCode()
        restored = sorted((code.decode(split) for split in splits), key=lambda item: item[0].order)
        return self._deal([part for part, _ in restored], parallelism, [rows for _, rows in restored])

    def discovery_interval_ms(self) -> int | None:
        """How often to look for commits."""
        return self._interval_ms

    def discover(self, parallelism: int) -> list[Split]:
        """Files of new commits. What the history does not tell fails the reader, and with it the job."""
        try:
            parts, position = self._history.since(self._position)
        except FlowSqlError as error:
            if isinstance(error, ConnectorError) and error.retryable:
                raise
            parts, position = [FilePart.failing(error)], self._position
        if not parts:
            # Commits without rows are not looked at again.
            self._position = position
            return []
        self._found = position
        code = FileCode()
        return [code.encode(part, 0) for part in parts]

    def assign(self, found: list[Split], parallelism: int) -> list[list[Split]]:
        """Deal new files out, and remember where they end."""
        code = FileCode()
        self._position = self._found
        return self._deal(self._numbered(code.decode(split)[0] for split in found), parallelism)

    def snapshot(self) -> bytes:
        """The position, and how many files were dealt out."""
        return orjson.dumps({"position": self._position, "count": self._count})

    def restore(self, state: bytes) -> None:
        """Go on behind the position."""
        body = orjson.loads(state)
        self._position, self._count = body["position"], body["count"]

    def _numbered(self, parts: Iterable[FilePart]) -> list[FilePart]:
        made = []
        for part in parts:
            made.append(replace(part, order=self._count))
            self._count += 1
        return made

    def _deal(self, parts: list[FilePart], parallelism: int, rows: list[int] | None = None) -> list[list[Split]]:
        """In their order, each to the reader that was given least so far."""
        code = FileCode()
        dealt: list[list[Split]] = [[] for _ in range(parallelism)]
        if len(self._loads) != parallelism:
            self._loads = [0] * parallelism
        for at, part in enumerate(parts):
            least = self._loads.index(min(self._loads))
            dealt[least].append(code.encode(part, 0 if rows is None else rows[at]))
            self._loads[least] += part.size_bytes
        return dealt
