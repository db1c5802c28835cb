"""Rows between FlowSQL and Spark: parquet files on the way in, Arrow tables on the way out."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from flowsql_core.arrow import compute as pc
from flowsql_core.batch import ChangelogBatch
from flowsql_core.errors import InternalError
from flowsql_core.graph.spark import carried
from flowsql_core.types.arrow import to_arrow
from flowsql_core.types.logical import LogicalType, Schema, without_attribute

#: Rows of a batch that goes back.
BATCH_ROWS = 1 << 16


class ParquetStage:
    """The receiver of a local job's rows: one parquet file, with columns c0, c1, ... in the types that Spark sees.

    Args:
        keys: columns that name the group of a row, where rows are changes of groups: the last of each is written. None:
            rows are never taken back.
    """

    def __init__(self, path: str, columns: Schema, keys: tuple[int, ...] | None = None) -> None:
        import pyarrow.parquet as pq

        self._types = [without_attribute(column.type) for column in columns]
        fields = [pa.field(f"c{index}", to_arrow(carried(type_))) for index, type_ in enumerate(self._types)]
        self._schema = pa.schema(fields)
        self._writer = pq.ParquetWriter(path, self._schema)
        self._latest = None if keys is None else LatestRows(self._types, keys)
        self._lock = threading.Lock()
        self._closed = threading.Event()

    def accept(self, batch: ChangelogBatch) -> None:
        """Write a batch; several subtasks may call at once."""
        with self._lock:
            if self._latest is not None:
                self._latest.accept(batch)
                return
            if batch.kinds is not None and batch.kinds.any():
                raise InternalError("a table that Spark reads was changed while it was read")
            self._write(batch.columns)

    def _write(self, columns: Sequence[Any]) -> None:
        carried_columns = [as_carried(column, type_) for column, type_ in zip(columns, self._types, strict=True)]
        self._writer.write_batch(pa.RecordBatch.from_arrays(carried_columns, schema=self._schema))

    def finish(self) -> None:
        """Close the file."""
        with self._lock:
            if self._latest is not None:
                for columns in self._latest.rows():
                    self._write(columns)
            self._writer.close()
        self._closed.set()

    def wait_until_closed(self) -> None:
        """Block until the file is whole: a job says that it is over before its receivers hear so."""
        self._closed.wait()


class LatestRows:
    """The rows that stand at the end of a changelog of groups: the last one of each.

    Args:
        types: of the columns.
        keys: columns that name a group; none: there is one group.
    """

    def __init__(self, types: Sequence[LogicalType], keys: tuple[int, ...]) -> None:
        from flowsql_runtime.state.scratch import scratch_stores

        self._keys = keys
        self._index = scratch_stores().key_index([to_arrow(types[index]) for index in keys])
        self._batches: list[ChangelogBatch] = []
        self._slots: list[Any] = []

    def accept(self, batch: ChangelogBatch) -> None:
        """The next changes; what they replace is not looked at."""
        if batch.kinds is not None:
            batch = batch.filter((batch.kinds & 1) == 0)
        if batch.num_rows:
            keys = [batch.columns[index] for index in self._keys]
            slots, _ = self._index.find_or_insert(self._index.encode(keys, num_rows=batch.num_rows))
            self._batches.append(batch)
            self._slots.append(slots)

    def rows(self) -> Iterator[Sequence[Any]]:
        """Columns of the rows that stand, batch by batch."""
        import numpy as np

        starts = np.cumsum([0, *(batch.num_rows for batch in self._batches)])
        last = np.full(len(self._index), -1, np.int64)
        for start, slots in zip(starts, self._slots, strict=False):
            np.maximum.at(last, slots, start + np.arange(len(slots)))
        for start, slots, batch in zip(starts, self._slots, self._batches, strict=False):
            standing = np.flatnonzero(last[slots] == start + np.arange(len(slots)))
            yield [pc.take(column, pa.array(standing)) for column in batch.columns]


def write_answer(table: Any, columns: Schema, path: str) -> None:
    """An answer of Spark as the parquet file that a local job reads on."""
    import pyarrow.parquet as pq

    arrays = _answer_columns(table, columns)
    names = [f"c{index}" for index in range(len(arrays))]
    pq.write_table(pa.Table.from_arrays(arrays, names=names), path)


def answer_batches(table: Any, columns: Schema) -> Iterator[ChangelogBatch]:
    """An answer of Spark as batches of insertions, in its order."""
    names = [f"c{index}" for index in range(len(columns))]
    whole = pa.Table.from_arrays(_answer_columns(table, columns), names=names)
    for batch in whole.to_batches(max_chunksize=BATCH_ROWS):
        if batch.num_rows:
            yield ChangelogBatch.from_record_batch(batch)


def _answer_columns(table: Any, columns: Schema) -> list[Any]:
    return [as_logical(table.column(index), without_attribute(column.type)) for index, column in enumerate(columns)]


def as_carried(array: Any, type_: LogicalType) -> Any:
    """A column of FlowSQL as Spark takes it."""
    target = to_arrow(carried(type_))
    return array if array.type == target else pc.cast(array, target)


def as_logical(column: Any, type_: LogicalType) -> Any:
    """A column of Spark in FlowSQL's type; Spark counts microseconds."""
    return pc.cast(column, options=pc.CastOptions(to_arrow(type_), allow_time_truncate=True))
