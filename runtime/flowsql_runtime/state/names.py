"""What kept state means, whatever the stores call it: by these names the state of a changed query is known again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field

from flowsql_core.record import record


@record
class TableNames:
    """One store's table.

    ``columns``: stored name to meaning, as far as the two differ. ``grows``: a column that an older snapshot lacks may
    start at zero. ``counts``: stored name of an accumulator to that of the count which says whether it holds anything.
    """

    meaning: str
    columns: Mapping[str, str] = field(default_factory=dict)
    grows: bool = False
    counts: Mapping[str, str] = field(default_factory=dict)


@record
class StateNames:
    """All keyed state of an operator.

    ``keys``: canonical texts of ``k0 ..``. ``facts``: what must be the same for the state to be good (windows, unique
    columns, time-to-live). ``retracts``: rows that were taken in may be taken back.
    """

    keys: tuple[str, ...]
    tables: Mapping[str, TableNames]
    facts: Mapping[str, str] = field(default_factory=dict)
    retracts: bool = False


def row_names(meaning: str, columns: Sequence[str]) -> TableNames:
    """A table that keeps rows of these columns."""
    return TableNames(meaning, {f"r{index}": text for index, text in enumerate(columns)})


def kept_for(ttl_ms: int) -> str:
    """Whether state expires; after how long may change."""
    return "expires" if ttl_ms else "for ever"
