"""Rows of a whole table by key, in memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from flowsql_compute.keys import key_hash64
from flowsql_connectors.spi.lookup import FoundRows
from flowsql_core.arrow import compute as pc


class KeyedRows:
    """Columns of a table, sorted by the hash of their keys; rows whose key is NULL are never found.

    Args:
        columns: Arrow arrays of one length, of any types.
        keys: which of them rows are found by.
    """

    def __init__(self, columns: Sequence[Any], keys: Sequence[int]) -> None:
        self._columns = columns
        self._keys = [columns[key] for key in keys]
        hashes = key_hash64(self._keys)
        valid = np.ones(len(hashes), np.bool_)
        for column in self._keys:
            valid &= np.asarray(pc.is_valid(column))
        rows = np.flatnonzero(valid)
        self._rows = rows[np.argsort(hashes[rows], kind="stable")]
        self._hashes = hashes[self._rows]

    def __len__(self) -> int:
        return len(self._rows)

    def find(self, keys: Sequence[Any]) -> FoundRows:
        """All rows of each key, in the order of the table."""
        hashes = key_hash64(keys)
        first = np.searchsorted(self._hashes, hashes, side="left")
        counts = np.searchsorted(self._hashes, hashes, side="right") - first
        positions: Any = np.repeat(np.arange(len(hashes)), counts)
        starts = np.cumsum(counts) - counts
        rows = self._rows[np.arange(int(counts.sum())) - np.repeat(starts - first, counts)]
        same = np.ones(len(rows), np.bool_)
        for own, asked in zip(self._keys, keys, strict=True):
            equal = pc.equal(pc.take(own, pa.array(rows)), pc.take(asked, pa.array(positions)))
            same &= np.asarray(equal.fill_null(False))
        rows = rows[same]
        return FoundRows(
            positions[same].astype(np.int32), [pc.take(column, pa.array(rows)) for column in self._columns]
        )
