"""What passes between the stages of a batch: few rows, each a batch, a watermark or a report as bytes."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator
from typing import Any, Final

import pyarrow as pa

from flowsql_core.record import record

#: ``target``: subtask that gets it. ``vertex``: place of the receiver among the vertices of the job; the driver stands
#: behind all of them. ``edge``: position among the edges of the job. ``origin``, ``sequence``: subtask that sent it,
#: and the how many-th it is.
SCHEMA: Final = pa.schema(
    [
        pa.field("target", pa.int32()),
        pa.field("vertex", pa.int32()),
        pa.field("edge", pa.int32()),
        pa.field("origin", pa.int32()),
        pa.field("sequence", pa.int64()),
        pa.field("kind", pa.int32()),
        pa.field("payload", pa.binary()),
    ]
)
DDL: Final = "target INT, vertex INT, edge INT, origin INT, sequence BIGINT, kind INT, payload BINARY"
#: The order in which a task reads what it gets: it does not hang on who was faster.
ORDER: Final = ("vertex", "edge", "origin", "sequence")
#: ``vertex`` of what the driver gets.
DRIVER: Final = 1 << 30


class Kind(enum.IntEnum):
    """What a payload is."""

    ROWS = 0
    WATERMARK = 1
    #: How a task ended, for the driver.
    REPORT = 2
    #: Rows of a sink that writes to the program.
    SINK_ROWS = 3


@record
class Packed:
    """One row."""

    target: int
    vertex: int
    edge: int
    origin: int
    sequence: int
    kind: Kind
    payload: Any

    def batch(self) -> pa.RecordBatch:
        """As Spark takes it."""
        numbers = (self.target, self.vertex, self.edge, self.origin, self.sequence, int(self.kind))
        arrays = [pa.array([number], field.type) for number, field in zip(numbers, SCHEMA, strict=False)]
        payload = pa.py_buffer(self.payload)
        ends = pa.array([0, payload.size], pa.int32()).buffers()[1]
        return pa.RecordBatch.from_arrays(
            [*arrays, pa.Array.from_buffers(pa.binary(), 1, [None, ends, payload])], schema=SCHEMA
        )


def unpacked(batches: Iterable[pa.RecordBatch]) -> Iterator[Packed]:
    """The rows of batches of Spark; a payload is a whole batch, not a row of a table."""
    for batch in batches:
        *numbers, payloads = batch.columns
        for place, row in enumerate(zip(*(column.to_pylist() for column in numbers), strict=True)):
            target, vertex, edge, origin, sequence, kind = row
            yield Packed(target, vertex, edge, origin, sequence, Kind(kind), payloads[place].as_buffer())
