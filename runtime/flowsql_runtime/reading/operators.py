"""``SHOW OPERATORS IN``: a row for each operator and state of a snapshot, with numbers of its manifest."""

from __future__ import annotations

from typing import Final

from flowsql_core.types.logical import BIGINT, BOOLEAN, STRING, Column, Schema
from flowsql_runtime.checkpoint.manifest import OperatorState
from flowsql_runtime.reading.snapshot import SnapshotParts, find_parts

SCHEMA: Final[Schema] = (
    Column("operator", STRING),
    Column("name", STRING),
    Column("kind", STRING),
    Column("state", STRING),
    Column("rows", BIGINT),
    Column("bytes", BIGINT),
    Column("parallelism", BIGINT),
    Column("max parallelism", BIGINT),
    Column("finished", BOOLEAN),
)

Row = tuple[str | int | bool | None, ...]


def operator_rows(location: str) -> list[Row]:
    """Rows of :data:`SCHEMA`; an operator that keeps nothing has one row without a state.

    ``rows`` of a state of Python objects are the key groups that have any. ``bytes``: as they are stored. Where files
    of a backend hold a part of all states of an operator, nobody knows ``rows``, and the files have a row of their own.

    Raises:
        ConnectorError: there is no snapshot, or it cannot be read.
    """
    snapshot = find_parts(location)
    return [row for operator in snapshot.manifest.operators.values() for row in _rows(snapshot, operator)]


def _rows(snapshot: SnapshotParts, operator: OperatorState) -> list[Row]:
    head = (operator.uid, operator.name, operator.kind)
    tail = (operator.parallelism, operator.max_parallelism, operator.is_finished)
    found: dict[str, tuple[int, int]] = {}

    def add(name: str, rows: int, size: int) -> None:
        before = found.get(name, (0, 0))
        found[name] = (before[0] + rows, before[1] + size)

    for one in operator.subtasks:
        for name, parts in one.keyed.items():
            add(name, sum(part.rows for part in parts), sum(part.length for part in parts))
    for _, state in snapshot.operator_parts(operator):
        for kept in (state.lists, state.union, {name: (value,) for name, value in state.broadcast.items()}):
            for name, elements in kept.items():
                add(name, len(elements), sum(map(len, elements)))
    natives = [native for _, native in snapshot.natives(operator)]
    for native in natives:
        for name in native.state_names:
            add(name, 0, 0)
    in_files = {name for native in natives for name in native.state_names}
    states: list[Row] = [
        (*head, name, None if name in in_files else rows, size, *tail) for name, (rows, size) in found.items()
    ]
    for backend in dict.fromkeys(native.backend for native in natives):
        size = sum(native.length for native in natives if native.backend == backend)
        states.append((*head, f"files of {backend}", None, size, *tail))
    return states or [(*head, None, None, None, *tail)]
