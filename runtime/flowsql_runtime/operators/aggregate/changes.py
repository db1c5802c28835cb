"""What a fold over a batch did to the accumulators of its slots."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from flowsql_core import column_bytes
from flowsql_core.column_bytes import taken
from flowsql_runtime.operators.aggregate.ordered_values import ValueResults
from flowsql_runtime.operators.aggregate.result import ResultColumn

Int32s = npt.NDArray[np.int32]
Words = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False, slots=True)
class Changes:
    """What a fold did; valid until the program folds again.

    ``slots`` (m,), ``first_rows`` (m,): whose change, and the first row of the batch behind it, in row order.
    ``states`` (2m, w): accumulators before (even) and after (odd). ``results``: one column a call.
    """

    slots: Int32s
    first_rows: Int32s
    states: Words
    results: list[ResultColumn]

    def existed(self) -> Bools:
        """Whether the slot had rows before, (m,)."""
        found: Bools = self.states[0::2, 0] != 0
        return found

    def exists(self) -> Bools:
        """Whether the slot has rows after."""
        found: Bools = self.states[1::2, 0] != 0
        return found

    def changed(self) -> Bools:
        """Whether any result differs."""
        differs = np.zeros(len(self.slots), np.bool_)
        for column in self.results:
            differs |= column.changed()
        return differs


def joined(parts: list[tuple[npt.NDArray[Any], Changes]], calls: int) -> tuple[Changes, list[ResultColumn]]:
    """Changes of rounds in the order of their rows, without results, and the results that keep values.

    Args:
        parts: rows of the batch (m,) and their changes, one a round.
        calls: how many results a change has.
    """
    rows = np.concatenate([rows for rows, _ in parts])
    order = np.argsort(rows, kind="stable")
    slots = np.concatenate([changes.slots for _, changes in parts])[order]
    pairs = np.concatenate([changes.states.reshape(len(changes.slots), 2, -1) for _, changes in parts])[order]
    states = np.ascontiguousarray(pairs.reshape(2 * len(order), -1))
    kept: list[ResultColumn] = []
    index = order
    for place in range(calls):
        columns = [changes.results[place] for _, changes in parts]
        values = [column for column in columns if isinstance(column, ValueResults)]
        if values:
            before = taken(column_bytes.joined([column.before for column in values]), index)
            after = taken(column_bytes.joined([column.after for column in values]), index)
            kept.append(ValueResults(before, after, np.concatenate([column.touched for column in values])[order]))
    return Changes(slots, rows[order].astype(np.int32), states, []), kept
