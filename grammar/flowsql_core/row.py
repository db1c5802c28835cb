"""Change kinds and changelog modes: the words of the changelog, as bytes in a batch and as sets in a plan."""

from __future__ import annotations

import enum
from typing import Final

from flowsql_core.record import record

INSERT: Final = 0
UPDATE_BEFORE: Final = 1
UPDATE_AFTER: Final = 2
DELETE: Final = 3

#: Flink's short strings by byte value.
SHORT_STRINGS: Final = ("+I", "-U", "+U", "-D")


class RowKind(enum.IntEnum):
    """What one row does to a table; byte values are Flink's."""

    INSERT = INSERT
    UPDATE_BEFORE = UPDATE_BEFORE
    UPDATE_AFTER = UPDATE_AFTER
    DELETE = DELETE

    def short_string(self) -> str:
        """``+I``, ``-U``, ``+U`` or ``-D``."""
        return SHORT_STRINGS[self]

    def __str__(self) -> str:
        return SHORT_STRINGS[self]


@record
class ChangelogMode:
    """The set of change kinds that an edge may carry; prints as ``[I,UB,UA,D]``.

    ``key_only_deletes``: a ``-D`` may carry only its key columns (others NULL); prints as ``PD``, a partial delete.
    """

    kinds: frozenset[RowKind]
    key_only_deletes: bool = False

    def contains(self, kind: RowKind) -> bool:
        """Whether rows of this kind may occur."""
        return kind in self.kinds

    @property
    def insert_only(self) -> bool:
        """Whether nothing but ``+I`` occurs."""
        return self.kinds == {RowKind.INSERT}

    @property
    def upsert(self) -> bool:
        """Whether updates come without their ``-U``."""
        return RowKind.UPDATE_AFTER in self.kinds and RowKind.UPDATE_BEFORE not in self.kinds

    def __str__(self) -> str:
        names = (
            (RowKind.INSERT, "I"),
            (RowKind.UPDATE_BEFORE, "UB"),
            (RowKind.UPDATE_AFTER, "UA"),
            (RowKind.DELETE, "PD" if self.key_only_deletes else "D"),
        )
        return "[" + ",".join(text for kind, text in names if kind in self.kinds) + "]"


INSERT_ONLY: Final = ChangelogMode(frozenset({RowKind.INSERT}))
UPSERT: Final = ChangelogMode(frozenset({RowKind.INSERT, RowKind.UPDATE_AFTER, RowKind.DELETE}))
ALL_CHANGES: Final = ChangelogMode(frozenset(RowKind))
