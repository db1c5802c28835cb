"""Rows between FlowSQL and Spark: batches of Arrow both ways, and a parquet file for what the driver has."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
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


class Carrier:
    """Rows of FlowSQL as Spark takes them: batches with columns c0, c1, ... in the types that Spark sees."""

    def __init__(self, columns: Schema) -> None:
        types = [spark_arrow(to_arrow(carried(without_attribute(column.type)))) for column in columns]
        self.schema = pa.schema([pa.field(f"c{index}", type_) for index, type_ in enumerate(types)])

    def carry(self, batch: ChangelogBatch) -> pa.RecordBatch:
        """The rows of a batch of insertions."""
        if batch.kinds is not None and batch.kinds.any():
            raise InternalError("a table that Spark reads was changed while it was read")
        made = [_cast(column, field.type) for column, field in zip(batch.columns, self.schema, strict=True)]
        return pa.RecordBatch.from_arrays(made, schema=self.schema)


class Stage(ABC):
    """The receiver of a job's rows in the driver. Several subtasks may call at once."""

    def __init__(self, columns: Schema) -> None:
        self._carrier = Carrier(columns)
        self._lock = threading.Lock()
        self._closed = threading.Event()

    def accept(self, batch: ChangelogBatch) -> None:
        """The next rows."""
        made = self._carrier.carry(batch)
        with self._lock:
            self._keep(made)

    @abstractmethod
    def _keep(self, batch: pa.RecordBatch) -> None: ...

    def finish(self) -> None:
        """There are no more."""
        self._closed.set()

    @abstractmethod
    def frame(self, session: Any, ddl: str) -> Any:
        """All rows as a DataFrame with these columns; waits for them: a job says that it is over before it calls
        ``finish``."""


class ArrowStage(Stage):
    """In memory: other machines need not see a file of this one."""

    def __init__(self, columns: Schema) -> None:
        super().__init__(columns)
        self._batches: list[pa.RecordBatch] = []

    def _keep(self, batch: pa.RecordBatch) -> None:
        self._batches.append(batch)

    def frame(self, session: Any, ddl: str) -> Any:
        """The rows that were kept."""
        self._closed.wait()
        return session.createDataFrame(pa.Table.from_batches(self._batches, self._carrier.schema))


class ParquetStage(Stage):
    """In one parquet file: Spark then knows how much there is, and reads a column at a time."""

    def __init__(self, path: str, columns: Schema) -> None:
        import pyarrow.parquet as pq

        super().__init__(columns)
        self._path = path
        self._writer = pq.ParquetWriter(path, self._carrier.schema)

    def _keep(self, batch: pa.RecordBatch) -> None:
        self._writer.write_batch(batch)

    def finish(self) -> None:
        """Close the file."""
        with self._lock:
            self._writer.close()
        super().finish()

    def frame(self, session: Any, ddl: str) -> Any:
        """The rows of the file."""
        self.wait_until_closed()
        return session.read.schema(ddl).parquet(self._path)

    def wait_until_closed(self) -> None:
        """Block until the file is whole."""
        self._closed.wait()


def batches_of(rows: Iterable[pa.RecordBatch], columns: Schema) -> Iterator[ChangelogBatch]:
    """Batches of Spark as batches of insertions."""
    types = [without_attribute(column.type) for column in columns]
    for batch in rows:
        made = tuple(as_logical(column, type_) for column, type_ in zip(batch.columns, types, strict=True))
        yield ChangelogBatch.of(made, num_rows=batch.num_rows)


def answer_batches(table: Any, columns: Schema) -> Iterator[ChangelogBatch]:
    """An answer of Spark as batches of insertions, in its order."""
    # Its columns may have equal names.
    names = [f"c{index}" for index in range(len(columns))]
    batches = table.rename_columns(names).to_batches(max_chunksize=BATCH_ROWS)
    yield from batches_of((batch for batch in batches if batch.num_rows), columns)


def as_carried(array: Any, type_: LogicalType) -> Any:
    """A column of FlowSQL as Spark takes it."""
    return _cast(array, to_arrow(carried(type_)))


def spark_arrow(type_: pa.DataType) -> pa.DataType:
    """The Arrow type of a column that Spark reads without a look at its unit: its moments count microseconds."""
    if pa.types.is_timestamp(type_):
        return pa.timestamp("us", type_.tz)
    if pa.types.is_list(type_):
        return pa.list_(spark_arrow(type_.value_type))
    if pa.types.is_map(type_):
        return pa.map_(spark_arrow(type_.key_type), spark_arrow(type_.item_type))
    if pa.types.is_struct(type_):
        return pa.struct([pa.field(field.name, spark_arrow(field.type)) for field in type_])
    return type_


def _cast(array: Any, target: pa.DataType) -> Any:
    return array if array.type == target else pc.cast(array, target)


def as_logical(column: Any, type_: LogicalType) -> Any:
    """A column of Spark in FlowSQL's type; Spark counts microseconds."""
    return pc.cast(column, options=pc.CastOptions(to_arrow(type_), allow_time_truncate=True))
