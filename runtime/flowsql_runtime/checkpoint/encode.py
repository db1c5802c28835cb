"""State of operators as bytes and back: Arrow IPC streams, cut by key groups so that a subtask reads only its own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from flowsql_compute.eval.columns import values_and_validity
from flowsql_core.record import record
from flowsql_runtime.operators.base import OperatorSnapshot

KEY_GROUP: Final = "__key_group"

#: Rows of a state from which it is cut by key groups.
WHOLE_ROWS: Final = 4_096
#: Into how many runs of key groups a subtask's state is cut: a restore reads at most two runs more than it needs.
RUNS: Final = 16

_LIST, _UNION, _BROADCAST = 0, 1, 2
_OPERATOR_SCHEMA: Final = pa.schema([("kind", pa.int8()), ("name", pa.string()), ("value", pa.large_binary())])


@record
class EncodedPart:
    """One stream, with the key groups of its rows (first and last; None without keys)."""

    data: Any
    rows: int
    groups: tuple[int, int] | None


def encode_keyed(table: Any, compress: bool) -> Iterator[EncodedPart]:
    """A state's table as streams of rising key groups; rows of one group keep their order.

    Args:
        table: Arrow table whose first column ``__key_group`` is int32.
    """
    n = table.num_rows
    if not n:
        return
    column = table.column(KEY_GROUP)
    groups = values_and_validity(column.chunk(0) if column.num_chunks == 1 else column.combine_chunks())[0]
    if n <= WHOLE_ROWS:
        yield EncodedPart(_stream(table, compress), n, (int(groups.min()), int(groups.max())))
        return
    order = np.argsort(groups, kind="stable")
    rising = groups[order]
    first, last = int(rising[0]), int(rising[-1])
    step = -(-(last - first + 1) // RUNS)
    edges = np.searchsorted(rising, np.arange(first, last + 1 + step, step))
    for start, stop in zip(edges[:-1].tolist(), [*edges[1:-1].tolist(), n], strict=True):
        if start < stop:
            part = table.take(pa.array(order[start:stop]))
            yield EncodedPart(_stream(part, compress), stop - start, (int(rising[start]), int(rising[stop - 1])))


def decode_keyed(streams: Iterable[Any], key_groups: range) -> Any | None:
    """The rows of ``key_groups`` in streams of one state, as a table; None where there is no stream."""
    tables = [pa.ipc.open_stream(pa.py_buffer(stream)).read_all() for stream in streams]
    if not tables:
        return None
    whole = tables[0] if len(tables) == 1 else pa.concat_tables(tables)
    column = whole.column(KEY_GROUP).combine_chunks()
    groups = values_and_validity(column)[0]
    mine = (groups >= key_groups.start) & (groups < key_groups.stop)
    return whole if mine.all() else whole.filter(pa.array(mine))


def encode_operator(snapshot: OperatorSnapshot, compress: bool) -> EncodedPart | None:
    """List, union and broadcast state as one stream; None where there is none."""
    kinds: list[int] = []
    names: list[str] = []
    values: list[bytes] = []

    def add(kind: int, found: Mapping[str, Sequence[bytes]]) -> None:
        for name, elements in found.items():
            kinds.extend([kind] * len(elements))
            names.extend([name] * len(elements))
            values.extend(elements)

    add(_LIST, snapshot.lists)
    add(_UNION, snapshot.union)
    add(_BROADCAST, {name: (value,) for name, value in snapshot.broadcast.items()})
    if not kinds:
        return None
    arrays = [
        pa.array(kinds, pa.int8()),
        pa.array(names, pa.string()),
        pa.array(values, pa.large_binary()),
    ]
    table = pa.Table.from_arrays(arrays, schema=_OPERATOR_SCHEMA)
    return EncodedPart(_stream(table, compress), len(kinds), None)


@record
class OperatorParts:
    """List, union and broadcast state of one old subtask."""

    lists: Mapping[str, tuple[bytes, ...]]
    union: Mapping[str, tuple[bytes, ...]]
    broadcast: Mapping[str, bytes]


def decode_operator(stream: Any) -> OperatorParts:
    """The inverse of :func:`encode_operator`."""
    table = pa.ipc.open_stream(pa.py_buffer(stream)).read_all()
    found: tuple[dict[str, list[bytes]], ...] = ({}, {}, {})
    # A value is a whole state of a subtask (a split, a buffer), not a row.
    columns = (table.column(name) for name in ("kind", "name", "value"))
    for kind, name, value in zip(*columns, strict=True):
        found[kind.as_py()].setdefault(name.as_py(), []).append(value.as_py())
    return OperatorParts(
        {name: tuple(values) for name, values in found[_LIST].items()},
        {name: tuple(values) for name, values in found[_UNION].items()},
        {name: values[-1] for name, values in found[_BROADCAST].items()},
    )


def _stream(table: Any, compress: bool) -> Any:
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="lz4" if compress else None)
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write_table(table)
    return sink.getvalue()
