"""Sets of global transaction ids of MySQL: ``source:1-5:7,other:1-3``.

Source: MySQL documentation, "GTID Format and Storage"; of their bytes ``Gtid_set::encode``.
"""

from __future__ import annotations

import struct
import uuid
from collections.abc import Mapping

#: Ranges [first, end) of a source, rising and apart.
_Ranges = tuple[tuple[int, int], ...]


class GtidSet:
    """A set to which ids are added.

    Raises:
        ValueError: the text is none, or has ids with tags (MySQL 8.4).
    """

    def __init__(self, text: str = "") -> None:
        self._ranges: dict[str, _Ranges] = {}
        for part in filter(None, (part.strip() for part in text.split(","))):
            source, *ranges = part.split(":")
            name = str(uuid.UUID(source))
            for one in ranges:
                if one[:1].isalpha() or one[:1] == "_":
                    raise ValueError(f"GTIDs with a tag ('{one}') are not read")
                first, _, last = one.partition("-")
                self._add(name, int(first), int(last or first) + 1)

    def _add(self, source: str, first: int, end: int) -> None:
        kept: list[tuple[int, int]] = []
        for begin, stop in self._ranges.get(source, ()):
            if stop < first or begin > end:
                kept.append((begin, stop))
            else:
                first, end = min(first, begin), max(end, stop)
        self._ranges[source] = tuple(sorted([*kept, (first, end)]))

    def add(self, source: str, number: int) -> None:
        """Put one more in."""
        ranges = self._ranges.get(source)
        if ranges and ranges[-1][1] == number:
            self._ranges[source] = (*ranges[:-1], (ranges[-1][0], number + 1))
        else:
            self._add(source, number, number + 1)

    def has(self, source: str, number: int) -> bool:
        """Whether an id is in it."""
        return any(first <= number < end for first, end in self._ranges.get(source, ()))

    def within(self, other: GtidSet) -> bool:
        """Whether all of its ids are in another set."""
        theirs: Mapping[str, _Ranges] = other._ranges
        return all(
            any(begin <= first and end <= stop for begin, stop in theirs.get(source, ()))
            for source, ranges in self._ranges.items()
            for first, end in ranges
        )

    def encoded(self) -> bytes:
        """As a client tells them when it asks for the log."""
        made = struct.pack("<Q", len(self._ranges))
        for source, ranges in sorted(self._ranges.items()):
            made += uuid.UUID(source).bytes + struct.pack("<Q", len(ranges))
            made += b"".join(struct.pack("<QQ", first, end) for first, end in ranges)
        return made

    def __str__(self) -> str:
        return ",".join(
            source + "".join(f":{first}" if end == first + 1 else f":{first}-{end - 1}" for first, end in ranges)
            for source, ranges in sorted(self._ranges.items())
        )
