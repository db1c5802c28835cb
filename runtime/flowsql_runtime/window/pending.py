"""Which slots wait for which slice end: a log of sorted runs, read and taken by prefix."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]


class PendingSlots:
    """(slice end, slot) pairs. Runs of similar size are merged, so that adding costs an amortised logarithm."""

    def __init__(self) -> None:
        self._runs: list[tuple[Int64s, Int32s]] = []
        self._ends: Int64s = np.zeros(0, np.int64)

    def add(self, ends: Int64s, slots: Int32s) -> None:
        """New pairs, in any order."""
        if not len(ends):
            return
        order = np.argsort(ends, kind="stable")
        ends = ends[order]
        self._runs.append((ends, slots[order]))
        first = np.ones(len(ends), np.bool_)
        first[1:] = ends[1:] != ends[:-1]
        self._ends = np.union1d(self._ends, ends[first])
        while len(self._runs) > 1 and len(self._runs[-2][0]) <= 2 * len(self._runs[-1][0]):
            newer, older = self._runs.pop(), self._runs.pop()
            self._runs.append(_merged([older, newer]))

    def earliest(self) -> int | None:
        """The smallest slice end, None when nothing waits."""
        return int(self._ends[0]) if len(self._ends) else None

    def ends(self) -> Int64s:
        """Distinct slice ends, rising."""
        return self._ends

    def up_to(self, end: int) -> tuple[Int64s, Int32s]:
        """Pairs with slice end <= ``end``, by end."""
        return _merged([(ends[:n], slots[:n]) for ends, slots, n in self._cut(end)])

    def take(self, end: int) -> tuple[Int64s, Int32s]:
        """The same pairs, which do not wait any longer."""
        cut = self._cut(end)
        self._ends = self._ends[np.searchsorted(self._ends, end, side="right") :]
        self._runs = [(ends[n:], slots[n:]) for ends, slots, n in cut if n < len(ends)]
        return _merged([(ends[:n], slots[:n]) for ends, slots, n in cut])

    def _cut(self, end: int) -> list[tuple[Int64s, Int32s, int]]:
        return [(ends, slots, int(np.searchsorted(ends, end, side="right"))) for ends, slots in self._runs]


def _merged(runs: list[tuple[Int64s, Int32s]]) -> tuple[Int64s, Int32s]:
    runs = [run for run in runs if len(run[0])]
    if not runs:
        return np.zeros(0, np.int64), np.zeros(0, np.int32)
    if len(runs) == 1:
        return runs[0]
    ends = np.concatenate([run[0] for run in runs])
    slots = np.concatenate([run[1] for run in runs])
    order = np.argsort(ends, kind="stable")
    return ends[order], slots[order]
