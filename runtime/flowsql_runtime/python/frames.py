"""What a task and its worker process say to each other: frames over a socket, columns as Arrow IPC messages.

A frame is a header (kind, rows, length of the note, length of the body), the note (pickled, small) and the body. A task
sends START (note: what to run), any number of BATCH (body: argument columns) and END. The worker answers START with
OPENED, each BATCH with RESULT (note: metrics since the last frame, body: result columns), END with CLOSED, and whatever
failed with FAILED (note: the failure), after which it says no more.
"""

from __future__ import annotations

import enum
import pickle
import socket
import struct
from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa

from flowsql_core.record import record
from flowsql_runtime.python.program import PythonProgram

_HEADER: Final = struct.Struct("<BQQQ")
#: Bytes that the kernel may hold for one direction.
BUFFER_BYTES: Final = 1 << 20


class FrameKind(enum.IntEnum):
    """First byte of a frame."""

    START = 1
    BATCH = 2
    END = 3
    OPENED = 4
    RESULT = 5
    CLOSED = 6
    FAILED = 7


@record
class WorkerStart:
    """The note of START. ``functions``: the program's functions in its order, pickled by cloudpickle."""

    program: PythonProgram
    functions: bytes
    parameters: dict[str, str]
    task_name: str
    subtask: int
    parallelism: int
    max_parallelism: int
    attempt: int


@record
class Frame:
    """One message. ``body``: a buffer of an IPC message, empty where there are no columns."""

    kind: FrameKind
    rows: int = 0
    note: Any = None
    body: Any = b""


def send_frame(channel: socket.socket, frame: Frame) -> None:
    """Send all of a frame; OSError when nobody listens."""
    note = pickle.dumps(frame.note)
    body = memoryview(frame.body)
    channel.sendall(_HEADER.pack(frame.kind, frame.rows, len(note), body.nbytes) + note)
    if body.nbytes:
        channel.sendall(body)


def receive_frame(channel: socket.socket) -> Frame | None:
    """The next frame, its note unpickled; None at the end of the conversation."""
    header = _receive(channel, _HEADER.size)
    if header is None:
        return None
    kind, rows, note_bytes, body_bytes = _HEADER.unpack(header)
    note = _receive(channel, note_bytes)
    body = _receive(channel, body_bytes)
    if note is None or body is None:
        return None
    return Frame(FrameKind(kind), rows, pickle.loads(note), body)


def _receive(channel: socket.socket, size: int) -> bytearray | None:
    made = bytearray(size)
    rest = memoryview(made)
    while rest.nbytes:
        received = channel.recv_into(rest)
        if not received:
            return None
        rest = rest[received:]
    return made


def encode_columns(columns: Sequence[pa.Array], schema: pa.Schema) -> Any:
    """Columns as the body of a frame."""
    if not columns:
        return b""
    return pa.RecordBatch.from_arrays(list(columns), schema=schema).serialize()


def decode_columns(body: Any, schema: pa.Schema) -> list[pa.Array]:
    """The columns of a body; they lie in its memory."""
    if not len(schema):
        return []
    return list(pa.ipc.read_record_batch(pa.py_buffer(body), schema).columns)


def positional_schema(types: Sequence[pa.DataType]) -> pa.Schema:
    """The schema of columns that need no names."""
    return pa.schema([pa.field(str(index), type_) for index, type_ in enumerate(types)])
