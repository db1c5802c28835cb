"""When keys outside memory have to be looked at: by store, in order of time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from flowsql_runtime.state.rocksdb.database import Database
from flowsql_runtime.state.rocksdb.packing import NEVER

_SIGN: Final = 1 << 63
#: Keys that come into memory in one piece.
_PIECE: Final = 4096


class ColdTimes:
    """(Time, key) entries of one store, for keys that are outside memory; each key has at most one.

    Args:
        prefix: of its entries.
        database: where they are.
        load: brings packed keys (without their prefix) into memory, which removes their entries.
    """

    def __init__(self, prefix: bytes, database: Database, load: Callable[[Sequence[bytes]], None]) -> None:
        self._prefix = prefix
        self._database = database
        self._load = load
        self.count = 0

    def entries(self, times: Sequence[int], keys: Sequence[bytes]) -> list[bytes]:
        """What stands in the database for keys with their first times."""
        prefix = self._prefix
        return [
            prefix + (time + _SIGN).to_bytes(8, "big") + key
            for time, key in zip(times, keys, strict=True)
            if time != NEVER
        ]

    def earliest(self) -> int | None:
        """The first time, None without entries."""
        if not self.count:
            return None
        for found, _ in self._database.scan(self._prefix, self._prefix + b"\xff" * 8, 1):
            start = len(self._prefix)
            return int.from_bytes(found[0][start : start + 8], "big") - _SIGN
        return None

    def bring(self, until: int) -> None:
        """Bring the keys whose time is at or before one into memory."""
        end = self._prefix + (until + _SIGN + 1).to_bytes(9, "big")[1:] if until < NEVER else self._prefix + b"\xff" * 9
        skip = len(self._prefix) + 8
        while self.count:
            piece = next(iter(self._database.scan(self._prefix, end, _PIECE)), None)
            if piece is None:
                return
            self._load([entry[skip:] for entry in piece[0]])
