"""Rows of a chunk that were read while the table changed, brought up to a position of the log.

Changes are put in by primary key, from before the rows were read on: the last one of a key says what its row is,
whether the rows that were read show it already or not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from flowsql_connectors.cdc.log import Bools, ChangeStream, Int64s, TableChanges
from flowsql_connectors.cdc.mysql.position import Position
from flowsql_core.row import DELETE, UPDATE_BEFORE


def changes_until(stream: ChangeStream, table: int, end: Position, timeout_s: float) -> list[TableChanges]:
    """The changes of a table up to a position of the log, which the log has already."""
    found: list[TableChanges] = []
    while True:
        batch = stream.read(1 << 30, timeout_s)
        if batch is None:
            return found
        before = np.array([one.id[0] < end.order for one in batch.transactions], np.bool_)
        for changes in batch.tables:
            if changes.table == table:
                found.append(_of(changes, before[batch.transaction[changes.lines]]))
        if Position.of_json(batch.end.position).order >= end.order:
            return found


def _of(changes: TableChanges, chosen: Bools) -> TableChanges:
    mask = pa.array(chosen)
    keys = None if changes.keys is None else changes.keys.filter(mask)
    columns = [column.filter(mask) for column in changes.columns]
    return TableChanges(changes.table, columns, changes.kinds[chosen], keys, changes.lines[chosen])


def caught_up(
    arrays: Sequence[Any], keys: Sequence[int], found: Sequence[TableChanges], belongs: Callable[[Any], Bools]
) -> list[Any]:
    """The rows with the changes put in.

    Args:
        arrays: columns of the rows that were read. ``keys``: which of them are the primary key.
        found: changes with the same columns.
        belongs: tells of chunk keys whether their rows are in the chunk.
    """
    inside = [_of(changes, belongs(changes.keys)) for changes in found]
    joined = [
        pa.concat_arrays([array, *(changes.columns[place] for changes in inside)]) for place, array in enumerate(arrays)
    ]
    rows = len(arrays[0])
    kinds = np.concatenate([np.zeros(rows, np.uint8), *(changes.kinds for changes in inside)])
    last = _last_of_keys([joined[place] for place in keys])
    last = last[(kinds[last] != DELETE) & (kinds[last] != UPDATE_BEFORE)]
    places = pa.array(last)
    return [array.take(places) for array in joined]


def _last_of_keys(keys: Sequence[Any]) -> Int64s:
    """The last row of each key, rising."""
    codes = np.stack([np.asarray(key.dictionary_encode().indices) for key in keys], axis=1)
    _, first = np.unique(codes[::-1], axis=0, return_index=True)
    last: Int64s = np.sort(len(codes) - 1 - first)
    return last
