"""State of operators as bytes and back: Arrow IPC streams, cut by key groups so that a subtask reads only its own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, assert_never

import numpy as np
import orjson
import pyarrow as pa

from flowsql_compute.eval.columns import values_and_validity
from flowsql_core.batch import ChangelogBatch
from flowsql_core.element import ACTIVE, IDLE, Watermark, WatermarkStatus
from flowsql_core.record import record
from flowsql_runtime.network.batch_bytes import decode_batch, encode_batch
from flowsql_runtime.network.in_flight import ChannelElement, InFlight
from flowsql_runtime.operators.base import OperatorSnapshot
from flowsql_runtime.time.watermarks import GateLevels

KEY_GROUP: Final = "__key_group"

#: Rows of a state from which it is cut by key groups.
WHOLE_ROWS: Final = 4_096
#: Into how many runs of key groups a subtask's state is cut: a restore reads at most two runs more than it needs.
RUNS: Final = 16

_FLIGHT_NAMES: Final = ("input", "channel", "kind", "value")
_FLIGHT_TYPES: Final = (pa.int32(), pa.int32(), pa.int8(), pa.large_binary())
_GATES: Final = b"gates"

#: Room for the end mark of a stream.
_END_BYTES: Final = 64

_LIST, _UNION, _BROADCAST = 0, 1, 2
_OPERATOR_SCHEMA: Final = pa.schema([("kind", pa.int8()), ("name", pa.string()), ("value", pa.large_binary())])


@record
class EncodedPart:
    """One stream, with the key groups of its rows (first and last; None without keys)."""

    data: Any
    rows: int
    groups: tuple[int, int] | None


def encode_keyed(table: Any, compress: bool) -> Iterator[EncodedPart]:
    """A state's table as streams, each of a run of key groups; rows of one group keep their order.

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
    first, last = int(groups.min()), int(groups.max())
    step = -(-(last - first + 1) // RUNS)
    # Bytes are sorted by counting: many times faster than sorting by the groups themselves.
    runs = ((groups - first) // step).astype(np.uint8)
    order = np.argsort(runs, kind="stable")
    ends = np.cumsum(np.bincount(runs, minlength=RUNS))
    start = 0
    for run, stop in enumerate(ends.tolist()):
        if start < stop:
            part = table.take(pa.array(order[start:stop]))
            low = first + run * step
            yield EncodedPart(_stream(part, compress), stop - start, (low, min(low + step - 1, last)))
        start = stop


def decode_keyed(streams: Iterable[Any], key_groups: range) -> Any | None:
    """The rows of ``key_groups`` in streams of one state, as a table; None where there is no stream."""
    tables = [pa.ipc.open_stream(pa.py_buffer(stream)).read_all() for stream in streams]
    if not tables:
        return None
    whole = tables[0] if len(tables) == 1 else pa.concat_tables(tables, promote_options="permissive")
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


def encode_in_flight(in_flight: InFlight, compress: bool) -> EncodedPart:
    """Elements on their way to a task as one stream, an element a row, the watermarks of gates in its schema."""
    rows = [_element_row(one) for one in in_flight.elements]
    columns = [pa.array(column, type_) for column, type_ in zip(zip(*rows, strict=True), _FLIGHT_TYPES, strict=True)]
    gates = [[list(gate.levels_ms), list(gate.idle), gate.combined_ms] for gate in in_flight.gates]
    table = pa.Table.from_arrays(columns, names=list(_FLIGHT_NAMES))
    table = table.replace_schema_metadata({_GATES: orjson.dumps(gates)})
    return EncodedPart(_stream(table, compress), len(rows), None)


def decode_in_flight(stream: Any, objects: bool) -> InFlight:
    """The inverse of :func:`encode_in_flight`.

    Args:
        objects: whether Python objects are loaded, which runs code that they name.

    Raises:
        ConnectorError: there are objects, and they are not loaded.
    """
    table = pa.ipc.open_stream(pa.py_buffer(stream)).read_all()
    gates = tuple(
        GateLevels(tuple(levels), tuple(idle), combined)
        for levels, idle, combined in orjson.loads(table.schema.metadata[_GATES])
    )
    elements = []
    # An element is a whole batch, not a row.
    for index, channel, kind, value in zip(*(table.column(name) for name in _FLIGHT_NAMES), strict=True):
        data = value.as_buffer()
        element: ChangelogBatch | Watermark | WatermarkStatus
        match kind.as_py():
            case 0:
                element = decode_batch(data, objects)
            case 1:
                element = Watermark(int.from_bytes(data.to_pybytes(), "little", signed=True))
            case _:
                element = ACTIVE if data.to_pybytes() == b"1" else IDLE
        elements.append(ChannelElement(index.as_py(), channel.as_py(), element))
    return InFlight(gates, tuple(elements))


def _element_row(one: ChannelElement) -> tuple[int, int, int, Any]:
    match one.element:
        case ChangelogBatch():
            return one.input_index, one.channel, 0, encode_batch(one.element).to_pybytes()
        case Watermark(timestamp_ms=at):
            return one.input_index, one.channel, 1, at.to_bytes(8, "little", signed=True)
        case WatermarkStatus(active=active):
            return one.input_index, one.channel, 2, b"1" if active else b"0"
        case _:
            assert_never(one.element)


def _stream(table: Any, compress: bool) -> Any:
    options = pa.ipc.IpcWriteOptions(compression="lz4" if compress else None)
    if compress:
        sink = pa.BufferOutputStream()
    else:
        # Written to its place at once: a stream that grows copies itself again and again.
        batches = table.to_batches()
        size = table.schema.serialize().size + sum(pa.ipc.get_record_batch_size(batch) for batch in batches)
        buffer = pa.allocate_buffer(size + _END_BYTES)
        sink = pa.FixedSizeBufferWriter(buffer)
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write_table(table)
    if compress:
        return sink.getvalue()
    return buffer.slice(0, sink.tell())
