"""Dealing snapshots out to another parallelism: keyed state by key group, lists by element, the rest whole."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from flowsql_runtime.operators.base import OperatorSnapshot

#: A stopped job: the snapshots of all subtasks of each operator, by operator uid.
JobSnapshot: TypeAlias = Mapping[str, Sequence[OperatorSnapshot]]


def redistribute(snapshots: Sequence[OperatorSnapshot], parallelism: int) -> list[OperatorSnapshot]:
    """One snapshot per new subtask from those of all old ones.

    Keyed tables go whole to everyone: the state backend takes the rows of its key groups. Watermarks are the minimum
    over the old subtasks.
    """
    keyed: dict[str, list[Any]] = {}
    lists: dict[str, list[bytes]] = {}
    union: dict[str, list[bytes]] = {}
    broadcast: dict[str, bytes] = {}
    for snapshot in snapshots:
        for name, table in snapshot.keyed.items():
            keyed.setdefault(name, []).append(table)
        for name, elements in snapshot.lists.items():
            lists.setdefault(name, []).extend(elements)
        for name, elements in snapshot.union.items():
            union.setdefault(name, []).extend(elements)
        broadcast |= snapshot.broadcast
    tables = {name: _concatenated(found) for name, found in keyed.items()}
    levels = [snapshot.watermarks_ms for snapshot in snapshots if snapshot.watermarks_ms]
    watermarks = tuple(min(column) for column in zip(*levels, strict=True))
    return [
        OperatorSnapshot(
            keyed=tables,
            lists={name: tuple(elements[subtask::parallelism]) for name, elements in lists.items()},
            union={name: tuple(elements) for name, elements in union.items()},
            broadcast=broadcast,
            watermarks_ms=watermarks,
        )
        for subtask in range(parallelism)
    ]


def _concatenated(tables: list[Any]) -> Any:
    if len(tables) == 1:
        return tables[0]
    import pyarrow as pa

    return pa.concat_tables(tables)
