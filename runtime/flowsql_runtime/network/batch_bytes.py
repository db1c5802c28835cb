"""Batches as bytes: Arrow IPC with what a batch carries beside its columns in the metadata of its message."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from flowsql_core.batch import ChangelogBatch, PyObjectColumn, RowTimes, WatermarkTrack
from flowsql_core.errors import ConnectorError

_KINDS, _TIMES, _TIMES_VALID, _OFFSETS, _LEVELS = b"kinds", b"times", b"times-valid", b"offsets", b"levels"
_SHAPE, _OBJECTS = b"shape", b"objects:"
_ROWS_AND_COLUMNS: Final = struct.Struct("<qq")


def metadata_of(batch: ChangelogBatch) -> dict[bytes, bytes]:
    """Kinds, row times and watermark track."""
    found: dict[bytes, bytes] = {}
    if batch.kinds is not None:
        found[_KINDS] = batch.kinds.tobytes()
    if batch.row_times is not None:
        found[_TIMES] = batch.row_times.values_ms.tobytes()
        if batch.row_times.valid is not None:
            found[_TIMES_VALID] = batch.row_times.valid.tobytes()
    if batch.track is not None:
        found[_OFFSETS] = batch.track.offsets.tobytes()
        found[_LEVELS] = batch.track.wm_ms.tobytes()
    return found


def batch_of(columns: Sequence[Any], num_rows: int, metadata: Mapping[bytes, bytes] | None) -> ChangelogBatch:
    """The batch of columns and the metadata beside them."""
    beside: dict[bytes, bytes] = dict(metadata or {})
    kinds = np.frombuffer(beside[_KINDS], np.uint8) if _KINDS in beside else None
    times = None
    if _TIMES in beside:
        valid = np.frombuffer(beside[_TIMES_VALID], np.bool_) if _TIMES_VALID in beside else None
        times = RowTimes(np.frombuffer(beside[_TIMES], np.int64), valid)
    track = None
    if _OFFSETS in beside:
        track = WatermarkTrack(np.frombuffer(beside[_OFFSETS], np.int32), np.frombuffer(beside[_LEVELS], np.int64))
    return ChangelogBatch(tuple(columns), num_rows, kinds, times, track)


def encode_batch(batch: ChangelogBatch) -> Any:
    """A whole batch as bytes of its own. Python objects are pickled, whole columns at a time.

    Raises:
        TypeError, pickle.PicklingError: an object cannot be pickled.
    """
    import pyarrow as pa

    metadata = metadata_of(batch)
    metadata[_SHAPE] = _ROWS_AND_COLUMNS.pack(batch.num_rows, len(batch.columns))
    arrays, names = [], []
    for index, column in enumerate(batch.columns):
        if isinstance(column, PyObjectColumn):
            import cloudpickle

            metadata[_OBJECTS + str(index).encode()] = cloudpickle.dumps(column.values, protocol=5)
        else:
            arrays.append(column)
            names.append(str(index))
    if not arrays:
        # A record batch without columns forgets how many rows it has.
        arrays, names = [pa.nulls(0)], [""]
    data = pa.RecordBatch.from_arrays(arrays, names=names)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, data.schema) as writer:
        writer.write_batch(data, custom_metadata=metadata)
    return sink.getvalue()


def decode_batch(data: Any, objects: bool) -> ChangelogBatch:
    """The inverse of :func:`encode_batch`.

    Args:
        objects: whether Python objects are loaded, which runs code that they name.

    Raises:
        ConnectorError: there are objects, and they are not loaded.
    """
    import pyarrow as pa

    found, metadata = pa.ipc.open_stream(pa.py_buffer(data)).read_next_batch_with_custom_metadata()
    beside = dict(metadata)
    num_rows, columns = _ROWS_AND_COLUMNS.unpack(beside[_SHAPE])
    arrays = dict(zip(found.schema.names, found.columns, strict=True))
    made = []
    for index in range(columns):
        pickled = beside.get(_OBJECTS + str(index).encode())
        made.append(arrays[str(index)] if pickled is None else _loaded(pickled, objects))
    return batch_of(made, num_rows, beside)


def _loaded(pickled: bytes, objects: bool) -> PyObjectColumn:
    if not objects:
        raise ConnectorError(
            "unexpected-objects",
            "Rows on their way hold Python objects, and the job has none: they are not loaded, as that would run code.",
            hint="the snapshot is another job's, or was changed",
        )
    import pickle

    return PyObjectColumn(pickle.loads(pickled))
