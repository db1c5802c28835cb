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

    ``made_with``, ``answered_with`` and ``reaches`` are compared where a snapshot has them; older ones have not:

    - ``made_with``: further facts that the state was made with. State that was made with others does not fit.
    - ``answered_with``: what rows are answered with although state does not hold it, as the condition of an inner join.
      State fits, but what was emitted before the restore was answered otherwise.
    - ``reaches``: how far back state goes, by what is kept. State fits a query that looks back no further.
    - ``predicates_in_state``: the operator's own conditions (``OperatorNode.predicates``) are among what state was made
      with; else rows are answered with them.
    """

    keys: tuple[str, ...]
    tables: Mapping[str, TableNames]
    facts: Mapping[str, str] = field(default_factory=dict)
    retracts: bool = False
    made_with: Mapping[str, str] = field(default_factory=dict)
    answered_with: Mapping[str, str] = field(default_factory=dict)
    reaches: Mapping[str, int] = field(default_factory=dict)
    predicates_in_state: bool = True


def row_names(meaning: str, columns: Sequence[str]) -> TableNames:
    """A table that keeps rows of these columns."""
    return TableNames(meaning, {f"r{index}": text for index, text in enumerate(columns)})


def kept_for(ttl_ms: int) -> str:
    """Whether state expires; after how long may change."""
    return "expires" if ttl_ms else "for ever"
