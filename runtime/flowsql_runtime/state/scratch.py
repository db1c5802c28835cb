"""Stores that nobody saves: the work of one batch or one firing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from flowsql_runtime.state.backend import KeyedStateBackend, StoreFactory
from flowsql_runtime.state.stores import KeyIndex

Int32s = npt.NDArray[np.int32]


def scratch_stores() -> StoreFactory:
    """A factory whose stores live as long as somebody holds them."""
    # Loaded where it is used: most operators have no state but the backend's.
    from flowsql_runtime.state.resident.factory import ResidentStores

    return ResidentStores()


def scratch_backend(max_parallelism: int) -> KeyedStateBackend:
    """Return keyed state in memory that no snapshot holds: of an operator that sees one key after the other."""
    from flowsql_runtime.state.hashmap import HashMapBackend

    return HashMapBackend(max_parallelism)


class ScratchEntries(KeyIndex, Protocol):
    """Keys of which each belongs to a slot of something else: its namespace."""

    @property
    def nbytes(self) -> int:
        """Bytes allocated."""
        ...


def scratch_entries(types: Sequence[Any]) -> ScratchEntries:
    """A new index of entries with key columns of these Arrow types."""
    from flowsql_runtime.state.resident.entry_index import EntryIndex

    return EntryIndex(types)


def number_rows(columns: Sequence[Any]) -> tuple[Int32s, int]:
    """A number for each row, the same for equal rows, in order of first sight, int32 (n,); and how many there are."""
    index = scratch_stores().key_index([column.type for column in columns])
    numbers, fresh = index.find_or_insert(index.encode(columns))
    return numbers, len(fresh)
