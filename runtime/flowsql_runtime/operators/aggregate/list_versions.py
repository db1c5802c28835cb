"""What the lists of slots are, one after the other, while rows of a batch put members in and take them out."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from flowsql_runtime.kernels import list_versions as kernels

Int8s = npt.NDArray[np.int8]
Int32s = npt.NDArray[np.int32]


class ListVersions:
    """Versions of the lists of ``known`` groups: each group's before the batch, then one for each change.

    Members are numbered: the m held before, oldest first within a group, then row i of the batch as m + i.

    Args:
        groups: (n,), of the rows. ``changes``: (n,), 1, -1 or 0.
        entries: (n,), number of the row that was put into the store or taken out, used again for another later on.
        held_groups, held: (m,), the group, rising, and the number in the store of members held before.
    """

    def __init__(
        self, groups: Int32s, changes: Int8s, entries: Int32s, held_groups: Int32s, held: Int32s, known: int
    ) -> None:
        self._groups, self._changes, self._held_groups, self._known = groups, changes, held_groups, known
        n, m = len(groups), len(held)
        numbers, dense = np.unique(np.concatenate((held, entries)), return_inverse=True)
        dense = dense.ravel().astype(np.int32)
        self._held_entries, self._entries = dense[:m].copy(), dense[m:].copy()
        self._current = np.empty(len(numbers), np.int32)
        counts = np.bincount(held_groups, minlength=known).astype(np.int32)
        lengths = np.empty(known + n, np.int32)
        lengths[:known] = counts
        self.before, self.after = np.empty(n, np.int32), np.empty(n, np.int32)
        latest = np.arange(known, dtype=np.int32)
        #: How many versions there are, and the members of each.
        self.count = int(kernels.number_versions(groups, changes, counts, latest, self.before, self.after, lengths))
        self.lengths = lengths[: self.count]

    def _room(self) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
        links = np.empty((len(self._held_groups) + len(self._groups), 2), np.int32)
        return links, np.zeros((self._known, 2), np.int32)

    def members(self) -> Int32s:
        """The members of all versions, version by version, oldest first."""
        offsets = np.zeros(self.count + 1, np.int64)
        np.cumsum(self.lengths, out=offsets[1:])
        found = np.empty(int(offsets[-1]), np.int32)
        kernels.list_versions(
            self._groups, self._changes, self._entries, self._held_groups, self._held_entries, self._current,
            *self._room(), offsets, found,
        )  # fmt: skip
        return found

    def ends(self, newest: bool) -> Int32s:
        """The newest or the oldest member of each version, -1 without any."""
        found = np.empty(self.count, np.int32)
        kernels.end_versions(
            self._groups, self._changes, self._entries, self._held_groups, self._held_entries, self._current,
            *self._room(), np.empty(self._known, np.int32), newest, found,
        )  # fmt: skip
        return found
