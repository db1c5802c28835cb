"""What a fold over a batch did to the accumulators of its slots."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from flowsql_runtime.operators.aggregate.result import ResultColumn
from flowsql_runtime.state.stores import Folded

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

    @classmethod
    def of(cls, folded: Folded) -> Changes:
        """What a store says that it did, without results."""
        return cls(folded.slots, folded.first_rows, folded.states, [])

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
