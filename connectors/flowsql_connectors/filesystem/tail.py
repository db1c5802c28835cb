"""The newest rows of a table of files: the last ones of the files that were changed last, new files, and new lines."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from flowsql_connectors.filesystem.files import FoundFile
from flowsql_connectors.filesystem.splits import LARGEST_RANGE, SMALLEST_RANGE, FileSplit, cut_in_parts
from flowsql_connectors.formats.format import FileView, Range
from flowsql_connectors.formats.rows_in_bytes import open_file
from flowsql_connectors.spi.source import Split
from flowsql_connectors.spi.tail import TableTail
from flowsql_core.errors import ConnectorError
from flowsql_core.record import record

#: Bytes in which the last line end of a file is looked for at once.
_LOOK_BACK_BYTES: Final = 64 << 10


@record
class _Seen:
    """A file: up to where it was given away, and how long it was when it was looked at last."""

    end: int
    size: int


class FileTail(TableTail):
    """See the base.

    A line that is being written waits for its end, or until the file is found twice with the same size. A file that has
    become shorter begins anew.

    Args:
        find: all files of the table.
        cut: ranges of a file, of about so many bytes.
        by_lines: whether files grow by lines; others, and compressed ones, are read whole when they appear.
        interval_ms: ``source.monitor-interval``.
        settings: of the session, for files that are not on this machine.
    """

    def __init__(
        self,
        find: Callable[[], list[FoundFile]],
        cut: Callable[[FoundFile, int], list[Range]],
        by_lines: bool,
        interval_ms: int | None,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        self._find = find
        self._cut = cut
        self._by_lines = by_lines
        self._interval_ms = interval_ms
        self._settings = settings or {}
        self._seen: dict[str, _Seen] = {}

    @property
    def interval_ms(self) -> int | None:
        """``source.monitor-interval``."""
        return self._interval_ms

    def parts(self, part_bytes: int) -> list[list[Split]]:
        """By the time at which the files were changed, then by their names."""
        files = sorted(self._find(), key=_age)
        self._seen = {file.path: _Seen(file.size, file.size) for file in files}
        target = max(SMALLEST_RANGE, min(LARGEST_RANGE, part_bytes))
        splits = [FileSplit(file, ranges) for file in files if (ranges := tuple(self._cut(file, target)))]
        return [[split.encode() for split in part] for part in cut_in_parts(splits, part_bytes)]

    def added(self) -> list[Split]:
        """New files and new lines, likewise; nothing while the table's folder is away."""
        try:
            files = sorted(self._find(), key=_age)
        except ConnectorError:
            return []
        return [split.encode() for file in files if (split := self._new_part(file)) is not None]

    def _new_part(self, file: FoundFile) -> FileSplit | None:
        seen = self._seen.get(file.path)
        if not self._by_lines or file.compression is not None:
            return self._whole(file) if seen is None else None
        if seen is not None and seen.size > file.size:
            seen = None
        start = 0 if seen is None else seen.end
        try:
            end = _behind_last_line(file.view(self._settings), start, file.size)
        except (OSError, ConnectorError):
            return None  # it went meanwhile
        if seen is not None and seen.size == file.size:
            # Nobody goes on writing: the last line has no end.
            end = file.size
        self._seen[file.path] = _Seen(end, file.size)
        if end <= start:
            return None
        steps = range(start, end, LARGEST_RANGE)
        ranges = tuple(Range(at, min(at + LARGEST_RANGE, end)) for at in steps)
        return FileSplit(replace(file, size=end), ranges)

    def _whole(self, file: FoundFile) -> FileSplit | None:
        try:
            ranges = tuple(self._cut(file, LARGEST_RANGE))
        except ConnectorError:
            return None  # it is being written, and is looked at again
        self._seen[file.path] = _Seen(file.size, file.size)
        return FileSplit(file, ranges) if ranges else None


def _age(file: FoundFile) -> tuple[int, str]:
    return file.modified_ms, file.path


def _behind_last_line(file: FileView, start: int, stop: int) -> int:
    """Where the last whole line of a part of a file ends; ``start`` where there is none."""
    opened = open_file(file)
    try:
        at = stop
        while at > start:
            before = max(start, at - _LOOK_BACK_BYTES)
            found = opened.read(before, at - before).rfind(b"\n")
            if found >= 0:
                return before + found + 1
            at = before
    finally:
        opened.close()
    return start
